"""Rows of OpenClaw session files, and of the dialect with ``session_meta`` and ``blocks``.

Belongs here: the row formats (openclaw-facts 4.2, real-workspaces 6). Does not belong here: classes, cutting.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from recall_runtime.provenance.sessions import kind_from_message
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


class OpenClawAdapter:
    """Adapter of OpenClaw's session JSONL."""

    host = TranscriptHost.OPENCLAW

    def events(self, row: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what ``row`` says."""
        kind = row.get("type")
        if kind in ("session", "session_meta"):
            at = instant_of(row.get("timestamp"), row.get("created_at_ms"))
            session_id = text_or_none(row.get("id")) or text_or_none(row.get("session_id"))
            yield SessionEvent(session_id=session_id, cwd=text_or_none(row.get("cwd")), at=at)
        elif kind == "compaction":
            yield CompactionEvent(at=instant_of(row.get("timestamp")))
        elif kind == "message" or (kind is None and "role" in row):
            yield from self._message(row, mapping(row.get("message")) or row)

    def _message(self, row: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Event]:
        private = mapping(message.get("__openclaw")) or mapping(row.get("__openclaw"))
        message_id = text_or_none(row.get("id")) or text_or_none(private.get("id"))
        parent_id = text_or_none(row.get("parentId"))
        at = instant_of(message.get("timestamp"), row.get("timestamp"))
        parts = parts_of(message.get("content", message.get("blocks")))
        role = message.get("role")
        if role == "user":
            provenance = mapping(message.get("provenance")) or mapping(row.get("provenance"))
            source_tool = text_or_none(provenance.get("sourceTool"))
            stated = text_or_none(provenance.get("kind"))
            yield UserEvent(
                message_id=message_id,
                parent_id=parent_id,
                at=at,
                text=joined_text(part for part in parts if part.get("injected") is not True),
                speaker=_speaker(stated, private),
                kind=kind_from_message(stated, source_tool),
                source_tool=source_tool,
                sender_id=text_or_none(private.get("senderId")) or text_or_none(provenance.get("senderId")),
                injected=any(part.get("injected") is True for part in parts),
            )
        elif role == "assistant":
            calls = tuple(
                _call(part) for part in parts if part.get("type") in ("toolCall", "tool_call", "toolUse", "tool_use")
            )
            tainted = private.get("turnTainted") is True or private.get("tainted") is True
            yield AssistantEvent(message_id, parent_id, at, joined_text(parts), calls, tainted)
        elif role in ("toolResult", "tool"):
            yield ToolResult(
                message_id=message_id,
                parent_id=parent_id,
                call_id=text_or_none(message.get("toolCallId")) or text_or_none(message.get("tool_call_id")),
                name=text_or_none(message.get("toolName")) or text_or_none(message.get("name")),
                text=joined_text(parts),
                declares_untrusted=_declares_untrusted(mapping(message.get("details"))),
                failed=message.get("isError") is True,
            )


def _speaker(stated: str | None, private: Mapping[str, Any]) -> Speaker:
    if stated == "internal_system":
        return Speaker.HOST
    if stated == "inter_session":
        return Speaker.SESSION
    owner = private.get("senderIsOwner")
    if owner is True:
        return Speaker.OWNER
    return Speaker.OTHER if owner is False else Speaker.UNSTATED


def _call(part: Mapping[str, Any]) -> ToolCall:
    arguments = part.get("arguments", part.get("input"))
    return ToolCall(
        call_id=text_or_none(part.get("id")),
        name=text_or_none(part.get("name")) or "",
        arguments=arguments if isinstance(arguments, Mapping | str) else {},
    )


def _declares_untrusted(details: Mapping[str, Any]) -> bool:
    return mapping(details.get("externalContent")).get("untrusted") is True
