"""Rows of the index: sources, entries, their full text.

Belongs here: the writes of one source inside one short transaction, the counters in ``meta``.
Does not belong here: reading files (``index.rows``), the order of a sync (``index.sync``), queries (``index.lanes``).

Every row of ``entries`` has a number that is never used again, so a vector in memory can't belong to another text.
"""

import calendar
import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import apsw

from recall_runtime.index import vectors
from recall_runtime.index.content import shapes_of, substance_of
from recall_runtime.paths import PathKind
from recall_runtime.text.words import index_text
from recall_runtime.vocabulary import EntryStatus, OriginClass, Refusal, SessionKind, Tier

CHUNKING_VERSION = "3"  # raise it when the same files would give other rows; the next sync then builds anew
CONTEXT_CHARACTERS = 400  # of the segmented text of each neighbour
MESSAGE_BLOCK = "message"


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One row to be written: the unit that is searched, shown and cited (columns: storage/migrations/index)."""

    start_line: int
    end_line: int
    text: str
    block: str
    origin_class: OriginClass
    session_kind: SessionKind
    observed_at: int
    heading_path: tuple[str, ...] = ()
    session_id: str | None = None
    supersedes_key: str | None = None
    role: str | None = None
    message_id: str | None = None
    message_hash: str | None = None
    importance: int | None = None
    triggers: str | None = None
    project_key: str | None = None
    status: EntryStatus = EntryStatus.ACTIVE
    refusal: Refusal | None = None
    recalled: bool = False
    pieces: int = 1  # into how many its text was cut
    above: tuple[str, ...] = ()  # headings and list items around it; not stored, they go into its context

    @property
    def in_conversation(self) -> bool:
        """Whether what stands beside it belongs to the same talk; bullets of a note are often about other things."""
        return self.role is not None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of ``sources``."""

    path: str
    kind: PathKind
    tier: Tier
    day: str | None
    hash: str
    provenance_hash: str
    mtime_ns: int
    size: int
    read_to: int = 0
    session_id: str | None = None
    session_key: str | None = None
    session_kind: str | None = None
    chat_type: str | None = None
    problems: Mapping[str, object] = field(default_factory=dict)
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class KnownSource:
    """What the index knows of a source, to decide whether it changed."""

    source_id: int
    path: str
    kind: str
    hash: str
    provenance_hash: str
    mtime_ns: int
    size: int
    read_to: int
    session_id: str | None
    skipped: str | None
    problems: str


_SOURCE_COLUMNS = (
    "path, kind, tier, day, hash, provenance_hash, mtime_ns, size, read_to,"
    " session_id, session_key, session_kind, chat_type, problems, skipped"
)
_ENTRY_COLUMNS = (
    "entry_id, source_id, ordinal, start_line, end_line, text, text_hash, heading_path, block, origin_class,"
    " session_kind, observed_at, session_id, supersedes_key, role, message_id, message_hash, importance, triggers,"
    " project_key, status, candidate, refusal, recalled, embedded, shapes, substance"
)


def get_meta(connection: apsw.Connection, key: str) -> str | None:
    """Return the value of ``key``, or ``None``."""
    rows = list(connection.execute("SELECT value FROM meta WHERE key = ?", (key,)))
    return rows[0][0] if rows else None


def set_meta(connection: apsw.Connection, key: str, value: str) -> None:
    """Store ``value`` under ``key``."""
    connection.execute(
        "INSERT INTO meta(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", (key, value)
    )


def revision(connection: apsw.Connection) -> int:
    """Return the revision of the index; it grows with every change a search could see."""
    return int(get_meta(connection, "revision") or 0)


def bump_revision(connection: apsw.Connection) -> int:
    """Raise the revision that readers compare; call it in every transaction that changes what a search may find."""
    raised = revision(connection) + 1
    set_meta(connection, "revision", str(raised))
    return raised


def known_sources(connection: apsw.Connection) -> dict[str, KnownSource]:
    """Return all sources by path."""
    rows = connection.execute(
        "SELECT source_id, path, kind, hash, provenance_hash, mtime_ns, size, read_to, session_id, skipped, problems"
        " FROM sources"
    )
    return {row[1]: KnownSource(*row) for row in rows}


