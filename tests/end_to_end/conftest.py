"""One chain a test."""

from pathlib import Path

import pytest

from tests.end_to_end.chain import OPEN_GATES, Chain


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """Return a chain whose gates hold nothing back by number or room: structure and provenance decide alone."""
    return Chain(tmp_path, dreaming=OPEN_GATES)
