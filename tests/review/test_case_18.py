"""Case 18: seven damaged diaries survive two sweeps."""

from pathlib import Path

import pytest

from memory_assets.review.write import write_review
from recall_runtime.notes.markers import ManagedBlock, managed_blocks
from tests.review.helpers import added, agent_of, sweep

CASE = Path(__file__).parents[1] / "cases" / "18-damaged-diary"
DIARIES = sorted(path.name for path in CASE.glob("*.md"))


def as_ours(name: str) -> bytes:
    """Return the case file with the product's own marker strings, as its README asks."""
    return (CASE / name).read_bytes().replace(b"<!-- dreaming:diary:", b"<!-- openclaw:dreaming:diary:")


def blocks(data: bytes, name: ManagedBlock) -> int:
    lines = data.decode().splitlines()
    return sum(span.name == name for span in managed_blocks(lines).spans)


def test_all_seven_diaries_are_there() -> None:
    assert len(DIARIES) == 7


@pytest.mark.parametrize("name", DIARIES)
def test_owners_lines_survive_in_order_and_no_second_block_appears(tmp_path: Path, name: str) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    path.write_bytes(as_ours(name))
    own = [line for line in as_ours(name).splitlines() if line.strip()]
    for number in (1, 2):
        result = write_review(agent, sweep(number, added(f"Fact {number}.", f"k{number}")))
        assert result.problems == ()
        data = path.read_bytes()
        kept = iter(data.splitlines())
        assert all(line in kept for line in own), "an owner's line was lost or moved"
        assert blocks(data, ManagedBlock.DIARY) == 1
        assert blocks(data, ManagedBlock.DEEP) == 1
        assert data.count(b"<!-- dreamline:sweep ") == number
        assert write_review(agent, sweep(number, added(f"Fact {number}.", f"k{number}"))).changed == ()
        assert path.read_bytes() == data
