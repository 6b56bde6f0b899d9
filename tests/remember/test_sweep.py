"""What was remembered on request, on the nights after: it stands, and older notes don't come back beside it."""

from pathlib import Path

import pytest

from memory_assets import verification
from memory_assets.sweep import SweepReport, run_sweep
from recall_runtime.remember.request import Remembered, remember
from tests.support.workspace_days import Days

NOTE = "memory/2026-03-03.md"
OLD = "The Harbourline ferry leaves from pier 41877."
NEW = "The Harbourline ferry leaves from pier 50123."
NIGHT = "2026-03-08T03:00:00Z"


@pytest.fixture
def days(tmp_path: Path) -> Days:
    """A note line that has been recalled often enough to be promoted."""
    days = Days(tmp_path)
    days.write(NOTE, f"- {OLD}\n")
    days.sync("2026-03-03T12:00:00Z")
    for day in range(4, 8):
        days.recall(f"2026-03-0{day}T09:00:00Z", f"which pier, question {day}", NOTE, 1, 0.95)
    return days


def ask(days: Days, instant: str, text: str) -> Remembered:
    return remember(days.at(instant), text, session_key="agent:main:main", sender="owner")


def sweep(days: Days, instant: str = NIGHT) -> SweepReport:
    return run_sweep(days.at(instant), publishing=False)


def memory(days: Days) -> str:
    return (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")


def test_an_older_note_does_not_come_back_beside_the_owners_word(days: Days) -> None:
    ask(days, "2026-03-07T10:00:00Z", NEW)
    before = memory(days)
    sweep(days)
    assert memory(days) == before
    assert OLD not in memory(days)


def test_the_owners_word_replaces_what_a_sweep_promoted_for_good(days: Days) -> None:
    sweep(days)
    promoted = memory(days)
    assert OLD in promoted
    made = ask(days, "2026-03-09T10:00:00Z", NEW)
    assert made.superseded == (OLD,)
    assert OLD not in memory(days)
    assert days.rows("SELECT status FROM claims WHERE text = ?", OLD) == [("superseded",)]
    sweep(days, "2026-03-10T03:00:00Z")
    assert OLD not in memory(days)
    assert NEW in memory(days)


def test_the_same_claim_from_a_note_joins_what_was_remembered(days: Days) -> None:
    ask(days, "2026-03-07T10:00:00Z", OLD)
    sweep(days)
    assert memory(days).count(OLD) == 1


@pytest.mark.parametrize("asked_at", ["2026-03-05T18:00:00Z", "2026-03-07T10:00:00Z"], ids=["that day", "later"])
def test_a_directive_of_the_owner_is_not_replaced_by_an_older_one(tmp_path: Path, asked_at: str) -> None:
    days = Days(tmp_path)
    for day in (3, 4, 5):
        days.says(f"2026-03-0{day}T09:00:00Z", f"s{day}", "Always show prices in euro.")
    ask(days, asked_at, "Always show prices in dollars.")
    before = (days.agent.workspace / "USER.md").read_bytes()
    report = sweep(days)
    assert [row.passed for row in report.scored] == [True]  # the gates alone did not hold it back
    assert (days.agent.workspace / "USER.md").read_bytes() == before


def test_the_rules_of_a_sweep_hold_after_a_request(days: Days) -> None:
    ask(days, "2026-03-07T10:00:00Z", NEW)
    ask(days, "2026-03-07T10:00:01Z", "Prefer aisle seats.")
    sweep(days)
    rules = (
        verification.no_untrusted_eligible,
        verification.within_budget,
        verification.bounded_loss,
        verification.anchors_resolve,
        verification.user_md_imperative,
        verification.accounting_adds_up,
    )
    with days.state() as state:
        assert {rule.__name__: rule(days.at(NIGHT), state).passed for rule in rules} == {
            rule.__name__: True for rule in rules
        }


def with_limits(folder: Path, last_day: str) -> Days:
    """A line with a condition and a last day that has been recalled often enough to be promoted."""
    days = Days(folder)
    days.write(NOTE, f"- {OLD} <!-- condition: only on weekdays --> <!-- expires: {last_day} -->\n")
    days.sync("2026-03-03T12:00:00Z")
    for day in range(4, 8):
        days.recall(f"2026-03-0{day}T09:00:00Z", f"which pier, question {day}", NOTE, 1, 0.95)
    return days


def test_a_line_that_has_expired_is_not_promoted(tmp_path: Path) -> None:
    days = with_limits(tmp_path, "2026-03-07")
    sweep(days)
    assert not (days.agent.workspace / "MEMORY.md").exists()


def test_a_line_is_promoted_with_its_condition(tmp_path: Path) -> None:
    days = with_limits(tmp_path, "2026-12-31")
    report = sweep(days)
    assert report.outcome == "promoted"
    assert f"- {OLD} (condition: only on weekdays) (expires: 2026-12-31) Source: " in memory(days)
