"""Time in a question: which days it names, whether it asks when, which entries are of those days.

Belongs here: the days a question names outright, wordings that ask when, words by which a text says when.
Does not belong here: requests about the future (``intents.when``), how old a text is (``index.candidates``).

A question that names a day or a month is about what was said then, or told within the days after. A question that asks
when is answered by a line that says when. Both hold in every language of ``when_words.txt``.
"""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from recall_runtime.index.candidates import Candidates, Floats
from recall_runtime.intents.when_words import words_of
from recall_runtime.text.words import index_text

OF_THAT_TIME = 0.3  # added to the score of an entry of the days asked about
TOLD_LATER = 0.5  # share of that for one of the days after
LATER = 7  # days
SOON = 31  # days
SAYS_WHEN = 1.2  # factor of a text that says when, for a question that asks when
_MOST = 4  # periods of one question that are looked at
_READ = 600  # characters of a question that are read

_WHEN = (
    r"^\W*(?:(?:and|so|und|y|et|e|а|и) )?(?:when|(?:on |in |at |since )?(?:what|which) (?:date|day|month|year|time)"
    r"|how long|since when|cuando|desde cuando|que (?:dia|fecha|mes|ano)|cuanto tiempo|quand|depuis (?:quand|combien)"
    r"|quel(?:le)? (?:jour|date|mois|annee)|combien de temps|quando|desde quando|quanto tempo"
    r"|когда|с каких пор|какого числа|как долго|сколько времени)\b"
    r"|\b(?:wann|wie lange|welche[rmns]? (?:tag|datum|monat|jahr))\b"
    r"|什么时候|什麼時候|何时|何時|哪天|哪一天|几号|幾號|几月|いつ|何日|何月|언제|며칠"
)
_IN_WHEN = (  # one of them is in every question that asks when; most questions hold none, and no pattern is compiled
    *(
        "when",
        "date",
        "day",
        "month",
        "year",
        "time",
        "long",
        "cuando",
        "dia",
        "fecha",
        "mes",
        "ano",
        "tiempo",
        "quand",
    ),
    *(
        "depuis",
        "jour",
        "mois",
        "annee",
        "temps",
        "tempo",
        "когда",
        "пор",
        "числа",
        "долго",
        "времени",
        "wann",
        "lange",
    ),
    *(
        "tag",
        "datum",
        "monat",
        "jahr",
        "时候",
        "時候",
        "时",
        "時",
        "哪",
        "号",
        "號",
        "月",
        "いつ",
        "日",
        "언제",
        "며칠",
    ),
)
_TIME_WORDS = (
    "yesterday ago week month year weekend recently summer winter spring autumn decade"
    " gestern vorgestern letzte letzten woche monat jahr wochenende ayer anteayer semana ano"
    " semaine ontem вчера неделе неделю месяце году 昨天 去年 上周 上個月 昨日 先週 先月 어제 지난주"
)
_IN_NUMBERS = (  # groups as in all patterns of days: y, m, d
    re.compile(r"\b(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?:-(?P<d>\d\d))?\b"),
    re.compile(r"(?<![\d.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>(?:19|20)\d\d)\b"),
    re.compile(r"(?:(?P<y>(?:19|20)\d\d)年)?(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})[日号號])?"),
)
_SAID_TIME = re.compile(r"(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?|[012]?\d:[0-5]\d")
_WORD_ENDS = re.compile(r"[\W_]+")
_NO_TIME = frozenset({"may"})  # far more often the verb


@dataclass(frozen=True, slots=True)
class Period:
    """Days from ``first`` to ``last``, both included."""

    first: dt.date
    last: dt.date


