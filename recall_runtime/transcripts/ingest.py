"""What of a reading is kept in the state database.

Belongs here: the tables ``transcripts`` and ``reported_writes``. Does not belong here: the index.
"""

import json
from dataclasses import dataclass

import apsw

from recall_runtime.provenance.sessions import SessionFacts
from recall_runtime.records import Provenance, merge_provenance
from recall_runtime.transcripts.protocol import TranscriptReading
from recall_runtime.vocabulary import OriginClass, SessionKind


@dataclass(frozen=True, slots=True)
class Taken:
    """How far a transcript was taken in: bytes, and the hash of them; both empty when never."""

    read_to: int = 0
    prefix_hash: str = ""


def taken(state: apsw.Connection, name: str) -> Taken:
    """Return how far the transcript ``name`` was taken in."""
    row = state.execute("SELECT read_to, prefix_hash FROM transcripts WHERE path = ?", (name,)).fetchone()
    return Taken(*row) if row else Taken()


def record_reading(state: apsw.Connection, reading: TranscriptReading, now_ms: int) -> None:
    """Store a reading; storing it twice changes nothing. The caller holds the write transaction.

    Reported writes only ever lose trust: a write that is already known keeps the worse class of both reports.
    """
    facts = reading.facts
    previous = state.execute("SELECT messages FROM transcripts WHERE path = ?", (reading.name,)).fetchone()
    before = previous[0] if previous and reading.resumed_from > 0 else 0
    values = (
        reading.name,
        facts.session_id,
        facts.session_key,
        facts.kind.value,
        facts.chat_type.value,
        facts.channel,
        facts.hook_source,
        reading.read_to,
        reading.prefix_hash,
        before + len(reading.messages),
        json.dumps(dict(sorted(reading.faults.items()))),
        reading.excluded_reason,
        now_ms,
    )
    state.execute(
        "INSERT INTO transcripts (path, session_id, session_key, session_kind, chat_type, channel,"
        " hook_source, read_to, prefix_hash, messages, faults, excluded_reason, ingested_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path) DO UPDATE SET session_id = excluded.session_id, session_key = excluded.session_key,"
        " session_kind = excluded.session_kind, chat_type = excluded.chat_type, channel = excluded.channel,"
        " hook_source = excluded.hook_source, read_to = excluded.read_to,"
        " prefix_hash = excluded.prefix_hash, messages = excluded.messages, faults = excluded.faults,"
        " excluded_reason = excluded.excluded_reason, ingested_at = excluded.ingested_at"
        " WHERE (transcripts.read_to, transcripts.prefix_hash, transcripts.session_kind, transcripts.session_key,"
        " transcripts.excluded_reason) IS NOT (excluded.read_to, excluded.prefix_hash, excluded.session_kind,"
        " excluded.session_key, excluded.excluded_reason)",
        values,
    )
    for write in reading.writes:
        named = [
            *((0, digest) for digest in write.line_hashes),
            *write.parts,
            *([(-1, "")] if write.unreadable else []),
        ]
        for length, digest in named:
            _record_write(state, write.path, digest, length, write.provenance, recalled=write.recalled)


def record_exclusion(state: apsw.Connection, name: str, facts: SessionFacts, reason: str, now_ms: int) -> None:
    """Remember that a transcript was not read, and why, with the facts that excluded it.

    ``sessions.json`` forgets sessions; what the policy excluded must not come in once it did. The caller holds the
    write transaction.
    """
    record_reading(state, TranscriptReading(name=name, host=None, facts=facts, excluded_reason=reason), now_ms)


def _record_write(
    state: apsw.Connection, path: str, digest: str, length: int, provenance: Provenance, *, recalled: bool
) -> None:
    session = provenance.session_id or ""
    row = state.execute(
        "SELECT origin_class, session_kind, recalled, observed_at FROM reported_writes"
        " WHERE path = ? AND line_hash = ? AND session_id = ?",
        (path, digest, session),
    ).fetchone()
    if row is not None:
        known = Provenance(OriginClass(row[0]), SessionKind(row[1]), row[3], provenance.session_id)
        merged = merge_provenance(known, provenance)
        recalled = recalled and bool(row[2])
        if (merged, recalled) == (known, bool(row[2])):
            return
        provenance = merged
    state.execute(
        "INSERT OR REPLACE INTO reported_writes (path, line_hash, part_length, session_id, origin_class, session_kind,"
        " recalled, observed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            path,
            digest,
            length,
            session,
            provenance.origin_class.value,
            provenance.session_kind.value,
            int(recalled),
            provenance.observed_at,
        ),
    )
