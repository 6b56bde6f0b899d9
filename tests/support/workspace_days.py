"""A workspace that lives through days: notes, sessions, recalls and stagings, through the public interfaces.

Belongs here: writing input the way a host or a person does, and reading the resulting rows.
Does not belong here: what staging should make of it (tests/staging).
"""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from memory_assets.gates import GateRow, score
from memory_assets.staging import StagingReport, stage
from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.index.sync import sync
from recall_runtime.notes.writer import append_note
from recall_runtime.signals.recalls import record_external_recall
from recall_runtime.storage.connection import open_reader
from recall_runtime.storage.schema import open_state
from tests.support.sessions import SessionBuilder, agent_at

DIRECT = "agent:main:telegram:direct:owner"


class Days:
    """An agent whose clock is set by each call. Instants are ISO texts."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.agent = agent_at(folder, **({"embedder": {"name": "none"}} | settings))
        self.folder = folder

    def at(self, instant: str) -> Agent:
        """Return the agent at ``instant``."""
        return replace(self.agent, clock=FixedClock(parse_instant(instant)))

    def write(self, path: str, text: str) -> None:
        """Write a file by hand."""
        file = self.agent.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def note(self, instant: str, text: str, session: str, *, key: str = DIRECT, **more: Any) -> None:
        """Append to the note of the day as the agent's session ``session`` does."""
        append_note(self.at(instant), text, session_key=key, session_id=session, **more)

    def session(self, session: SessionBuilder, *, key: str = DIRECT, chat_type: str = "direct") -> None:
        """Save a session and its row in the session store."""
        folder = self.folder / "sessions"
        path = session.save(folder)
        store = folder / "sessions.json"
        known = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {}
        name = key if key not in known else f"{key}:thread:{session.session_id}"
        known[name] = {"sessionId": session.session_id, "sessionFile": path.name, "chatType": chat_type}
        store.write_text(json.dumps(known), encoding="utf-8")

    def says(self, instant: str, session: str, *texts: str, **more: Any) -> None:
        """Save a session in which the owner says ``texts``."""
        builder = SessionBuilder(session, start=parse_instant(instant))
        for text in texts:
            builder.user(text)
        self.session(builder, **more)

    def sync(self, instant: str) -> None:
        """Bring the index up to date."""
        sync(self.at(instant), vectors=False)

    def recall(self, instant: str, query: str, path: str, line: int, hit: float = 0.9, *, key: str = DIRECT) -> None:
        """Record that a search showed one line."""
        result = {"path": path, "startLine": line, "endLine": line, "score": hit}
        record_external_recall(
            self.at(instant), query=query, results=[result], at_ms=parse_instant(instant), session_key=key
        )

    def stage(self, instant: str, *, sweep_id: str | None = None) -> StagingReport:
        """Sync, then stage."""
        self.sync(instant)
        with self.state() as state, contextlib.closing(open_reader(self.agent.folders.index_db)) as index:
            return stage(
                self.at(instant),
                sweep_id=sweep_id or instant,
                now_ms=parse_instant(instant),
                state=state,
                index=index,
            )

    def score(self, instant: str) -> list[GateRow]:
        """Score what was staged."""
        with self.state() as state:
            return score(self.at(instant), sweep_id=instant, now_ms=parse_instant(instant), state=state)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the state database."""
        with self.state() as state:
            return state.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def state(self) -> Any:
        """Open the state database for the body."""
        with contextlib.closing(open_state(self.agent.folders.state_db)) as state:
            assert isinstance(state, apsw.Connection)
            yield state

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return everything staging keeps, for comparisons."""
        tables = ("claims", "evidence", "signals", "phase_signals", "claim_keys", "staged_sources", "watermarks")
        return {table: sorted(self.rows(f"SELECT * FROM {table}"), key=repr) for table in tables}  # noqa: S608 - constant names
