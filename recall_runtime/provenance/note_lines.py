"""The class of every line of a note, and of a line that was recalled.

Belongs here: joining segments, writes reported by transcripts and messages of session dumps into one provenance a
line; the hash of the records that were used.
Does not belong here: parsing notes (``recall_runtime.notes``), storing the result (``recall_runtime.index``).
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import apsw

from recall_runtime.notes.blocks import BlockKind, Note
from recall_runtime.notes.markers import TURN, TURN_TIME
from recall_runtime.provenance.paths import classify_path
from recall_runtime.provenance.segments import (
    NoteRecord,
    bare_text,
    hand_written,
    line_hash,
    load_record,
    part_hash,
    rebase,
    verify,
)
from recall_runtime.records import Provenance, merge_provenance
from recall_runtime.storage.connection import query
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass, SessionKind, worst_origin

_MAX_SEARCHED = 4_000  # characters of a line in which parts are looked for
_MACHINE_BLOCKS = frozenset({BlockKind.MANAGED, BlockKind.SESSION_HEADER, BlockKind.ENVELOPE})


@dataclass(frozen=True, slots=True)
class SaidLine:
    """A line of a message: who said it, and whether it only repeats what the turn had recalled."""

    provenance: Provenance
    recalled: bool = False


class MessageLookup(Protocol):
    """Gives the messages of one session to the reader of its session dump."""

    def lines_of(self, session_id: str) -> Mapping[str, SaidLine] | None:
        """Return every line of the session's own texts by ``line_hash``; ``None``: the session is unknown.

        A line that several messages hold has their merged provenance.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoteLines:
    """Provenance of a note, line by line.

    ``recalled[i]`` says that a transcript reports the line as written in a turn that had recalled memory first: such
    a line is an echo, never a new observation. ``provenance_hash`` changes when the note must be classified again.
    """

    lines: tuple[Provenance, ...]
    recalled: tuple[bool, ...]
    provenance_hash: str


@dataclass(frozen=True, slots=True)
class _Report:
    provenance: Provenance
    recalled: bool


def provenance_hash(state: apsw.Connection | None, path: str, session_id: str | None = None) -> str:
    """Return the hash of what classifies ``path``; ``session_id`` is the session of its dump, if any.

    It changes with every record of the note and of that session, and costs the same however many there are.
    """
    found: dict[str, str] = {}
    if state is not None:
        subjects = [path] if session_id is None else [path, _session_mark(session_id)]
        for subject in subjects:
            found |= _marks(state, "WHERE subject = ?", subject)
    return _hash_of(found, path, session_id)


class ProvenanceHashes:
    """The hashes of all notes at one moment, for a sync that asks for each of them.

    Args:
        state: The state database; read once. ``None`` before there is one.
    """

    def __init__(self, state: apsw.Connection | None) -> None:
        self._found = _marks(state) if state is not None else {}

    def of(self, path: str, session_id: str | None = None) -> str:
        """Return what ``provenance_hash`` gives."""
        return _hash_of(self._found, path, session_id)


def _marks(state: apsw.Connection, where: str = "", *values: str) -> dict[str, str]:
    rows = query(state, f"SELECT subject, changes || ' ' || last FROM provenance_marks {where}", values)  # noqa: S608 - constant conditions
    return {subject: mark for subject, mark in rows}  # noqa: C416 - rows are tuples of any width


def _session_mark(session_id: str) -> str:
    return f"session {session_id}"


def _hash_of(marks: Mapping[str, str], path: str, session_id: str | None) -> str:
    said = "" if session_id is None else f"\n{session_id}\n{marks.get(_session_mark(session_id), '')}"
    return hashlib.sha256(f"{marks.get(path, '')}{said}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def classify_note(
    state: apsw.Connection | None,
    path: str,
    data: bytes,
    note: Note,
    *,
    observed_at: int,
    messages: MessageLookup | None = None,
) -> NoteLines:
    """Return the provenance of every line of the note ``path``.

    A line has the class of its segment and of the writes that transcripts report for it, the least trusted of all.
    Where the file no longer matches its record, the record is rebased first. A line without any record is the
    operator's hand, observed at ``observed_at`` (the note's day, or the time of the file). Lines of a session dump
    also have the class of the message that holds them; when no transcript is known, or none of its messages holds the
    line, they are untrusted. Lines of managed blocks, dump headers and envelopes are at best the system's.

    Args:
        state: The state database, or ``None`` before there is one.
        path: Workspace-relative path of the note.
        data: The bytes of the note.
        note: ``data`` as read by ``notes.blocks.read_note``.
        observed_at: Instant for lines without a record.
        messages: Where the messages of a dumped session are found.
    """
    texts = [line.text for line in note.reading.lines]
    hashes = [line_hash(text) for text in texts]
    record = load_record(state, path) if state is not None else None
    segments = _segment_classes(record, data, len(texts), observed_at)
    reports = _load_reports(state, path) if state is not None else _Reports()
    reported = _reported_classes(hashes, segments, reports.lines)
    _add_parts(reported, texts, segments, reports)
    lines = [
        (segment or hand_written(observed_at)) if report is None else _joined(segment, report.provenance)
        for segment, report in zip(segments, reported, strict=True)
    ]
    recalled = [report is not None and report.recalled for report in reported]
    machine = _machine_lines(note)
    for at in machine:
        lines[at] = replace(lines[at], origin_class=worst_origin((lines[at].origin_class, OriginClass.SYSTEM)))
    session_id = None
    if note.dump is not None:
        session_id = note.dump.session_id
        said = _said_lines(texts, hashes, session_id, messages, observed_at)
        for at, text in enumerate(texts):
            if at in machine:
                continue
            if not text.strip():
                lines[at] = lines[at - 1] if at else said[at].provenance
                continue
            recorded = segments[at] is not None or reported[at] is not None
            lines[at] = _worse(lines[at], said[at].provenance) if recorded else said[at].provenance
            recalled[at] = recalled[at] or said[at].recalled
    return NoteLines(tuple(lines), tuple(recalled), provenance_hash(state, path, session_id))


