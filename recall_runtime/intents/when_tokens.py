"""A request cut into words of time, words that join them, and all other words.

Belongs here: recognizing what one word or fixed wording is, in eight languages.
Does not belong here: what they mean together (``intents.when``), the wordings of an hour (``intents.when_clock``).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from recall_runtime.intents.when_clock import clock_at
from recall_runtime.intents.when_words import END, any_of, is_spaced, number_of, words_of


class Kind(StrEnum):
    """What a token is. ``FILLER`` joins words of time and says nothing itself; ``OPEN`` is a time that isn't read."""

    EVERY = "every"
    OTHER = "other"  # every other, every second
    FREQUENCY = "frequency"  # daily, weekly
    WORKDAYS = "workdays"
    UNIT = "unit"
    NUMBER = "number"
    WEEKDAY = "weekday"
    DAY = "day"  # days from today
    DATE = "date"
    MONTH_DAY = "month day"
    NEXT = "next"
    SPAN = "span"  # from now
    CLOCK = "clock"
    PART = "part"  # of the day, as an hour
    NIGHT = "night"
    SMALL_HOURS = "small hours"
    UNTIL = "until"
    AND = "and"
    FILLER = "filler"
    OPEN = "open"
    STOP = "stop"  # the end of a clause
    WORD = "word"  # anything that is no time


@dataclass(frozen=True, slots=True)
class Token:
    """One word. ``value`` is what its kind needs: a number, the name of a unit, a clock, a date as (y, m, d)."""

    kind: Kind
    value: object = None
    text: str = ""
    plural: bool = False  # a weekday that is meant every week: "on Mondays", "montags"
    apart: bool = False  # another word that says nothing itself stands before it


_PLURAL = re.compile(r"(?:days|tags|wochs|abends|dis|ches|ados|ingos|as-feiras|[ая]м)$")
_MARKS = ("every", "workdays", "next", "until", "and", "other", "night", "small_hours", "unread", "filler")
_WORD = re.compile(r"[a-zа-я_'][a-zа-я0-9_']*(?:-[a-zа-я0-9_']+)*|.", re.DOTALL)
_NUMERAL = re.compile(r"\d[0-9a-zа-я.,:/%-]*[0-9a-zа-я]|\d")
_BLANK = re.compile(r"[\s,、(){}\[\]\"'„“”«»–—-]+")
_STOP = re.compile(r"[.;:!?。…]")
_CJK_NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十两兩]{1,3})"
_CJK_UNIT = "(?:分钟|分鐘|小时|小時|钟头|天|日|周|週間|週|星期|个月|個月|か月|ヶ月|年|分|時間)"
_WEEKDAY_PART = re.compile(
    r"\b(montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)"
    r"(fruh|morgen|vormittag|mittag|nachmittag|abend|nacht)s?\b"
)
_PLAIN_MONTH_DAY = re.compile(r"(?:el|no|al|ao|le|am) |\d{1,2}(?:-го| числа)")
_HABIT = re.compile(r"\b(?<!todos )los (?=(?:lunes|martes|miercoles|jueves|viernes|sabados|domingos)\b)")
_OVEN = re.compile(r"\b(le|du|au) four\b")  # French: no number
_SHORT_DAYS = (
    (re.compile(r"\b(?:(?<=on )|(?<=every )|(?<=next )|(?<=this )|(?<=by ))mon\b|\bmon(?= at \d)"), "monday"),
    (re.compile(r"\btues?\b"), "tuesday"),
    (re.compile(r"\bwed\b"), "wednesday"),
    (re.compile(r"\bthu(?:rs?)?\b"), "thursday"),
    (re.compile(r"\bfri\b"), "friday"),
    (re.compile(r"\b(?:(?<=on )|(?<=every )|(?<=next )|(?<=this )|(?<=by ))sat\b|\bsat(?= at \d)"), "saturday"),
    (re.compile(r"\b(?:(?<=on )|(?<=every )|(?<=next )|(?<=this )|(?<=by ))sun\b|\bsun(?= at \d)"), "sunday"),
)
_AS_ONE_WORD = {
    "day after tomorrow": "day-after-tomorrow",
    "pasado manana": "pasado-manana",
    "depois de amanha": "depois-de-amanha",
    "esta noche": "esta-noche",
    "ce soir": "ce-soir",
    "esta manana": "hoy de-la-manana",
    **dict.fromkeys(("de la manana", "por la manana", "da manha", "de manha", "pela manha"), "de-la-manana"),
}
_SPELLED_SPANS = (
    (r"(?:an? )?(?:hour|1 hour) and a half|one and a half hours", "90 minutes"),
    (r"half an hour|a half hour", "30 minutes"),
    (r"(?:a )?quarter of an hour", "15 minutes"),
    (r"three quarters of an hour", "45 minutes"),
    (r"einer halben stunde", "30 minuten"),
    (r"(?:anderthalb|eineinhalb|einundeinhalb) stunden", "90 minuten"),
    (r"einer dreiviertelstunde", "45 minuten"),
    (r"einer viertelstunde", "15 minuten"),
    (r"(?:una )?hora y media", "90 minutos"),
    (r"media hora", "30 minutos"),
    (r"(?:un )?cuarto de hora", "15 minutos"),
    (r"tres cuartos de hora", "45 minutos"),
    (r"(?:une|1) heure et demie", "90 minutes"),
    (r"une demi[- ]heure", "30 minutes"),
    (r"un quart d'heure", "15 minutes"),
    (r"trois quarts d'heure", "45 minutes"),
    (r"(?:uma )?hora e meia", "90 minutos"),
    (r"meia hora", "30 minutos"),
    (r"um quarto de hora", "15 minutos"),
    (r"четверть часа", "15 минут"),
    (r"полчаса", "30 минут"),
    (r"полтора часа", "90 минут"),
    (r"(?:一|1)(?:个|個)半(?:小时|小時|钟头|鐘頭)", "90分钟"),
    (r"半(?:个|個)?(?:小时|小時|钟头|鐘頭)", "30分钟"),
    (r"(?:一|1)時間半", "90分"),
    (r"半時間", "30分"),
    (r"一刻[钟鐘](?=之?[后後])", "15分钟"),
)
_SPANS_BEHIND = r"\b(?:in|within|after|nach|dentro de|de aqui a|en|dans|d'ici|daqui a|em|через) (?=%s)"


