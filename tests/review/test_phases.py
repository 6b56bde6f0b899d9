"""Phase reports under the three storage modes."""

from pathlib import Path

import pytest

from memory_assets.review.records import SweepReport
from memory_assets.review.write import write_review
from tests.review.helpers import AT, DAY, LIGHT, THEMES, TRUTHS, agent_of

REPORT = SweepReport("s", AT, DAY, light=LIGHT, themes=THEMES, truths=TRUTHS)
LIGHT_BODY = (
    "<!-- openclaw:dreaming:light:start -->\n"
    "- Candidate: The shed key hangs left of the door.\n  - confidence: 0.62\n"
    "  - evidence: memory/2026-03-04.md:12-12\n  - recalls: 1\n  - status: staged\n"
    "<!-- openclaw:dreaming:light:end -->\n"
)
REM_BODY = (
    "<!-- openclaw:dreaming:rem:start -->\n### Reflections\n- Theme: `shed` kept surfacing across 4 memories.\n"
    "  - confidence: 0.80\n  - evidence: memory/2026-03-04.md:12-12\n  - note: reflection\n\n"
    "### Possible Lasting Truths\n"
    "- The shed key hangs left of the door. [confidence=0.58 evidence=memory/2026-03-04.md:12-12]\n"
    "<!-- openclaw:dreaming:rem:end -->\n"
)


def test_separate_mode_writes_files_of_their_own(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    assert write_review(agent, REPORT).changed == (
        "DREAMS.md",
        "memory/dreaming/light/2026-03-04.md",
        "memory/dreaming/rem/2026-03-04.md",
    )
    folder = agent.workspace / "memory" / "dreaming"
    assert (folder / "light" / "2026-03-04.md").read_text(encoding="utf-8") == "# Light Sleep\n\n" + LIGHT_BODY
    assert (folder / "rem" / "2026-03-04.md").read_text(encoding="utf-8") == "# REM Sleep\n\n" + REM_BODY
    assert not (agent.workspace / "memory" / "2026-03-04.md").exists()


def test_inline_mode_puts_blocks_into_the_note_of_the_day(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "inline")
    note = agent.workspace / "memory" / "2026-03-04.md"
    note.parent.mkdir()
    note.write_text("- my own line \n", encoding="utf-8")
    write_review(agent, REPORT)
    expected = f"- my own line \n\n## Light Sleep\n{LIGHT_BODY}\n## REM Sleep\n{REM_BODY}"
    assert note.read_text(encoding="utf-8") == expected
    assert not (note.parent / "dreaming").exists()


def test_both_modes_write_both(tmp_path: Path) -> None:
    assert len(write_review(agent_of(tmp_path, "both"), REPORT).changed) == 4


@pytest.mark.parametrize("mode", ["separate", "inline", "both"])
def test_the_same_sweep_again_changes_no_byte(tmp_path: Path, mode: str) -> None:
    agent = agent_of(tmp_path, mode)
    write_review(agent, REPORT)
    before = {path: path.read_bytes() for path in agent.workspace.rglob("*.md")}
    assert write_review(agent, REPORT).changed == ()
    assert {path: path.read_bytes() for path in agent.workspace.rglob("*.md")} == before


def test_a_later_sweep_of_the_day_replaces_its_block_and_keeps_what_a_hand_added(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    write_review(agent, REPORT)
    path = agent.workspace / "memory" / "dreaming" / "light" / "2026-03-04.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nMy remark.\n", encoding="utf-8")
    write_review(agent, SweepReport("t", AT + 1, DAY, light=LIGHT * 2))
    text = path.read_text(encoding="utf-8")
    assert text.count("- Candidate:") == 2
    assert text.count(":start -->") == 1
    assert text.endswith("\nMy remark.\n")


def test_long_reports_are_bounded(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    write_review(agent, SweepReport("s", AT, DAY, light=LIGHT * 150))
    text = (agent.workspace / "memory" / "dreaming" / "light" / "2026-03-04.md").read_text(encoding="utf-8")
    assert text.count("- Candidate:") == 100
    assert "- … and 50 more." in text
