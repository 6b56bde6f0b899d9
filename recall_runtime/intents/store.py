"""Making, listing and cancelling standing intents.

Belongs here: the bounds and refusals of creation, the rows of ``standing_intents``.
Does not belong here: matching (``intents.matching``), clock times (``intents.scheduled``).
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any

import apsw

from recall_runtime.clock import MS_PER_DAY, format_instant
from recall_runtime.errors import RefusedError
from recall_runtime.intents.classify import RequestKind, classify_request, clock_time_in, point_in_time_in
from recall_runtime.intents.lifecycle import IntentStatus, index_terms, maintain
from recall_runtime.intents.scopes import Scope, SenderScope, Speaker, channel_scope, sender_identity
from recall_runtime.intents.terms import terms_of
from recall_runtime.storage.connection import write_transaction
from recall_runtime.text.escaping import terminal, xml

MAX_DESCRIPTION = 500
MAX_KEYWORDS = 24
MAX_KEYWORD = 120
MAX_ID = 200
DEFAULT_EXPIRY_DAYS = 90
DEFAULT_MAX_FIRES = 3
DEFAULT_COOLDOWN_SECONDS = 86_400
BLOCK_CHARACTERS = 1_200
_LINE_OVERHEAD = 77  # tags, line ends and "Standing intent (created YYYY-MM-DD): "
_LARGEST_INTEGER = 2**53
_SYNTAX_SIGNS = frozenset('"()=*^{}[]<>|;\\')
_QUOTES = "\"'“”„«»「」『』"
_USE_A_TASK = "Use a scheduled task for clock times and days."
_COLUMNS = (
    "intent_key, intent_id, description, trigger_keywords, channel_scope, sender_scope, creator_sender, status, "
    "expires_at, max_fires, fire_count, cooldown_seconds, last_fired_at, created_at, source_session_id"
)


@dataclass(frozen=True, slots=True)
class IntentDraft:
    """What an owner asks for. ``expires_at`` in milliseconds UTC; ``None`` means 90 days from now."""

    description: str
    keywords: tuple[str, ...]
    scope: Scope = Scope.CHANNEL
    sender_scope: SenderScope = SenderScope.SENDER
    expires_at: int | None = None
    max_fires: int = DEFAULT_MAX_FIRES
    cooldown_seconds: int = DEFAULT_COOLDOWN_SECONDS


@dataclass(frozen=True, slots=True)
class StandingIntent:
    """One stored intent. Times in milliseconds UTC."""

    intent_key: int
    intent_id: str
    description: str
    keywords: tuple[str, ...]
    channel_scope: str | None
    sender_scope: str | None
    creator_sender: str
    status: IntentStatus
    expires_at: int | None
    max_fires: int
    fire_count: int
    cooldown_seconds: int
    last_fired_at: int | None
    created_at: int
    source_session_id: str | None


def create(
    connection: apsw.Connection, draft: IntentDraft, speaker: Speaker, now_ms: int, *, session_id: str | None = None
) -> StandingIntent:
    """Store ``draft`` as an armed intent of ``speaker``; an equal live one is returned instead of a second one.

    Raises:
        RefusedError: not an authenticated owner, out of bounds, no usable keyword, or a clock time.
    """
    if not speaker.is_owner or not speaker.is_known:
        raise RefusedError(
            "Only an owner the host has authenticated can make a standing intent", "Hand over sender and ownership."
        )
    description = clean_description(draft.description)
    keywords = clean_keywords(draft.keywords)
    _check_numbers(draft, now_ms)
    place = channel_scope(draft.scope, speaker)
    sender = sender_identity(speaker) if draft.sender_scope is SenderScope.SENDER else None
    expires_at = draft.expires_at if draft.expires_at is not None else now_ms + DEFAULT_EXPIRY_DAYS * MS_PER_DAY
    with write_transaction(connection):
        maintain(connection, now_ms)
        twins = _select(
            connection,
            "status IN ('pending', 'armed', 'fired') AND description = ? AND trigger_keywords = ? "
            "AND channel_scope IS ? AND sender_scope IS ? AND creator_sender = ?",
            (description, _json(keywords), place, sender, sender_identity(speaker)),
        )
        if twins:
            return twins[0]
        connection.execute(
            "INSERT INTO standing_intents (intent_id, description, trigger_keywords, channel_scope, "
            "sender_scope, creator_sender, status, expires_at, max_fires, cooldown_seconds, created_at, "
            "source_session_id) VALUES (?, ?, ?, ?, ?, ?, 'armed', ?, ?, ?, ?, ?)",
            (
                str(uuid.uuid4()),
                description,
                _json(keywords),
                place,
                sender,
                sender_identity(speaker),
                expires_at,
                draft.max_fires,
                draft.cooldown_seconds,
                now_ms,
                session_id,
            ),
        )
        intent_key = connection.last_insert_rowid()
        index_terms(connection, intent_key)
        return _select(connection, "intent_key = ?", (intent_key,))[0]


def list_intents(
    connection: apsw.Connection, now_ms: int, *, status: IntentStatus | None = None
) -> tuple[StandingIntent, ...]:
    """Return the intents, oldest first, after upkeep at ``now_ms``."""
    with write_transaction(connection):
        maintain(connection, now_ms)
        return tuple(_select(connection, "?1 IS NULL OR status = ?1", (status.value if status else None,)))


def cancel(connection: apsw.Connection, intent_id: str, now_ms: int) -> bool:
    """Cancel a live intent; return whether there was one. The row stays, as cancelled."""
    if not intent_id or len(intent_id) > MAX_ID:
        raise RefusedError("This is no id of an intent", "Take the id from `dreamline intent list`.")
    with write_transaction(connection):
        maintain(connection, now_ms)
        connection.execute(
            "UPDATE standing_intents SET status = 'cancelled' "
            "WHERE intent_id = ? AND status IN ('pending', 'armed', 'fired')",
            (intent_id,),
        )
        return connection.changes() == 1


def clean_description(text: str) -> str:
    """Return the description on one line, safe to show.

    Raises:
        RefusedError: empty, too long (also once escaped), or a request for a clock time or day.
    """
    description = terminal(" ".join(text.split()))
    if not any(sign.isalnum() for sign in description):
        raise RefusedError("The description is empty", "Say what to bring up when the intent fires.")
    if len(description) > MAX_DESCRIPTION or len(xml(description)) + _LINE_OVERHEAD > BLOCK_CHARACTERS:
        raise RefusedError(f"The description is longer than {MAX_DESCRIPTION} characters", "Shorten it.")
    kind = classify_request(description)
    if kind is RequestKind.TIME or (kind is not RequestKind.EVENT and clock_time_in(description)):
        raise RefusedError(
            f"The description names a time ({point_in_time_in(description)})",
            _USE_A_TASK + " If the time is only part of the message, write the condition too (When ... comes up, ...).",
        )
    return description


def clean_keywords(keywords: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keyword entries folded to lower case, without doubles.

    Raises:
        RefusedError: none or too many, too long, not plain words, or nothing but a clock time or day.
    """
    kept: dict[str, None] = {}
    for keyword in keywords:
        entry = " ".join(keyword.lower().split()).strip(_QUOTES)
        if not entry:
            continue
        if len(entry) > MAX_KEYWORD:
            raise RefusedError(f"A keyword is longer than {MAX_KEYWORD} characters", "Give a few plain words.")
        if _SYNTAX_SIGNS & set(entry) or not terms_of(entry):
            raise RefusedError(f"Keyword {terminal(entry)!r} has no plain words", "Write words as people say them.")
        if _is_only_time(entry):
            raise RefusedError(f"Keyword {terminal(entry)!r} is a time", _USE_A_TASK)
        kept[entry] = None
    if not kept:
        raise RefusedError("No usable keyword", "Give at least one entry of plain words.")
    if len(kept) > MAX_KEYWORDS:
        raise RefusedError(f"More than {MAX_KEYWORDS} keywords", "Give the most telling ones.")
    return tuple(kept)


