"""From words of time to an instant and a recurrence, in eight languages, for scheduled tasks.

Belongs here: what the words of time of one request mean together. What isn't clear stays unresolved, for a person or
the host to fill in: a number, a second day, "until" or "other" beside the words that were read makes the whole unclear.
Does not belong here: deciding that a request is about a time (``intents.classify``), the hand-over (``scheduled``),
what a single word is (``when_tokens``).

Rules: a day without an hour means 09:00 (morning 09, noon 12, afternoon 15, evening 20); an hour without a day means
its next occurrence; a weekday means the next such day, today only while the hour is still to come; a day of the month
means the next one that exists. A recurrence is an RRULE of RFC 5545 with INTERVAL, BYDAY, BYMONTHDAY, BYMONTH, UNTIL.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from recall_runtime.intents.phrases import fold_request
from recall_runtime.intents.when_clock import Clock
from recall_runtime.intents.when_tokens import Kind, Token, tokens_of

_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_STEPS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_FREQUENCIES = {"hour": "HOURLY", "day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_DAYS = frozenset((Kind.WEEKDAY, Kind.DAY, Kind.DATE))
_NAMES_A_TIME = _DAYS | {Kind.MONTH_DAY, Kind.SPAN, Kind.CLOCK, Kind.PART, Kind.FREQUENCY, Kind.WORKDAYS}
_MORNING = dt.time(9)


@dataclass(frozen=True, slots=True)
class When:
    """The first instant, with its zone, and the recurrence as the value of an RRULE (RFC 5545), or ``None``."""

    start: dt.datetime
    rrule: str | None = None


class _UnclearError(Exception):
    """The words of time don't say one time."""


@dataclass(slots=True)
class _Reading:
    """What the words of time of a request name."""

    clocks: set[Clock] = field(default_factory=set)
    parts: set[int] = field(default_factory=set)
    night: bool = False
    small_hours: bool = False
    repeats: set[tuple[str, int]] = field(default_factory=set)  # unit, interval
    weekdays: list[int] = field(default_factory=list)
    days: set[int] = field(default_factory=set)  # from today
    dates: set[tuple[int | None, int, int]] = field(default_factory=set)
    month_days: set[int] = field(default_factory=set)
    next_units: set[str] = field(default_factory=set)
    spans: set[tuple[int, str]] = field(default_factory=set)
    until: Token | None = None


def resolve_when(text: str, now_ms: int, zone: ZoneInfo) -> When | None:
    """Return the time that ``text`` names, seen from ``now_ms`` in ``zone``, or ``None`` when it isn't clear."""
    now = dt.datetime.fromtimestamp(now_ms / 1000, tz=zone).replace(microsecond=0)
    try:
        reading = _read(_phrases(list(tokens_of(fold_request(text[:2_000])))))
        when = _recurring(reading, now, zone) if reading.repeats else _once(reading, now, zone)
    except (_UnclearError, ValueError, OverflowError):
        return None
    return when if when is not None and when.start > now else None


# Reading


def _phrases(tokens: Sequence[Token]) -> list[tuple[list[Token], bool]]:
    """Return the runs of words of time without fillers, each with whether another word goes on behind it."""
    found: list[tuple[list[Token], bool]] = []
    run: list[Token] = []
    for token in (*tokens, Token(Kind.STOP)):
        if token.kind is Kind.WORD or token.kind is Kind.STOP:
            if _names_a_time(run):
                found.append((run, token.kind is Kind.WORD))
            run = []
        elif token.kind is not Kind.FILLER:
            run.append(token)
    return found


def _names_a_time(run: Sequence[Token]) -> bool:
    kinds = [token.kind for token in run]
    return (
        not _NAMES_A_TIME.isdisjoint(kinds)
        or any(token.kind is Kind.OPEN and token.value for token in run)
        or (Kind.UNIT in kinds and (Kind.EVERY in kinds or Kind.NEXT in kinds))
    )


