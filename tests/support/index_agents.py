"""Agents over small workspaces, for tests of the index, search and signals."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant, zone_of
from recall_runtime.config import Settings
from recall_runtime.paths import AgentFolders

NOW = parse_instant("2026-03-20T12:00:00Z")


def agent_over(
    workspace: Path,
    home: Path,
    *,
    now_ms: int = NOW,
    settings: Mapping[str, Any] | None = None,
    sessions: Path | None = None,
) -> Agent:
    """Return an agent over ``workspace``; without settings the keyword lane alone."""
    tree = {"embedder": {"name": "none"}, **(settings or {})}
    folders = AgentFolders(home, "main", workspace, (sessions,) if sessions else ())
    return Agent(folders, Settings.model_validate(tree), zone_of("UTC"), FixedClock(now_ms))


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write ``files`` below ``root`` and return it."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def write_session(
    folder: Path, session_id: str, messages: Sequence[tuple[str, str]], *, key: str = "agent:main:main"
) -> Path:
    """Write (or rewrite) one OpenClaw session with (role, text) messages, and its row in ``sessions.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = [{"type": "session", "id": session_id, "timestamp": "2026-03-19T08:00:00.000Z"}]
    for number, (role, text) in enumerate(messages):
        rows.append(
            {
                "type": "message",
                "id": f"{session_id}-{number}",
                "parentId": f"{session_id}-{number - 1}" if number else None,
                "timestamp": f"2026-03-19T08:{number % 60:02d}:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
        )
    path = folder / f"{session_id}.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    store = folder / "sessions.json"
    known = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
    known[key if key not in known or known[key]["sessionId"] == session_id else f"{key}:thread:{session_id}"] = {
        "sessionId": session_id
    }
    store.write_text(json.dumps(known), encoding="utf-8")
    return path


def read_a_page(session: Path) -> None:
    """Let the agent of a session with one message read a web page in that turn."""
    call = {"type": "toolCall", "id": "c1", "name": "web_fetch", "arguments": {"url": "https://example.org"}}
    result = {"toolCallId": "c1", "toolName": "web_fetch", "content": [{"type": "text", "text": "x"}]}
    messages = ({"role": "assistant", "content": [call]}, {"role": "toolResult", **result})
    with session.open("a", encoding="utf-8") as stream:
        for number, message in enumerate(messages, start=1):
            row = {
                "type": "message",
                "id": f"{session.stem}-{number}",
                "parentId": f"{session.stem}-{number - 1}",
                "timestamp": f"2026-03-19T08:0{number}:00.000Z",
                "message": message,
            }
            stream.write(json.dumps(row) + "\n")
