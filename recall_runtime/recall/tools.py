"""The memory tools an agent calls, as functions that return plain data for JSON.

Belongs here: ``memory_search``, ``memory_get``, ``sessions_history``: visibility, framing, bounds, recording.
Does not belong here: wire protocols (``recall_runtime.hosts``), ranking (``index.search``).

Every result carries ``origin_class``; text of strangers stands in the frame of foreign content. What an agent does
with it lowers the class of what it writes next (``transcripts.recalled`` reads the same field).
"""

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of, format_instant
from recall_runtime.errors import EmbedderError, RefusedError
from recall_runtime.index import reading as windows
from recall_runtime.index.hits import SearchHit
from recall_runtime.notes.conditions import conditions_of
from recall_runtime.provenance.paths import classify_path
from recall_runtime.recall.reading import answer_for, readable_file
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.visibility import Access, access_of, readable_sessions, require_may_ask
from recall_runtime.signals.recalls import record_recall
from recall_runtime.text.escaping import clip
from recall_runtime.vocabulary import Corpus, OriginClass, SessionKind, Tier, worst_origin

MAX_RESULTS = 50
MAX_HISTORY = 20  # messages on each side
HISTORY_CHARACTERS = 12_000
MESSAGE_CHARACTERS = 2_000

_TRUSTED = (OriginClass.OWNER, OriginClass.AGENT)


def memory_search(
    agent: Agent,
    runtime: Runtime | None,
    query: str,
    *,
    session_key: str | None,
    sender: str | None = None,
    max_results: int | None = None,
    min_score: float | None = None,
    corpus: str = Corpus.MEMORY,
    active_projects: Sequence[str] = (),
    record: bool = True,
) -> dict[str, Any]:
    """Search memory and return ``results``, the state of each lane, and a ``notice`` where there is nothing.

    ``error`` names type and message when the embedder of the settings failed; the results are those of words alone.
    Without ``runtime`` everything is opened and closed here. Only an interactive session's call is recorded.

    Raises:
        RefusedError: the session may not see memory, or the corpus is unknown.
    """
    access = _checked(agent, session_key, sender)
    wanted = _corpus(corpus)
    with _warm(agent, runtime) as warm:
        sessions, rejected = None, 0
        if wanted is not Corpus.MEMORY:
            sessions, rejected = _sessions(agent, warm)
        answer = answer_for(
            agent,
            warm,
            query,
            max_results=min(MAX_RESULTS, max_results) if max_results else None,
            min_score=min_score,
            corpus=wanted,
            active=active_projects,
            sessions=sessions,
        )
    if record and access.facts.kind is SessionKind.INTERACTIVE:
        _record(agent, runtime, query, answer.hits, session_key)
    notice = answer.notice
    if rejected and not answer.hits:  # what they hold isn't told
        left_out = f"{rejected} transcripts are of conversations that are not private or not known; they are left out."
        notice = f"{left_out} {notice}" if notice else left_out
    today = day_of(agent.clock.now_ms(), agent.zone)
    return {
        "results": [_result(hit, today) for hit in answer.hits],
        "lanes": {name: {"state": lane.state.value, "reason": lane.reason} for name, lane in answer.lanes.items()},
        "notice": notice,
        "error": {"type": EmbedderError.__name__, "message": answer.error} if answer.error else None,
        "transcripts_left_out": rejected,
    }


def memory_get(
    agent: Agent,
    runtime: Runtime | None,
    path: str,
    *,
    session_key: str | None,
    sender: str | None = None,
    from_line: int = 1,
    lines: int | None = None,
    from_character: int = 1,
) -> dict[str, Any]:
    """Return lines of a memory file: 120 by default, 12,000 characters, redacted.

    ``next_line`` and ``next_character`` say where to go on: behind the last line, or inside it when it was ``cut``.

    Raises:
        RefusedError: the session may not see memory, or the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    _checked(agent, session_key, sender)
    with _warm(agent, runtime) as warm:
        file = readable_file(agent, warm.state_reader(), path)
    window = windows.window_of(file.path, file.lines, from_line, lines, from_character)
    origins = file.origins[window.start_line - 1 : window.end_line]
    origin = worst_origin(origins or (classify_path(agent.workspace, file.path).origin_class,))
    return {
        "path": window.path,
        "start_line": window.start_line,
        "end_line": window.end_line,
        "total_lines": window.total_lines,
        "text": framed(window.text, origin, window.path),
        "origin_class": origin.value,
        "next_line": window.next_line,
        "next_character": window.next_character,
        "cut": window.cut,
    }


def sessions_history(
    agent: Agent,
    runtime: Runtime | None,
    session: str,
    *,
    session_key: str | None,
    sender: str | None = None,
    message_id: str | None = None,
    before: int = 5,
    after: int = 5,
) -> dict[str, Any]:
    """Return the messages round a transcript hit, redacted and bounded; without a message the session's last ones.

    Args:
        agent: Whose transcripts.
        runtime: Warm state; ``None`` opens and closes everything here.
        session: ``session_id`` of the hit, or its ``session_key``.
        session_key: Of the session that asks.
        sender: Who asks in it.
        message_id: Of the hit.
        before: Messages before it, at most 20.
        after: Messages after it, at most 20.

    Raises:
        RefusedError: the session may not see memory, or the transcript is none of the owner's private conversations.
    """
    _checked(agent, session_key, sender)
    before, after = (min(MAX_HISTORY, max(0, number)) for number in (before, after))
    with _warm(agent, runtime) as warm:
        reader = warm.index_reader()
        allowed = _sessions(agent, warm)[0]
        rows = [row for row in reader.execute(_HISTORY, (Tier.SESSIONS, session)).fetchall() if row[0] in allowed]
    if not rows:
        raise RefusedError(
            f"No readable session {session!r}", "Take session_id and message_id from a hit of memory_search."
        )
    messages = _messages(rows)
    at = next((n for n, item in enumerate(messages) if item["message_id"] == message_id), None)
    if message_id is not None and at is None:
        raise RefusedError(f"Session {session!r} has no message {message_id!r}", "Take both ids from one hit.")
    first = len(messages) - before - after - 1 if at is None else at - before
    last = len(messages) if at is None else at + after + 1
    shown = messages[max(0, first) : last]
    return {"session_id": session, "session_key": rows[0][0], **_bounded(shown, message_id, len(messages))}


_HISTORY = """
    SELECT s.session_key, e.message_id, e.role, e.text, e.origin_class, e.observed_at, e.start_line
    FROM entries e JOIN sources s ON s.source_id = e.source_id
    WHERE s.tier = ? AND ? IN (s.session_id, s.session_key) AND e.block = 'message' ORDER BY s.source_id, e.ordinal