def origins_of(
    workspace: Path, state: apsw.Connection | None, path: str, data: bytes, note: Note
) -> tuple[OriginClass, ...]:
    """Return the class of every line of ``path``, by its records and by the place of the file: the worse of both.

    What is shown of a file, and what is decided by its text, goes by these.
    """
    by_place = classify_path(workspace, path).origin_class
    lines = classify_note(state, path, data, note, observed_at=0).lines
    return tuple(worst_origin((line.origin_class, by_place)) for line in lines)


def _machine_lines(note: Note) -> set[int]:
    """Return the positions of lines inside managed blocks, dump headers and envelopes."""
    return {
        number - 1
        for block in note.blocks
        if block.kind in _MACHINE_BLOCKS
        for number in range(block.start_line, block.end_line + 1)
    }


def _segment_classes(
    record: NoteRecord | None, data: bytes, count: int, observed_at: int
) -> Sequence[Provenance | None]:
    if record is None:
        return [None] * count
    if not verify(data, record):
        record = rebase(record, data, hand_written(observed_at))
    found: list[Provenance | None] = [segment.provenance for segment in record.segments[:count]]
    return found + [None] * (count - len(found))


@dataclass(slots=True)
class _Reports:
    """Writes reported for one file: of whole lines and of parts by hash, and those that can't be read."""

    lines: dict[str, list[_Report]] = field(default_factory=lambda: defaultdict(list))
    parts: dict[int, dict[str, list[_Report]]] = field(default_factory=dict)  # by length, then hash
    unreadable: list[_Report] = field(default_factory=list)


def _load_reports(state: apsw.Connection, path: str) -> _Reports:
    reports = _Reports()
    for digest, length, session, origin, kind, recalled, at in state.execute(
        "SELECT line_hash, part_length, session_id, origin_class, session_kind, recalled, observed_at"
        " FROM reported_writes WHERE path = ? ORDER BY observed_at, session_id",
        (path,),
    ):
        report = _Report(Provenance(OriginClass(origin), SessionKind(kind), at, session), bool(recalled))
        if length == 0:
            reports.lines[digest].append(report)
        elif length > 0:
            reports.parts.setdefault(length, {}).setdefault(digest, []).append(report)
        else:
            reports.unreadable.append(report)
    return reports


def _add_parts(
    reported: list[_Report | None], texts: Sequence[str], segments: Sequence[Provenance | None], reports: _Reports
) -> None:
    """Give lines that nobody recorded the reports of text that was put inside them, and of unreadable writes."""
    if not reports.parts and not reports.unreadable:
        return
    for at, text in enumerate(texts):
        segment = segments[at]
        if reported[at] is None and (segment is None or segment.session_id is None) and text.strip():
            found = [*_parts_in(text, reports.parts), *reports.unreadable]
            if found:
                reported[at] = _merged(found)


def _parts_in(text: str, parts: Mapping[int, Mapping[str, Sequence[_Report]]]) -> Iterable[_Report]:
    bare = bare_text(text)[:_MAX_SEARCHED]
    for length, by_hash in parts.items():
        seen: set[str] = set()
        for start in range(len(bare) - length + 1):
            digest = part_hash(bare[start : start + length])[1]
            if digest in by_hash and digest not in seen:
                seen.add(digest)
                yield from by_hash[digest]


