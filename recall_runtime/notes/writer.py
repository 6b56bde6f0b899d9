"""The guarded writer of notes: it appends, and it records who wrote what.

Belongs here: the one way by which this product writes into ``memory/``.
Does not belong here: curated files (``recall_runtime.curated``), deciding what is worth a note.

The record is stored before the file is replaced. When a crash falls between, the next write finds a file that does
not match and takes it for a foreign edit, which costs the record of lines that were never written, and nothing else.
In the other order an untrusted line could end up as one that nobody recorded, which is the operator's hand.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.errors import ConflictError, RefusedError
from recall_runtime.paths import NOTES_FOLDER, PathKind, kind_of, normalise
from recall_runtime.provenance.note_lines import RecalledOrigins
from recall_runtime.provenance.paths import classify_path
from recall_runtime.provenance.segments import build_on_append, load_record, store_record
from recall_runtime.provenance.sessions import SessionFacts, classify_session, origin_of_writer
from recall_runtime.records import Provenance
from recall_runtime.storage.atomic import content_hash, read_bytes, replace_file
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_state
from recall_runtime.text.lines import read_lines
from recall_runtime.text.redaction import redact
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.transcripts.sources import find_session
from recall_runtime.vocabulary import OriginClass, SessionKind, worst_origin

_WRITABLE = frozenset({PathKind.DAILY_NOTE, PathKind.TOPIC_NOTE})
_LOCK_WAIT_SECONDS = 60.0
_ATTEMPTS = 5
CLOCK_SKEW_MS = 120_000  # how far a host's clock may be ahead of ours; a replayed session has rows further ahead


@dataclass(frozen=True, slots=True)
class NoteAppend:
    """What was appended: workspace-relative path, its first and last line (1-based), and who is behind it."""

    path: str
    start_line: int
    end_line: int
    provenance: Provenance
    created: bool


def append_note(
    agent: Agent,
    text: str,
    *,
    session_key: str | None,
    session_id: str | None = None,
    provenance: Provenance | None = None,
    supersedes_key: str | None = None,
    path: str | None = None,
    now_ms: int | None = None,
) -> NoteAppend:
    """Append ``text`` to a note and record its provenance.

    The target is today's note in the agent's zone, or ``path`` below ``memory/``. Secrets are masked. The file keeps
    its line ends and its byte order mark; a missing line end is added first. Links are written through and stay.

    The class is the least trusted of: what the session's key says, what the live transcript of the session says about
    the turn at this moment, and ``provenance`` when the caller knows more. No session at all means the operator at
    the command line. A foreign edit since the last write is rebased first.

    Raises:
        RefusedError: nothing to write, a target that is no note of this workspace, or one that is no text file.
        ConflictError: another program kept changing the file.
        StoreLockedError: other writers held the lock for a minute.
        WorkspaceError: the folder can't be written.
    """
    now = agent.clock.now_ms() if now_ms is None else now_ms
    lines = redact(text).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not any(line.strip() for line in lines):
        raise RefusedError("The note is empty", "Give the text to append.")
    target = f"{NOTES_FOLDER}/{day_of(now, agent.zone).isoformat()}.md" if path is None else normalise(path)
    file = _checked(agent, target)
    state = open_state(agent.folders.state_db)
    try:
        written = _provenance(agent, state, session_key, session_id, provenance, now)
        written = replace(written, supersedes_key=supersedes_key or written.supersedes_key)
        with exclusive(agent.folders.agent_home / "notes.lock", what="A note", wait_seconds=_LOCK_WAIT_SECONDS):
            return _append(state, file, target, lines, written, session_key, now)
    finally:
        state.close()


def _checked(agent: Agent, target: str) -> Path:
    if kind_of(target) not in _WRITABLE:
        raise RefusedError(f"{target} is not a note", f"Name a Markdown file below {NOTES_FOLDER}/.")
    file = agent.workspace / target
    if ".." in Path(target).parts or (file.is_symlink() and not file.exists()):
        raise RefusedError(f"{target} leads nowhere", "Repair the link, or name another note.")
    try:
        inside = file.parent.resolve().is_relative_to(agent.workspace.resolve())
    except (OSError, RuntimeError):
        inside = False
    if not inside or (file.exists() and classify_path(agent.workspace, target).escapes):
        raise RefusedError(f"{target} leads out of the workspace", "Name a note inside the workspace.")
    return file


def _append(
    state: apsw.Connection,
    file: Path,
    target: str,
    lines: list[str],
    provenance: Provenance,
    session_key: str | None,
    now: int,
) -> NoteAppend:
    for attempt in range(_ATTEMPTS):
        before = read_bytes(file)
        after, start_line = _appended(before or b"", lines, target)
        with write_transaction(state):
            record = build_on_append(before or b"", after, load_record(state, target), provenance, session_key)
            store_record(state, target, record, now)
        try:
            replace_file(file, after, expected_hash=None if before is None else content_hash(before))
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        return NoteAppend(target, start_line, start_line + len(lines) - 1, provenance, before is None)
    raise AssertionError("the loop returns or raises")


def _appended(before: bytes, lines: list[str], target: str) -> tuple[bytes, int]:
    """Return the new content, and the number of the first appended line."""
    reading = read_lines(before)
    if reading.undecodable:
        raise RefusedError(f"{target} is no UTF-8 text", "Convert the file to UTF-8, or name another note.")
    newline = reading.newline.encode("ascii")
    gap = newline if before and not before.endswith(b"\n") else b""
    added = newline.join(line.encode("utf-8", "replace") for line in lines) + newline
    return before + gap + added, len(reading.lines) + 1


def _provenance(
    agent: Agent,
    state: apsw.Connection,
    session_key: str | None,
    session_id: str | None,
    given: Provenance | None,
    now: int,
) -> Provenance:
    written = session_provenance(agent, state, session_key, session_id, now)
    if given is None:
        return written
    worst = worst_origin((written.origin_class, given.origin_class))
    kind = written.session_kind if session_key is not None or session_id is not None else given.session_kind
    key = given.supersedes_key
    return Provenance(worst, kind, now, written.session_id or given.session_id, key)


def session_provenance(
    agent: Agent,
    state: apsw.Connection,
    session_key: str | None,
    session_id: str | None,
    now_ms: int,
    *,
    since_compaction: bool = False,
) -> Provenance:
    """Return the provenance of what the agent writes at ``now_ms`` in a session.

    With ``since_compaction`` the class is the least trusted of all turns since the last compaction: what a flush
    inherits. Without a transcript the form of the session key alone decides (``origin_of_writer``).
    """
    if session_key is None and session_id is None:
        return Provenance(OriginClass.AGENT, SessionKind.INTERACTIVE, now_ms)
    by_key = classify_session(session_id, session_key)
    live = _live_class(agent, state, by_key, now_ms, since_compaction=since_compaction)
    if live is None:
        return Provenance(origin_of_writer(by_key), by_key.kind, now_ms, session_id or session_key)
    origin, kind, known_id = live
    if by_key.kind is SessionKind.UNKNOWN:
        return Provenance(origin, kind, now_ms, known_id)
    own_kind = by_key.kind if by_key.is_scaffold else kind
    return Provenance(worst_origin((origin_of_writer(by_key), origin)), own_kind, now_ms, known_id)


def _live_class(
    agent: Agent, state: apsw.Connection, by_key: SessionFacts, now_ms: int, *, since_compaction: bool
) -> tuple[OriginClass, SessionKind, str | None] | None:
    """Return class, kind and id that the session's own transcript gives, or ``None`` when it says nothing yet.

    Rows that are a little ahead of ``now_ms`` come from a host whose clock is: what they say can only lower the class.
    """
    found = find_session(agent, by_key.session_key, by_key.session_id)
    if found is None:
        return None
    path, facts = found
    if by_key.kind is not SessionKind.UNKNOWN:
        facts = replace(by_key, session_id=facts.session_id)
    try:
        readings = [
            read_transcript(
                path,
                path.name,
                facts=facts,
                settings=agent.settings.sources,
                recalled=RecalledOrigins(state),
                until_ms=until_ms,
            )
            for until_ms in (now_ms, now_ms + CLOCK_SKEW_MS)
        ]
    except OSError:
        return OriginClass.UNTRUSTED, SessionKind.UNKNOWN, facts.session_id
    known = [reading for reading in readings if reading.turn_origin is not None]
    if not known:
        return None
    origins = [reading.turn_origin for reading in known if reading.turn_origin is not None]
    if since_compaction:
        origins += [reading.worst_since_compaction for reading in known if reading.worst_since_compaction is not None]
    return worst_origin(origins), known[0].turn_kind, known[0].facts.session_id
