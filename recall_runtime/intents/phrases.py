"""Phrases of eight languages (EN DE ES FR PT RU ZH JA) that say when, on what event, or some day.

Belongs here: folding of a request and the compiled sections of ``phrases.txt``, each a closed list of wordings.
Does not belong here: the decision between kinds of requests (``intents.classify``).

Latin letters are matched without accents, except where the accent is the meaning (Portuguese ``às``): ``RAW_CLOCK``
is matched against the text as it is.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

_PART = re.compile(r"<([A-Z_]+)>")
RAW_CLOCK = re.compile(
    r"\bàs? (?:\d{1,2}|uma|duas|três|quatro|cinco|seis|sete|oito|nove|dez|onze|doze)\b", re.IGNORECASE
)


def fold_request(text: str) -> str:
    """Return ``text`` case-folded, with compatibility forms unified, blanks folded and Latin accents removed."""
    unified = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("ё", "е")
    kept: list[str] = []
    latin = False
    for sign in unicodedata.normalize("NFD", unified):
        if unicodedata.combining(sign):
            if not latin:
                kept.append(sign)
            continue
        latin = "a" <= sign <= "z"
        kept.append(sign)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


@lru_cache(maxsize=1)
def _sections() -> dict[str, list[str]]:
    text = Path(__file__).with_name("phrases.txt").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]") and line[1:-1].isupper() and "(" not in line:
            lines = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


@lru_cache(maxsize=32)
def _compiled(section: str) -> re.Pattern[str]:
    parts = dict(line.split(" ", 1) for line in _sections()["PARTS"])
    patterns = (_PART.sub(lambda match: parts[match[1]], line) for line in _sections()[section])
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def clock() -> re.Pattern[str]:
    """An hour of the day."""
    return _compiled("CLOCK")


def point_in_time() -> re.Pattern[str]:
    """A day, a date, a span from now, or a recurrence."""
    return _compiled("POINT_IN_TIME")


def request() -> re.Pattern[str]:
    """Asking to be told, woken or reminded; also the schedule verbs (send, set an alarm)."""
    return _compiled("REQUEST")


def speech_act() -> re.Pattern[str]:
    """Verbs of what an event is to bring about: speaking, not working."""
    return _compiled("SPEECH_ACT")


def opening_event() -> re.Pattern[str]:
    """A condition that opens the sentence."""
    return _compiled("OPENING_EVENT")


def trailing_event() -> re.Pattern[str]:
    """A condition behind the request ("let me know when ...")."""
    return _compiled("TRAILING_EVENT")


def time_as_event() -> re.Pattern[str]:
    """The start of "when it is nine o'clock": a time dressed as an event."""
    return _compiled("TIME_AS_EVENT")


def some_day() -> re.Pattern[str]:
    """Some day, with no date."""
    return _compiled("SOME_DAY")


def wish() -> re.Pattern[str]:
    """Wanting, hoping, planning."""
    return _compiled("WISH")


def aspiration() -> re.Pattern[str]:
    """A dream or a long-term goal, said as such."""
    return _compiled("ASPIRATION")


def no_request() -> re.Pattern[str]:
    """A question about the past, or asking not to be told: nothing is asked of the future."""
    return _compiled("NO_REQUEST")


def standing_rule() -> re.Pattern[str]:
    """A rule for all times ("when I ask for prices, always show euros"): a directive, no event."""
    return _compiled("STANDING_RULE")
