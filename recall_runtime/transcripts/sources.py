"""Finding the transcripts of an agent, and deciding before reading whether one may be read.

Belongs here: session folders, file names, ``sessions.json``, tombstones, the admission policy.
Does not belong here: reading (``reader``), storing (``ingest``).
"""

import contextlib
import functools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.config import ExcludeSessions
from recall_runtime.paths import SESSIONS_PREFIX
from recall_runtime.provenance.sessions import SessionFacts, classify_session, full_key, read_session_store
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.storage.connection import query
from recall_runtime.transcripts.timestamps import instant_of
from recall_runtime.vocabulary import ChatType, SessionKind

SESSION_STORE = "sessions.json"
_TRANSCRIPT = re.compile(r"(?P<id>[^/]+?)(?:-topic-[^/.]+)?\.jsonl(?:\.(?:reset|deleted)\.[^/]+)?")
_CHECKPOINT = re.compile(r".+\.checkpoint\.[^/]+\.jsonl")
_FIRST_ROW_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """One transcript on disk. ``excluded_reason``: why it must not be read, or ``None``."""

    location: str
    name: str
    facts: SessionFacts
    size: int
    mtime_ns: int
    excluded_reason: str | None = None

    @property
    def path(self) -> Path:
        """Where the file lies; made when it is read, because most files of a sync are only looked at."""
        return Path(self.location)


def list_transcripts(agent: Agent, state: apsw.Connection | None = None) -> tuple[TranscriptFile, ...]:
    """Return all transcripts in the agent's session folders, by name.

    Reset and deleted archives of this installation are the owner's own sessions and are listed like live ones;
    checkpoint copies, locks and compressed archives are not. Folders of sub-folders (Claude Code's projects, Codex's
    dates) are walked; a folder that can't be read, or is missing, gives nothing. Facts come from ``sessions.json``
    beside the files and from what ``state`` remembers of earlier readings, because ``sessions.json`` forgets.
    """
    remembered = _remembered(state) if state is not None else {}
    tombstones = _tombstones(state) if state is not None else frozenset()
    policy = agent.settings.sources.exclude_sessions
    stores = _Stores()
    found: dict[str, TranscriptFile] = {}
    for folder in agent.folders.sessions:
        for beside, item, inside in _files(folder):
            name = f"{SESSIONS_PREFIX}/{agent.folders.agent_id}/{inside}"
            session_id = session_id_of(item.name)
            facts = stores.of(beside).get(session_id)
            if facts is None:
                known = remembered.get(name)
                facts = _facts_of(*known) if known else SessionFacts(session_id=session_id)
            status = item.stat()
            reason = exclusion(facts, policy, tombstones)
            found.setdefault(name, TranscriptFile(item.path, name, facts, status.st_size, status.st_mtime_ns, reason))
    return tuple(found[name] for name in sorted(found))


def in_order_of_time(files: Iterable[TranscriptFile]) -> list[TranscriptFile]:
    """Return ``files`` by the time in their first row, so that what a session recalls was written before.

    A file without one is placed by the time of the file.
    """
    return sorted(files, key=lambda file: (_started_at(file), file.name))


def _started_at(file: TranscriptFile) -> int:
    with contextlib.suppress(OSError, ValueError, RecursionError), file.path.open("rb") as stream:
        row = json.loads(stream.readline(_FIRST_ROW_BYTES))
        if isinstance(row, dict):
            started = instant_of(row.get("timestamp"), row.get("created_at_ms"))
            if started is not None:
                return started
    return file.mtime_ns // 1_000_000


def session_id_of(file_name: str) -> str:
    """Return the session id in a transcript's file name."""
    match = _TRANSCRIPT.fullmatch(file_name)
    return match["id"] if match else file_name


def exclusion(facts: SessionFacts, policy: ExcludeSessions, tombstones: Iterable[str] = ()) -> str | None:
    """Return why a session must not be read: forgotten first, then hook source, channel, chat type.

    Values are compared exactly; what is not known never matches (openclaw-facts 18.1).
    """
    if facts.session_id is not None and facts.session_id in tombstones:
        return "forgotten"
    if facts.hook_source is not None and facts.hook_source in policy.hook_sources:
        return f"hookExternalContentSource:{facts.hook_source}"
    if facts.channel is not None and facts.channel in policy.channels:
        return f"channel:{facts.channel}"
    if facts.chat_type.value in policy.chat_types:
        return f"chatType:{facts.chat_type.value}"
    return None


