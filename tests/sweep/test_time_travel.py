"""A dry run of a past instant: what that night's sweep did, from what is stored now."""

import pytest

from memory_assets.sweep import run_sweep
from recall_runtime.clock import parse_instant
from recall_runtime.curated.history import undo
from recall_runtime.vocabulary import Gate
from tests.support.workspace_days import Days

FIRST, SECOND = "memory/2026-03-03.md", "memory/2026-03-12.md"
OLD = "Nightly backups of Harbourline land in s3://keep-11206."
NEW = "Nightly backups of Harbourline land in s3://keep-77310."
NIGHT, LATER = "2026-03-08T03:00:00Z", "2026-03-18T03:00:00Z"


def recalled(days, note, month_days):
    for day in month_days:
        days.recall(f"2026-03-{day:02d}T09:00:00Z", f"where do backups land, question {day}", note, 1, 0.95)


def sweep(days, instant, **options):
    return run_sweep(days.at(instant), publishing=False, **options)


def texts(report):
    return sorted(text for change in report.curated.changes for text in (OLD, NEW) if text in change.line)


@pytest.fixture
def days(tmp_path):
    """A value is promoted on the first night; on the second one a newer value takes its place."""
    days = Days(tmp_path)
    days.write("MEMORY.md", "# Memory\n")
    days.write(FIRST, f"- {OLD} <!-- project: github.com/example/harbourline -->\n")
    days.sync("2026-03-03T12:00:00Z")
    recalled(days, FIRST, range(4, 8))
    assert texts(sweep(days, NIGHT)) == [OLD]
    days.write(SECOND, f"- {NEW} <!-- project: github.com/example/harbourline -->\n")
    days.sync("2026-03-12T12:00:00Z")
    recalled(days, SECOND, range(13, 18))
    assert texts(sweep(days, LATER)) == [NEW]
    return days


def everything(days):
    root = days.agent.workspace
    return days.dump(), {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("2026-03-04T03:00:00Z", []),
        (NIGHT, [OLD]),
        ("2026-03-08T02:00:00Z", [OLD]),
        ("2026-03-11T03:00:00Z", []),
        (LATER, [NEW]),
        ("2026-03-19T03:00:00Z", []),
    ],
    ids=["before-any-recall", "the-first-night", "an-hour-before-it", "between", "the-second-night", "afterwards"],
)
def test_a_dry_run_of_the_past_finds_what_a_sweep_then_would_have(days, instant, expected):
    before = everything(days)
    assert texts(sweep(days, instant, dry_run=True)) == expected
    assert everything(days) == before


def test_it_takes_the_file_as_it_was(days):
    (change,) = sweep(days, LATER, dry_run=True).curated.changes
    assert change.operation == "superseded"
    assert [OLD in line for line in change.priors] == [True]


MORNING = "2026-03-19T09:00:00Z"


def undo_the_last_night(days):
    ((sweep_id,),) = days.rows("SELECT max(sweep_id) FROM sweeps")
    with days.state() as state:
        undo(days.at(MORNING), state, sweep_id, now_ms=parse_instant(MORNING))


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (NIGHT, [OLD]),
        (LATER, [NEW]),
        ("2026-03-19T03:00:00Z", []),
        ("2026-03-20T03:00:00Z", []),
    ],
    ids=["the-first-night", "the-night-that-was-undone", "before-the-undo", "after-the-undo"],
)
def test_an_undo_of_today_changes_nothing_about_the_nights_before_it(days, instant, expected):
    undo_the_last_night(days)
    assert texts(sweep(days, instant, dry_run=True)) == expected


def test_between_a_promotion_and_its_undo_the_claim_counts_as_promoted(days):
    undo_the_last_night(days)
    report = sweep(days, "2026-03-19T03:00:00Z", dry_run=True)
    assert Gate.ALREADY_PROMOTED in {row.failed_gate for row in report.scored if row.claim_id == claim_of(days, NEW)}


def claim_of(days, text):
    return days.rows("SELECT claim_id FROM claims WHERE text = ?", text)[0][0]


def test_a_successor_that_others_joined_later_had_taken_the_place_before(days):
    """The place was lost when the successor was first written, not when the ledger named it last."""
    key = f"memory:claim:{claim_of(days, NEW)}"
    insert = "INSERT INTO ledger(sweep_id, at, file, operation, entry_key, text) VALUES ('x', ?, ?, 'merged', ?, '')"
    days.rows(insert, parse_instant("2026-03-25T03:00:00Z"), "MEMORY.md", key)
    report = sweep(days, "2026-03-19T03:00:00Z", dry_run=True)
    assert [row.failed_gate for row in report.scored if row.claim_id == claim_of(days, OLD)] == [Gate.SUPERSEDED]


def test_a_value_that_came_back_later_was_out_of_the_file_before(days):
    """The first value is promoted, replaced, promoted again; a dry run in between meets the second one."""
    for number in range(3):
        moment = f"2026-03-{20 + number}T10:00:00Z"
        days.note(moment, f"{OLD} <!-- project: github.com/example/harbourline -->", f"again-{number}")
    assert texts(sweep(days, "2026-03-23T03:00:00Z")) == [OLD]
    assert texts(sweep(days, LATER, dry_run=True)) == [NEW]
    assert texts(sweep(days, "2026-03-19T03:00:00Z", dry_run=True)) == []
    assert texts(sweep(days, "2026-03-23T02:00:00Z", dry_run=True)) == [OLD]