def tokens_of(folded: str) -> Iterator[Token]:
    """Yield the tokens of a request folded by ``intents.phrases.fold_request``, in order."""
    text = _as_words(folded)
    place = 0
    last = Token(Kind.STOP)
    apart = False
    while place < len(text):
        found, place = _token_at(text, place, last)
        for token in found:
            if token.kind is Kind.FILLER:
                apart = apart or bool(token.text)
                yield token
                continue
            last = replace(token, apart=apart)
            apart = False
            yield last


def _as_words(folded: str) -> str:
    """Write what several words say together as one word, and halves and quarters of an hour as minutes."""
    for phrase, word in _AS_ONE_WORD.items():
        folded = re.sub(rf"\b{phrase}\b", word, folded)
    for pattern, minutes in _spelled_spans():
        folded = pattern.sub(minutes, folded)
    for short, day in _SHORT_DAYS:
        folded = short.sub(day, folded)
    folded = re.sub(
        r"\b(half|quarter|ten|eleven|twelve|(?:on|tw|thre|fiv|nin)e|four|six|seven|eight)-(?=[a-z])", r"\1 ", folded
    )
    folded = _HABIT.sub("cada ", folded).replace("曜日", "曜")
    folded = _OVEN.sub(r"\1 _", folded)
    return _WEEKDAY_PART.sub(r"\1 \2", folded)