def write_source(connection: apsw.Connection, source: SourceRow, entries: Sequence[EntryRow]) -> int:
    """Replace everything the index holds of ``source``; return its id. Runs inside the caller's transaction."""
    delete_source(connection, source.path)
    connection.execute(
        f"INSERT INTO sources({_SOURCE_COLUMNS}) VALUES ({', '.join('?' * 15)})",  # noqa: S608 - our own columns
        _source_values(source),
    )
    source_id = connection.last_insert_rowid()
    connection.execute("INSERT INTO paths_fts(rowid, name) VALUES (?, ?)", (source_id, source.path))
    bodies = [index_text(entry.text) for entry in entries]
    _insert_entries(connection, source_id, source, entries, bodies, first_ordinal=0, before="")
    if bodies:
        connection.execute("INSERT INTO documents_fts(rowid, body) VALUES (?, ?)", (source_id, "\n".join(bodies)))
    return source_id


def append_to_source(connection: apsw.Connection, source: SourceRow, entries: Sequence[EntryRow]) -> int:
    """Add ``entries`` behind those of a grown source and update its row; return its id."""
    source_id = int(next(iter(connection.execute("SELECT source_id FROM sources WHERE path = ?", (source.path,))))[0])
    assignments = ", ".join(f"{column.strip()} = ?" for column in _SOURCE_COLUMNS.split(","))
    connection.execute(
        f"UPDATE sources SET {assignments} WHERE source_id = ?",  # noqa: S608 - our own columns
        (*_source_values(source), source_id),
    )
    if not entries:
        return source_id
    old = list(
        connection.execute(
            "SELECT e.entry_id, e.ordinal, f.body, f.context FROM entries e JOIN entries_fts f ON f.rowid = e.entry_id"
            " WHERE e.source_id = ? ORDER BY e.ordinal",
            (source_id,),
        )
    )
    bodies = [index_text(entry.text) for entry in entries]
    before, first = "", 0
    if old:
        entry_id, ordinal, before, context = old[-1]
        first = ordinal + 1
        connection.execute("DELETE FROM entries_fts WHERE rowid = ?", (entry_id,))  # it has a neighbour now
        connection.execute(
            "INSERT INTO entries_fts(rowid, body, context) VALUES (?, ?, ?)",
            (entry_id, before, f"{context} {_head(bodies[0])}".strip()),
        )
    _insert_entries(connection, source_id, source, entries, bodies, first_ordinal=first, before=before)
    connection.execute("DELETE FROM documents_fts WHERE rowid = ?", (source_id,))
    connection.execute(
        "INSERT INTO documents_fts(rowid, body) VALUES (?, ?)",
        (source_id, "\n".join([row[2] for row in old] + bodies)),
    )
    return source_id


def touch_source(connection: apsw.Connection, source_id: int, mtime_ns: int, size: int) -> None:
    """Note a new time stamp of unchanged content."""
    connection.execute("UPDATE sources SET mtime_ns = ?, size = ? WHERE source_id = ?", (mtime_ns, size, source_id))


def delete_source(connection: apsw.Connection, path: str) -> bool:
    """Remove a source and all that hangs on it; return whether it was there."""
    rows = list(connection.execute("SELECT source_id FROM sources WHERE path = ?", (path,)))
    if not rows:
        return False
    source_id = rows[0][0]
    ids = [row[0] for row in connection.execute("SELECT entry_id FROM entries WHERE source_id = ?", (source_id,))]
    connection.executemany("DELETE FROM entries_fts WHERE rowid = ?", ((entry_id,) for entry_id in ids))
    vectors.delete(connection, ids)
    connection.execute("DELETE FROM documents_fts WHERE rowid = ?", (source_id,))
    connection.execute("DELETE FROM paths_fts WHERE rowid = ?", (source_id,))
    connection.execute("DELETE FROM sources WHERE source_id = ?", (source_id,))  # entries go with it
    return True


