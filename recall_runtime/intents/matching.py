"""Which standing intents a message fires: deterministic, no model, one immediate transaction.

Belongs here: the prefilter, the exact test, budgets, the injected block, giving fires back.
Does not belong here: the forms of words (``intents.terms``), upkeep rules (``intents.lifecycle``).

Rules: openclaw-algorithms 32.4. Beyond it: the bound of candidates counts intents that do match, and those that fired
longest ago come first, so neither decoys nor a crowd keep a later intent from its turn.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import apsw

from recall_runtime.clock import day_of
from recall_runtime.intents.lifecycle import index_terms, maintain
from recall_runtime.intents.scopes import UNKNOWN_SENDERS, Speaker, identities_of, places_of
from recall_runtime.intents.store import BLOCK_CHARACTERS
from recall_runtime.intents.terms import MessageWords, entry_matches, message_words
from recall_runtime.storage.connection import write_transaction
from recall_runtime.text.escaping import xml
from recall_runtime.vocabulary import SessionKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_CANDIDATES = 256
MAX_FIRED = 3
VECTORS_WATERMARK = "standing_intent_vectors"  # the embedder that made the vectors of the table
_SCOPED = """
    +i.status = 'armed' AND (i.expires_at IS NULL OR i.expires_at > :now) AND i.fire_count < i.max_fires
    AND (i.last_fired_at IS NULL OR i.last_fired_at + i.cooldown_seconds * 1000 <= :now)
    AND lower(trim(i.creator_sender)) NOT IN (SELECT value FROM json_each(:nobody))
    AND (i.channel_scope IS NULL OR i.channel_scope IN (SELECT value FROM json_each(:places)))
    AND (i.sender_scope IS NULL OR i.sender_scope IN (SELECT value FROM json_each(:senders)))
"""
_ORDER = "ORDER BY i.last_fired_at IS NOT NULL, i.last_fired_at, i.created_at, i.intent_key"
_FIELDS = "i.intent_key, i.intent_id, i.description, i.trigger_keywords, i.created_at, i.last_fired_at"
_BY_WORDS = f"""
    SELECT {_FIELDS} FROM (
        SELECT DISTINCT intent_key FROM standing_intent_terms WHERE form IN (SELECT value FROM json_each(:forms))
    ) AS found CROSS JOIN standing_intents AS i ON i.intent_key = found.intent_key
    WHERE {_SCOPED} {_ORDER}
"""  # noqa: S608 - constants only
_BY_VECTOR = f"""
    SELECT {_FIELDS}, i.trigger_embedding FROM standing_intents AS i
    WHERE i.trigger_embedding IS NOT NULL AND {_SCOPED} {_ORDER}
"""  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation, as the host hands it over."""

    message: str
    speaker: Speaker
    session_kind: SessionKind
    session_key: str


@dataclass(frozen=True, slots=True)
class VectorTrigger:
    """The optional vector trigger, off unless given: the unit vector of the message, the least cosine, the embedder."""

    message: "NDArray[np.float32]"
    threshold: float
    embedder: str  # its identity; vectors of another are not compared


@dataclass(frozen=True, slots=True)
class FiredIntent:
    """One intent that fired, with what :func:`give_back` needs to restore it. Instants in milliseconds UTC."""

    intent_id: str
    description: str
    fired_at: int
    previous_fired_at: int | None


@dataclass(frozen=True, slots=True)
class IntentMatch:
    """The answer to one turn: the block to inject (empty: nothing), who fired, and why nothing was tried."""

    block: str = ""
    fired: tuple[FiredIntent, ...] = ()
    skipped: str | None = None
    left_out: int = 0  # met, but too long for the room left: they keep their budget


Candidate = tuple[int, str, str, int, int | None]  # key, id, description, created at, last fired at


class _TooLateError(Exception):
    """Ends the transaction without a trace."""


def match(
    connection: apsw.Connection,
    turn: Turn,
    now_ms: int,
    zone: ZoneInfo,
    *,
    too_late: Callable[[], bool] = lambda: False,
    vector: VectorTrigger | None = None,
) -> IntentMatch:
    """Fire the intents that ``turn`` triggers and return the block to inject.

    Args:
        connection: The state database, open for writing.
        turn: The message with its authenticated sender.
        now_ms: The instant of the turn.
        zone: The workspace's zone, for the day in the block.
        too_late: Asked once the lock is held and again before the commit; when it says yes, nothing fires.
        vector: The optional vector trigger.

    Raises:
        StoreLockedError: another process held the database longer than the busy timeout; nothing fired.
    """
    reason = _why_not_eligible(turn)
    if reason is not None:
        return IntentMatch(skipped=reason)
    message = message_words(turn.message)
    try:
        with write_transaction(connection):
            _give_up_if(too_late())
            result = _fire(connection, turn, message, now_ms, zone, vector)
            _give_up_if(bool(result.fired) and too_late())
    except _TooLateError:
        return IntentMatch(skipped="deadline")
    return result