def _read(phrases: Sequence[tuple[list[Token], bool]]) -> _Reading:
    reading = _Reading()
    apart: list[tuple[set[int], bool]] = []
    weekday_runs = 0
    for run, goes_on in phrases:
        if len(phrases) > 1 and all(token.kind in (Kind.PART, Kind.AND) for token in run):
            apart.append(({token.value for token in run if isinstance(token.value, int)}, goes_on))
            continue
        known = len(reading.weekdays)
        if run[-1].kind is Kind.FREQUENCY and goes_on and run[-1].text.endswith("ly"):
            raise _UnclearError  # "the weekly report" is no recurrence, "send it weekly please" is one
        _read_run(run, reading)
        weekday_runs += len(reading.weekdays) > known
    if weekday_runs > 1:
        raise _UnclearError
    for parts, goes_on in apart:
        _read_part_apart(reading, parts, goes_on)
    return reading


def _read_part_apart(reading: _Reading, parts: set[int], goes_on: bool) -> None:
    """Take a part of the day that stands apart from the rest, unless it may belong to what is to be done."""
    clock = next(iter(reading.clocks), None)
    if clock is not None and (clock.exact or (parts == {9} and clock.time.hour < 12)):
        return
    if clock is not None or goes_on or reading.parts:
        raise _UnclearError
    reading.parts |= parts


def _read_run(run: Sequence[Token], reading: _Reading) -> None:
    place = 0
    while place < len(run):
        place = _read_at(run, place, reading)


def _read_at(run: Sequence[Token], place: int, reading: _Reading) -> int:
    """Read what stands at ``place`` and return where the next begins."""
    token, behind = run[place], run[place + 1 :]
    following = behind[0].kind if behind else Kind.STOP
    if token.kind in _DAYS and following is Kind.UNTIL and behind[0].text in ("まで", "为止", "為止"):
        _take_until(reading, token)
        return place + 2
    match token.kind:
        case Kind.EVERY:
            return place + 1 + _read_every(behind, reading)
        case Kind.UNTIL if following in _DAYS:
            _take_until(reading, behind[0])
            return place + 2
        case Kind.NEXT if following is Kind.UNIT:
            reading.next_units.add(str(behind[0].value))
            return place + 2
        case Kind.UNIT if following is Kind.NEXT:
            reading.next_units.add(str(token.value))
            return place + 2
        case Kind.NEXT if following is Kind.WEEKDAY:
            if token.text == "下":
                reading.next_units.add("week")
        case Kind.WEEKDAY:
            count = _weekday_count(run[place:])
            _take_weekdays(reading, run[place : place + count])
            if any(one.plural for one in run[place : place + count]) and not reading.repeats:
                reading.repeats.add(("week", 1))
            return place + count
        case _:
            _take(token, reading)
    return place + 1


def _read_every(behind: Sequence[Token], reading: _Reading) -> int:
    """Read what is repeated and return how many tokens say it."""
    interval, skipped = 1, 0
    if behind and behind[0].kind in (Kind.NUMBER, Kind.OTHER):
        interval = behind[0].value if isinstance(behind[0].value, int) else 2 if behind[0].kind is Kind.OTHER else 0
        skipped = 1
    what = behind[skipped] if len(behind) > skipped else Token(Kind.STOP)
    if interval < 1 or (skipped and what.apart and what.kind is Kind.UNIT):
        raise _UnclearError
    if what.kind is Kind.UNIT:
        reading.repeats.add((str(what.value), interval))
        return skipped + 1
    if what.kind is Kind.WEEKDAY and (not skipped or behind[0].kind is Kind.OTHER):
        reading.repeats.add(("week", interval))
        return skipped
    if skipped:
        raise _UnclearError
    unit = {Kind.PART: "day", Kind.NIGHT: "day", Kind.MONTH_DAY: "month", Kind.DATE: "year"}.get(what.kind)
    if what.kind is Kind.WORKDAYS:
        return 0
    if unit is None:
        raise _UnclearError
    reading.repeats.add((unit, 1))
    return 0