@lru_cache(maxsize=1)
def _spelled_spans() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the spans that words spell out, as minutes: only from now on, so that "half an hour" alone stays."""
    found = []
    for pattern, minutes in _SPELLED_SPANS:
        if minutes.endswith(("分", "分钟")) or "часа" in pattern:
            found.append((re.compile(pattern), minutes))
        else:
            found.append((re.compile(_SPANS_BEHIND % f"(?:{pattern})" + f"(?:{pattern})"), f"in {minutes}"))
    return tuple(found)


def _token_at(text: str, place: int, last: Token) -> tuple[list[Token], int]:
    """Return the tokens that start at ``place`` and where they end; a word can be a day and a part of it at once."""
    if match := _BLANK.match(text, place):
        return [Token(Kind.AND if "," in match[0] or "、" in match[0] else Kind.FILLER)], match.end()
    for pattern in _spans():
        if match := pattern.match(text, place):
            return [_span(match.groupdict())], match.end()
    for pattern in _dates():
        if match := pattern.match(text, place):
            return [_date(match.groupdict())], match.end()
    if match := _each_of().match(text, place):
        unit = Token(Kind.UNIT, words_of("unit")[match["u"]])
        return [Token(Kind.EVERY), Token(Kind.NUMBER, number_of(match["n"])), unit], match.end()
    found = clock_at(text, place)
    if found is not None:
        clock, end = found
        return [Token(Kind.CLOCK, clock) if clock else Token(Kind.OPEN, value=True)], end
    if (match := _month_days().match(text, place)) and _is_month_day(text, match):
        return [Token(Kind.MONTH_DAY, number_of(next(filter(None, match.groups()))))], match.end()
    return _word_at(text, place, last)


def _word_at(text: str, place: int, last: Token) -> tuple[list[Token], int]:
    match = _vocabulary().match(text, place)
    if match is not None:
        found = list(_meanings(match[0], last))
        if found:
            return found, match.end()
    if numeral := _NUMERAL.match(text, place):
        return [Token(Kind.NUMBER, number_of(numeral[0]), numeral[0])], numeral.end()
    if _STOP.match(text, place):
        return [Token(Kind.STOP)], place + 1
    word = _WORD.match(text, place)
    assert word is not None  # noqa: S101 - the pattern takes any sign
    return [Token(Kind.OPEN if _holds_a_day(word[0]) else Kind.WORD, text=word[0])], word.end()


def _meanings(word: str, last: Token) -> Iterator[Token]:
    weekday = words_of("weekday").get(word) or words_of("of_weekday").get(word)
    if weekday is not None:
        yield Token(Kind.WEEKDAY, int(weekday), word, plural=bool(_PLURAL.search(word)))
    elif word in ("morgen", "manana") and last.kind in (Kind.WEEKDAY, Kind.DAY, Kind.EVERY):
        yield Token(Kind.PART, 9, word)
    elif word in ("дня", "вечера") and last.kind is not Kind.CLOCK:
        yield Token(Kind.UNIT, "day", word) if word == "дня" else Token(Kind.OPEN, text=word)
    elif word in words_of("day") or word in words_of("part"):
        if word in words_of("day"):
            yield Token(Kind.DAY, int(words_of("day")[word]), word)
        if word in words_of("part"):
            yield Token(Kind.PART, int(words_of("part")[word]), word)
    elif word in words_of("frequency"):
        yield Token(Kind.FREQUENCY, words_of("frequency")[word], word)
    elif word == "an":  # a preposition; the French year stands behind a number, in a span
        yield Token(Kind.FILLER, text=word)
    elif word in words_of("unit") and (is_spaced(word) or _counts(last)):
        yield Token(Kind.UNIT, words_of("unit")[word], word)
    elif word in ("下", "来"):
        yield Token(Kind.NEXT, text=word)
    elif word in "个個":
        yield Token(Kind.FILLER)
    elif (mark := _mark_of(word)) is not None:
        yield Token(mark, text=word)
    elif word in words_of("month"):
        yield Token(Kind.OPEN, text=word)
    elif word in _ARTICLES:
        yield Token(Kind.FILLER, text=word)
    elif number_of(word) is not None:
        yield Token(Kind.NUMBER, number_of(word), word)


_ARTICLES = frozenset(
    ("a", "an", "ein", "eine", "einer", "einem", "einen", "un", "una", "une", "um", "uma", "один", "одну", "一")
)


def _counts(last: Token) -> bool:
    """Return whether a unit of a script without blanks can stand behind ``last``; alone it is part of any word."""
    return last.kind in (Kind.EVERY, Kind.NUMBER, Kind.NEXT, Kind.OTHER)


def _mark_of(word: str) -> Kind | None:
    for name in _MARKS:
        if word in words_of(name):
            return Kind.OPEN if name == "unread" else Kind(name.replace("_", " "))
    return None


def _holds_a_day(word: str) -> bool:
    """Return whether an unknown word is made with the name of a day, as German does: "montagsrunde"."""
    return any(len(day) > 5 and word.startswith(day) for day in words_of("weekday"))


def _span(found: dict[str, str | None]) -> Token:
    amount, unit = number_of(found["n"] or "1"), words_of("unit").get(found["u"] or "")
    return Token(Kind.SPAN, (amount, unit)) if amount and unit else Token(Kind.OPEN, value=True)


def _date(found: dict[str, str | None]) -> Token:
    year = number_of(found.get("y") or "")
    name = found["m"] or ""
    month = words_of("month").get(name) or words_of("short_month").get(name) or number_of(name)
    return Token(Kind.DATE, (year, int(month or 0), number_of(found["d"] or "") or 0))


def _is_month_day(text: str, match: re.Match[str]) -> bool:
    """Return whether a number is a day of the month: by its wording, or with no other word to count."""
    behind = text[match.end() :].lstrip(" ")
    counts = bool(behind) and behind[0].isalpha() and is_spaced(behind[0]) and not _vocabulary().match(behind)
    before = text[: match.start()].endswith(("on ", "by ", "until ", "till ", "every ", "each "))
    return not counts or before or bool(_PLAIN_MONTH_DAY.match(match[0]))


@lru_cache(maxsize=1)
def _vocabulary() -> re.Pattern[str]:
    spaced = any_of("weekday", "of_weekday", "day", "part", "unit", "frequency", "month", "number", *_MARKS)
    return re.compile(rf"下(?=[一个個]?(?:周|週|星期|礼拜|月))|来(?=週|月|年)|{spaced}")


@lru_cache(maxsize=1)
def _each_of() -> re.Pattern[str]:
    return re.compile(rf"(?P<n>{_CJK_NUMBER})(?P<u>{_CJK_UNIT})ごと")


@lru_cache(maxsize=1)
def _spans() -> tuple[re.Pattern[str], ...]:
    number = rf"(?P<n>\d{{1,3}}(?!\d)|{any_of('number')})"
    unit = rf"(?P<u>{any_of('unit')})"
    prefix = "(?:in|within|after|nach|dentro de|de aqui a|en|dans|d'ici|daqui a|em|через)"
    return tuple(
        re.compile(pattern)
        for pattern in (
            rf"{prefix} {number} {unit}",
            rf"через (?P<n>)(?P<u>(?:минуту|час|неделю|месяц|год){END})",
            rf"{number} {unit} from (?:now|today){END}",
            rf"(?P<n>{_CJK_NUMBER})(?P<u>{_CJK_UNIT})(?:之)?(?:后|後|以后|以後)",
        )
    )


@lru_cache(maxsize=1)
def _dates() -> tuple[re.Pattern[str], ...]:
    month = f"(?P<m>{any_of('month', 'short_month')})"
    day = r"(?P<d>\d{1,2})"
    cjk = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
    year = r"(?:,? (?:de |of |do )?(?P<y>20\d\d)(?: года)?)?"
    return tuple(
        re.compile(pattern)
        for pattern in (
            r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?!\d)",
            rf"(?:am )?{day}\.(?P<m>\d{{1,2}})\.(?P<y>\d{{4}})?(?!\d)",
            rf"(?:el |o |no |le |am |den |the )?(?:dia )?{day}(?:st|nd|rd|th|er|\.|-го)?(?: of| de)? {month}{year}",
            rf"{month} (?:the )?{day}(?:st|nd|rd|th)?(?![\d:]){year}",
            rf"(?:(?P<y>\d{{4}})年)?(?P<m>{cjk})月(?P<d>{cjk})[日号號]",
        )
    )


@lru_cache(maxsize=1)
def _month_days() -> re.Pattern[str]:
    return re.compile(
        r"(?:the )?(\d{1,2})(?:st|nd|rd|th)\b|am (\d{1,2})\.(?!\d)|(\d{1,2})\.(?= (?:jed|eines|im ))"
        r"|(?:el |o |no |al? |ao )?dia (\d{1,2})\b|el (\d{1,2})\b|le (\d{1,2})(?:er)?\b(?! ?h)"
        r"|(\d{1,2})-го(?: числа)?|(\d{1,2}) числа"
        rf"|({_CJK_NUMBER})(?:号|號|日)(?![间間後后ご毎おま])"
    )