def periods(question: str, today: dt.date) -> tuple[Period, ...]:
    """Return the days and months that ``question`` names; without a year, the latest that has begun.

    None for one that comes within ``SOON`` days: nobody knows whether the last or the next is meant. None for a whole
    year either: undated facts, which are of no day, would come behind everything that was said in it.
    """
    folded = _folded(question)
    named = not _months().isdisjoint(_WORD_ENDS.sub(" ", folded).split())
    found: list[Period] = []
    taken: list[range] = []
    for pattern in _IN_NUMBERS + (_in_words() if named else ()):
        for match in pattern.finditer(folded):
            if len(found) < _MOST and not any(match.start() in span for span in taken):
                taken.append(range(*match.span()))
                found.extend(_period(match.groupdict(), today))
    return tuple(found)


def asks_when(question: str) -> bool:
    """Return whether ``question`` asks when something is or was."""
    folded = _folded(question)
    return any(part in folded for part in _IN_WHEN) and _asks_when().search(folded) is not None


def says_when(body: frozenset[str]) -> bool:
    """Return whether a text with the indexed words ``body`` says when: a day, a date, a clock, a span from now."""
    return not body.isdisjoint(_time_terms()) or any(term[0].isdigit() and _SAID_TIME.fullmatch(term) for term in body)


def nearness(found: Candidates, asked: Sequence[Period], zone: ZoneInfo) -> Floats:
    """Return what is added to the score of each entry for being of the days ``asked`` about; 0 for undated ones."""
    near = np.zeros(len(found))
    for period in asked:
        later = Period(period.last + dt.timedelta(days=1), period.last + dt.timedelta(days=LATER))
        near = np.maximum(near, TOLD_LATER * found.within(later.first, later.last, zone))
        near = np.maximum(near, found.within(period.first, period.last, zone))
    return OF_THAT_TIME * near


def _folded(question: str) -> str:
    read = question[:_READ]
    if read.isascii():
        return " ".join(read.lower().split())
    from recall_runtime.intents.phrases import fold_request  # compiles patterns that few questions need

    return fold_request(read)


@lru_cache(maxsize=1)
def _asks_when() -> re.Pattern[str]:
    return re.compile(_WHEN)


@lru_cache(maxsize=1)
def _months() -> frozenset[str]:
    return frozenset(words_of("month"))


@lru_cache(maxsize=1)
def _in_words() -> tuple[re.Pattern[str], ...]:
    """Return what names a day or a month by the name of the month, the fullest first."""
    month = "(?P<m>" + "|".join(sorted(map(re.escape, words_of("month")), key=len, reverse=True)) + ")"
    year = r"(?:,? (?:de |of |do )?(?P<y>(?:19|20)\d\d))"
    before = (
        r"\b(?:in|during|since|until|till|by|before|after|last|this|of|early|mid|late|im|seit|bis|vor|nach"
        r"|en|de|desde|hasta|em|depuis|avant|apres|в|с|до|после)[ -]"
    )
    return tuple(
        re.compile(pattern)
        for pattern in (
            rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.|-го)?(?: of| de)? {month}\b{year}?",
            rf"\b{month} (?:the )?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:){year}?",
            rf"\b{month}\b{year}",
            rf"{before}{month}\b",
        )
    )


def _period(named: dict[str, str | None], today: dt.date) -> Iterator[Period]:
    """Yield the days that ``named`` means, none for a day that does not exist."""
    name, day = named["m"] or "", named.get("d")
    month, year = int(words_of("month").get(name, name)), int(named.get("y") or 0)
    try:
        if not year:
            coming = (dt.date(today.year, month, int(day or 1)) - today).days
            if 0 < coming <= SOON:
                return
            year = today.year - (coming > 0)
        first = dt.date(year, month, int(day or 1))
        last = first if day else _end_of(year, month)
    except ValueError:
        return
    yield Period(first, last)


def _end_of(year: int, month: int) -> dt.date:
    return dt.date(year + month // 12, month % 12 + 1, 1) - dt.timedelta(days=1)


@lru_cache(maxsize=1)
def _time_terms() -> frozenset[str]:
    named = (word for section in ("weekday", "day", "month") for word in words_of(section) if "-" not in word)
    terms = index_text(" ".join([*named, _TIME_WORDS])).split()
    return frozenset(term for term in terms if len(term) > 1) - _NO_TIME
