"""Days of a workspace: today has a cell, clock changes and half-hour zones move no window."""

import datetime as dt
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from memory_assets.jobs import due_run
from memory_assets.partitions import cell_of, days_in


@pytest.mark.parametrize(
    ("zone", "day", "hours", "start_utc"),
    [
        pytest.param("America/New_York", "2026-03-08", 23, "2026-03-08T05:00", id="spring forward"),
        pytest.param("America/New_York", "2026-03-09", 24, "2026-03-09T04:00", id="the day after"),
        pytest.param("America/New_York", "2026-11-01", 25, "2026-11-01T04:00", id="fall back"),
        pytest.param("Asia/Kolkata", "2026-05-05", 24, "2026-05-04T18:30", id="half-hour zone"),
        pytest.param("UTC", "2026-03-08", 24, "2026-03-08T00:00", id="UTC"),
    ],
)
def test_a_window_is_the_day_of_its_zone(zone: str, day: str, hours: int, start_utc: str) -> None:
    window = days_in(zone).time_window_for_partition_key(day)
    start, end = window.start.astimezone(dt.UTC), window.end.astimezone(dt.UTC)
    assert (start.strftime("%Y-%m-%dT%H:%M"), end - start) == (start_utc, dt.timedelta(hours=hours))


@pytest.mark.parametrize(
    ("now", "zone", "last"),
    [
        pytest.param("2026-03-08T04:59:59+00:00", "America/New_York", "2026-03-07", id="a second before midnight"),
        pytest.param("2026-03-08T05:00:00+00:00", "America/New_York", "2026-03-08", id="midnight"),
        pytest.param("2026-11-02T04:30:00+00:00", "America/New_York", "2026-11-01", id="the long day has 25 hours"),
        pytest.param("2026-05-04T18:30:00+00:00", "Asia/Kolkata", "2026-05-05", id="half an hour past"),
    ],
)
def test_today_has_a_cell_before_it_is_over(now: str, zone: str, last: str) -> None:
    with dg.partition_loading_context(effective_dt=dt.datetime.fromisoformat(now)):
        days = days_in(zone)
        assert days.get_last_partition_key() == last
        today = dt.date.fromisoformat(last)
        assert cell_of(today, days) == last
        assert cell_of(today + dt.timedelta(days=1), days) is None


def test_a_day_before_the_first_has_no_cell() -> None:
    assert cell_of(dt.date(2019, 12, 31), days_in("UTC")) is None
    assert cell_of(dt.date(2020, 1, 1), days_in("UTC")) == "2020-01-01"


@pytest.mark.parametrize(
    ("due", "cell", "key"),
    [
        pytest.param("2026-03-08T03:00", "2026-03-08", "2026-03-08T07:00:00+00:00", id="summer time began at 2"),
        pytest.param("2026-11-01T03:00", "2026-11-01", "2026-11-01T08:00:00+00:00", id="winter time began at 2"),
        pytest.param("2026-10-31T03:00", "2026-10-31", "2026-10-31T07:00:00+00:00", id="the day before"),
    ],
)
def test_a_due_time_is_one_run_in_the_cell_of_its_day(due: str, cell: str, key: str) -> None:
    instant = dt.datetime.fromisoformat(due).replace(tzinfo=ZoneInfo("America/New_York"))
    run = due_run(instant, "America/New_York")
    assert (run.partition_key, run.run_key) == (cell, key)


def test_the_cell_is_the_zone_s_day_even_when_the_tick_is_told_in_utc() -> None:
    instant = dt.datetime(2026, 5, 4, 21, 30, tzinfo=dt.UTC)  # 03:00 of the 5th in Kolkata
    assert due_run(instant, "Asia/Kolkata").partition_key == "2026-05-05"
