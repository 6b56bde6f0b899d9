"""Frozen records that travel between rooms.

Belongs here: records that at least two rooms exchange. A record of one room lives in that room.
Does not belong here: behaviour, parsing, SQL.

Lines are 1-based and end at LF (a CR before it belongs to the line end). ``*_at`` are milliseconds UTC.
"""

from dataclasses import dataclass

from recall_runtime.vocabulary import (
    EntryStatus,
    OriginClass,
    Refusal,
    SessionKind,
    StatementKind,
    Tier,
    worst_origin,
)

INVALID_PROJECT = "!invalid-project-annotation"  # key of an entry whose project annotation can't be read


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a text comes from, as classified by code when it entered."""

    origin_class: OriginClass
    session_kind: SessionKind
    observed_at: int
    session_id: str | None = None
    supersedes_key: str | None = None


def merge_provenance(existing: Provenance | None, incoming: Provenance) -> Provenance:
    """Return the provenance of text that has both sources: the least trusted class wins.

    Rule (openclaw-algorithms 2.2): session kind stays only when common, else unknown; the time is the later
    one; the supersession key and the session stay only when both agree.
    """
    if existing is None:
        return incoming
    same_kind = existing.session_kind == incoming.session_kind
    same_key = existing.supersedes_key == incoming.supersedes_key
    return Provenance(
        origin_class=worst_origin((existing.origin_class, incoming.origin_class)),
        session_kind=existing.session_kind if same_kind else SessionKind.UNKNOWN,
        observed_at=max(existing.observed_at, incoming.observed_at),
        session_id=existing.session_id if existing.session_id == incoming.session_id else None,
        supersedes_key=existing.supersedes_key if same_key and existing.supersedes_key else None,
    )


@dataclass(frozen=True, slots=True)
class Anchor:
    """A range of source lines, both ends included."""

    path: str
    start_line: int
    end_line: int

    def __str__(self) -> str:
        """Return the citation form ``path#Lx-Ly``."""
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class Annotations:
    """Metadata written behind an entry as HTML comments. ``None`` means the writer said nothing."""

    triggers: tuple[str, ...] = ()
    importance: int | None = None
    project_key: str | None = None  # keys joined by "; "; the sentinel of the entry grammar when invalid


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence-sized claim inside a note line, table row, entry or message, or the reason it is none.

    ``text`` is what a reader would see without list signs, clock prefixes and annotations; ``claim_id`` is the
    first 12 hex digits of the SHA-1 of its normalised form (``recall_runtime.notes.identity``).
    """

    text: str
    claim_id: str
    start_line: int
    end_line: int
    kind: StatementKind
    heading_path: tuple[str, ...] = ()
    annotations: Annotations = Annotations()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One row of the index: the unit that is searched, shown and cited."""

    entry_id: int
    path: str
    tier: Tier
    start_line: int
    end_line: int
    text: str
    heading_path: tuple[str, ...]
    day: str | None  # date of a dated source, YYYY-MM-DD
    annotations: Annotations
    status: EntryStatus
    provenance: Provenance
    message_id: str | None = None
