"""What reading a transcript gives, and what an adapter makes of one row.

Belongs here: the records between adapters, reader and index.
Does not belong here: parsing of any one format (``openclaw``, ``claude_code``, ``codex``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from recall_runtime.provenance.sessions import SessionFacts
from recall_runtime.provenance.tools import TranscriptHost
from recall_runtime.records import Provenance
from recall_runtime.vocabulary import OriginClass, SessionKind


class Role(StrEnum):
    """Who speaks in a message."""

    USER = "user"
    ASSISTANT = "assistant"


class Speaker(StrEnum):
    """What the host's own metadata says about the sender of a user message."""

    OWNER = "owner"
    OTHER = "other"
    HOST = "host"  # the host itself: heartbeats, cron, flush orders
    SESSION = "session"  # another session of an agent
    UNSTATED = "unstated"


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """The header row, or a later row that tells something about the whole session."""

    session_id: str | None = None
    cwd: str | None = None
    at: int | None = None
    kind: SessionKind = SessionKind.UNKNOWN


@dataclass(frozen=True, slots=True)
class UserEvent:
    """A user message. ``text`` is raw; ``injected`` says a part was marked as put there by a recall lane."""

    message_id: str | None
    parent_id: str | None
    at: int | None
    text: str
    speaker: Speaker = Speaker.UNSTATED
    kind: SessionKind = SessionKind.UNKNOWN
    source_tool: str | None = None
    sender_id: str | None = None
    injected: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an assistant message."""

    call_id: str | None
    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class AssistantEvent:
    """An assistant message. ``tainted`` is the host's own flag that its turn took in outside content."""

    message_id: str | None
    parent_id: str | None
    at: int | None
    text: str
    calls: tuple[ToolCall, ...] = ()
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. ``declares_untrusted``: the result itself says it brings outside content."""

    message_id: str | None
    parent_id: str | None
    call_id: str | None
    name: str | None
    text: str
    declares_untrusted: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """The conversation was compacted here; what follows was not part of the flush before it."""

    at: int | None = None


Event = SessionEvent | UserEvent | AssistantEvent | ToolResult | CompactionEvent


class Adapter(Protocol):
    """Turns rows of one format into events. It never raises on any JSON object."""

    host: TranscriptHost

    def events(self, row: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what ``row`` says, in order; nothing for rows that carry no conversation."""
        ...


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message in the speaker's own words.

    ``text`` is cut and redacted. ``line`` is 1-based, ``[start, end)`` are bytes of the file. ``at`` is ``None`` when
    the file gives no usable time; ``provenance.observed_at`` is then the time of the file. ``message_hash`` does not
    depend on the file's name or the line. ``recalled_turn`` marks assistant text in a turn that had recalled memory:
    what it repeats is an echo. ``active_branch`` is false for messages on an abandoned branch of the tree.
    """

    message_id: str | None
    parent_id: str | None
    line: int
    start: int
    end: int
    role: Role
    text: str
    at: int | None
    provenance: Provenance
    message_hash: str
    recalled_turn: bool = False
    active_branch: bool = True


@dataclass(frozen=True, slots=True)
class NoteWrite:
    """A write to a memory file that a transcript reports; of its text only hashes are kept.

    ``parts`` are (length, hash) of text that was put into a line (``provenance.segments.part_hash``). ``unreadable``:
    the call changed the file in a way its arguments do not show, such as a script. Both are reported only of turns
    that are not trusted.
    """

    path: str
    line_hashes: tuple[str, ...]
    provenance: Provenance
    recalled: bool = False
    parts: tuple[tuple[int, str], ...] = ()
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class TranscriptReading:
    """What reading a transcript gave.

    Attributes:
        name: ``sessions/<agent>/<file name>``.
        host: Whose format it is; ``None`` when no row told.
        facts: Envelope facts, completed from the rows.
        messages: New messages, in the order of the file.
        writes: Writes to memory files reported since ``resumed_from``.
        faults: Counts by kind: unreadable_lines, not_an_object, unfinished_last_line, line_too_long.
        held_back: Counts by reason of rows that are no one's own words: inter_session, empty_after_cutting.
        excluded_reason: Why nothing was read (``forgotten``, ``channel:…``, ``too_large``, …), or ``None``.
        read_to: Bytes taken in; an unfinished last line waits behind it.
        prefix_hash: SHA-256 of the bytes before ``read_to``.
        resumed_from: Byte from which messages are new; 0 when everything was read anew and replaces what was there.
        turn_origin: Class of what the agent would write now, at the end of the reading.
        turn_kind: Kind of the turn at the end of the reading.
        worst_since_compaction: Least trusted ``turn_origin`` since the last compaction; what a flush inherits.
    """

    name: str
    host: TranscriptHost | None
    facts: SessionFacts
    messages: tuple[TranscriptMessage, ...] = ()
    writes: tuple[NoteWrite, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    held_back: Mapping[str, int] = field(default_factory=dict)
    excluded_reason: str | None = None
    read_to: int = 0
    prefix_hash: str = ""
    resumed_from: int = 0
    turn_origin: OriginClass | None = None
    turn_kind: SessionKind = SessionKind.UNKNOWN
    worst_since_compaction: OriginClass | None = None
