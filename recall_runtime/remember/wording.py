"""The wordings of requests to remember, in eight languages.

Belongs here: reading ``words.txt``, cutting the request from what is asked for, the words of an event.
Does not belong here: where a request goes (``routing``), the wordings of times and events (``intents.phrases``).
"""

import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from recall_runtime.intents import phrases
from recall_runtime.text.words import SCRIPT_RUN, fold, stop_words

MAX_WORDS = 3  # of an event in one keyword entry; more are put in pairs
_CLAUSE_END = re.compile(r"[,，、;；.。!！]")
_COMMENT_SIGNS = re.compile(r"<!-*|-*->|[\x00]")
_LIST_SIGN = re.compile(r"^(?:[-*+>#]+\s+)+")
_OWN_WORDS = re.compile(r"[^\W_](?:[\w-]*[^\W_])?[+#]*")


def flat(text: str) -> str:
    """Return ``text`` on one line, without list signs and signs that could open or close a comment."""
    return _LIST_SIGN.sub("", " ".join(_COMMENT_SIGNS.sub(" ", text).split()))


def without_lead(text: str) -> str:
    """Return what is to be remembered, without "remember that" and its like."""
    bare = _pattern("LEAD").sub("", text.replace("’", "'"), count=1)
    bare = _pattern("TAIL").sub("", bare).strip() or text
    return bare[:1].upper() + bare[1:] if bare != text else text


def is_passing(text: str) -> bool:
    """Return whether ``text`` speaks of this moment, so that it is a detail of today and no lasting fact."""
    return _pattern("PASSING").search(text) is not None


def is_idle(word: str) -> bool:
    """Return whether a folded ``word`` only says that something is so now."""
    return word in _words("IDLE")


def event_words(text: str) -> tuple[str, ...]:
    """Return keyword entries for the event that ``text`` names, or nothing when it names none.

    All content words of the condition are one entry; of more than three, each two neighbours are one.
    """
    clause = _clause(phrases.fold_request(text))
    bare = _pattern("FRAME").sub(" ", clause)
    kept: dict[str, None] = {}
    for match in SCRIPT_RUN.finditer(fold(bare)):
        if match.lastgroup == "unspaced" and len(match[0]) > 1:
            kept[match[0]] = None
    for match in _OWN_WORDS.finditer(bare):
        word = match[0]
        unspaced = any(run.lastgroup == "unspaced" for run in SCRIPT_RUN.finditer(fold(word)))
        if not unspaced and len(word) > 1 and fold(word) not in stop_words() and word not in _words("GENERIC"):
            kept[word] = None
    words = list(kept)
    if len(words) <= MAX_WORDS:
        return (" ".join(words),) if words else ()
    return tuple(" ".join(pair) for pair in pairwise(words))


def _clause(folded: str) -> str:
    opening = phrases.opening_event().match(folded)
    if opening is not None:
        end = _CLAUSE_END.search(folded, max(0, opening.end() - 1))
        if end is not None:
            start = opening.end() if opening.end() < end.start() else 0
            return folded[start : end.start()]
        request = phrases.speech_act().search(folded, opening.end())
        return folded[opening.end() : request.start()] if request else folded[opening.end() :]
    trailing = phrases.trailing_event().search(folded)
    if trailing is None:
        return ""
    rest = folded[trailing.end() :]
    end = _CLAUSE_END.search(rest)
    rest = rest[: end.start()] if end else rest
    return rest if rest.strip() else folded[: trailing.start()]


@lru_cache(maxsize=1)
def _sections() -> dict[str, list[str]]:
    text = Path(__file__).with_name("words.txt").read_text(encoding="utf-8")
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


@lru_cache(maxsize=8)
def _pattern(section: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{line})" for line in _sections()[section]), re.IGNORECASE)


@lru_cache(maxsize=8)
def _words(section: str) -> frozenset[str]:
    return frozenset(fold(word) for line in _sections()[section] for word in line.split())
