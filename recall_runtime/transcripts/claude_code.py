"""Rows of Claude Code session files.

Belongs here: the row format (real-workspaces 7). Does not belong here: classes, cutting.

The terminal's user is the owner; rows of a side chain are a sub-agent's; meta rows and compaction summaries are the
host's.
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


class ClaudeCodeAdapter:
    """Adapter of Claude Code's session JSONL."""

    host = TranscriptHost.CLAUDE_CODE

    def events(self, row: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what ``row`` says."""
        kind = row.get("type")
        if kind == "system":
            if row.get("subtype") == "compact_boundary":
                yield CompactionEvent(at=instant_of(row.get("timestamp")))
            return
        if kind not in ("user", "assistant"):
            return
        message = mapping(row.get("message"))
        parts = parts_of(message.get("content"))
        at = instant_of(row.get("timestamp"))
        message_id = text_or_none(row.get("uuid"))
        parent_id = text_or_none(row.get("parentUuid"))
        yield SessionEvent(session_id=text_or_none(row.get("sessionId")), cwd=text_or_none(row.get("cwd")), at=at)
        if kind == "assistant":
            if any(part.get("type") == "server_tool_use" for part in parts):
                yield ToolResult(
                    message_id, parent_id, None, "WebSearch", ""
                )  # ran on the provider's side, in this message
            calls = tuple(
                ToolCall(text_or_none(part.get("id")), text_or_none(part.get("name")) or "", mapping(part.get("input")))
                for part in parts
                if part.get("type") in ("tool_use", "server_tool_use")
            )
            yield AssistantEvent(message_id, parent_id, at, joined_text(parts), calls)
            return
        for part in parts:
            if part.get("type") == "tool_result":
                text = joined_text(parts_of(part.get("content")))
                call_id = text_or_none(part.get("tool_use_id"))
                failed = part.get("is_error") is True
                yield ToolResult(message_id, parent_id, call_id, None, text, failed=failed)
        text = joined_text(parts)
        if text:
            yield UserEvent(message_id, parent_id, at, text, *_sender(row))


def _sender(row: Mapping[str, Any]) -> tuple[Speaker, SessionKind]:
    if row.get("isSidechain") is True:
        return Speaker.SESSION, SessionKind.SUBAGENT
    if row.get("isMeta") is True or row.get("isCompactSummary") is True or row.get("isVisibleInTranscriptOnly") is True:
        return Speaker.HOST, SessionKind.UNKNOWN
    if row.get("userType") == "external":
        return Speaker.OWNER, SessionKind.INTERACTIVE
    return Speaker.UNSTATED, SessionKind.UNKNOWN