"""


def framed(text: str, origin: OriginClass, source: str) -> str:
    """Return ``text``, in the frame of foreign content unless it is the owner's or the agent's."""
    if origin in _TRUSTED:
        return text
    mark = "".join(sign if sign.isalnum() or sign in "./_-#" else "-" for sign in source)[:120]
    inside = text.replace("<<<", "‹‹‹").replace(">>>", "›››")
    return f'<<<EXTERNAL_UNTRUSTED_CONTENT id="{mark}">>>\n{inside}\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id="{mark}">>>'


def _checked(agent: Agent, session_key: str | None, sender: str | None) -> Access:
    access = access_of(agent, session_key, sender)
    require_may_ask(access)
    return access


def _corpus(name: str) -> Corpus:
    try:
        return Corpus(name)
    except ValueError:
        known = ", ".join(member.value for member in Corpus)
        raise RefusedError(f"Corpus {name!r} is unknown", f"Give one of {known}.") from None


def _sessions(agent: Agent, warm: Runtime) -> tuple[frozenset[str], int]:
    return readable_sessions(agent, warm.index_reader())


@contextlib.contextmanager
def _warm(agent: Agent, runtime: Runtime | None) -> Iterator[Runtime]:
    if runtime is not None:
        yield runtime
        return
    with Runtime(agent, one_turn=True) as own:
        yield own


def _record(
    agent: Agent, runtime: Runtime | None, query: str, hits: tuple[SearchHit, ...], session_key: str | None
) -> None:
    def write() -> None:
        now_ms = agent.clock.now_ms()
        record_recall(agent, query=query, hits=hits, session_key=session_key, lane="search", now_ms=now_ms)

    if runtime is None:
        write()
    else:
        runtime.afterwards(write)


def _result(hit: SearchHit, today: dt.date) -> dict[str, Any]:
    entry = hit.entry
    limits = conditions_of(entry.text)
    origin = entry.provenance.origin_class
    result: dict[str, Any] = {
        "path": entry.path,
        "start_line": entry.start_line,
        "end_line": entry.end_line,
        "citation": hit.citation,
        "score": round(hit.relevance, 4),
        "keyword_score": hit.keyword_score,
        "vector_score": hit.vector_score,
        "snippet": framed(hit.snippet, origin, hit.citation),
        "origin_class": origin.value,
        "session_kind": entry.provenance.session_kind.value,
        "status": entry.status.value,
        "day": entry.day,
        "importance": entry.annotations.importance,
        "project_key": _said(entry.annotations.project_key, origin, hit.citation),
        "condition": _said(limits.condition, origin, hit.citation),
        "expires": limits.expires.isoformat() if limits.expires else None,
        "expired": limits.over(today),
        "action_senses": [sense.value for sense in limits.senses],
    }
    if entry.tier is Tier.SESSIONS:  # a reference for sessions_history, no file
        result |= {"session_id": entry.provenance.session_id, "message_id": entry.message_id}
    return result


def _said(text: str | None, origin: OriginClass, source: str) -> str | None:
    """Return what was read out of an entry's text: as untrusted as the text itself."""
    return framed(text, origin, source) if text else None


def _messages(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return one item a message; a long one lies in several rows."""
    found: list[dict[str, Any]] = []
    for _, message_id, role, text, origin, observed_at, line in rows:
        if found and found[-1]["message_id"] == message_id and found[-1]["line"] == line:
            found[-1]["text"] += text
            continue
        found.append(
            {
                "message_id": message_id,
                "role": role,
                "text": text,
                "origin_class": origin,
                "at": format_instant(observed_at),
                "line": line,
            }
        )
    return found


def _bounded(messages: Sequence[dict[str, Any]], message_id: str | None, total: int) -> dict[str, Any]:
    """Return the messages nearest to the hit that fit, each cut and framed by its class."""
    middle = next((n for n, item in enumerate(messages) if item["message_id"] == message_id), len(messages) - 1)
    room, chosen = HISTORY_CHARACTERS, dict[int, str]()
    for n in sorted(range(len(messages)), key=lambda n: (abs(n - middle), n)):
        text = clip(messages[n]["text"], MESSAGE_CHARACTERS)
        if len(text) > room:
            break
        room -= len(text)
        chosen[n] = text
    shown = []
    for n in sorted(chosen):
        item = {key: value for key, value in messages[n].items() if key != "line"}
        item["text"] = framed(chosen[n], OriginClass(item["origin_class"]), f"message-{n}")
        item["is_hit"] = message_id is not None and item["message_id"] == message_id
        shown.append(item)
    return {"messages": shown, "left_out": len(messages) - len(shown), "total_messages": total}
