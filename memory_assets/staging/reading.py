"""What of the index a sweep reads: sources that changed since they were staged, within the look-back.

Belongs here: choosing sources, reading their rows.
Does not belong here: splitting rows into statements (``splitting``), the files themselves (the index has read them).
"""

import datetime as dt
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from recall_runtime.clock import day_of
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import OriginClass, Refusal, SessionKind, Tier

STAGED_TIERS = (Tier.EPISODIC, Tier.SESSIONS)


@dataclass(frozen=True, slots=True)
class StagedSource:
    """One source to be staged. ``day`` is the ISO day of a dated note."""

    source_id: int
    path: str
    tier: Tier
    day: str | None
    hash: str
    provenance_hash: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the index with what staging needs of it (columns: storage/migrations/index)."""

    start_line: int
    end_line: int
    text: str
    text_hash: str
    heading_path: tuple[str, ...]
    block: str
    origin_class: OriginClass
    session_kind: SessionKind
    observed_at: int
    session_id: str | None
    supersedes_key: str | None
    message_id: str | None
    message_hash: str | None
    project_key: str | None
    refusal: Refusal | None
    recalled: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """What a sweep reads, and which staged sources are no longer there."""

    to_read: tuple[StagedSource, ...]
    vanished: tuple[str, ...]


def choose_sources(
    state: apsw.Connection, index: apsw.Connection, *, oldest_day: dt.date, oldest_ms: int, recalled: Collection[str]
) -> Choice:
    """Return the sources to read.

    A source that was staged before is read whenever its content or its classification changed. A new one is read when
    it lies within the look-back (by its day, else by the newest time in it), or when one of its lines was recalled.
    """
    known = {
        path: (content, provenance)
        for path, content, provenance in query(state, "SELECT path, hash, provenance_hash FROM staged_sources")
    }
    to_read: list[StagedSource] = []
    present: set[str] = set()
    for source in _sources(index):
        present.add(source.path)
        if source.path in known:
            if known[source.path] != (source.hash, source.provenance_hash):
                to_read.append(source)
        elif source.path in recalled or _within(index, source, oldest_day, oldest_ms):
            to_read.append(source)
    return Choice(tuple(to_read), tuple(sorted(known.keys() - present)))


def _sources(index: apsw.Connection) -> list[StagedSource]:
    rows = query(
        index,
        "SELECT source_id, path, tier, day, hash, provenance_hash FROM sources"
        " WHERE tier IN (?, ?) AND skipped IS NULL ORDER BY coalesce(day, ''), path",
        [tier.value for tier in STAGED_TIERS],
    )
    return [
        StagedSource(source_id, path, Tier(tier), day, content, provenance)
        for source_id, path, tier, day, content, provenance in rows
    ]


def unstaged_sources(state: apsw.Connection, index: apsw.Connection, tier: Tier) -> list[StagedSource]:
    """Return the sources of ``tier`` that were never staged, oldest first."""
    known = {path for (path,) in query(state, "SELECT path FROM staged_sources")}
    return [source for source in _sources(index) if source.tier is tier and source.path not in known]


def _within(index: apsw.Connection, source: StagedSource, oldest_day: dt.date, oldest_ms: int) -> bool:
    if source.day:
        return dt.date.fromisoformat(source.day) >= oldest_day
    newest = query(index, "SELECT max(observed_at) FROM entries WHERE source_id = ?", (source.source_id,))[0][0]
    return newest is not None and newest >= oldest_ms


def rows_of(index: apsw.Connection, source: StagedSource) -> list[Row]:
    """Return the rows of ``source`` in order."""
    rows = query(
        index,
        """SELECT start_line, end_line, text, text_hash, heading_path, block, origin_class, session_kind, observed_at,
                  session_id, supersedes_key, message_id, message_hash, project_key, refusal, recalled
             FROM entries WHERE source_id = ? ORDER BY ordinal""",
        (source.source_id,),
    )
    return [_row(row) for row in rows]


def _row(row: tuple[Any, ...]) -> Row:
    values: tuple[Any, ...] = (
        *row[:4],
        tuple(json.loads(row[4])) if row[4] else (),
        row[5],
        OriginClass(row[6]),
        SessionKind(row[7]),
        *row[8:14],
        Refusal(row[14]) if row[14] else None,
        bool(row[15]),
    )
    return Row(*values)


def evidence_day(source: StagedSource, row: Row, zone: ZoneInfo) -> str:
    """Return the ISO day a row speaks for: the note's own day, else the day of its time in the workspace's zone."""
    return source.day or day_of(row.observed_at, zone).isoformat()
