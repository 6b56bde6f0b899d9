"""Two true facts of one project with values of one shape: both are remembered, night after night."""

from pathlib import Path

import pytest

from memory_assets.sweep import run_sweep
from recall_runtime.remember.request import remember
from tests.support.workspace_days import Days

MARK = " <!-- project: github.com/x/ferry -->"
PAIRS = [
    ("The ferry gateway listens on port 8080.", "The ferry metrics exporter listens on port 9100."),
    ("The ferry staging database listens on port 5433.", "The ferry production database listens on port 5434."),
    ("Ferry backups land in s3://keep-12.", "Ferry logs land in s3://keep-31."),
]


def lines(days: Days) -> set[str]:
    """The entries of MEMORY.md, without their annotations."""
    text = (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")
    return {line[2:].partition(" Source: ")[0] for line in text.splitlines() if line.startswith("- ")}


@pytest.mark.parametrize("pair", PAIRS, ids=["part", "environment", "kind-of-data"])
def test_two_matters_said_on_three_days_are_both_promoted(tmp_path: Path, pair: tuple[str, str]) -> None:
    """Each night would otherwise refuse the older one, because "a newer value was stated"."""
    days = Days(tmp_path)
    for day in (3, 4, 5):
        for hour, text in enumerate(pair, start=10):
            days.note(f"2026-03-0{day}T{hour}:00:00Z", text + MARK, f"s{day}-{hour}")
    for night in (6, 7):
        run_sweep(days.at(f"2026-03-0{night}T03:00:00Z"), publishing=False)
        assert lines(days) == set(pair)


def test_the_newer_value_of_one_matter_alone_is_promoted(tmp_path: Path) -> None:
    """The counterpart: the same matter, a newer value."""
    days = Days(tmp_path)
    older, newer = "The ferry gateway listens on port 8080.", "The gateway of ferry now listens on port 8443."
    for day, text in ((2, older), (3, older), (4, older), (4, newer), (5, newer), (6, newer)):
        days.note(f"2026-03-0{day}T10:00:00Z", text + MARK, f"s{day}-{text[-5:-1]}")
    run_sweep(days.at("2026-03-07T03:00:00Z"), publishing=False)
    assert lines(days) == {newer}


def test_a_request_about_another_environment_deletes_no_line_by_hand(tmp_path: Path) -> None:
    """Production is not staging, and a person's line is a person's line."""
    days = Days(tmp_path)
    by_hand = "The staging host of ferry runs postgres 14."
    days.write("MEMORY.md", f"# Memory\n\n- {by_hand}{MARK}\n")
    days.note("2026-03-03T10:00:00Z", "We work on ferry." + MARK, "s1")
    days.stage("2026-03-03T12:00:00Z")
    asked = "Remember that the production host of ferry runs postgres 16."
    made = remember(days.at("2026-03-05T10:00:00Z"), asked, session_key="agent:main:main", sender="owner")
    assert made.superseded == ()
    assert f"- {by_hand}{MARK}" in (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")