def _reported_classes(
    hashes: Sequence[str], segments: Sequence[Provenance | None], reports: Mapping[str, Sequence[_Report]]
) -> list[_Report | None]:
    """Return the reported write of each line.

    A line with a segment of a known session is joined to that session's report alone, so that another session that
    writes the same words elsewhere in the file can't take a true line down. Otherwise the writes of equal lines are
    dealt out in the order of time when there are as many sessions as lines. When not, all of them count, unless there
    are fewer lines than sessions and the first one was trusted: whoever writes a trusted line once more, as with the
    whole file, adds nothing to it.
    """
    open_lines: dict[str, list[int]] = defaultdict(list)
    found: list[_Report | None] = [None] * len(hashes)
    for at, digest in enumerate(hashes):
        if digest not in reports:
            continue
        segment = segments[at]
        if segment is not None and segment.session_id is not None:
            found[at] = next((r for r in reports[digest] if r.provenance.session_id == segment.session_id), None)
        else:
            open_lines[digest].append(at)
    for digest, places in open_lines.items():
        candidates = reports[digest]
        if len(candidates) == len(places):
            for at, report in zip(places, candidates, strict=True):
                found[at] = report
        else:
            first = candidates[0]
            rewritten = len(places) < len(candidates) and first.provenance.origin_class in ELIGIBLE_ORIGINS
            merged = first if rewritten else _merged(candidates)
            for at in places:
                found[at] = merged
    return found


def _merged(reports: Sequence[_Report]) -> _Report:
    provenance = reports[0].provenance
    for report in reports[1:]:
        provenance = merge_provenance(provenance, report.provenance)
    return _Report(provenance, any(report.recalled for report in reports))


def _joined(segment: Provenance | None, report: Provenance) -> Provenance:
    """Return the provenance of a line that has a reported write, and perhaps a segment.

    A segment of no session adds its class alone: the transcript knows the session better. Transcripts report no
    supersession keys, so the segment's key stays.
    """
    if segment is None:
        return report
    if (
        segment.session_id is None
        and segment.origin_class in ELIGIBLE_ORIGINS
        and segment.observed_at < report.observed_at
    ):
        return segment  # it stood there before that write
    if segment.session_id is not None:
        return replace(merge_provenance(segment, report), supersedes_key=segment.supersedes_key)
    worst = worst_origin((segment.origin_class, report.origin_class))
    return replace(report, origin_class=worst, supersedes_key=segment.supersedes_key)


def _worse(written: Provenance, said: Provenance) -> Provenance:
    """Return the message's provenance, with the class of the write where that is less trusted."""
    worst = worst_origin((written.origin_class, said.origin_class))
    return Provenance(worst, said.session_kind, said.observed_at, said.session_id, written.supersedes_key)


def _said_lines(
    texts: Sequence[str],
    hashes: Sequence[str],
    session_id: str | None,
    messages: MessageLookup | None,
    observed_at: int,
) -> list[SaidLine]:
    """Return for each line of a dump the message line it repeats; a stranger's where there is none."""
    known = messages.lines_of(session_id) if messages is not None and session_id else None
    stranger = SaidLine(Provenance(OriginClass.UNTRUSTED, SessionKind.UNKNOWN, observed_at, session_id))
    if not known:
        return [stranger] * len(texts)
    return [_said(text, digest, known) or stranger for text, digest in zip(texts, hashes, strict=True)]


def _said(text: str, digest: str, known: Mapping[str, SaidLine]) -> SaidLine | None:
    """Return the line of a message that a dumped line repeats.

    The dump writes ``user:`` before a turn and keeps the host's time stamp and unmasked secrets; messages have neither.
    """
    if digest in known:
        return known[digest]
    said = TURN.sub("", text, count=1) if TURN.match(text) else text
    plain = redact(TURN_TIME.sub("", said, count=1))
    return known.get(line_hash(said)) or known.get(line_hash(plain))


class SessionMessages:
    """A ``MessageLookup`` over texts that are already at hand, such as rows of the index or a reading.

    Args:
        load: Returns for a session id its texts, each with provenance and whether its turn had recalled memory, or
            ``None`` when the session is unknown.
    """

    def __init__(self, load: Callable[[str], Iterable[tuple[str, Provenance, bool]] | None]) -> None:
        self._load = load

    def lines_of(self, session_id: str) -> Mapping[str, SaidLine] | None:
        """Return the lines of the session's texts by their hash."""
        texts = self._load(session_id)
        if texts is None:
            return None
        found: dict[str, SaidLine] = {}
        for text, provenance, recalled in texts:
            for line in text.split("\n"):
                digest = line_hash(line)
                before = found.get(digest)
                merged = merge_provenance(before.provenance if before else None, provenance)
                found[digest] = SaidLine(merged, recalled and (before is None or before.recalled))
        return found


class RecalledOrigins:
    """Tells what class a recalled line has, by the records of who wrote it.

    Args:
        state: The state database.
    """

    def __init__(self, state: apsw.Connection) -> None:
        self._state = state

    def origin_of(self, path: str, text: str) -> OriginClass | None:
        """Return the least trusted class of the lines of ``text`` as written to ``path``; ``None``: no record."""
        classes: list[OriginClass] = []
        for line in text.split("\n"):
            if line.strip():
                digest = line_hash(line)
                rows = self._state.execute(
                    "SELECT origin_class FROM reported_writes WHERE path = ?1 AND line_hash = ?2 UNION"
                    " SELECT origin_class FROM note_segments WHERE path = ?1 AND content_hash = ?2",
                    (path, digest),
                )
                classes.extend(OriginClass(origin) for (origin,) in rows)
        return worst_origin(classes) if classes else None
