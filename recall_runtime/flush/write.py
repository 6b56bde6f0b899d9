"""Writing what a flush turn produced.

Belongs here: once per compaction, least trusted class, outcomes. Does not belong here: deciding that it is due.
"""

from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError
from recall_runtime.flush.plan import SILENT_TOKEN
from recall_runtime.flush.records import NOTHING, WRITTEN, flushed, record_flush
from recall_runtime.notes.writer import NoteAppend, append_note, session_provenance
from recall_runtime.provenance.sessions import classify_session
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import SessionKind

_LOCK_WAIT_SECONDS = 60.0
_NEVER = (SessionKind.HEARTBEAT, SessionKind.SUBAGENT)


@dataclass(frozen=True, slots=True)
class FlushResult:
    """Outcome of a flush: ``written``, ``nothing``, ``failed: …`` or ``skipped:<reason>``, and what was appended."""

    outcome: str
    appended: NoteAppend | None = None


def write_flush(
    agent: Agent,
    text: str,
    *,
    session_key: str,
    compaction_count: int,
    session_id: str | None = None,
    now_ms: int | None = None,
) -> FlushResult:
    """Append what the flush turn produced to today's note, once per compaction.

    The text has the least trusted class of all turns since the last compaction, because that is where it comes from.
    The silent token, or nothing, is the answer that nothing is worth keeping. Nothing is ever raised: a flush that
    fails or is skipped must not stop a compaction, so the outcome says what happened, and it is stored.
    """
    now = agent.clock.now_ms() if now_ms is None else now_ms
    if not agent.settings.flush.enabled:
        return FlushResult("skipped:disabled")
    kind = classify_session(session_id, session_key).kind
    if kind in _NEVER:
        return FlushResult(f"skipped:{kind.value}")
    session = session_id or session_key
    try:
        with exclusive(agent.folders.agent_home / "flush.lock", what="A flush", wait_seconds=_LOCK_WAIT_SECONDS):
            state = open_state(agent.folders.state_db)
            try:
                if flushed(state, session, compaction_count):
                    return FlushResult("skipped:already_flushed")
                result = _flush(agent, state, text, session_key, session_id, now)
                with write_transaction(state):
                    record_flush(state, session, compaction_count, result.outcome, now)
                return result
            finally:
                state.close()
    except DreamlineError as error:
        return FlushResult(f"failed: {error}")


def _flush(
    agent: Agent, state: apsw.Connection, text: str, session_key: str, session_id: str | None, now: int
) -> FlushResult:
    if not text.strip() or text.strip().upper() == SILENT_TOKEN:
        return FlushResult(NOTHING)
    try:
        inherited = session_provenance(agent, state, session_key, session_id, now, since_compaction=True)
        appended = append_note(
            agent, text, session_key=session_key, session_id=session_id, provenance=inherited, now_ms=now
        )
    except DreamlineError as error:
        return FlushResult(f"failed: {error}")
    return FlushResult(WRITTEN, appended)
