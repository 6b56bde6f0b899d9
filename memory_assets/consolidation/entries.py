"""The entries of ``MEMORY.md`` as the planner sees them: what each says, who wrote it, how old its observation is.

Belongs here: joining the parsed file with ledger, claims and lineage keys.
Does not belong here: parsing (``recall_runtime.notes.curated``), deciding.
"""

import datetime as dt
from dataclasses import dataclass, replace

import apsw

from memory_assets.consolidation.lineage import LineageBook, LineageClaim, given_key, values_of
from memory_assets.consolidation.records import PriorEntry
from recall_runtime.clock import MS_PER_DAY
from recall_runtime.notes.curated import CuratedEntry, CuratedFile, CuratedSection, parse_curated
from recall_runtime.paths import MEMORY_FILE, note_day
from recall_runtime.vocabulary import EntryStatus, Operation

ENTRY_KEY_PREFIX = "memory:claim:"


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """The parsed file with its active entries. ``unwritable`` says why no sweep may touch it."""

    entries: tuple[PriorEntry, ...]
    unwritable: str | None = None


def read_entries(content: bytes | None) -> MemoryFile:
    """Return the active entries of a file by its text alone: shape decides what is derived."""
    if content is None:
        return MemoryFile(())
    file = parse_curated(content)
    unwritable = _unwritable(file)
    if unwritable is not None:
        return MemoryFile((), unwritable)
    sections = [section for section in file.sections if section.day is not None]
    return MemoryFile(
        tuple(_prior(entry, sections) for entry in file.entries if entry.status is EntryStatus.ACTIVE), None
    )


def load_entries(state: apsw.Connection, book: LineageBook, content: bytes | None) -> MemoryFile:
    """Return the active entries with what the ledger and the claims know about them.

    An entry of ours whose line is not the one the ledger wrote was edited by a person: it is hand-written from then on.
    """
    file = read_entries(content)
    return replace(file, entries=tuple(_joined(state, book, entry) for entry in file.entries))


def printable(line: str) -> str:
    """Return ``line`` with bytes that are no UTF-8 as replacement signs, for records and prompts."""
    return line.encode("utf-8", errors="replace").decode("utf-8")


def _unwritable(file: CuratedFile) -> str | None:
    if file.reading.undecodable:
        return f"{MEMORY_FILE} is no UTF-8 text"
    if file.conflicted:
        return f"{MEMORY_FILE} holds an unresolved merge"
    return None


def _prior(entry: CuratedEntry, sections: list[CuratedSection]) -> PriorEntry:
    section = next((one for one in sections if one.start_line <= entry.start_line <= one.end_line), None)
    source_day = note_day(entry.source.path) if entry.source else None
    section_day = section.day if section else None
    day = source_day.isoformat() if source_day else section_day or ""
    return PriorEntry(
        start_line=entry.first_line,
        entry_line=entry.start_line,
        end_line=entry.end_line,
        line=printable(entry.raw.split("\n", 1)[0].rstrip("\r")),
        text=entry.text,
        keys=entry.entry_keys,
        derived=entry.generated,
        generated=entry.generated and section is not None and section.generated,
        has_children=entry.start_line != entry.end_line,
        project_key=entry.annotations.project_key,
        lineage_key=given_key(entry.lineage_key) if entry.lineage_key else None,
        values=values_of(entry.text),
        observed_at=_day_ms(day),
        day=section_day or day,
    )


def _joined(state: apsw.Connection, book: LineageBook, entry: PriorEntry) -> PriorEntry:
    for key in entry.keys:
        row = state.execute(
            "SELECT claim_id, text, lineage_key, CASE gate ->> '$.because' WHEN 'remember' THEN at END FROM ledger"
            " WHERE entry_key = ? AND file = ? AND operation IN (?, ?) ORDER BY ledger_id DESC LIMIT 1",
            (key, MEMORY_FILE, Operation.ADDED, Operation.SUPERSEDED),
        ).fetchone()
        if row is not None:
            claim_id, line, lineage, asked_at = row
            known = _claim(state, claim_id)
            unedited = line == entry.line
            return replace(
                entry,
                claim_id=claim_id,
                lineage_key=entry.lineage_key
                or (known.lineage_key if known else None)
                or lineage
                or (_key(book, entry) if asked_at is not None else None),
                # what the owner asked to remember is as new as the request, whatever was written before
                observed_at=max(known.observed_at if known else entry.observed_at, asked_at or 0),
                derived=entry.derived and unedited,
                generated=entry.generated and unedited,
            )
    if entry.lineage_key is not None:
        return entry
    return replace(entry, lineage_key=_key(book, entry))


def _key(book: LineageBook, entry: PriorEntry) -> str | None:
    return book.key_of(LineageClaim(f"line {entry.entry_line}", entry.text, entry.project_key))


@dataclass(frozen=True, slots=True)
class _Claim:
    lineage_key: str | None
    observed_at: int


def _claim(state: apsw.Connection, claim_id: object) -> _Claim | None:
    row = state.execute(
        """SELECT c.lineage_key, coalesce(max(e.observed_at), c.last_seen_at)
             FROM claims c LEFT JOIN evidence e ON e.claim_id = c.claim_id AND e.echo = 0
            WHERE c.claim_id = ? GROUP BY c.claim_id""",
        (claim_id,),
    ).fetchone()
    return None if row is None else _Claim(*row)


def _day_ms(day: str) -> int:
    try:
        return (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days * MS_PER_DAY
    except ValueError:  # none, or no such day
        return 0
