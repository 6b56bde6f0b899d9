"""Records of who wrote which part of a note.

Belongs here: pure functions over segments, and their two tables ``note_records`` and ``note_segments``.
Does not belong here: writing notes (``recall_runtime.notes.writer``), the class of a line (``note_lines``).

Rules: openclaw-algorithms 3, refined. A segment is one line with its line end, so that a foreign edit takes the
record away from the lines it touched and from no other. Offsets are characters of ``decode_note(data)``, segments
are contiguous from 0 to the end of the file. The hash of a segment ignores white space, so that another line end or a
trimmed line keeps its writer; the hash of the file covers its exact bytes.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.records import Provenance, merge_provenance
from recall_runtime.storage.atomic import content_hash
from recall_runtime.vocabulary import OriginClass, SessionKind


@dataclass(frozen=True, slots=True)
class Segment:
    """One written range of a note: ``[start, end)`` in characters, who wrote it, when."""

    start: int
    end: int
    line_hash: str
    provenance: Provenance
    session_key: str | None = None


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """All segments of one note, and the hash of the content they describe."""

    file_hash: str
    length: int
    segments: tuple[Segment, ...]


def decode_note(data: bytes) -> str:
    """Return the characters that offsets count: UTF-8, with undecodable bytes kept one to one."""
    return data.decode("utf-8", "surrogateescape")


def line_hash(line: str) -> str:
    """Return the SHA-256 of a line with its white space folded: the name of a written line."""
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "surrogatepass")).hexdigest()


def part_hash(text: str) -> tuple[int, str]:
    """Return (length, SHA-256) of a part of a line without its blanks: the name of text put inside a line."""
    bare = bare_text(text)
    return len(bare), hashlib.sha256(b"part\x00" + bare.encode("utf-8", "surrogatepass")).hexdigest()


def bare_text(text: str) -> str:
    """Return ``text`` without any white space."""
    return "".join(text.split())


def split_lines(text: str) -> list[str]:
    """Return the lines of ``text`` with their line ends. Only LF ends a line."""
    lines = text.split("\n")
    ended = [line + "\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def hand_written(observed_at: int) -> Provenance:
    """Return the provenance of text nobody recorded: the operator's hand (docs/decisions.md)."""
    return Provenance(OriginClass.AGENT, SessionKind.INTERACTIVE, observed_at)


def verify(data: bytes, record: NoteRecord) -> bool:
    """Return whether ``record`` describes exactly these bytes."""
    return record.file_hash == content_hash(data)


def new_record(data: bytes, provenance: Provenance, session_key: str | None = None) -> NoteRecord:
    """Return a record of a whole file that one writer is behind."""
    return _record(data, [(line, provenance, session_key) for line in split_lines(decode_note(data))])


def build_on_append(
    before: bytes, after: bytes, record: NoteRecord | None, provenance: Provenance, session_key: str | None = None
) -> NoteRecord:
    """Return the record of ``after``, which a writer made from ``before``.

    The old segments stay and the appended range gets the writer's provenance; a line that the append continued has
    both writers. Without a record, what stood there is the operator's hand. When ``after`` does not start with
    ``before`` it was no append, and the whole file is untrusted.
    """
    if not after.startswith(before):
        return new_record(after, Provenance(OriginClass.UNTRUSTED, SessionKind.UNKNOWN, provenance.observed_at))
    old = record or new_record(before, hand_written(provenance.observed_at))
    if not verify(before, old):
        old = rebase(old, before, hand_written(provenance.observed_at))
    parts: list[tuple[str, Provenance, str | None]] = []
    for at, line in enumerate(split_lines(decode_note(after))):
        if at < len(old.segments):
            segment = old.segments[at]
            grown = segment.line_hash != line_hash(line)
            merged = merge_provenance(segment.provenance, provenance) if grown else segment.provenance
            parts.append((line, merged, segment.session_key))
        else:
            parts.append((line, provenance, session_key))
    return _record(after, parts)


def rebase(record: NoteRecord, data: bytes, edited_by: Provenance) -> NoteRecord:
    """Return the record of ``data``, which somebody else made out of the recorded content.

    Lines of the common beginning and end keep their segments. Of the changed middle, a line that stood there before
    keeps the least trusted of its old records, wherever it moved; every other line is ``edited_by``.
    """
    lines = split_lines(decode_note(data))
    hashes = [line_hash(line) for line in lines]
    old = record.segments
    head = _common([segment.line_hash for segment in old], hashes)
    tail = _common([segment.line_hash for segment in reversed(old[head:])], hashes[head:][::-1])
    lost: dict[str, Provenance] = {}
    for segment in old[head : len(old) - tail]:
        lost[segment.line_hash] = merge_provenance(lost.get(segment.line_hash), segment.provenance)
    parts: list[tuple[str, Provenance, str | None]] = []
    for at, line in enumerate(lines):
        if at < head:
            parts.append((line, old[at].provenance, old[at].session_key))
        elif at >= len(lines) - tail:
            kept = old[len(old) - (len(lines) - at)]
            parts.append((line, kept.provenance, kept.session_key))
        else:
            parts.append((line, lost.get(hashes[at], edited_by), None))
    return _record(data, parts)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        count += 1
    return count


def _record(data: bytes, parts: Iterable[tuple[str, Provenance, str | None]]) -> NoteRecord:
    segments = []
    offset = 0
    for line, provenance, session_key in parts:
        segments.append(Segment(offset, offset + len(line), line_hash(line), provenance, session_key))
        offset += len(line)
    return NoteRecord(content_hash(data), offset, tuple(segments))


def load_record(state: apsw.Connection, path: str) -> NoteRecord | None:
    """Return the stored record of ``path``, or ``None``."""
    head = state.execute("SELECT file_hash, length FROM note_records WHERE path = ?", (path,)).fetchone()
    if head is None:
        return None
    rows = state.execute(
        "SELECT start_offset, end_offset, content_hash, origin_class, session_kind, observed_at, session_id,"
        " supersedes_key, session_key FROM note_segments WHERE path = ? ORDER BY start_offset",
        (path,),
    )
    segments = tuple(
        Segment(start, end, digest, Provenance(OriginClass(origin), SessionKind(kind), at, session, key), session_key)
        for start, end, digest, origin, kind, at, session, key, session_key in rows
    )
    return NoteRecord(head[0], head[1], segments)


def store_record(state: apsw.Connection, path: str, record: NoteRecord, now_ms: int) -> None:
    """Replace the record of ``path``; the caller holds the write transaction."""
    state.execute("DELETE FROM note_records WHERE path = ?", (path,))
    state.execute(
        "INSERT INTO note_records (path, file_hash, length, updated_at) VALUES (?, ?, ?, ?)",
        (path, record.file_hash, record.length, now_ms),
    )
    state.executemany(
        "INSERT INTO note_segments (path, start_offset, end_offset, content_hash, origin_class, session_kind,"
        " session_id, session_key, supersedes_key, observed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                path,
                segment.start,
                segment.end,
                segment.line_hash,
                segment.provenance.origin_class.value,
                segment.provenance.session_kind.value,
                segment.provenance.session_id,
                segment.session_key,
                segment.provenance.supersedes_key,
                segment.provenance.observed_at,
            )
            for segment in record.segments
        ),
    )
