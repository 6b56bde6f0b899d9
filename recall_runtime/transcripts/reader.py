"""Reading a transcript: rows to events, events to messages in the speakers' own words with their provenance.

Belongs here: the one walk over a session, resuming, exactly-once hashes.
Does not belong here: formats (adapters), classes (``turns``), finding files (``sources``).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recall_runtime.config import SourceSettings
from recall_runtime.provenance.sessions import SessionFacts, kind_from_messages
from recall_runtime.provenance.tools import ToolSource, ToolTable, tool_table
from recall_runtime.records import Provenance
from recall_runtime.text.lines import without_controls
from recall_runtime.text.redaction import redact
from recall_runtime.transcripts.detect import adapter_for
from recall_runtime.transcripts.envelopes import cut_assistant, cut_user, has_external_wrapper
from recall_runtime.transcripts.protocol import (
    Adapter,
    AssistantEvent,
    CompactionEvent,
    Event,
    NoteWrite,
    Role,
    SessionEvent,
    Speaker,
    ToolCall,
    ToolResult,
    TranscriptMessage,
    TranscriptReading,
    UserEvent,
)
from recall_runtime.transcripts.recalled import RecalledOrigin, read_recalled
from recall_runtime.transcripts.rows import Row, RowReader
from recall_runtime.transcripts.timestamps import instant_of
from recall_runtime.transcripts.turns import Turn, first_turn, open_turn, write_origin
from recall_runtime.transcripts.values import mapping
from recall_runtime.transcripts.writes import note_writes
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass, SessionKind, worst_origin

_SCAFFOLD = frozenset({SessionKind.CRON, SessionKind.HEARTBEAT, SessionKind.SUBAGENT})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ROW_IDS = ("id", "uuid")
_PARENT_IDS = ("parentId", "parentUuid")


def read_transcript(
    path: Path,
    name: str,
    *,
    facts: SessionFacts | None = None,
    settings: SourceSettings | None = None,
    from_offset: int = 0,
    expected_prefix_hash: str = "",
    recalled: RecalledOrigin | None = None,
    until_ms: int | None = None,
) -> TranscriptReading:
    """Read a session file of any known format. Never raises on its content; linear in its size.

    A grown file is walked from its beginning, because what a message is depends on its turn, but only messages behind
    ``from_offset`` are given out, provided the bytes before it still hash to ``expected_prefix_hash`` and the new rows
    do not change what kind of session it is. Otherwise everything is given out and ``resumed_from`` is 0.

    All rows count, also those on abandoned branches of the message tree; ``active_branch`` tells them apart. A row
    whose parent lies in an earlier turn has the worse class of both turns.

    Args:
        path: The file.
        name: Its logical name, ``sessions/<agent>/<file name>``.
        facts: What the envelope of the session says, when anything.
        settings: Owner ids, tool tables, the size limit.
        from_offset: Bytes taken in last time.
        expected_prefix_hash: Hash of those bytes.
        recalled: Tells the class of text that recall tools gave back.
        until_ms: Stop at the first row with a later time.

    Raises:
        OSError: the file can't be opened or read.
    """
    settings = settings or SourceSettings()
    facts = facts or SessionFacts()
    status = path.stat()
    if status.st_size > settings.max_file_bytes:
        return TranscriptReading(name=name, host=None, facts=facts, excluded_reason="too_large")
    rows = RowReader(path, expected_at=from_offset, expected_hash=expected_prefix_hash)
    walk = _Walk(
        facts, settings, recalled, fallback_id=_id_from_name(path.name), mtime_ms=status.st_mtime_ns // 1_000_000
    )
    for row in rows:
        if until_ms is not None and (_row_time(row.value) or 0) > until_ms:
            break
        walk.take(row, is_new=row.start >= from_offset)
    return walk.result(name, rows, from_offset)


def _id_from_name(name: str) -> str:
    return name.partition(".jsonl")[0]


def _row_time(row: Mapping[str, Any]) -> int | None:
    return instant_of(row.get("timestamp"), mapping(row.get("message")).get("timestamp"))


@dataclass(slots=True)
class _Pending:
    """A message or write whose kind of session is filled in at the end of the walk."""

    turn_kind: SessionKind
    start: int
    message: TranscriptMessage | None = None
    write: NoteWrite | None = None


class _Walk:
    """State of one walk over a session."""

    def __init__(
        self,
        facts: SessionFacts,
        settings: SourceSettings,
        recalled: RecalledOrigin | None,
        *,
        fallback_id: str,
        mtime_ms: int,
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._recalled = recalled
        self._fallback_id = fallback_id
        self._mtime_ms = mtime_ms
        self._adapter: Adapter | None = None
        self._tools: ToolTable | None = None
        self._session_id: str | None = None
        self._cwd: str | None = None
        self._turn = first_turn()
        self._turns: dict[str, Turn] = {}  # row id -> its turn
        self._parents: dict[str, str | None] = {}
        self._last_row: str | None = None
        self._call_names: dict[str, str] = {}
        self._edits: dict[str, list[_Pending]] = {}  # call id -> its writes, until the result says they happened
        self._kinds: list[SessionKind] = []
        self._kinds_before = 0
        self._header_kind = SessionKind.UNKNOWN
        self._pending: list[_Pending] = []
        self._seen: set[str] = set()
        self._held_back: Counter[str] = Counter()
        self._worst: OriginClass | None = None

    # -- rows

    def take(self, row: Row, *, is_new: bool) -> None:
        """Take in one row."""
        if self._adapter is None:
            self._adapter = adapter_for(row.value)
            if self._adapter is None:
                return
            self._tools = tool_table(self._adapter.host, self._settings)
        row_id = next((row.value[key] for key in _ROW_IDS if isinstance(row.value.get(key), str)), None)
        parent = next((row.value[key] for key in _PARENT_IDS if isinstance(row.value.get(key), str)), None)
        for event in self._adapter.events(row.value):
            self._event(event, row, self._turn_of(parent))
        if not is_new:
            self._kinds_before = len(self._kinds)
        if row_id is not None and row_id != parent:
            self._parents[row_id] = parent
            self._turns[row_id] = self._turn
            self._last_row = row_id

    def _turn_of(self, parent: str | None) -> Turn | None:
        """Return the turn of the parent row when it is another one than the current."""
        turn = self._turns.get(parent) if parent is not None else None
        return turn if turn is not self._turn else None

    def _event(self, event: Event, row: Row, other: Turn | None) -> None:
        match event:
            case SessionEvent():
                self._session_id = self._session_id or event.session_id
                self._cwd = self._cwd or event.cwd
                self._header_kind = event.kind if event.kind is not SessionKind.UNKNOWN else self._header_kind
            case CompactionEvent():
                self._worst = None
            case UserEvent():
                self._user(event, row)
            case AssistantEvent():
                self._assistant(event, row, other)
            case ToolResult():
                self._result(event)

    # -- events

    def _user(self, event: UserEvent, row: Row) -> None:
        self._kinds.append(event.kind)
        cut = cut_user(event.text)
        self._turn = open_turn(
            event,
            self._facts,
            self._settings.owner_ids,
            has_own_words=bool(cut.text) or not event.text.strip(),
            worst_so_far=self._worst,
        )
        self._turn.recalled = cut.recalled or event.injected
        self._turn.tainted = cut.external
        if event.speaker is Speaker.SESSION:
            self._held_back["inter_session"] += 1
        else:
            self._message(event, row, Role.USER, cut.text, event.text, self._turn.origin, recalled=False)

    def _assistant(self, event: AssistantEvent, row: Row, other: Turn | None) -> None:
        if event.tainted:
            self._turn.tainted = True
        origin = self._worst_of(self._turn.agent_origin, other.agent_origin if other else None)
        cut = cut_assistant(event.text)
        recalled = self._turn.recalled or cut.recalled or (other is not None and other.recalled)
        if event.text.strip():
            self._message(event, row, Role.ASSISTANT, cut.text, event.text, origin, recalled=recalled)
        for call in event.calls:
            if call.call_id is not None:
                self._call_names[call.call_id] = call.name
            self._writes(call, event, row, self._worst_of(write_origin(self._turn, self._facts), origin), recalled)

    def _writes(self, call: ToolCall, event: AssistantEvent, row: Row, origin: OriginClass, recalled: bool) -> None:
        at = event.at if event.at is not None else self._mtime_ms
        provenance = Provenance(origin, SessionKind.UNKNOWN, at)
        for written in note_writes(call, self._cwd):
            # what a trusted turn writes unseen needs no record: lines without one count as the operator's hand
            trusted = origin in ELIGIBLE_ORIGINS
            parts, unreadable = ((), False) if trusted else (written.parts, written.unreadable)
            if not written.lines and not parts and not unreadable:
                continue
            write = NoteWrite(written.path, written.lines, provenance, recalled, parts, unreadable)
            pending = _Pending(self._turn.kind, row.start, write=write)
            self._pending.append(pending)
            if written.by_edit_tool and call.call_id is not None:
                self._edits.setdefault(call.call_id, []).append(pending)

    def _result(self, event: ToolResult) -> None:
        if event.failed:
            for pending in self._edits.get(event.call_id or "", ()):
                pending.write = None
        name = event.name or self._call_names.get(event.call_id or "", "")
        source = self._tools.source_of(name) if self._tools is not None else ToolSource.NETWORK
        if event.declares_untrusted or has_external_wrapper(event.text):
            source = ToolSource.NETWORK
        if source is ToolSource.NETWORK:
            self._turn.tainted = True
            self._worst = OriginClass.UNTRUSTED
        elif source is ToolSource.RECALLED:
            given = read_recalled(event.text, self._recalled)
            self._turn.recalled = self._turn.recalled or given.any
            if given.origin is not None:
                self._turn.floor = worst_origin((self._turn.floor, given.origin))

    def _worst_of(self, origin: OriginClass, other: OriginClass | None) -> OriginClass:
        return origin if other is None else worst_origin((origin, other))

    def _message(
        self,
        event: UserEvent | AssistantEvent,
        row: Row,
        role: Role,
        own: str,
        raw: str,
        origin: OriginClass,
        *,
        recalled: bool,
    ) -> None:
        if self._turn.dropped:
            self._held_back["recalled_turn"] += 1
            return
        if not own:
            self._held_back["empty_after_cutting"] += bool(raw.strip())
            return
        digest = self._message_hash(event, role, raw)
        if digest in self._seen:
            self._held_back["repeated"] += 1
            return
        self._seen.add(digest)
        written = OriginClass.AGENT if origin is OriginClass.OWNER else origin
        self._worst = self._worst_of(written, self._worst)
        at = event.at if event.at is not None else self._mtime_ms
        message = TranscriptMessage(
            message_id=event.message_id,
            parent_id=event.parent_id,
            line=row.line,
            start=row.start,
            end=row.end,
            role=role,
            text=redact(without_controls(_LONE_SURROGATE.sub("\ufffd", own))),
            at=event.at,
            provenance=Provenance(origin, SessionKind.UNKNOWN, at),
            message_hash=digest,
            recalled_turn=recalled,
        )
        self._pending.append(_Pending(self._turn.kind, row.start, message=message))

    def _message_hash(self, event: UserEvent | AssistantEvent, role: Role, raw: str) -> str:
        """Return the name under which a message is taken in once, whatever file and line it is found in."""
        parts = (self._id(), event.message_id or f"at:{event.at}", role.value, raw)
        joined = "\x00".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.sha256(joined).hexdigest()[:32]

    # -- end

    def _id(self) -> str:
        return self._session_id or self._facts.session_id or self._fallback_id

    def result(self, name: str, rows: RowReader, from_offset: int) -> TranscriptReading:
        """Return the reading, with kinds and branches filled in."""
        kind = self._kind(self._kinds)
        resumed = from_offset > 0 and rows.prefix_matches and self._kind(self._kinds[: self._kinds_before]) is kind
        start = from_offset if resumed else 0
        active = self._active_rows()
        messages: list[TranscriptMessage] = []
        writes: list[NoteWrite] = []
        for pending in self._pending:
            if pending.start < start:
                continue
            if pending.message is not None:
                messages.append(self._finished(pending.message, pending.turn_kind, kind, active))
            if pending.write is not None:
                provenance = self._placed(pending.write.provenance, pending.turn_kind, kind)
                writes.append(replace(pending.write, provenance=provenance))
        return TranscriptReading(
            name=name,
            host=self._adapter.host if self._adapter is not None else None,
            facts=replace(self._facts, session_id=self._id(), kind=kind),
            messages=tuple(messages),
            writes=tuple(writes),
            faults=dict(rows.faults),
            held_back={reason: count for reason, count in self._held_back.items() if count},
            excluded_reason=None if self._adapter is not None or not rows.read_to else "not_a_transcript",
            read_to=rows.read_to,
            prefix_hash=rows.prefix_hash,
            resumed_from=start,
            turn_origin=write_origin(self._turn, self._facts) if self._kinds else None,
            turn_kind=self._turn.kind if self._turn.kind in _SCAFFOLD else kind,
            worst_since_compaction=self._worst,
        )

    def _kind(self, kinds: list[SessionKind]) -> SessionKind:
        if self._facts.kind is not SessionKind.UNKNOWN:
            return self._facts.kind
        if self._header_kind is not SessionKind.UNKNOWN:
            return self._header_kind
        return kind_from_messages(kinds)

    def _finished(
        self, message: TranscriptMessage, turn_kind: SessionKind, kind: SessionKind, active: set[str] | None
    ) -> TranscriptMessage:
        on_branch = active is None or message.message_id is None or message.message_id in active
        return replace(message, provenance=self._placed(message.provenance, turn_kind, kind), active_branch=on_branch)

    def _placed(self, provenance: Provenance, turn_kind: SessionKind, kind: SessionKind) -> Provenance:
        """Fill in session and kind; a scaffold turn inside an interactive session keeps its own kind."""
        own = turn_kind if kind not in _SCAFFOLD and turn_kind in _SCAFFOLD else kind
        return replace(provenance, session_kind=own, session_id=self._id())

    def _active_rows(self) -> set[str] | None:
        """Return the ids from the last row up to its root; ``None`` when the file is no tree."""
        if not any(parent is not None for parent in self._parents.values()):
            return None
        active: set[str] = set()
        row_id = self._last_row
        while row_id is not None and row_id not in active:
            active.add(row_id)
            row_id = self._parents.get(row_id)
        return active
