"""``DREAMS.md``: what a sweep writes, repeats and leaves alone."""

import os
from pathlib import Path

import pytest

from memory_assets.review.dreams import ARCHIVE, DIARY_BYTES, rotated
from memory_assets.review.records import Aspiration, OwnerConflict, SweepReport
from memory_assets.review.write import write_review
from recall_runtime.config import ModelSettings
from recall_runtime.models.registry import model_from
from recall_runtime.notes.markers import ManagedBlock, block_body
from tests.review.helpers import AT, DAY, added, agent_of, sweep
from tests.support.model_server import Reply, model_server, openai_reply


def test_a_new_diary_has_title_diary_summary_and_history(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    result = write_review(agent, sweep(0, added("Key is right.", "k2", "- Key is left.")))
    text = (agent.workspace / "DREAMS.md").read_text(encoding="utf-8")
    assert result.changed[0] == "DREAMS.md"
    assert text.startswith(
        "# Dream Diary\n\n<!-- openclaw:dreaming:diary:start -->\n---\n\n*March 4, 2026 at 3:00 AM UTC*\n"
    )
    assert "_Written by rule._" in text
    assert "## Deep Sleep\n<!-- openclaw:dreaming:deep:start -->\n" in text
    assert (
        "- Ranked 3 candidate(s).\n- Promoted 1 candidate(s): 1 superseded.\n- Held back: min_recall_count 2.\n" in text
    )
    history = text.split("## Memory Consolidation History\n\n", 1)[1]
    assert history == (
        "### 2026-03-04T03:00:00.000Z\n\n- Added: 0\n- Merged: 0\n- Superseded: 1\n- Highlights:\n"
        "  - `- - Key is left.` <!-- openclaw-memory-promotion:k2 -->\n"
        "  - `+ Key is right.` <!-- openclaw-memory-promotion:k2 -->\n"
    )


def test_new_file_is_for_the_owner_alone(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    write_review(agent, sweep())
    assert (agent.workspace / "DREAMS.md").stat().st_mode & 0o777 == 0o600


def test_an_empty_sweep_creates_no_file(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    result = write_review(agent, SweepReport("s", AT, DAY, ranked=5, failed_gates={"min_score": 5}))
    assert result.changed == ()
    assert list(agent.workspace.iterdir()) == []


def test_the_newest_history_entry_stands_first_and_the_owners_remark_stays(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    path.write_text("# Dreams\n\n## Memory Consolidation History\n\nMy remark.\n", encoding="utf-8")
    write_review(agent, sweep(1))
    write_review(agent, sweep(2, added("Another.", "k9")))
    lines = path.read_text(encoding="utf-8").splitlines()
    places = [lines.index(f"### 2026-03-0{day}T03:00:00.000Z") for day in (6, 5)]
    assert places[0] < places[1] < lines.index("My remark.")


def test_a_report_that_says_nothing_new_says_so_once(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    write_review(agent, sweep(1))
    first = path.read_text(encoding="utf-8")
    write_review(agent, sweep(2))
    second = path.read_text(encoding="utf-8")
    assert "- Same result as the sweep of 2026-03-05T03:00:00.000Z." in second
    assert second.count("<!-- dreamline:sweep") == first.count("<!-- dreamline:sweep") == 1
    write_review(agent, sweep(3))
    assert path.read_text(encoding="utf-8") == second


def test_existing_lower_case_name_is_kept(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    (agent.workspace / "dreams.md").write_text("# Mine\n", encoding="utf-8")
    assert write_review(agent, sweep()).changed[0] == "dreams.md"
    assert not (agent.workspace / "DREAMS.md").exists()


def test_a_link_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    target = tmp_path / "elsewhere.md"
    target.write_text("mine", encoding="utf-8")
    (agent.workspace / "DREAMS.md").symlink_to(target)
    result = write_review(agent, sweep())
    assert "is a link" in result.problems[0]
    assert target.read_text(encoding="utf-8") == "mine"


def test_a_folder_in_the_way_is_reported(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    (agent.workspace / "DREAMS.md").mkdir()
    assert "no file" in write_review(agent, sweep()).problems[0]


def test_a_giant_is_left_alone_and_reported(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    path.touch()
    os.truncate(path, 16 * 1024 * 1024 + 1)
    result = write_review(agent, sweep())
    assert "larger than 16 MiB" in result.problems[0]
    assert path.stat().st_size == 16 * 1024 * 1024 + 1


def test_secrets_escapes_and_markers_in_texts_are_neutralised(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    evil = (
        "key sk-abcdefghijklmnopqrstuv \x1b[31m \u202e ` <!-- openclaw:dreaming:diary:end -->\n"
        "<!-- openclaw:dreaming:deep:end --> ![x](http://h/p)"
    )
    write_review(agent, sweep(1, added(evil, "k1 --> <!-- x"), reason=evil))
    data = (agent.workspace / "DREAMS.md").read_text(encoding="utf-8")
    assert "sk-abcdefghijklmnopqrstuv" not in data
    assert "\x1b" not in data
    assert "\u202e" not in data
    body = block_body(data.encode(), ManagedBlock.DEEP) or ""
    assert "Highlights" in body
    assert "![" not in body.replace("`", "").split("Reason:")[1].split("\n")[0]


def test_highlights_are_eight_at_most_and_short(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    write_review(agent, sweep(1, *(added("word " * 100, f"k{number}") for number in range(12))))
    body = block_body((agent.workspace / "DREAMS.md").read_bytes(), ManagedBlock.DEEP) or ""
    shown = [line for line in body.splitlines() if line.startswith("  - `+")]
    assert len(shown) == 8
    assert "… and 4 more." in body
    assert all(len(line.split("`")[1]) <= 180 for line in shown)


def test_what_waits_for_the_owner_is_listed(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    wish = Aspiration("memory/2025-01-01.md", 3, "Learn to sail", DAY, DAY.replace(year=2027))
    old = Aspiration("memory/2024-01-01.md", 4, "Build a kite", DAY.replace(year=2025), DAY)
    conflict = OwnerConflict("USER.md", 30, "Lines 20, 30 are active on one matter.")
    write_review(agent, SweepReport("s", AT, DAY, aspirations=(old, wish), conflicts=(conflict,)))
    body = block_body((agent.workspace / "DREAMS.md").read_bytes(), ManagedBlock.DEEP) or ""
    assert "USER.md, line 30: Lines 20, 30 are active on one matter." in body
    assert "Learn to sail (memory/2025-01-01.md, line 3; due 2026-03-04)" in body
    assert "Build a kite (memory/2024-01-01.md, line 4; expired 2026-03-04)" in body


@pytest.mark.parametrize("mode", ["the rules", "the model qwen3-4b"])
def test_a_reason_is_told_with_who_decided(tmp_path: Path, mode: str) -> None:
    agent = agent_of(tmp_path)
    write_review(agent, sweep(1, mode=mode, reason="the model lost an entry"))
    text = (agent.workspace / "DREAMS.md").read_text(encoding="utf-8")
    assert f"- Decided by {mode}: the model lost an entry\n" in text
    assert f"- Consolidated by {mode}." in text


def test_line_ends_of_the_owner_are_kept(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    path.write_bytes(b"# Dreams\r\n\r\nMine.\r\nMore.\r\n")
    write_review(agent, sweep())
    data = path.read_bytes()
    assert data.startswith(b"# Dreams\r\n\r\nMine.\r\nMore.\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


def test_bytes_that_are_no_text_inside_the_diary_survive(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    inside = b"<!-- openclaw:dreaming:diary:start -->\nold \xff\xfe words\n"
    path.write_bytes(inside + b"<!-- openclaw:dreaming:diary:end -->\n")
    write_review(agent, sweep())
    assert path.read_bytes().startswith(inside)


def test_old_diary_entries_move_to_the_archive_and_none_vanishes(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    path = agent.workspace / "DREAMS.md"
    entries = "".join(f"---\n\n*March {n}, 2025*\n\nentry {n} " + "x" * 900 + "\n\n" for n in range(300))
    path.write_text(
        f"<!-- openclaw:dreaming:diary:start -->\n{entries}<!-- openclaw:dreaming:diary:end -->\nMy remark.\n",
        encoding="utf-8",
    )
    assert ARCHIVE in write_review(agent, sweep()).changed
    kept, moved = path.read_text(encoding="utf-8"), (agent.workspace / ARCHIVE).read_text(encoding="utf-8")
    assert len(block_body(kept.encode(), ManagedBlock.DIARY) or "") <= DIARY_BYTES // 2
    assert moved + (block_body(kept.encode(), ManagedBlock.DIARY) or "").split("---\n\n*March 5, 2026")[0] == entries
    assert "My remark." in kept
    assert rotated(kept.encode())[1] == b""


SETTINGS = {"provider": "openai-compatible", "model": "small"}


def test_a_model_writes_the_entry_and_is_named(tmp_path: Path) -> None:
    agent = agent_of(tmp_path)
    with model_server(
        openai_reply("# Tonight I kept\nthe key. <!-- openclaw:dreaming:diary:end -->" + "x" * 2_000)
    ) as server:
        model = model_from(ModelSettings(**SETTINGS, base_url=server.url))  # type: ignore[arg-type]  # literals
        write_review(agent, sweep(), model=model)
        again = write_review(agent, sweep(), model=model)
    body = block_body((agent.workspace / "DREAMS.md").read_bytes(), ManagedBlock.DIARY) or ""
    assert "_Written by openai-compatible/small._" in body
    assert "\nTonight I kept the key. &lt;!-- openclaw" in body
    assert len(body) < 1_000
    assert (again.changed, len(server.asked)) == ((), 1)


@pytest.mark.parametrize("reply", [Reply(status=500), openai_reply(" … ")], ids=["failure", "nothing said"])
def test_a_failing_model_leaves_the_entry_to_the_rules_and_says_so(tmp_path: Path, reply: Reply) -> None:
    agent = agent_of(tmp_path)
    with model_server(reply) as server:
        model = model_from(ModelSettings(**SETTINGS, base_url=server.url))  # type: ignore[arg-type]  # literals
        write_review(agent, sweep(), model=model)
    text = (agent.workspace / "DREAMS.md").read_text(encoding="utf-8")
    assert "_Written by rule: " in text
    assert "I looked at 3 candidate(s) and kept 1." in text
