"""Recall events: what was shown to a reply, written after the answer, never in its way.

Belongs here: the record, one short transaction, taking in what waited in the spool, recalls told by others.
Does not belong here: the file of the spool (``signals.spool``), counting recalls.

A recall event names its session by key; the kind of the session comes from the key's form, never from any text.
Everything stored is redacted.
"""

import contextlib
import datetime as dt
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.errors import StoreError
from recall_runtime.index.cutting import safe_cut
from recall_runtime.index.hits import SearchHit
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.identity import query_hash
from recall_runtime.paths import PathKind, kind_of, normalise
from recall_runtime.provenance.note_lines import classify_note
from recall_runtime.provenance.paths import classify_path
from recall_runtime.provenance.sessions import parse_session_key
from recall_runtime.records import merge_provenance
from recall_runtime.signals import spool
from recall_runtime.storage.binding import read_own_index
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_state
from recall_runtime.text.lines import without_controls
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import OriginClass, worst_origin

MAX_TEXT = 800
MAX_QUERY = 2_000
_QUICK_MS = 50  # how long the write may wait before the event is spooled
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One text that was shown."""

    path: str
    start_line: int
    end_line: int
    score: float
    text: str
    origin_class: OriginClass


def record_recall(
    agent: Agent,
    *,
    query: str,
    hits: Sequence[SearchHit],
    session_key: str | None,
    lane: str,
    now_ms: int,
    session_id: str | None = None,
) -> bool:
    """Write down that ``hits`` were shown for ``query``. Call it after the answer was given.

    The same as :func:`record_recalls` for what one lane showed.
    """
    return record_recalls(
        agent, query=query, shown=[(lane, hits)], session_key=session_key or session_id, now_ms=now_ms
    )


def record_recalls(
    agent: Agent,
    *,
    query: str,
    shown: Sequence[tuple[str, Sequence[SearchHit]]],
    session_key: str | None,
    now_ms: int,
) -> bool:
    """Write down what the lanes showed for ``query``, in one transaction. Call it after the answer was given.

    It never raises for a database that is busy or broken: the events wait in the spool then. Where not even that can be
    written, they are lost and the log says so; an answer never fails for its record.

    Args:
        agent: Whose memory was recalled.
        query: The question as asked.
        shown: Lane (``search``, ``trigger`` or ``recall``) and what it showed, best first.
        session_key: Key of the session that asked; decides the kind of the session.
        now_ms: The instant.

    Returns:
        Whether the events are in the database; ``False`` means they wait in the spool, or are lost.
    """
    events = [_event(agent, query, [_shown(hit) for hit in hits], session_key, lane, now_ms) for lane, hits in shown]
    return _record(agent, events)


def _shown(hit: SearchHit) -> ShownHit:
    entry = hit.entry
    return ShownHit(
        entry.path, entry.start_line, entry.end_line, hit.relevance, entry.text, entry.provenance.origin_class
    )


def record_external_recall(
    agent: Agent, *, query: str, results: Sequence[Mapping[str, Any]], at_ms: int, session_key: str | None
) -> bool:
    """Write down a recall that a host or a replay tells by anchors: ``path``, ``startLine``, ``endLine``, ``score``.

    The text is what the files say at this moment, the class what the index (or the records of writes) says of those
    lines. Anchors that lead to nothing are left out; an event without any is still an event.

    Returns:
        Whether the event is in the database; ``False`` means it waits in the spool.
    """
    shown = [hit for result in results if (hit := _resolve(agent, result)) is not None]
    return _record(agent, [_event(agent, query, shown, session_key, "search", at_ms)])


def drain_spool(agent: Agent) -> int:
    """Write the events that wait in the spool to the database; return how many. Damaged lines are kept aside.

    Raises:
        StoreError: the database can't be used; the spool is left as it is.
    """
    folder = agent.folders.spool
    if not folder.exists():
        return 0
    with exclusive(folder / "drain.lock", what="Draining the spool", wait_seconds=5.0):
        file = spool.taken(folder)
        if file is None:
            return 0
        damaged: list[str] = []
        known: set[str] = set()
        with contextlib.closing(open_state(agent.folders.state_db)) as state, write_transaction(state):
            damaged += [line for line in spool.lines_of(file) if not _take_in(state, line, known)]
        spool.finish(folder, damaged)
    return len(known)


def _take_in(state: apsw.Connection, line: str, known: set[str]) -> bool:
    """Write the event of one spooled line unless it is ``known``; return ``False`` for a line that is none."""
    try:
        event = json.loads(line)
        mark = str(event.get("event") or line)
        if mark not in known:
            dt.date.fromisoformat(event["day"])
            with state:  # a savepoint: a bad hit leaves no half event
                _insert(state, event)
            known.add(mark)
    except (*_NOT_AN_EVENT, RecursionError):
        return False
    return True


# what a line raises that is well-formed JSON with a missing or wrong value
_NOT_AN_EVENT = (
    AttributeError, KeyError, OverflowError, TypeError, ValueError,
    apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError,
)  # fmt: skip


def _event(
    agent: Agent, query: str, shown: Sequence[ShownHit], session_key: str | None, lane: str, at_ms: int
) -> dict[str, Any]:
    query = _clean(query)
    event: dict[str, Any] = {
        "at": at_ms,
        "day": day_of(at_ms, agent.zone).isoformat(),
        "query": _short(redact(query), MAX_QUERY),
        "query_hash": query_hash(query),
        "session_key": session_key,
        "session_kind": parse_session_key(session_key).kind.value,
        "lane": lane,
        "hits": [
            {
                "path": hit.path,
                "start_line": hit.start_line,
                "end_line": hit.end_line,
                "score": min(1.0, max(0.0, hit.score)),
                "text": _short(redact(_clean(hit.text)), MAX_TEXT),
                "origin_class": hit.origin_class.value,
            }
            for hit in shown
        ],
    }
    content = json.dumps(event, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
    return event | {"event": hashlib.sha256(content).hexdigest()[:16]}


def _clean(text: str) -> str:
    return without_controls(text.encode("utf-8", "replace").decode("utf-8"))


def _short(text: str, limit: int) -> str:
    return text[: safe_cut(text, limit)]


def _record(agent: Agent, events: Sequence[Mapping[str, Any]]) -> bool:
    try:
        with contextlib.closing(open_state(agent.folders.state_db)) as state:
            state.set_busy_timeout(_QUICK_MS)
            with write_transaction(state):
                for event in events:
                    _insert(state, event)
    except (StoreError, apsw.Error, OSError) as error:
        problem = error
    else:
        return True
    try:
        spool.append(agent.folders.spool, events)
    except (StoreError, OSError) as error:
        _log.warning("A recall can't be recorded, neither in the database (%s) nor in the spool (%s)", problem, error)
    return False


def _insert(state: apsw.Connection, event: Mapping[str, Any]) -> None:
    state.execute(
        "INSERT INTO recall_events(at, day, query, query_hash, session_key, session_kind, lane)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        tuple(event[key] for key in ("at", "day", "query", "query_hash", "session_key", "session_kind", "lane")),
    )
    event_id = state.last_insert_rowid()
    state.executemany(
        "INSERT INTO recall_hits(event_id, rank, path, start_line, end_line, score, text, origin_class)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (event_id, rank, *(hit[key] for key in ("path", "start_line", "end_line", "score", "text", "origin_class")))
            for rank, hit in enumerate(event["hits"], start=1)
        ),
    )


def _resolve(agent: Agent, result: Mapping[str, Any]) -> ShownHit | None:
    try:
        path = normalise(str(result["path"]))
        start, end = int(result["startLine"]), int(result["endLine"])
        score = float(result.get("score", 0.0))
    except (KeyError, TypeError, ValueError):
        return None
    if start < 1 or end < start:
        return None
    found = _from_index(agent, path, start, end) if kind_of(path) is PathKind.TRANSCRIPT else None
    found = found or _from_file(agent, path, start, end)
    return ShownHit(path, start, end, score, *found) if found else None


def _from_file(agent: Agent, path: str, start: int, end: int) -> tuple[str, OriginClass] | None:
    """Return the text of the lines as it stands in the file now, and the class of those lines."""
    place = classify_path(agent.workspace, path)
    if place.escapes:
        return None
    try:
        data = (agent.workspace / path).read_bytes()
    except (OSError, ValueError):
        return None
    note = read_note(data, path=path)
    lines = note.reading.lines[start - 1 : end]
    if not lines:
        return None
    parts = [block.text for block in note.blocks if block.start_line <= end and block.end_line >= start]
    text = "\n".join(part for part in parts if part.strip()) or "\n".join(line.text for line in lines)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        known = classify_note(state, path, data, note, observed_at=0)
    provenance = None
    for line in known.lines[start - 1 : end]:
        provenance = merge_provenance(provenance, line)
    origin = provenance.origin_class if provenance else OriginClass.UNTRUSTED
    return text, worst_origin((origin, place.origin_class))


def _from_index(agent: Agent, path: str, start: int, end: int) -> tuple[str, OriginClass] | None:
    if not agent.folders.index_db.exists():
        return None
    with contextlib.closing(read_own_index(agent.folders)) as reader:
        rows = list(
            reader.execute(
                "SELECT e.text, e.origin_class FROM entries e JOIN sources s ON s.source_id = e.source_id"
                " WHERE s.path = ? AND e.start_line <= ? AND e.end_line >= ? ORDER BY e.ordinal",
                (path, end, start),
            )
        )
    if not rows:
        return None
    return "\n".join(row[0] for row in rows), worst_origin(OriginClass(row[1]) for row in rows)