def _is_only_time(entry: str) -> bool:
    """Whether the entry holds a clock time, or a point in time and no further word."""
    if clock_time_in(entry):
        return True
    found = point_in_time_in(entry)
    return found is not None and len(found) >= len(entry) - 3


def _check_numbers(draft: IntentDraft, now_ms: int) -> None:
    if draft.expires_at is not None and draft.expires_at <= now_ms:
        raise RefusedError(f"The expiry {format_instant(draft.expires_at)} is past", "Give a time in the future.")
    if not 1 <= draft.max_fires <= _LARGEST_INTEGER:
        raise RefusedError(f"max_fires is {draft.max_fires}", "Give 1 or more.")
    if not 0 <= draft.cooldown_seconds <= _LARGEST_INTEGER // 1000:
        raise RefusedError(f"cooldown_seconds is {draft.cooldown_seconds}", "Give 0 or more.")


def _select(connection: apsw.Connection, where: str, bindings: tuple[str | int | None, ...]) -> list[StandingIntent]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM standing_intents WHERE {where} ORDER BY created_at, intent_key",  # noqa: S608 - constants
        bindings,
    )
    return [_record(row) for row in rows]


def _json(keywords: tuple[str, ...]) -> str:
    return json.dumps(keywords, ensure_ascii=False)


def _record(row: tuple[Any, ...]) -> StandingIntent:
    values = dict(zip(_COLUMNS.split(", "), row, strict=True))
    keywords = tuple(json.loads(values.pop("trigger_keywords")))
    return StandingIntent(keywords=keywords, status=IntentStatus(values.pop("status")), **values)
