"""Rows of Codex rollouts.

Belongs here: the row format ``{timestamp, type, payload}`` (real-workspaces 7), and the older one without ``payload``.
Does not belong here: classes, cutting.

``event_msg`` rows repeat what ``response_item`` rows hold and are not read. The terminal's user is the owner, unless
the rollout was started by a script (``exec``) or by another agent.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from recall_runtime.provenance.tools import TranscriptHost
from recall_runtime.transcripts.protocol import (
    AssistantEvent,
    CompactionEvent,
    Event,
    SessionEvent,
    Speaker,
    ToolCall,
    ToolResult,
    UserEvent,
)
from recall_runtime.transcripts.timestamps import instant_of
from recall_runtime.transcripts.values import joined_text, mapping, parts_of, text_or_none
from recall_runtime.vocabulary import SessionKind

_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "mcp_tool_call_output"})


class CodexAdapter:
    """Adapter of Codex rollouts; it remembers from the header who drives the session."""

    host = TranscriptHost.CODEX

    def __init__(self) -> None:
        self._kind = SessionKind.UNKNOWN

    def events(self, row: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what ``row`` says."""
        kind = row.get("type")
        payload = mapping(row.get("payload"))
        at = instant_of(row.get("timestamp"), payload.get("timestamp"))
        if kind == "session_meta":
            self._kind = _kind_of(payload)
            session_id = text_or_none(payload.get("id"))
            yield SessionEvent(session_id, text_or_none(payload.get("cwd")), at, self._kind)
        elif kind == "compacted":
            yield CompactionEvent(at)
        elif kind == "response_item":
            yield from self._item(payload, at)

    def _item(self, item: Mapping[str, Any], at: int | None) -> Iterator[Event]:
        kind = item.get("type")
        item_id = text_or_none(item.get("id"))
        if kind == "message":
            text = joined_text(parts_of(item.get("content")))
            if item.get("role") == "user":
                yield UserEvent(item_id, None, at, text, self._speaker(), self._kind)
            elif item.get("role") == "assistant":
                yield AssistantEvent(item_id, None, at, text)
        elif kind in _CALLS:
            call_id = text_or_none(item.get("call_id")) or item_id
            name = text_or_none(item.get("name")) or str(kind).removesuffix("_call")
            yield AssistantEvent(item_id, None, at, "", (ToolCall(call_id, name, _arguments(item)),))
            if kind == "web_search_call":  # its result is part of the model's context and of no row
                yield ToolResult(item_id, None, call_id, "web_search", "")
        elif kind in _RESULTS:
            output = item.get("output")
            text = output if isinstance(output, str) else joined_text(parts_of(mapping(output).get("content", output)))
            yield ToolResult(item_id, None, text_or_none(item.get("call_id")), None, text)

    def _speaker(self) -> Speaker:
        if self._kind is SessionKind.INTERACTIVE:
            return Speaker.OWNER
        return Speaker.SESSION if self._kind is SessionKind.SUBAGENT else Speaker.UNSTATED


def _kind_of(meta: Mapping[str, Any]) -> SessionKind:
    source = meta.get("source")
    if isinstance(source, Mapping) or source == "subagent":
        return SessionKind.SUBAGENT
    if source == "exec" or "exec" in str(meta.get("originator")):
        return SessionKind.UNKNOWN
    return SessionKind.INTERACTIVE if source or meta.get("originator") else SessionKind.UNKNOWN


def _arguments(item: Mapping[str, Any]) -> Mapping[str, Any] | str:
    for key in ("arguments", "input", "action"):
        value = item.get(key)
        if isinstance(value, Mapping | str):
            return value
    return {}
