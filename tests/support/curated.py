"""An agent with an empty workspace, and child processes that die at a step of a curated write.

Belongs here: opening such an agent, ending a real process with SIGKILL in the middle of a write.
Does not belong here: what a write should leave behind (tests/curated, tests/consolidation).
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.config import Settings
from recall_runtime.curated.writer import Step
from recall_runtime.paths import AgentFolders

NOW = parse_instant("2026-03-20T03:00:00Z")
ROOT = Path(__file__).resolve().parents[2]


def agent_in(folder: Path, settings: Settings | None = None) -> Agent:
    """Return an agent whose home and workspace lie below ``folder``."""
    workspace = folder / "workspace"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    folders = AgentFolders(home=folder / "home", agent_id="main", workspace=workspace)
    return Agent(folders=folders, settings=settings or Settings(), zone=ZoneInfo("UTC"), clock=FixedClock(NOW))


def die_at(step: Step | None) -> Callable[[Step], None]:
    """Return a hook that ends its own process with SIGKILL at ``step``."""

    def hook(reached: Step) -> None:
        if reached == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def run_child(code: str, *arguments: str) -> int:
    """Run ``code`` in a fresh Python process; return its exit status (``-9`` after SIGKILL)."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def insert_row(connection: apsw.Connection, table: str, how: str = "", **values: Any) -> int:
    """Insert one row (``how``: such as ``OR IGNORE``) and return its rowid."""
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    statement = f"INSERT {how} INTO {table}({columns}) VALUES ({marks})"  # noqa: S608 - names are ours, values are bound
    connection.execute(statement, list(values.values()))
    return connection.last_insert_rowid()


def insert_claim(connection: apsw.Connection, claim_id: str, text: str, **more: Any) -> None:
    """Insert a waiting claim of an interactive session, without evidence."""
    row: dict[str, Any] = {"claim_id": claim_id, "root_id": claim_id, "text": text, "kind": "fact"}
    row |= {"origin_class": "agent", "session_kind": "interactive", "first_seen_at": NOW, "last_seen_at": NOW}
    insert_row(connection, "claims", **(row | more))
