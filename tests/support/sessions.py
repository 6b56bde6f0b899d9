"""Session files in OpenClaw's form, row by row, and an agent that reads them.

Belongs here: building transcripts and agents for tests. Does not belong here: what reading them should give.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.config import Settings
from recall_runtime.paths import AgentFolders

START = parse_instant("2026-03-04T09:00:00Z")
Row = dict[str, Any]


class SessionBuilder:
    """Builds one session; every row is ten seconds after the one before."""

    def __init__(self, session_id: str = "s-1", *, start: int = START, cwd: str = "/home/a/workspace") -> None:
        self.session_id = session_id
        self.now = start
        self.rows: list[Row] = [
            {"type": "session", "version": 3, "id": session_id, "timestamp": self.now, "cwd": cwd},
        ]

    def row(self, kind: str, **values: Any) -> str:
        """Append a row; return its id."""
        self.now += 10_000
        row_id = f"{self.session_id}-{len(self.rows)}"
        parent = self.rows[-1]["id"] if len(self.rows) > 1 else None
        self.rows.append({"type": kind, "id": row_id, "parentId": parent, "timestamp": self.now} | values)
        return row_id

    def user(
        self,
        text: str,
        *,
        owner: bool | None = True,
        provenance: dict[str, Any] | None = None,
        injected: str | None = None,
        parent: str | None = None,
    ) -> str:
        """Append a user message; ``owner=None`` leaves the sender unstated."""
        parts = [{"type": "text", "text": text}]
        if injected is not None:
            parts.insert(0, {"type": "text", "text": injected, "injected": True})  # type: ignore[dict-item]
        message: Row = {"role": "user", "content": parts}
        if provenance is not None:
            message["provenance"] = provenance
        elif owner is not None:
            message["provenance"] = {"kind": "external_user", "sourceChannel": "telegram"}
            message["__openclaw"] = {"senderIsOwner": owner}
        more = {} if parent is None else {"parentId": parent}
        return self.row("message", message=message, **more)

    def assistant(self, text: str = "", *calls: tuple[str, str, Any], parent: str | None = None) -> str:
        """Append an assistant message; a call is (call id, tool name, arguments)."""
        content: list[Row] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "toolCall", "id": i, "name": name, "arguments": args} for i, name, args in calls]
        more = {} if parent is None else {"parentId": parent}
        return self.row("message", message={"role": "assistant", "content": content}, **more)

    def result(self, call_id: str, name: str, text: str, *, details: dict[str, Any] | None = None) -> str:
        """Append the result of a tool call."""
        message: Row = {"role": "toolResult", "toolCallId": call_id, "toolName": name}
        message["content"] = [{"type": "text", "text": text}]
        if details is not None:
            message["details"] = details
        return self.row("message", message=message)

    def tool(self, name: str, arguments: Any, result: str, *, details: dict[str, Any] | None = None) -> None:
        """Append a tool call and its result."""
        call_id = f"call-{len(self.rows)}"
        self.assistant("", (call_id, name, arguments))
        self.result(call_id, name, result, details=details)

    def save(self, folder: Path, name: str | None = None) -> Path:
        """Write the session; return its path."""
        return save_rows(folder / (name or f"{self.session_id}.jsonl"), self.rows)


def save_rows(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def agent_at(folder: Path, *, now: int = START, zone: str = "UTC", **settings: Any) -> Agent:
    """Return an agent with a workspace, a state folder and a session folder below ``folder``."""
    workspace, sessions = folder / "workspace", folder / "sessions"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    sessions.mkdir(exist_ok=True)
    sources = {"session_folders": (sessions,)} | settings.pop("sources", {})
    tree = Settings.model_validate({"timezone": zone, "sources": sources} | settings)
    folders = AgentFolders(folder / "home", "main", workspace, tree.sources.session_folders)
    return Agent(folders, tree, ZoneInfo(zone), FixedClock(now))
