"""Which format a transcript has, told by its rows and never by its name.

Belongs here: the choice of the adapter. Does not belong here: the formats themselves.
"""

from collections.abc import Mapping
from typing import Any

from recall_runtime.transcripts.claude_code import ClaudeCodeAdapter
from recall_runtime.transcripts.codex import CodexAdapter
from recall_runtime.transcripts.openclaw import OpenClawAdapter
from recall_runtime.transcripts.protocol import Adapter

_CODEX_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_CLAUDE_TYPES = frozenset(
    {
        "user",
        "assistant",
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "last-prompt",
        "ai-title",
        "attachment",
    }
)


def adapter_for(row: Mapping[str, Any]) -> Adapter | None:
    """Return the adapter of the format that ``row`` belongs to, or ``None`` when this row does not tell."""
    kind = row.get("type")
    if not isinstance(kind, str):
        return None
    if kind in _CODEX_TYPES and isinstance(row.get("payload"), Mapping):
        return CodexAdapter()
    if kind in ("session", "session_meta") or (kind == "message" and isinstance(row.get("message"), Mapping)):
        return OpenClawAdapter()
    if kind == "message" and "role" in row:
        return OpenClawAdapter()
    if kind in _CLAUDE_TYPES and ("sessionId" in row or "uuid" in row or "leafUuid" in row or "messageId" in row):
        return ClaudeCodeAdapter()
    return None