def _weekday_count(run: Sequence[Token]) -> int:
    """Return how many tokens list weekdays: parted by commas or "and", each with an "every" of its own or not."""
    end = 1
    while True:
        place = end
        if [token.kind for token in run[place : place + 1]] != [Kind.AND]:
            return end
        while place < len(run) and run[place].kind in (Kind.AND, Kind.EVERY):
            place += 1
        if place == len(run) or run[place].kind is not Kind.WEEKDAY:
            return end
        end = place + 1


def _take_weekdays(reading: _Reading, run: Sequence[Token]) -> None:
    if reading.weekdays:
        raise _UnclearError
    reading.weekdays = [token.value for token in run if isinstance(token.value, int)]


def _take_until(reading: _Reading, token: Token) -> None:
    if reading.until is not None:
        raise _UnclearError
    reading.until = token


def _take(token: Token, reading: _Reading) -> None:
    """Take a token that says a time on its own."""
    match token.kind, token.value:
        case Kind.CLOCK, Clock() as clock:
            reading.clocks.add(clock)
        case Kind.PART, int() as hour:
            reading.parts.add(hour)
        case Kind.DAY, int() as days:
            reading.days.add(days)
        case Kind.DATE, tuple() as date:
            reading.dates.add(date)
        case Kind.MONTH_DAY, int() as day:
            reading.month_days.add(day)
        case Kind.SPAN, tuple() as span:
            reading.spans.add(span)
        case Kind.FREQUENCY, str() as unit:
            reading.repeats.add((unit, 1))
        case Kind.WORKDAYS, _:
            reading.weekdays = [0, 1, 2, 3, 4] if not reading.weekdays else []
            reading.repeats.add(("week", 1))
        case Kind.NIGHT, _:
            reading.night = True
        case Kind.SMALL_HOURS, _:
            reading.small_hours = True
        case Kind.AND, _:
            pass
        case _:
            raise _UnclearError


# The hour


def _hour(reading: _Reading) -> dt.time | None:
    """Return the hour of the day, ``None`` when none is named."""
    if len(reading.clocks) > 1 or len(reading.parts) > 1:
        raise _UnclearError
    part = next(iter(reading.parts), None)
    if not reading.clocks:
        if reading.night or reading.small_hours:
            raise _UnclearError
        return None if part is None else dt.time(part)
    (clock,) = reading.clocks
    if clock.turn_of_day and (reading.days or reading.weekdays or reading.dates or reading.month_days):
        raise _UnclearError  # the midnight before that day, or the one after it
    hour = _hour_of_day(clock, part, reading)
    return clock.time.replace(hour=hour)


def _hour_of_day(clock: Clock, part: int | None, reading: _Reading) -> int:
    """Return the hour of ``clock`` in the part of the day that is named beside it."""
    hour = clock.time.hour
    evening = part == 20 or reading.night
    if clock.exact:
        if (
            (evening and hour < 5)
            or (part == 9 and hour >= 12)
            or (part in (12, 15) and not 11 <= hour <= 2 * part - 9)
        ):
            raise _UnclearError
        return hour
    if reading.small_hours:
        allowed = {12: 0, **{early: early for early in range(1, 6)}}
    elif evening:
        allowed = {early: early + 12 for early in range(6 if reading.night else 5, 12)}
    elif part == 15:
        allowed = {12: 12, **{early: early + 12 for early in range(1, 10)}}
    elif part == 12:
        allowed = {11: 11, 12: 12, **{early: early + 12 for early in range(1, 4)}}
    elif part == 9:
        allowed = {early: early for early in range(1, 12)}
    else:
        allowed = {hour: hour}
    if hour not in allowed:
        raise _UnclearError
    return allowed[hour]


# Once


