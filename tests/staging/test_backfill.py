"""Backfill: preview, staging as grounded signals, rollback without a trace on what else is known."""

import contextlib
import datetime as dt

import pytest

from memory_assets.staging.backfill import BackfillKind, preview, rollback, stage_backfill
from recall_runtime.clock import parse_instant
from recall_runtime.storage.connection import open_reader
from recall_runtime.vocabulary import Gate
from tests.support.workspace_days import Days

NOW = "2026-03-04T03:00:00Z"
PIER = "The Harbourline ferry leaves from pier 41877."


@pytest.fixture
def days(tmp_path):
    days = Days(tmp_path)
    for day in ("03", "04", "05"):
        days.write(f"memory/2025-06-{day}.md", f"# Log\n\n- {PIER}\n- TODO\n")
    days.sync(NOW)
    return days


@contextlib.contextmanager
def opened(days):
    with days.state() as state, contextlib.closing(open_reader(days.agent.folders.index_db)) as index:
        yield {"state": state, "index": index}


def backfill(days, kind=BackfillKind.NOTES, batch="b1", **bounds):
    with opened(days) as databases:
        return stage_backfill(days.at(NOW), kind, batch=batch, now_ms=parse_instant(NOW), **databases, **bounds)


def test_a_preview_counts_and_writes_nothing(days):
    before = days.dump()
    with opened(days) as databases:
        report = preview(days.at(NOW), BackfillKind.NOTES, **databases)
    assert [(item.day, item.candidates, item.refused.total()) for item in report.items] == [
        ("2025-06-03", 1, 2),
        ("2025-06-04", 1, 2),
        ("2025-06-05", 1, 2),
    ]
    assert days.dump() == before


def test_bounds_are_days_and_both_belong_to_the_range(days):
    report = backfill(days, first_day=dt.date(2025, 6, 4), last_day=dt.date(2025, 6, 4))
    assert [item.day for item in report.items] == ["2025-06-04"]


def test_three_old_days_ground_a_claim_that_can_pass(days):
    assert backfill(days).signals == 3
    (row,) = days.score(NOW)
    assert (row.grounded_count, row.signal_count, row.unique_queries) == (3, 3, 3)
    assert row.failed_gate in (None, Gate.MIN_SCORE)
    assert row.consolidation == 1.0


def test_a_second_run_finds_nothing_left(days):
    backfill(days)
    before = days.dump()
    assert backfill(days, batch="b2").items == ()
    assert days.dump() == before


def test_the_nightly_staging_adds_no_observation_to_what_was_backfilled(days):
    backfill(days)
    days.stage("2026-03-05T03:00:00Z")
    assert days.rows("SELECT kind, count(*) FROM signals GROUP BY kind") == [("grounded", 3)]


def test_rollback_takes_everything_back(days):
    before = days.dump()
    backfill(days)
    with days.state() as state:
        report = rollback(state, "b1")
    assert (report.signals, report.places, report.claims) == (3, 3, 1)
    assert days.dump() == before


def test_rollback_leaves_what_else_is_known_of_the_claim(days):
    days.says("2026-03-02T09:00:00Z", "s-1", PIER)
    days.says("2026-03-03T09:00:00Z", "s-2", PIER)
    days.stage(NOW)
    before = days.dump()
    backfill(days)
    with days.state() as state:
        rollback(state, "b1")
    assert days.dump() == before


def test_rollback_gives_the_group_of_a_deleted_root_a_new_one(days):
    german = "Die Harbourline-Fähre fährt ab Pier 41877."
    days.write("memory/2026-03-03.md", f"- {PIER} <!-- project: acme -->\n- {german}\n")
    days.stage(NOW)
    days.write("memory/2025-06-01.md", "- Harbourline: pier 41877 is where the ferry leaves.\n")
    days.sync(NOW)
    backfill(days)
    with days.state() as state:
        rollback(state, "b1")
    roots = {root for (root,) in days.rows("SELECT root_id FROM claims")}
    assert roots <= {claim for (claim,) in days.rows("SELECT claim_id FROM claims")}


def test_a_promoted_claim_survives_the_rollback(days):
    backfill(days)
    days.rows("UPDATE claims SET status = 'promoted'")
    with days.state() as state:
        rollback(state, "b1")
    assert days.rows("SELECT status FROM claims") == [("promoted",)]
    assert days.rows("SELECT count(*) FROM evidence WHERE batch IS NULL") == [(3,)]


def test_sessions_are_backfilled_by_session(days):
    for number in (1, 2, 3):
        days.says(f"2025-07-0{number}T09:00:00Z", f"s-{number}", PIER)
    days.sync(NOW)
    backfill(days, BackfillKind.SESSIONS)
    assert days.rows("SELECT context FROM signals ORDER BY context") == [
        ("session:s-1",),
        ("session:s-2",),
        ("session:s-3",),
    ]
