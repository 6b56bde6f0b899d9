"""From words of time to an instant and a recurrence, in eight languages, for scheduled tasks.

Belongs here: reading the time out of a request. What isn't clear stays unresolved, for a person or the host to fill in.
Does not belong here: deciding that a request is about a time (``intents.classify``), the hand-over (``scheduled``).

Rules: a day without an hour means 09:00 (morning 09, noon 12, afternoon 15, evening 20); an hour without a day means
its next occurrence; a weekday means the next such day, today only while the hour is still to come.
"""

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from recall_runtime.intents.phrases import fold_request

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_EVERY = re.compile(
    r"\b(?:every|each|jede[nrs]?|alle|cada|tod[ao]s|toda|todo|chaque|tous|toutes|кажд\w+|по|daily|weekly|monthly)\b"
    r"|\b(?:taglich|ежедневно)\b|每|毎"
)
_NEXT = re.compile(
    r"\b(?:next|nachste[nrs]?|kommende[nrs]?|proxim[ao]|que viene|que vem|prochaine?|следующ\w+)\b"
    r"|下个|下個|下(?=[周週星礼月])|来"
)
_IN = re.compile(
    r"\b(?:in|within|after|nach|dentro de|en|dans|d'ici|daqui a|em|через)\s+"
    r"(?:(?P<n>\d{1,3})|(?P<w>\w+)\b)?[ -]*\b(?P<u>\w+)"
)
_FROM_NOW = re.compile(r"\b(?:(?P<n>\d{1,3})|(?P<w>[\w-]+)) (?P<u>\w+) from (?:now|today)\b")
_UNSPACED_IN = re.compile(
    r"(?P<n>\d{1,3}|[一二三四五六七八九十两兩]{1,3})"
    r"(?P<u>分钟|分鐘|小时|小時|钟头|天|日|周|週間|週|星期|个月|個月|か月|ヶ月|年|分|時間)(?:之)?(?:后|後|以后|以後)"
)
_COLON = re.compile(r"(?<![\d:.])(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?!\d)")
_HOUR_SIGN = re.compile(r"\b(?P<h>\d{1,2}) ?h ?(?P<m>[0-5]\d)\b")
_DIGITS = re.compile(
    r"\b(?P<h>\d{1,2})(?:[:h](?P<m>[0-5]\d))? ?"
    r"(?:h(?:eures?|oras?)?\b|uhr\b|o'?clock|a\.?m\b|p\.?m\b|час\w*|утра|вечера|дня)"
)
_AT = re.compile(r"\b(?:at|um|a las?|as|в|a|by)\s+(?P<h>\d{1,2})(?![\d.:/-])(?! ?(?:de\b|%))")
_WORD_HOUR = re.compile(
    r"\b(?:(?P<half>half past|halb)\s+|(?:at|um|auf|a las?|as|a|в|para as)\s+)(?P<w>[^\W\d]+)"
    r"(?:\s+(?:uhr|heures?|horas?|o'?clock|час\w*))?(?P<tail>\s+(?:y media|et demie|e meia))?"
)
_UNSPACED_HOUR = re.compile(
    r"(?P<h>\d{1,2}|[一二三四五六七八九十两兩]{1,3})[点點時](?!間)(?:(?P<half>半)|(?P<m>\d{1,2}|[一二三四五六七八九十]{1,3})分)?"
)
_ISO_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOT_DAY = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})?(?!\d)")
_UNSPACED_DAY = re.compile(
    r"(?P<m>\d{1,2}|[一二三四五六七八九十]{1,3})月(?P<d>\d{1,2}|[一二三四五六七八九十]{1,3})[日号號]"
)
_PM = re.compile(
    r"p\.?m\b|\b(?:afternoon|evening|tonight|abends?|nachmittags?|noche|tarde|soir|noite|вечера|вечером|дня)\b"
    r"|下午|晚|傍晚|午後|夜|夕"
)
_QUARTERS = (
    ("a quarter of an hour", "15 minutes"), ("einer viertelstunde", "15 minuten"), ("un cuarto de hora", "15 minutos"),
    ("un quart d'heure", "15 minutes"), ("um quarto de hora", "15 minutos"), ("четверть часа", "15 минут"),
)  # fmt: skip
_STEPS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_FREQUENCIES = {"hour": "HOURLY", "day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_FREQUENCY_WORDS = {"daily": "day", "taglich": "day", "ежедневно": "day", "weekly": "week", "monthly": "month"}


@dataclass(frozen=True, slots=True)
class When:
    """The first instant, with its zone, and the recurrence as the value of an RRULE (RFC 5545), or ``None``."""

    start: dt.datetime
    rrule: str | None = None


def resolve_when(text: str, now_ms: int, zone: ZoneInfo) -> When | None:
    """Return the time that ``text`` names, seen from ``now_ms`` in ``zone``, or ``None`` when it isn't clear."""
    folded = _joined(fold_request(text[:2_000]))
    now = dt.datetime.fromtimestamp(now_ms / 1000, tz=zone).replace(microsecond=0)
    words = _found_words(folded)
    span = _span(folded, words, now)
    if span is not None and not _EVERY.search(folded):
        return When(span)
    clock = _clock(folded)
    hour = clock or _part_of_day(words)
    day = _named_day(folded, words, now)
    if _EVERY.search(folded):
        return _recurring(folded, words, hour or dt.time(9), now)
    if "weekday" in words and day is None:
        day = now.date() + dt.timedelta(days=(int(words["weekday"]) - now.weekday()) % 7)
        if _at(day, hour or dt.time(9), zone) <= now:
            day += dt.timedelta(days=7)
    if day is None and _NEXT.search(folded) and words.get("unit") in ("day", "week", "month", "year"):
        day = _later(now, words["unit"], 1).date()
    if day is None:
        if hour is None:
            return None
        day = now.date() if _at(now.date(), hour, zone) > now else now.date() + dt.timedelta(days=1)
    start = _at(day, hour or dt.time(9), zone)
    return When(start) if start > now else None


def _recurring(folded: str, words: dict[str, str], hour: dt.time, now: dt.datetime) -> When | None:
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)  # noqa: S101 - built from a zone above
    if "weekday" in words:
        number = int(words["weekday"])
        day = now.date() + dt.timedelta(days=(number - now.weekday()) % 7)
        start = _at(day, hour, zone)
        start = start if start > now else _at(day + dt.timedelta(days=7), hour, zone)
        return When(start, f"FREQ=WEEKLY;BYDAY={_WEEKDAYS[number]}")
    unit = next((name for word, name in _FREQUENCY_WORDS.items() if word in folded), words.get("unit"))
    unit = unit or ("day" if "part" in words else None)
    if unit not in _FREQUENCIES:
        return None
    if unit == "hour":
        return When(now + dt.timedelta(hours=1), "FREQ=HOURLY")
    start = _at(now.date(), hour, zone)
    start = start if start > now else _at(now.date() + dt.timedelta(days=1), hour, zone)
    return When(start, f"FREQ={_FREQUENCIES[unit]}")