def _once(reading: _Reading, now: dt.datetime, zone: ZoneInfo) -> When | None:
    if reading.until is not None or len(reading.weekdays) > 1:
        return None
    hour = _hour(reading)
    if reading.spans:
        return _after_span(reading, hour, now, zone)
    days = _day_choices(reading, hour or _MORNING, now, zone)
    if days is None:
        if hour is None:
            return None
        today = _at(now.date(), hour, zone)
        return When(today if today > now else _at(now.date() + dt.timedelta(days=1), hour, zone))
    return When(_at(days, hour or _MORNING, zone))


def _after_span(reading: _Reading, hour: dt.time | None, now: dt.datetime, zone: ZoneInfo) -> When:
    others = reading.days or reading.weekdays or reading.dates or reading.month_days or reading.next_units
    if len(reading.spans) > 1 or others:
        raise _UnclearError
    ((amount, unit),) = reading.spans
    if hour is None:
        return When(_later(now, unit, amount))
    if unit in ("minute", "hour"):
        raise _UnclearError
    return When(_at(_later(now, unit, amount).date(), hour, zone))


def _day_choices(reading: _Reading, hour: dt.time, now: dt.datetime, zone: ZoneInfo) -> dt.date | None:
    """Return the one day that all words for days agree on, ``None`` when there are none."""
    if any(len(named) > 1 for named in (reading.days, reading.dates, reading.month_days, reading.next_units)):
        raise _UnclearError
    weekday = reading.weekdays[0] if reading.weekdays else None
    unit = next(iter(reading.next_units), None)
    named = [bool(reading.days), bool(reading.dates), bool(reading.month_days)]
    if sum(named) > 1 or (unit is not None and reading.days):
        raise _UnclearError
    day: dt.date | None = None
    if reading.days:
        day = now.date() + dt.timedelta(days=min(reading.days))
    elif reading.dates:
        day = _date_of(next(iter(reading.dates)), now, unit)
    elif reading.month_days:
        day = _month_day(next(iter(reading.month_days)), hour, now, unit, zone)
    elif unit == "week" and weekday is not None:
        return now.date() + dt.timedelta(days=7 - now.weekday() + weekday)
    elif unit is not None and weekday is None:
        return _later(now, unit, 1).date()
    elif unit is not None:
        raise _UnclearError
    elif weekday is not None:
        return _next_weekday([weekday], hour, now, zone).date()
    if day is not None and weekday is not None and day.weekday() != weekday:
        raise _UnclearError
    return day


def _date_of(date: tuple[int | None, int, int], now: dt.datetime, unit: str | None) -> dt.date:
    year, month, day = date
    if unit is not None:
        if unit != "year" or year is not None:
            raise _UnclearError
        year = now.year + 1
    return _coming(now, month, day, year)


def _month_day(number: int, hour: dt.time, now: dt.datetime, unit: str | None, zone: ZoneInfo) -> dt.date:
    if unit is not None:
        if unit != "month":
            raise _UnclearError
        return _later(now.replace(day=1), "month", 1).date().replace(day=number)
    for candidate in _months_from(now.date()):
        try:
            day = candidate.replace(day=number)
        except ValueError:
            continue
        if _at(day, hour, zone) > now:
            return day
    raise _UnclearError


