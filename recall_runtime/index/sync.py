"""Bringing the index up to date with the files.

Belongs here: the order of a sync (transcripts, notes, vectors), what is gone, building beside and swapping.
Does not belong here: what changed (``index.changed_notes``, ``index.changed_transcripts``), writing it
(``index.changes``), comparing only (``index.freshness``).

A sync that finds nothing changed writes nothing. One bad source is named and counted, and the others go on. Sources are
written a few at a time in short transactions; readers always see whole sources.
"""

import contextlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError
from recall_runtime.index import store
from recall_runtime.index.changed_notes import ChangedNotes
from recall_runtime.index.changed_transcripts import ChangedTranscripts
from recall_runtime.index.changes import write_changes
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.embedding import embed_missing, identity_changed, note_outcome
from recall_runtime.index.files import find_files
from recall_runtime.index.sync_report import Progress, SyncReport
from recall_runtime.storage.binding import claim_state, is_own_index, name_index
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_index, open_state
from recall_runtime.transcripts.sources import list_transcripts

LOCK_WAIT_SECONDS = 10.0


def sync(
    agent: Agent,
    *,
    force: bool = False,
    progress: Progress | None = None,
    vectors: bool = True,
    embedder: Embedder | None = None,
) -> SyncReport:
    """Bring the index of ``agent`` up to date.

    Args:
        agent: Whose files are read.
        force: Build a new index beside the old one and swap; the same happens when the embedder or the way of
            cutting changed, or the index is of another workspace.
        progress: Called with (stage, done, total).
        vectors: Whether vectors are made too.
        embedder: The embedder; by default the one of the settings.

    Raises:
        StoreLockedError: another sync runs for longer than we wait.
        StoreError: a database can't be used.
        EmbedderError: the named embedder isn't installed or not wholly configured. One that nobody named degrades: the
            report says why there are no vectors.
        WorkspaceError: the state is of another workspace.
    """
    missing = None
    if embedder is None and vectors:
        embedder, missing = _embedder(agent)
    home = agent.folders.agent_home
    with (
        exclusive(home / "index.lock", what="Index sync", wait_seconds=LOCK_WAIT_SECONDS),
        contextlib.closing(open_state(agent.folders.state_db)) as state,
        contextlib.closing(open_index(agent.folders.index_db)) as index,
    ):
        claim_state(agent.folders, state)
        own = is_own_index(agent.folders, index)
        if force or not own or identity_changed(index, embedder if vectors else None):
            report = _rebuild(agent, state, index, embedder if vectors else None, progress)
        else:
            report = _Sync(agent, state, index, embedder if vectors else None, progress).run()
    return replace(report, vector_error=missing) if missing else report


def _embedder(agent: Agent) -> tuple[Embedder | None, str | None]:
    """Return the embedder of the settings, and why there is none where nobody named one.

    Raises:
        EmbedderError: the named embedder can't be used.
    """
    try:
        return resolve(agent.settings.embedder), None
    except EmbedderError as error:
        if agent.settings.embedder.is_named:
            raise
        return None, str(error)


def _rebuild(
    agent: Agent, state: apsw.Connection, live: apsw.Connection, embedder: Embedder | None, progress: Progress | None
) -> SyncReport:
    """Build a new index beside the live one, then take it over in one transaction that readers see as one step."""
    beside = agent.folders.index_db.with_suffix(".building.sqlite")
    _remove_database(beside)
    with contextlib.closing(open_index(beside)) as fresh:
        _carry_over(live, fresh, embedder)
        report = _Sync(agent, state, fresh, embedder, progress).run()
        with write_transaction(fresh):
            old = int(store.get_meta(live, "revision") or 0)
            store.set_meta(fresh, "revision", str(old + int(store.get_meta(fresh, "revision") or 0) + 1))
        with live.backup("main", fresh, "main") as backup:
            backup.step(-1)
    _remove_database(beside)
    list(live.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    return replace(report, rebuilt=True, changed=True)


def _carry_over(live: apsw.Connection, fresh: apsw.Connection, embedder: Embedder | None) -> None:
    """Take along what may be kept: the cache of this embedder, and the next entry number, which is never used again."""
    with write_transaction(fresh):
        store.set_meta(fresh, "next_entry_id", store.get_meta(live, "next_entry_id") or "1")
        if embedder is not None:
            fresh.executemany(
                "INSERT INTO embedding_cache(identity, text_hash, vector, used_at) VALUES (?, ?, ?, ?)",
                live.execute(
                    "SELECT identity, text_hash, vector, used_at FROM embedding_cache WHERE identity = ?",
                    (embedder.identity,),
                ),
            )


def _remove_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class _Sync:
    """One sync into one index database."""

    def __init__(
        self,
        agent: Agent,
        state: apsw.Connection,
        index: apsw.Connection,
        embedder: Embedder | None,
        progress: Progress | None,
    ) -> None:
        self._agent, self._state, self._index, self._embedder = agent, state, index, embedder
        self._progress = progress or (lambda stage, done, total: None)
        self._known = store.known_sources(index)
        self._report = SyncReport()

    def run(self) -> SyncReport:
        """Read what changed and write it."""
        name_index(self._agent.folders, self._index)
        before = self._index.total_changes()
        if store.get_meta(self._index, "chunking") is None:
            with write_transaction(self._index):
                store.set_meta(self._index, "chunking", store.CHUNKING_VERSION)
        transcripts = list_transcripts(self._agent, self._state)
        found = find_files(self._agent.workspace)
        self._report.problems.update(found.problems)
        self._report.ignored.update(found.ignored)
        self._remove_missing({file.name for file in transcripts} | {file.path for file in found.files})
        self._write("transcripts", ChangedTranscripts(self._agent, self._state, self._known, self._report, transcripts))
        self._write(
            "notes", ChangedNotes(self._agent, self._state, self._index, self._known, self._report, found.files)
        )
        if self._embedder is not None:
            self._make_vectors(self._embedder)
        self._report.changed = self._index.total_changes() != before
        if self._embedder is not None:
            report = self._report
            note_outcome(self._index, report.vector_error, report.vectors_made, self._agent.clock.now_ms())
        return self._report

    def _remove_missing(self, present: Collection[str]) -> None:
        gone = sorted(path for path in self._known if path not in present)
        if not gone:
            return
        with write_transaction(self._index):
            for path in gone:
                store.delete_source(self._index, path)
                del self._known[path]
            store.bump_revision(self._index)
        self._report.removed = len(gone)

    def _write(self, stage: str, changes: ChangedTranscripts | ChangedNotes) -> None:
        if len(changes):
            write_changes(
                self._state,
                self._index,
                changes,
                report=self._report,
                on_batch=lambda done: self._progress(stage, done, len(changes)),
            )

    def _make_vectors(self, embedder: Embedder) -> None:
        try:
            result = embed_missing(
                self._index,
                embedder,
                now_ms=self._agent.clock.now_ms(),
                cache_entries=self._agent.settings.embedder.cache_entries,
                progress=lambda done, total: self._progress("vectors", done, total),
            )
        except EmbedderError as error:
            self._report.vector_error = str(error)
            return
        self._report.vectors_made = result.made
        self._report.vectors_refused = result.refused
        self._report.vector_error = result.error
