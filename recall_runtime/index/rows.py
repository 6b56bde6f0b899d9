"""From a file to rows of the index: pure, no database but the records that classify lines.

Belongs here: one row a block of a note, one a curated entry, one a message; cutting long ones; the class of a row.
Does not belong here: parsing (``recall_runtime.notes``, ``recall_runtime.transcripts``), writing (``index.store``).
"""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw

from recall_runtime.clock import start_of_day_ms
from recall_runtime.index.cutting import pieces
from recall_runtime.index.store import MESSAGE_BLOCK, EntryRow
from recall_runtime.notes.blocks import Block, BlockKind, Note, read_note
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.outdated import outdated
from recall_runtime.paths import PathKind, kind_of, note_day
from recall_runtime.provenance.note_lines import MessageLookup, NoteLines, classify_note
from recall_runtime.provenance.paths import classify_path
from recall_runtime.provenance.sessions import SessionFacts
from recall_runtime.records import Provenance, merge_provenance
from recall_runtime.text.redaction import redact
from recall_runtime.transcripts.protocol import TranscriptMessage
from recall_runtime.vocabulary import (
    ELIGIBLE_ORIGINS,
    EntryStatus,
    OriginClass,
    Refusal,
    SessionKind,
    worst_origin,
)

MAX_CHARACTERS = 1_600
_CURATED = frozenset({PathKind.MEMORY, PathKind.USER})
_NOT_INDEXED = frozenset(
    {BlockKind.COMMENT, BlockKind.FRONT_MATTER, BlockKind.RULE, BlockKind.TABLE_RULE, BlockKind.CONFLICT_MARK}
)


@dataclass(frozen=True, slots=True)
class NoteRows:
    """What a note gives: its rows, its faults by kind, the hash of the records that classified it."""

    entries: tuple[EntryRow, ...]
    problems: dict[str, int]
    provenance_hash: str
    session_id: str | None = None
    skipped: str | None = None


def row_texts(text: str) -> tuple[str, ...]:
    """Return the texts of the rows that the text of one entry gives: redacted, cut where it is long."""
    clean = redact(text)
    return tuple([clean[start:end] for start, end in pieces(clean, MAX_CHARACTERS)])


def note_rows(
    state: apsw.Connection | None,
    workspace: Path,
    path: str,
    data: bytes,
    *,
    observed_at: int,
    zone: ZoneInfo,
    messages: MessageLookup | None,
) -> NoteRows:
    """Return the rows of the note or curated file ``path``. Never raises on its content.

    Args:
        state: The state database, for the records of writes; ``None`` before there is one.
        workspace: The workspace, to see where links lead.
        path: Workspace-relative path.
        data: The bytes of the file.
        observed_at: Instant for lines without a record.
        zone: The agent's time zone, for the day of a note that a curated entry cites.
        messages: The messages of dumped sessions.
    """
    note = read_note(data, path=path)
    problems: dict[str, int] = dict(note.problems)
    if note.reading.faults:
        problems["first_bad_byte"] = note.reading.faults[0].offset
    lines = classify_note(state, path, data, note, observed_at=observed_at, messages=messages)
    session_id = note.dump.session_id if note.dump else None
    if note.reading.undecodable:
        return NoteRows((), problems, lines.provenance_hash, session_id, "undecodable")
    by_place = classify_path(workspace, path).origin_class
    if kind_of(path) in _CURATED:
        entries = _curated_rows(path, data, lines, by_place, zone)
    else:
        entries = _block_rows(note, lines, by_place)
    return NoteRows(tuple(entries), problems, lines.provenance_hash, session_id)


def note_instant(path: str, mtime_ns: int, zone: ZoneInfo) -> int:
    """Return the instant a note speaks of: the start of its day, else the time of the file."""
    day = note_day(path)
    return start_of_day_ms(day, zone) if day else mtime_ns // 1_000_000


def _block_rows(note: Note, lines: NoteLines, by_place: OriginClass) -> Iterator[EntryRow]:
    def trust(block: Block) -> OriginClass | None:
        said = _joined(lines.lines[block.start_line - 1 : block.end_line])
        origin = worst_origin((said.origin_class, by_place))
        return origin if origin in ELIGIBLE_ORIGINS and said.session_kind is SessionKind.INTERACTIVE else None

    dead = outdated(note.blocks, trust)
    for position, block in enumerate(note.blocks):
        if block.kind in _NOT_INDEXED or not block.text.strip():
            continue
        yield from _rows_of(
            block.text,
            block.start_line,
            block.end_line,
            lines,
            by_place,
            EntryRow(
                start_line=block.start_line,
                end_line=block.end_line,
                text="",
                block=block.kind.value,
                origin_class=OriginClass.UNTRUSTED,
                session_kind=lines.lines[block.start_line - 1].session_kind,
                observed_at=0,
                heading_path=block.heading_path,
                importance=block.annotations.importance,
                triggers="; ".join(block.annotations.triggers) or None,
                project_key=block.annotations.project_key,
                status=EntryStatus.SUPERSEDED if position in dead else EntryStatus.ACTIVE,
                refusal=Refusal.OUTDATED if position in dead else block.refusal,
                role=block.speaker,
                above=(*block.heading_path, *block.ancestors),
            ),
        )