def _months_from(day: dt.date) -> Iterator[dt.date]:
    for step in range(13):
        months = day.month - 1 + step
        yield dt.date(day.year + months // 12, months % 12 + 1, 1)


# Again and again


def _recurring(reading: _Reading, now: dt.datetime, zone: ZoneInfo) -> When:
    if len(reading.repeats) > 1 or reading.spans or reading.days or reading.next_units:
        raise _UnclearError
    ((unit, interval),) = reading.repeats
    hour = _hour(reading)
    allowed = {"week": reading.weekdays, "month": reading.month_days, "year": reading.dates}.get(unit, ())
    named = [kind for kind in (reading.weekdays, reading.month_days, reading.dates) if kind]
    if unit not in _FREQUENCIES or (unit == "hour" and hour is not None) or any(kind is not allowed for kind in named):
        raise _UnclearError
    rules = [f"FREQ={_FREQUENCIES[unit]}"]
    if interval > 1:
        rules.append(f"INTERVAL={interval}")
    start, detail = _first(reading, unit, interval, hour or _MORNING, now, zone)
    rules += [*detail, *_until(reading.until, start, now, zone)]
    return When(start, ";".join(rules))


def _first(
    reading: _Reading, unit: str, interval: int, hour: dt.time, now: dt.datetime, zone: ZoneInfo
) -> tuple[dt.datetime, list[str]]:
    """Return the first occurrence and what the rule says beside frequency and interval."""
    if unit == "hour":
        return _later(now, "hour", interval), []
    if unit == "week" and reading.weekdays:
        days = sorted(set(reading.weekdays))
        return _next_weekday(days, hour, now, zone), ["BYDAY=" + ",".join(_CODES[day] for day in days)]
    if unit == "month" and reading.month_days:
        (number,) = reading.month_days
        return _at(_month_day(number, hour, now, None, zone), hour, zone), [f"BYMONTHDAY={number}"]
    if unit == "year" and reading.dates:
        ((year, month, number),) = reading.dates
        day = _coming(now, month, number, year)
        if year is None and _at(day, hour, zone) <= now:
            day = _coming(now + dt.timedelta(days=1), month, number, None)
        return _at(day, hour, zone), [f"BYMONTH={month}", f"BYMONTHDAY={number}"]
    today = _at(now.date(), hour, zone)
    return (today if today > now else _at(now.date() + dt.timedelta(days=1), hour, zone)), []


def _until(token: Token | None, start: dt.datetime, now: dt.datetime, zone: ZoneInfo) -> list[str]:
    """Return the end of the recurrence, the last second of the day named, in UTC as RFC 5545 asks."""
    if token is None:
        return []
    match token.kind, token.value:
        case Kind.DATE, (int() | None as year, int() as month, int() as number):
            last = _coming(now, month, number, year)
        case Kind.DAY, int() as days:
            last = now.date() + dt.timedelta(days=days)
        case _, int() as weekday:
            last = now.date() + dt.timedelta(days=(weekday - now.weekday()) % 7)
        case _:
            raise _UnclearError
    if last < start.date():
        raise _UnclearError
    end = _at(last, dt.time(23, 59, 59), zone).astimezone(dt.UTC)
    return [f"UNTIL={end.strftime('%Y%m%dT%H%M%SZ')}"]


# The calendar


def _next_weekday(weekdays: Sequence[int], hour: dt.time, now: dt.datetime, zone: ZoneInfo) -> dt.datetime:
    for days in range(8):
        start = _at(now.date() + dt.timedelta(days=days), hour, zone)
        if start.weekday() in weekdays and start > now:
            return start
    raise _UnclearError


def _later(now: dt.datetime, unit: str, amount: int) -> dt.datetime:
    if unit in _STEPS:
        return (now.astimezone(dt.UTC) + dt.timedelta(seconds=_STEPS[unit] * amount)).astimezone(now.tzinfo)
    months = now.month - 1 + amount * (12 if unit == "year" else 1)
    year, month = now.year + months // 12, months % 12 + 1
    for day in (now.day, 30, 29, 28):
        try:
            return now.replace(year=year, month=month, day=day)
        except ValueError:
            continue
    return now


def _coming(now: dt.datetime, month: int, day: int, year: int | None) -> dt.date:
    if year is not None:
        return dt.date(year, month, day)
    for candidate in range(now.year, now.year + 5):  # 29 February comes within four years
        try:
            found = dt.date(candidate, month, day)
        except ValueError:
            continue
        if found >= now.date():
            return found
    raise ValueError(f"no such day: {month}-{day}")


def _at(day: dt.date, hour: dt.time, zone: ZoneInfo) -> dt.datetime:
    return dt.datetime.combine(day, hour, tzinfo=zone)
