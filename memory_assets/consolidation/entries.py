"""The entries of ``MEMORY.md`` as the planner sees them: what each says, who wrote it, how old its observation is.

Belongs here: joining the parsed file with provenance, ledger, claims and lineage keys.
Does not belong here: parsing (``recall_runtime.notes.curated``), deciding.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import apsw

from memory_assets.consolidation.records import PriorEntry
from recall_runtime.agent import Agent
from recall_runtime.clock import start_of_day_ms
from recall_runtime.lineage_keys.book import LineageBook, given_key
from recall_runtime.lineage_keys.stored import entry_lineage, written_entry
from recall_runtime.lineage_keys.succession import values_of
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.curated import CuratedEntry, CuratedFile, CuratedSection, parse_curated
from recall_runtime.paths import MEMORY_FILE, note_day
from recall_runtime.provenance.note_lines import origins_of
from recall_runtime.text.lines import printable
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, EntryStatus, OriginClass, worst_origin


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """The parsed file with its active entries. ``unwritable`` says why no sweep may touch it."""

    entries: tuple[PriorEntry, ...] = ()
    unwritable: str | None = None

    @property
    def trusted(self) -> tuple[PriorEntry, ...]:
        """The entries that are injected: only these say what the file holds. The others count for its size alone."""
        return tuple(entry for entry in self.entries if entry.is_trusted)


def load_entries(agent: Agent, state: apsw.Connection, book: LineageBook, content: bytes | None) -> MemoryFile:
    """Return the active entries of ``content`` with what the records of writes, the ledger and the claims know of them.

    An entry of ours whose line is not the one the ledger wrote was edited by a person: it is hand-written from then on.
    """
    if content is None:
        return MemoryFile()
    file = parse_curated(content)
    unwritable = _unwritable(file)
    if unwritable is not None:
        return MemoryFile((), unwritable)
    origins = origins_of(agent.workspace, state, MEMORY_FILE, content, read_note(content, path=MEMORY_FILE))
    sections = [section for section in file.sections if section.day is not None]
    active = [entry for entry in file.entries if entry.status is EntryStatus.ACTIVE]
    return MemoryFile(tuple(_joined(state, book, _prior(entry, sections, origins, agent.zone)) for entry in active))


def _unwritable(file: CuratedFile) -> str | None:
    if file.reading.undecodable:
        return f"{MEMORY_FILE} is no UTF-8 text"
    if file.conflicted:
        return f"{MEMORY_FILE} holds an unresolved merge"
    return None


def _prior(
    entry: CuratedEntry, sections: list[CuratedSection], origins: Sequence[OriginClass], zone: ZoneInfo
) -> PriorEntry:
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
        observed_at=_day_ms(day, zone),
        day=section_day or day,
        is_trusted=worst_origin(origins[entry.first_line - 1 : entry.end_line]) in ELIGIBLE_ORIGINS,
    )


def _joined(state: apsw.Connection, book: LineageBook, entry: PriorEntry) -> PriorEntry:
    written = written_entry(state, entry.keys)
    lineage_key = (
        entry_lineage(book, entry.text, entry.project_key, marked=entry.lineage_key, written=written)
        if entry.is_trusted
        else None
    )
    if written is None:
        return replace(entry, lineage_key=lineage_key)
    unedited = written.line == entry.line
    return replace(
        entry,
        claim_id=written.claim_id,
        lineage_key=lineage_key,
        observed_at=entry.observed_at if written.observed_at is None else written.observed_at,
        derived=entry.derived and unedited,
        generated=entry.generated and unedited,
    )


def _day_ms(day: str, zone: ZoneInfo) -> int:
    try:
        return start_of_day_ms(dt.date.fromisoformat(day), zone)
    except ValueError:  # none, or no such day
        return 0