def _curated_rows(
    path: str, data: bytes, lines: NoteLines, by_place: OriginClass, zone: ZoneInfo
) -> Iterator[EntryRow]:
    """Yield the rows of a curated file; an entry that cites a dated note was observed on the day of that note."""
    for entry in parse_curated(data, user_file=kind_of(path) is PathKind.USER).entries:
        cited = note_day(entry.source.path) if entry.source else None
        for row in _rows_of(
            entry.text,
            entry.start_line,
            entry.end_line,
            lines,
            by_place,
            EntryRow(
                start_line=entry.start_line,
                end_line=entry.end_line,
                text="",
                block="entry",
                origin_class=OriginClass.UNTRUSTED,
                session_kind=lines.lines[entry.start_line - 1].session_kind,
                observed_at=0,
                heading_path=entry.heading_path,
                above=entry.heading_path,
                importance=entry.annotations.importance,
                triggers="; ".join(entry.annotations.triggers) or None,
                project_key=entry.annotations.project_key,
                status=entry.status,
            ),
        ):
            yield replace(row, observed_at=start_of_day_ms(cited, zone)) if cited else row


def _rows_of(
    text: str, start_line: int, end_line: int, lines: NoteLines, by_place: OriginClass, like: EntryRow
) -> Iterator[EntryRow]:
    """Yield the rows of one block: whole, or in pieces whose anchors are the lines they cover."""
    clean = redact(text)
    exact = clean.count("\n") == end_line - start_line
    cuts = list(pieces(clean, MAX_CHARACTERS))
    for start, end in cuts:
        first, last = start_line, end_line
        if exact and (start, end) != (0, len(clean)):
            first = start_line + clean.count("\n", 0, start)
            last = start_line + clean.count("\n", 0, max(start, end - 1))
        if not clean[start:end].strip():
            continue
        provenance = _joined(lines.lines[first - 1 : last])
        yield replace(
            like,
            start_line=first,
            end_line=last,
            text=clean[start:end],
            origin_class=worst_origin((provenance.origin_class, by_place)),
            session_kind=provenance.session_kind,
            observed_at=provenance.observed_at,
            session_id=provenance.session_id,
            supersedes_key=provenance.supersedes_key,
            recalled=any(lines.recalled[first - 1 : last]),
            pieces=len(cuts),
        )


def _joined(lines: Sequence[Provenance]) -> Provenance:
    """Return the provenance of text that covers ``lines``: the least trusted class wins."""
    joined: Provenance | None = None
    for provenance in dict.fromkeys(lines):
        joined = merge_provenance(joined, provenance)
    assert joined is not None  # noqa: S101 - a block has at least one line
    return joined


def message_rows(messages: Sequence[TranscriptMessage]) -> list[EntryRow]:
    """Return the rows of a transcript's messages, already cut and redacted by their reader."""
    return [row for message in messages for row in _rows_of_message(message)]


def _rows_of_message(message: TranscriptMessage) -> Iterator[EntryRow]:
    cuts = list(pieces(message.text, MAX_CHARACTERS))
    for start, end in cuts:
        if message.text[start:end].strip():
            yield EntryRow(
                start_line=message.line,
                end_line=message.line,
                text=message.text[start:end],
                block=MESSAGE_BLOCK,
                origin_class=message.provenance.origin_class,
                session_kind=message.provenance.session_kind,
                observed_at=message.provenance.observed_at,
                session_id=message.provenance.session_id,
                supersedes_key=message.provenance.supersedes_key,
                role=message.role.value,
                message_id=message.message_id,
                message_hash=message.message_hash,
                recalled=message.recalled_turn,
                pieces=len(cuts),
            )


@functools.lru_cache(maxsize=65_536)
def transcript_policy_hash(facts: SessionFacts, excluded_reason: str | None, settings: str) -> str:
    """Return the hash of what classifies a transcript besides its bytes: envelope facts and the settings as JSON."""
    parts = repr((facts, excluded_reason)) + settings
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
