"""Taking over the history of an OpenClaw workspace.

Belongs here: recall history, discovery of session folders, counts of what the files themselves already carry.
Does not belong here: transcripts and notes, which are read where they lie; curated files, which are kept as they are.

The source is only read. Adopting twice adds nothing.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import SourceError
from recall_runtime.imports.history import RecallHistory, read_history
from recall_runtime.imports.intents import adopt_intents
from recall_runtime.notes.markers import promotion_key
from recall_runtime.paths import MEMORY_FILE
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import open_state
from recall_runtime.text.lines import read_lines
from recall_runtime.vocabulary import SessionKind

ADOPTED_KEY = "adopted:openclaw"
_LANE = "search"


@dataclass(frozen=True, slots=True)
class OpenClawHome:
    """Where the parts of an installation lie: its workspace, and the folders of its transcripts."""

    workspace: Path
    session_folders: tuple[Path, ...]
    databases: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """What was found and taken over.

    ``skipped`` counts by reason: own_bookkeeping, not_memory, damaged, already_adopted, unreadable_file.
    ``promotions`` are promotion markers in ``MEMORY.md``; they stay where they are and are read from there.
    """

    home: OpenClawHome
    recall_events: int
    recall_hits: int
    intents: int
    promotions: int
    skipped: Mapping[str, int]


def find_home(source: Path, agent_id: str) -> OpenClawHome:
    """Return the parts of the installation or workspace in ``source``.

    ``source`` is the home (``~/.openclaw``), the folder above it, or a workspace. ``openclaw.json`` may name another
    workspace.

    Raises:
        SourceError: there is no workspace in it.
    """
    source = source.expanduser().resolve()
    homes = [folder for folder in (source, source / ".openclaw", source.parent) if folder.is_dir()]
    workspace = next((folder for folder in _workspaces(source) if _is_workspace(folder)), None)
    if workspace is None:
        raise SourceError(f"{source} holds no OpenClaw workspace", "Give the folder that holds MEMORY.md and memory/.")
    agent_folders = [home / "agents" / agent_id for home in homes]
    sessions = tuple(folder / "sessions" for folder in agent_folders if (folder / "sessions").is_dir())
    databases = tuple(file for folder in agent_folders for file in sorted(folder.glob("agent/*.sqlite")))
    return OpenClawHome(workspace, sessions[:1], databases)


def _workspaces(source: Path) -> Iterator[Path]:
    yield source
    for home in (source, source / ".openclaw"):
        yield home / "workspace"
        named = _configured_workspace(home / "openclaw.json")
        if named is not None:
            yield named


def _configured_workspace(file: Path) -> Path | None:
    try:
        tree = json.loads(read_bytes(file) or b"{}")
        return Path(tree["agents"]["defaults"]["workspace"]).expanduser()
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        return None


def _is_workspace(folder: Path) -> bool:
    return (folder / MEMORY_FILE).is_file() or (folder / "memory").is_dir()


def adopt_openclaw(agent: Agent, source: Path, *, dry_run: bool = False) -> AdoptionReport:
    """Take over recall history and standing intents of the OpenClaw installation in ``source``.

    The agent's own workspace is not touched; when it is another folder than the source's, the anchors of the history
    hold only once the notes lie there too. Session folders are reported, not configured: settings are the caller's.

    Raises:
        SourceError: there is no workspace in ``source``.
        StoreLockedError: the state database is busy.
    """
    home = find_home(source, agent.folders.agent_id)
    history = read_history(home.workspace, agent.zone)
    skipped = Counter(history.skipped)
    events = hits = intents = 0
    if dry_run:
        events, hits = len(history.events), sum(len(event.hits) for event in history.events)
    else:
        state = open_state(agent.folders.state_db)
        try:
            with write_transaction(state):
                events, hits = _store(state, history, skipped)
                intents = adopt_intents(state, home.databases, skipped)
        finally:
            state.close()
    return AdoptionReport(home, events, hits, intents, _promotions(home.workspace), dict(+skipped))


def _store(state: apsw.Connection, history: RecallHistory, skipped: Counter[str]) -> tuple[int, int]:
    known: set[tuple[Any, ...]] = set(
        state.execute("SELECT at, query_hash FROM recall_events WHERE session_key = ?", (ADOPTED_KEY,))
    )
    events = hits = 0
    for event in history.events:
        if (event.at, event.query_hash) in known:
            skipped["already_adopted"] += 1
            continue
        known.add((event.at, event.query_hash))
        state.execute(
            "INSERT INTO recall_events (at, day, query, query_hash, session_key, session_kind, lane)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (event.at, event.day, event.query, event.query_hash, ADOPTED_KEY, SessionKind.INTERACTIVE.value, _LANE),
        )
        event_id = state.last_insert_rowid()
        state.executemany(
            "INSERT INTO recall_hits (event_id, rank, path, start_line, end_line, score, text, origin_class)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (event_id, rank, hit.path, hit.start_line, hit.end_line, hit.score, hit.text, hit.origin_class.value)
                for rank, hit in enumerate(event.hits, start=1)
            ),
        )
        events += 1
        hits += len(event.hits)
    return events, hits


def _promotions(workspace: Path) -> int:
    data = read_bytes(workspace / MEMORY_FILE) or b""
    return sum(promotion_key(line.text) is not None for line in read_lines(data).lines)
