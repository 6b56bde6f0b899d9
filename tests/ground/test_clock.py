"""Instants and days: one rule, also on the two odd days of a year."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.clock import (
    MS_PER_DAY,
    FixedClock,
    SystemClock,
    age_days,
    day_of,
    format_instant,
    parse_instant,
    start_of_day_ms,
    zone_of,
)
from recall_runtime.errors import ConfigError

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe")
INSTANTS = st.integers(min_value=0, max_value=4_102_444_800_000)


@pytest.mark.parametrize(
    ("instant", "zone", "day"),
    [
        ("2026-03-28T22:59:59.999Z", "Europe/Berlin", "2026-03-28"),  # a moment before midnight, winter time
        ("2026-03-28T23:00:00Z", "Europe/Berlin", "2026-03-29"),  # midnight of the short day
        ("2026-03-29T22:00:00Z", "Europe/Berlin", "2026-03-30"),  # midnight after it, summer time
        ("2026-10-25T00:30:00Z", "Europe/Berlin", "2026-10-25"),  # 02:30, the first time
        ("2026-10-25T01:30:00Z", "Europe/Berlin", "2026-10-25"),  # 02:30, the second time
        ("2026-01-01T00:00:00Z", "America/Sao_Paulo", "2025-12-31"),  # the old year, west of Greenwich
        ("2026-01-01T00:00:00Z", "Pacific/Apia", "2026-01-01"),  # 13 hours ahead
        ("2026-01-01T18:14:59Z", "Asia/Kathmandu", "2026-01-01"),  # offset of 5:45
        ("2026-01-01T18:15:00Z", "Asia/Kathmandu", "2026-01-02"),
    ],
)
def test_an_instant_belongs_to_the_day_its_zone_shows(instant: str, zone: str, day: str) -> None:
    assert day_of(parse_instant(instant), zone_of(zone)).isoformat() == day


@given(instant=INSTANTS, name=st.sampled_from(ZONES))
def test_a_day_starts_at_or_before_each_of_its_instants(instant: int, name: str) -> None:
    zone = zone_of(name)
    start = start_of_day_ms(day_of(instant, zone), zone)
    assert start <= instant < start + MS_PER_DAY + 3_600_000  # the longest day has 25 hours
    assert day_of(start, zone) == day_of(instant, zone)


@given(instant=INSTANTS)
def test_a_written_instant_is_read_back_unchanged(instant: int) -> None:
    assert parse_instant(format_instant(instant)) == instant


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-03-04T07:12:31.000Z", "2026-03-04T08:12:31+01:00"),  # offsets are applied
        ("2026-03-04T07:12:31", "2026-03-04T07:12:31Z"),  # without one it is UTC
        (" 2026-03-04 ", "2026-03-04T00:00:00Z"),  # a date alone is its first instant
    ],
)
def test_spellings_of_one_instant_are_equal(text: str, same_as: str) -> None:
    assert parse_instant(text) == parse_instant(same_as)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "04.03.2026"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_instant(text)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime"])
def test_an_unknown_zone_is_an_error_with_the_cure(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is unknown\. Set timezone"):
        zone_of(name)


def test_an_instant_in_the_future_has_no_age() -> None:
    assert age_days(2 * MS_PER_DAY, MS_PER_DAY) == 0
    assert age_days(0, 3 * MS_PER_DAY // 2) == 1.5


def test_a_fixed_clock_stands_still_and_the_system_clock_tells_the_present() -> None:
    assert FixedClock(5).now_ms() == 5
    present = dt.datetime.now(tz=dt.UTC).timestamp() * 1000
    assert abs(SystemClock().now_ms() - present) < MS_PER_DAY