def find_session(agent: Agent, session_key: str | None, session_id: str | None) -> tuple[Path, SessionFacts] | None:
    """Return the live transcript of a session, with its facts, or ``None`` when there is none.

    The session id names the file; with the key alone ``sessions.json`` says which id it has now.
    """
    stores = _Stores()
    for folder in agent.folders.sessions:
        if session_id is None:
            known = stores.of(folder).values()
            match = next((facts for facts in known if _is_of(facts, session_key, agent.folders.agent_id)), None)
            session_id = match.session_id if match is not None else None
        if session_id is None or "/" in session_id or "\\" in session_id:
            continue
        for candidate in sorted(folder.glob(f"{_escaped(session_id)}*.jsonl*")):
            if session_id_of(candidate.name) == session_id and candidate.is_file():
                facts = stores.of(candidate.parent).get(session_id)
                return candidate, facts or classify_session(session_id, session_key)
    return None


def _is_of(facts: SessionFacts, session_key: str | None, agent_id: str) -> bool:
    if facts.session_key is None or session_key is None:
        return False
    return full_key(facts.session_key, agent_id) == full_key(session_key, agent_id)


def _escaped(session_id: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", session_id)


def _files(folder: Path, prefix: str = "") -> Iterator[tuple[Path, "os.DirEntry[str]", str]]:
    """Yield the transcripts in and below ``folder``: their folder, the file, its path inside the first folder.

    Links to folders are not followed.
    """
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda item: item.name)
    except OSError:
        return
    for item in entries:
        with contextlib.suppress(OSError):
            if item.is_dir(follow_symlinks=False):
                yield from _files(Path(item.path), f"{prefix}{item.name}/")
            elif _is_transcript(item.name) and item.is_file():
                yield folder, item, prefix + item.name


def _is_transcript(name: str) -> bool:
    if ".jsonl" not in name or name.endswith((".lock", ".zst", ".gz")) or _CHECKPOINT.fullmatch(name):
        return False
    return _TRANSCRIPT.fullmatch(name) is not None


class _Stores:
    """The ``sessions.json`` of each folder, parsed once."""

    def __init__(self) -> None:
        self._by_folder: dict[str, Mapping[str, SessionFacts]] = {}

    def of(self, folder: str | Path) -> Mapping[str, SessionFacts]:
        """Return the facts in the store of ``folder``, by session id; a store that can't be read gives none."""
        name = str(folder)
        if name not in self._by_folder:
            try:
                data = read_bytes(Path(folder) / SESSION_STORE) or b""
            except OSError:
                data = b""
            self._by_folder[name] = read_session_store(data)
        return self._by_folder[name]


def _remembered(state: apsw.Connection) -> dict[str, list[Any]]:
    """Return what was stored of the sessions of earlier readings, by name: columns for ``_facts_of``."""
    rows = query(
        state,
        "SELECT path, session_id, session_key, session_kind, chat_type, channel, hook_source FROM transcripts"
        " WHERE coalesce(session_key, channel, hook_source) IS NOT NULL OR chat_type <> 'unknown'",
    )
    return {path: columns for path, *columns in rows}


@functools.lru_cache(maxsize=65_536)
def _facts_of(
    session_id: str | None, key: str | None, kind: str, chat: str, channel: str | None, hook_source: str | None
) -> SessionFacts:
    """Return stored facts as a record. They are asked for at every sync and hardly ever change."""
    return replace(
        classify_session(session_id, key),
        kind=SessionKind(kind),
        chat_type=ChatType(chat),
        channel=channel,
        hook_source=hook_source,
    )


def _tombstones(state: apsw.Connection) -> frozenset[str]:
    return frozenset(session_id for (session_id,) in state.execute("SELECT session_id FROM tombstones"))
