"""Telling apart what an owner asks for: at a time, on an event, some day, or nothing at all.

Belongs here: the decision, from the wordings in ``intents.phrases``; no model.
Does not belong here: acting on it (``store``, ``scheduled``, ``remember``).
"""

import re
from enum import StrEnum

from recall_runtime.intents import phrases

MAX_CHARACTERS = 2_000  # a request stands at the front of a message; what follows is not read
_CLAUSE_END = re.compile(r"[,，、;；]|(?<=[的]时候)|(?<=[的]時候)|(?<=たびに)|(?<=たら)")


class RequestKind(StrEnum):
    """What a sentence of the owner asks of the future."""

    TIME = "time"
    EVENT = "event"
    ASPIRATION = "aspiration"
    STATEMENT = "statement"


def clock_time_in(text: str) -> str | None:
    """Return the first hour of the day written in ``text`` (eight languages), or ``None``."""
    text = text[:MAX_CHARACTERS]
    match = phrases.clock().search(phrases.fold_request(text)) or phrases.RAW_CLOCK.search(text)
    return match[0] if match else None


def point_in_time_in(text: str) -> str | None:
    """Return the first clock time, day, date, span from now or recurrence in ``text``, or ``None``."""
    match = phrases.point_in_time().search(phrases.fold_request(text[:MAX_CHARACTERS]))
    return clock_time_in(text) or (match[0] if match else None)


def classify_request(text: str) -> RequestKind:
    """Return what ``text`` asks for.

    An event condition wins over a time that stands behind it ("when the release comes up, mention Friday's
    meeting"); a time before a trailing condition wins ("remind me tomorrow if nobody wrote").
    """
    folded = phrases.fold_request(text[:MAX_CHARACTERS])
    if phrases.no_request().search(folded):
        return RequestKind.STATEMENT
    opening = phrases.opening_event().match(folded)
    if opening is not None:
        kind = _opened(folded, opening)
        if kind is not None:
            return kind
    if phrases.request().search(folded) or phrases.speech_act().match(folded):
        trailing = phrases.trailing_event().search(folded)
        before = folded if trailing is None else folded[: trailing.start()]
        if point_in_time_in(before):
            return RequestKind.TIME
        if trailing is not None:
            return RequestKind.EVENT
        if phrases.some_day().search(folded):
            return RequestKind.ASPIRATION
        if point_in_time_in(text):
            return RequestKind.TIME
    if phrases.aspiration().search(folded) or (phrases.some_day().search(folded) and phrases.wish().search(folded)):
        return RequestKind.ASPIRATION
    return RequestKind.STATEMENT


def _opened(folded: str, opening: re.Match[str]) -> RequestKind | None:
    """Decide a sentence that opens with a condition; ``None`` when nothing is asked of the agent."""
    end = _CLAUSE_END.search(folded, max(0, opening.end() - 1))
    clause, rest = (folded[: end.start()], folded[end.end() :]) if end else (folded, folded[opening.end() :])
    if not phrases.request().search(rest) and (
        phrases.standing_rule().match(rest) or not phrases.speech_act().search(rest)
    ):
        return None
    when = phrases.clock().search(clause) or phrases.point_in_time().search(clause)
    if when is not None and phrases.time_as_event().match(clause[: when.start()]):
        return RequestKind.TIME
    return RequestKind.EVENT