def _span(folded: str, words: dict[str, str], now: dt.datetime) -> dt.datetime | None:
    match = _UNSPACED_IN.search(folded)
    if match is not None:
        return _later(now, _units().get(match["u"], ""), _number(match["n"]) or 0)
    for match in (*_FROM_NOW.finditer(folded), *_IN.finditer(folded)):
        amount = int(match["n"]) if match["n"] else _number(match["w"]) if match["w"] else 1
        unit = _units().get(match["u"])
        if amount and unit:
            return _later(now, unit, amount)
    return None


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


def _clock(folded: str) -> dt.time | None:
    patterns = (_COLON, _HOUR_SIGN, _DIGITS, _UNSPACED_HOUR, _AT)
    match = next((found for pattern in patterns if (found := pattern.search(folded))), None)
    if match is not None:
        parts = match.groupdict()
        hour = _number(parts["h"])
        minute = 30 if parts.get("half") else _number(parts.get("m") or "0")
    else:
        hour, minute = _spoken_clock(folded)
    if hour is None or minute is None or not (0 <= hour <= 24 and 0 <= minute < 60):
        return None
    if hour < 12 and _PM.search(folded):
        hour += 12
    return dt.time(hour % 24, minute)


def _spoken_clock(folded: str) -> tuple[int | None, int]:
    for word, half_past in _table("half").items():
        if word in folded:
            return int(half_past), 30
    for match in _WORD_HOUR.finditer(folded):
        hour = _number(match["w"])
        if hour is None:
            continue
        if match["half"] == "halb":
            return hour - 1, 30
        return hour, 30 if match["half"] or match["tail"] else 0
    match_half = re.search(r"\bhalb ([^\W\d]+)", folded)
    number = _number(match_half[1]) if match_half else None
    return (number - 1, 30) if number else (None, 0)


