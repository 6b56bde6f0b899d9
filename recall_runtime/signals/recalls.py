"""Recall events: what was shown to a reply, written after the answer, never in its way.

Belongs here: the record, one short transaction, the spool for the time the database is busy, recalls told by others.
Does not belong here: counting them.

A recall event names its session by key; the kind of the session comes from the key's form, never from any text.
Everything stored is redacted.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_state, read_index
from recall_runtime.text.lines import without_controls
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import OriginClass, worst_origin

MAX_TEXT = 800
MAX_QUERY = 2_000
SPOOL_FILE = "recalls.jsonl"
_QUICK_MS = 50  # how long the write may wait before the event is spooled


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

    It never raises for a busy or broken database: the event waits in the spool then.

    Args:
        agent: Whose memory was recalled.
        query: The question as asked.
        hits: What was shown, best first.
        session_key: Key of the session that asked; decides the kind of the session.
        lane: ``search``, ``trigger`` or ``recall``.
        now_ms: The instant.
        session_id: Of the session that asked, when known; part of the key's place in the log only.

    Returns:
        Whether the event is in the database; ``False`` means it waits in the spool.
    """
    shown = [
        ShownHit(
            hit.entry.path,
            hit.entry.start_line,
            hit.entry.end_line,
            hit.relevance,
            hit.entry.text,
            hit.entry.provenance.origin_class,
        )
        for hit in hits
    ]
    return _record(agent, _event(agent, query, shown, session_key or session_id, lane, now_ms))


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
    return _record(agent, _event(agent, query, shown, session_key, "search", at_ms))


def drain_spool(agent: Agent) -> int:
    """Write the events that wait in the spool to the database; return how many. Damaged lines are kept aside.

    Raises:
        StoreError: the database can't be used; the spool is left as it is.
    """
    spool = agent.folders.spool / SPOOL_FILE
    taken = spool.with_suffix(".draining")
    if not (spool.exists() or taken.exists()):
        return 0
    with exclusive(agent.folders.spool / "drain.lock", what="Draining the spool", wait_seconds=5.0):
        if not taken.exists():  # one is left over where a drain was killed; it is finished first
            with contextlib.suppress(FileNotFoundError):
                spool.rename(taken)
        if not taken.exists():
            return 0
        events, damaged = _read_spool(taken)
        with contextlib.closing(open_state(agent.folders.state_db)) as state, write_transaction(state):
            written = sum(_insert(state, event) for event in events)
        if damaged:
            with taken.with_suffix(".damaged").open("a", encoding="utf-8") as stream:
                stream.writelines(damaged)
        taken.unlink()
    return written


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


def _record(agent: Agent, event: dict[str, Any]) -> bool:
    try:
        with contextlib.closing(open_state(agent.folders.state_db)) as state:
            state.set_busy_timeout(_QUICK_MS)
            with write_transaction(state):
                _insert(state, event)
    except (StoreError, apsw.Error, OSError):
        _spool(agent.folders.spool, event)
        return False
    return True


def _insert(state: apsw.Connection, event: Mapping[str, Any]) -> bool:
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
    return True


def _spool(folder: Path, event: Mapping[str, Any]) -> None:
    """Append one line; a single write of a whole line keeps lines of several processes apart."""
    folder.mkdir(parents=True, exist_ok=True)
    line = (json.dumps(event, ensure_ascii=False) + "\n").encode("utf-8")
    descriptor = os.open(folder / SPOOL_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


_FIELDS = frozenset({"at", "day", "query", "query_hash", "session_key", "session_kind", "lane", "hits"})


def _read_spool(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    events: dict[str, dict[str, Any]] = {}
    damaged: list[str] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict) and set(event) >= _FIELDS:
            events.setdefault(str(event.get("event", len(events))), event)
        elif line.strip():
            damaged.append(line)
    return list(events.values()), damaged


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
    with contextlib.closing(read_index(agent.folders.index_db)) as reader:
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
