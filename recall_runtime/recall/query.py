"""What is looked up for a message: the bounded search query, and the conversation a model is shown.

Belongs here: cleaning, folding and cutting of messages (openclaw-algorithms 15.2).
Does not belong here: which wrappers hosts put round messages (``transcripts.envelopes``), searching.
"""

import re
from collections.abc import Iterator, Sequence

from recall_runtime.config import RecallSettings
from recall_runtime.notes.markers import Fence
from recall_runtime.text.escaping import cut
from recall_runtime.transcripts.envelopes import cut_assistant, cut_user

MAX_QUERY = 480
SHORT_QUERY = 12
MAX_EARLIER = 120
MAX_CONTEXT = 25_000
_MAX_CLEANED = 32_000  # characters of a message that are cleaned at all

_SEPARATOR = re.compile(r"[\s\-=_*#~>|]+")
_HEADER = re.compile(r"(?:from|to|cc|date|subject|sent|sender|message[ _-]?id|timestamp|conversation info)\s*:.*", re.I)
_ERROR = re.compile(
    r"(?:traceback \(most recent call last\)|error:|warning:|at \S+ \(.*\)|file \".*\", line \d+|npm err!).*", re.I
)

Turns = Sequence[tuple[str, str]]  # (role, text), oldest first; the role is user or assistant


def clean_message(message: str) -> str:
    """Return a user's own words in ``message``, folded to one line: no injected blocks, code, headers, error lines."""
    text = cut_user(message[:_MAX_CLEANED]).text
    fence = Fence()
    return " ".join(
        " ".join(line for line in text.split("\n") if not fence.covers(line) and _says_something(line)).split()
    )


def _says_something(line: str) -> bool:
    bare = line.strip()
    return bool(bare) and not (_SEPARATOR.fullmatch(bare) or _HEADER.fullmatch(bare) or _ERROR.fullmatch(bare))


def search_query(message: str, recent: Turns = ()) -> str:
    """Return the question to look up: at most 480 characters; a very short one is led by the user's turn before it."""
    query = cut(clean_message(message), MAX_QUERY)
    if len(query) >= SHORT_QUERY:
        return query
    for role, text in reversed(recent):
        earlier = cut(clean_message(text), MAX_EARLIER) if role == "user" else ""
        if earlier and earlier != query:
            return f"{earlier} {query}".strip()
    return query


def conversation(message: str, recent: Turns, settings: RecallSettings) -> str:
    """Return what a model is shown of the conversation, by ``query_mode``; at most 25,000 characters.

    ``message``: the latest message. ``recent``: the last turns, each folded and cut, then the latest message.
    ``full``: all turns.
    """
    latest = _folded(cut_user(message[:_MAX_CLEANED]).text)
    if settings.query_mode == "message" or not recent:
        return latest[:MAX_CONTEXT]
    if settings.query_mode == "full":
        lines = [f"{role}: {_folded(_own_words(role, text))}" for role, text in recent]
        head, tail = "Full conversation context:", f"user: {latest}"
    else:
        lines = list(_tail_lines(recent, settings))
        head, tail = "Recent conversation tail:", f"Latest user message:\n{latest}"
    tail = tail[:MAX_CONTEXT]
    room = MAX_CONTEXT - len(head) - len(tail) - 2
    kept: list[str] = []
    for line in reversed(lines):  # the newest turns matter most
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([head, *reversed(kept), tail])


def _tail_lines(recent: Turns, settings: RecallSettings) -> Iterator[str]:
    left = {"user": settings.recent_user_turns, "assistant": settings.recent_assistant_turns}
    sizes = {"user": settings.recent_user_chars, "assistant": settings.recent_assistant_chars}
    chosen: list[str] = []
    for role, text in reversed(recent):
        if left.get(role, 0) > 0:
            left[role] -= 1
            chosen.append(f"{role}: {cut(_folded(_own_words(role, text)), sizes[role])}")
    yield from reversed(chosen)


def _own_words(role: str, text: str) -> str:
    return (cut_user if role == "user" else cut_assistant)(text[:_MAX_CLEANED]).text


def _folded(text: str) -> str:
    return " ".join(text.split())
