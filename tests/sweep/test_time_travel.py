"""A dry run of a past instant: what that night's sweep did, from what is stored now."""

import pytest

from memory_assets.sweep import run_sweep
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