def _give_up_if(too_late: bool) -> None:
    if too_late:
        raise _TooLateError


def _why_not_eligible(turn: Turn) -> str | None:
    if turn.session_kind is not SessionKind.INTERACTIVE:
        return f"session_kind:{turn.session_kind}"
    if not turn.session_key:
        return "session_unknown"
    return None


def _fire(
    connection: apsw.Connection,
    turn: Turn,
    message: MessageWords,
    now_ms: int,
    zone: ZoneInfo,
    vector: VectorTrigger | None,
) -> IntentMatch:
    maintain(connection, now_ms)
    fired: list[FiredIntent] = []
    lines: list[str] = []
    left_out = 0
    candidates = _matching(connection, turn, message, now_ms, vector)
    for key, intent_id, description, created_at, previous in itertools.islice(candidates, MAX_CANDIDATES):
        if len(fired) == MAX_FIRED:
            break  # the others keep their budget and come first next time
        line = f"Standing intent (created {day_of(created_at, zone)}): {xml(description)}"
        if len(_block([*lines, line])) > BLOCK_CHARACTERS:
            left_out += 1
            continue
        connection.execute(
            "UPDATE standing_intents SET fire_count = fire_count + 1, last_fired_at = ?, "
            "status = CASE WHEN fire_count + 1 >= max_fires THEN 'done' ELSE 'fired' END WHERE intent_key = ?",
            (now_ms, key),
        )
        fired.append(FiredIntent(intent_id, description, now_ms, previous))
        lines.append(line)
    return IntentMatch(_block(lines) if lines else "", tuple(fired), None, left_out)


def _matching(
    connection: apsw.Connection, turn: Turn, message: MessageWords, now_ms: int, vector: VectorTrigger | None
) -> Iterator[Candidate]:
    """Yield the intents the message triggers, those that fired longest ago first. Rows are read before the first."""
    bindings: dict[str, int | str | None] = {
        "now": now_ms,
        "nobody": json.dumps(sorted(UNKNOWN_SENDERS)),
        "places": json.dumps(places_of(turn.speaker), ensure_ascii=False),
        "senders": json.dumps(identities_of(turn.speaker), ensure_ascii=False),
    }
    known: set[int] = set()
    forms = json.dumps(sorted(message.lookup), ensure_ascii=False)
    rows: list[Any] = connection.execute(_BY_WORDS, bindings | {"forms": forms}).fetchall() if message.lookup else []
    for key, intent_id, description, keywords, created_at, last_fired_at in rows:
        if any(entry_matches(entry, message) for entry in json.loads(keywords)):
            known.add(key)
            yield key, intent_id, description, created_at, last_fired_at
    if vector is not None:
        yield from (row for row in _near(connection, bindings, vector) if row[0] not in known)


def _near(connection: apsw.Connection, bindings: dict[str, int | str | None], vector: VectorTrigger) -> list[Candidate]:
    import numpy as np

    kept = connection.execute("SELECT value FROM watermarks WHERE name = ?", (VECTORS_WATERMARK,)).fetchone()
    if kept is None or kept[0] != vector.embedder:
        return []
    near: list[Candidate] = []
    for key, intent_id, description, _, created_at, last_fired_at, blob in connection.execute(_BY_VECTOR, bindings):
        stored = np.frombuffer(blob, dtype="<f4")
        if stored.shape == vector.message.shape and float(stored @ vector.message) >= vector.threshold:
            near.append((key, intent_id, description, created_at, last_fired_at))
    return near


def _block(lines: list[str]) -> str:
    return "\n".join(("<standing_intents>", *lines, "</standing_intents>"))


def give_back(connection: apsw.Connection, fired: Sequence[FiredIntent]) -> int:
    """Return the fires of a turn whose reply failed before the block was injected; return how many were restored.

    An intent that has changed since (fired again, given back, cancelled, expired) is left alone.
    """
    restored = 0
    with write_transaction(connection):
        for intent in fired:
            row = connection.execute(
                "UPDATE standing_intents SET fire_count = fire_count - 1, last_fired_at = ?, status = 'armed' "
                "WHERE intent_id = ? AND last_fired_at = ? AND fire_count > 0 "
                "AND (?1 IS NULL OR ?1 < last_fired_at) "  # so that no fire is given back twice
                "AND status IN ('armed', 'fired', 'done') RETURNING intent_key",
                (intent.previous_fired_at, intent.intent_id, intent.fired_at),
            ).fetchone()
            if row is not None:
                restored += 1
                index_terms(connection, int(str(row[0])))
    return restored
