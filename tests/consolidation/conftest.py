"""Fixtures of consolidation tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_runtime.storage.schema import open_state
from tests.support.curated import agent_in
from tests.support.night import Night


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """An agent with an empty workspace, ready for sweeps."""
    agent = agent_in(tmp_path)
    state = open_state(agent.folders.state_db)
    yield Night(agent, state)
    state.close()