def _part_of_day(words: dict[str, str]) -> dt.time | None:
    return dt.time(int(words["part"])) if "part" in words else None


def _named_day(folded: str, words: dict[str, str], now: dt.datetime) -> dt.date | None:
    try:
        if match := _ISO_DAY.search(folded):
            return dt.date(int(match[1]), int(match[2]), int(match[3]))
        if match := _DOT_DAY.search(folded):
            return _coming(now, int(match[2]), int(match[1]), int(match[3]) if match[3] else None)
        if match := _UNSPACED_DAY.search(folded):
            return _coming(now, _number(match["m"]) or 0, _number(match["d"]) or 0, None)
        if "month" in words and (number := _day_of_month(folded)):
            return _coming(now, int(words["month"]), number, None)
    except ValueError:
        return None
    return now.date() + dt.timedelta(days=int(words["day"])) if "day" in words else None


def _day_of_month(folded: str) -> int | None:
    names = "|".join(sorted(map(re.escape, _table("month")), key=len, reverse=True))
    match = re.search(
        rf"\b(\d{{1,2}})(?:st|nd|rd|th|er|\.|-го)?(?: of| de)? (?:{names})\b|\b(?:{names}) (?:the )?(\d{{1,2}})\b",
        folded,
    )
    return int(match[1] or match[2]) if match else None


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


def _joined(folded: str) -> str:
    """Write the day words of two parts as one word, and quarters of an hour as minutes."""
    for phrase in ("day after tomorrow", "pasado manana", "depois de amanha", "esta noche", "ce soir", "de la manana"):
        folded = folded.replace(phrase, phrase.replace(" ", "-"))
    for quarter, minutes in _QUARTERS:
        folded = folded.replace(quarter, minutes)
    return re.sub(r"половин[уе] (\w+го)", r"половину-\1", folded)


def _number(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    numbers = _table("number")
    if text in numbers:
        return int(numbers[text])
    if len(text) == 2 and text[0] == "十" and text[1] in numbers:
        return 10 + int(numbers[text[1]])
    if len(text) >= 2 and text[1] == "十" and text[0] in numbers:
        return int(numbers[text[0]]) * 10 + (int(numbers[text[2]]) if len(text) == 3 and text[2] in numbers else 0)
    return None


def _found_words(folded: str) -> dict[str, str]:
    """Return the value of the first word of each section, the longest word at its place."""
    found: dict[str, str] = {}
    for section in ("weekday", "day", "month", "unit", "part"):
        table = _table(section)
        best: tuple[int, int, str] | None = None
        for word, value in table.items():
            place = _place(folded, word)
            if place is not None and (best is None or (place, -len(word)) < (best[0], best[1])):
                best = (place, -len(word), value)
        if best is not None:
            found[section] = best[2]
    return found


def _place(folded: str, word: str) -> int | None:
    if not word[0].isascii() and not "а" <= word[0] <= "я":
        place = folded.find(word)
        return place if place >= 0 else None
    match = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", folded)
    return match.start() if match else None


@lru_cache(maxsize=1)
def _sections() -> dict[str, dict[str, str]]:
    text = resources.files("recall_runtime.intents").joinpath("when_words.txt").read_text(encoding="utf-8")
    sections: dict[str, dict[str, str]] = {}
    section, value = "", ""
    for line in text.splitlines():
        if line.startswith("["):
            section, value = line.strip("[]").split(" ", 1)
        elif line and not line.startswith("#"):
            sections.setdefault(section, {}).update(dict.fromkeys(line.split(), value))
    return sections


def _table(section: str) -> dict[str, str]:
    return _sections()[section]


def _units() -> dict[str, str]:
    return _table("unit")