def _source_values(source: SourceRow) -> tuple[object, ...]:
    return (
        source.path,
        source.kind.value,
        source.tier.value,
        source.day,
        source.hash,
        source.provenance_hash,
        source.mtime_ns,
        source.size,
        source.read_to,
        source.session_id,
        source.session_key,
        source.session_kind,
        source.chat_type,
        json.dumps(source.problems, ensure_ascii=False, sort_keys=True),
        source.skipped,
    )


def _insert_entries(
    connection: apsw.Connection,
    source_id: int,
    source: SourceRow,
    entries: Sequence[EntryRow],
    bodies: Sequence[str],
    *,
    first_ordinal: int,
    before: str,
) -> None:
    if not entries:
        return
    first_id = _take_ids(connection, len(entries))
    shapes = [" ".join(shapes_of(entry.text)) for entry in entries]
    connection.executemany(
        f"INSERT INTO entries({_ENTRY_COLUMNS}) VALUES ({', '.join('?' * 27)})",  # noqa: S608 - our own columns
        (
            _entry_values(entry, first_id + number, source_id, first_ordinal + number, shapes[number])
            for number, entry in enumerate(entries)
        ),
    )
    connection.executemany(
        "INSERT INTO entries_fts(rowid, body, context) VALUES (?, ?, ?)",
        (
            (first_id + number, body, context)
            for number, (body, context) in enumerate(
                zip(bodies, _contexts(source, entries, bodies, shapes, before), strict=True)
            )
        ),
    )


def next_entry_id(connection: apsw.Connection) -> int:
    """Return the number the next entry gets; all others are smaller."""
    return int(get_meta(connection, "next_entry_id") or 1)


def _take_ids(connection: apsw.Connection, count: int) -> int:
    first = next_entry_id(connection)
    set_meta(connection, "next_entry_id", str(first + count))
    return first


def _entry_values(entry: EntryRow, entry_id: int, source_id: int, ordinal: int, shapes: str) -> tuple[object, ...]:
    return (
        entry_id,
        source_id,
        ordinal,
        entry.start_line,
        entry.end_line,
        entry.text,
        hashlib.sha256(entry.text.encode("utf-8", "surrogatepass")).hexdigest(),
        json.dumps(entry.heading_path, ensure_ascii=False) if entry.heading_path else "",
        entry.block,
        entry.origin_class.value,
        entry.session_kind.value,
        entry.observed_at,
        entry.session_id,
        entry.supersedes_key,
        entry.role,
        entry.message_id,
        entry.message_hash,
        entry.importance,
        entry.triggers,
        entry.project_key,
        entry.status.value,
        0 if entry.refusal else 1,
        entry.refusal.value if entry.refusal else None,
        int(entry.recalled),
        0,
        shapes,
        substance_of(
            entry.text,
            entry.block,
            recalled=entry.recalled,
            spoken=entry.in_conversation,
            pieces=entry.pieces,
        ),
    )


def _contexts(
    source: SourceRow, entries: Sequence[EntryRow], bodies: Sequence[str], shapes: Sequence[str], before: str
) -> Iterable[str]:
    """Yield the context column of each entry: neighbours in a talk, what stands above, its day, shapes of values."""
    above: dict[tuple[str, ...], str] = {}
    day = _day_words(source.day)
    for number, entry in enumerate(entries):
        if entry.above not in above:
            above[entry.above] = index_text(" ".join(entry.above)) if entry.above else ""
        parts = [above[entry.above], day, shapes[number]]
        if entry.in_conversation:
            previous = bodies[number - 1] if number else before
            following = bodies[number + 1] if number + 1 < len(bodies) else ""
            parts = [_tail(previous), *parts, _head(following)]
        yield " ".join(part for part in parts if part)


def _day_words(day: str | None) -> str:
    if not day:
        return ""
    date = dt.date.fromisoformat(day)
    return index_text(f"{day} {calendar.month_name[date.month]} {date.year}")


def _head(words: str) -> str:
    if len(words) <= CONTEXT_CHARACTERS:
        return words
    return words[:CONTEXT_CHARACTERS].rpartition(" ")[0]


def _tail(words: str) -> str:
    if len(words) <= CONTEXT_CHARACTERS:
        return words
    return words[-CONTEXT_CHARACTERS:].partition(" ")[2]
