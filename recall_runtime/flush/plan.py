"""Deciding whether a flush is due, and saying how it is done.

Belongs here: thresholds, reasons to skip, the prompt. Does not belong here: writing (``write``).
"""

from dataclasses import dataclass

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of, format_instant
from recall_runtime.config import FlushSettings
from recall_runtime.flush.records import flushed
from recall_runtime.paths import NOTES_FOLDER
from recall_runtime.provenance.sessions import classify_session
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import SessionKind

SILENT_TOKEN = "NO_REPLY"
FLUSH_TOOL = "note"
_NEVER = {SessionKind.HEARTBEAT: "heartbeat", SessionKind.SUBAGENT: "subagent"}


@dataclass(frozen=True, slots=True)
class FlushPlan:
    """What a host does before it compacts.

    ``reason`` says why a flush is due (``tokens``, ``transcript_size``) or why none is (``disabled``, ``heartbeat``,
    ``subagent``, ``read_only``, ``already_flushed``, ``below_threshold``). ``path`` is the only file the flush may
    touch, ``tool`` the only tool it may write with.
    """

    due: bool
    reason: str
    compaction_count: int
    token_threshold: int | None
    path: str
    tool: str = FLUSH_TOOL
    silent_token: str = SILENT_TOKEN
    prompt: str = ""


def token_threshold(settings: FlushSettings, context_window: int) -> int | None:
    """Return the number of tokens from which a flush is due (openclaw-algorithms 29).

    ``None`` when the window is no larger than reserve and soft threshold together: then tokens never ask for one.
    """
    threshold = context_window - settings.reserve_tokens - settings.soft_threshold_tokens
    return threshold if threshold > 0 else None


def plan_flush(
    agent: Agent,
    *,
    session_key: str,
    session_id: str | None = None,
    context_window: int,
    total_tokens: int,
    compaction_count: int,
    transcript_bytes: int = 0,
    read_only: bool = False,
    now_ms: int | None = None,
) -> FlushPlan:
    """Return whether ``session_key`` should be flushed now, and how.

    Args:
        agent: Whose memory it is.
        session_key: The session; heartbeats and sub-agents are never flushed.
        session_id: Its id, when the host knows it.
        context_window: Size of the model's context in tokens.
        total_tokens: Tokens the conversation takes now.
        compaction_count: How often the session was compacted before; one flush each.
        transcript_bytes: Size of the session file; 0 when unknown.
        read_only: The host may not write into the workspace.
        now_ms: The instant; the agent's clock when ``None``.
    """
    now = agent.clock.now_ms() if now_ms is None else now_ms
    settings = agent.settings.flush
    threshold = token_threshold(settings, context_window)
    path = f"{NOTES_FOLDER}/{day_of(now, agent.zone).isoformat()}.md"
    reason = _skip_reason(agent, session_key, session_id, compaction_count, read_only=read_only)
    due = reason is None
    if reason is None:
        if threshold is not None and total_tokens >= threshold:
            reason = "tokens"
        elif 0 < settings.force_transcript_bytes <= transcript_bytes:
            reason = "transcript_size"
        else:
            due, reason = False, "below_threshold"
    prompt = _prompt(session_key, path, now) if due else ""
    return FlushPlan(due, reason, compaction_count, threshold, path, prompt=prompt)


def _skip_reason(
    agent: Agent, session_key: str, session_id: str | None, compaction_count: int, *, read_only: bool
) -> str | None:
    if not agent.settings.flush.enabled:
        return "disabled"
    kind = classify_session(session_id, session_key).kind
    if kind in _NEVER:
        return _NEVER[kind]
    if read_only:
        return "read_only"
    state = open_state(agent.folders.state_db)
    try:
        return "already_flushed" if flushed(state, session_id or session_key, compaction_count) else None
    finally:
        state.close()


def _prompt(session_key: str, path: str, now_ms: int) -> str:
    # The first words are the ones by which hosts and our reader of transcripts know a flush order.
    return (
        "Pre-compaction memory flush. The conversation is about to be shortened.\n"
        f"Append to {path} what should outlast it: decisions, facts, corrections, preferences; one statement a line, "
        "each understandable on its own, with exact names and values.\n"
        f'Use only the tool {FLUSH_TOOL} (command line: dreamline flush write --session "{session_key}"). It appends; '
        "change no other file, make no variants of this one, and leave MEMORY.md, USER.md and DREAMS.md alone.\n"
        "Leave out what memory gave you in this conversation, secrets, and what only matters today.\n"
        f"If nothing is worth it, answer with {SILENT_TOKEN} and nothing else.\n"
        f"Current time: {format_instant(now_ms)}"
    )
