"""Bringing the index up to date with the files.

Belongs here: the order of a sync (transcripts, notes, vectors), what changed, building beside and swapping.
Does not belong here: rows (``index.rows``), their SQL (``index.store``), comparing only (``index.freshness``).

A sync that finds nothing changed writes nothing. One bad source is named and counted, and the others go on. Sources are
written a few at a time in short transactions; readers always see whole sources.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError
from recall_runtime.index import store
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.embedding import embed_missing, identity_changed
from recall_runtime.index.files import FoundFile, find_files
from recall_runtime.index.rows import message_rows, note_instant, note_rows, transcript_policy_hash
from recall_runtime.index.store import EntryRow, KnownSource, SourceRow
from recall_runtime.paths import PathKind, note_day, tier_of
from recall_runtime.provenance.note_lines import RecalledOrigins, SessionMessages, provenance_hash
from recall_runtime.records import Provenance
from recall_runtime.storage.atomic import content_hash
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_index, open_state
from recall_runtime.transcripts.ingest import record_exclusion, record_reading
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.transcripts.sources import TranscriptFile, in_order_of_time, list_transcripts
from recall_runtime.vocabulary import OriginClass, SessionKind, Tier

Progress = Callable[[str, int, int], None]  # stage, done, total
LOCK_WAIT_SECONDS = 10.0
_BATCH_ENTRIES = 2_000  # of one transaction
_BATCH_SECONDS = 0.5


@dataclass(slots=True)
class SyncReport:
    """What a sync did.

    ``skipped`` and ``problems`` name every source that isn't indexed, or not wholly, with the reason. ``vector_error``
    says why vectors are missing; the keyword lane answers all the same. ``changed`` tells whether anything was written.
    """

    transcripts_read: int = 0
    notes_read: int = 0
    unchanged: int = 0
    removed: int = 0
    entries_written: int = 0
    vectors_made: int = 0
    vectors_refused: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    rebuilt: bool = False
    vector_error: str | None = None
    changed: bool = False


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
            cutting changed.
        progress: Called with (stage, done, total).
        vectors: Whether vectors are made too.
        embedder: The embedder; by default the one of the settings.

    Raises:
        StoreLockedError: another sync runs for longer than we wait.
        StoreError: a database can't be used.
        EmbedderError: the named embedder isn't installed or not wholly configured.
    """
    if embedder is None and vectors:
        embedder = resolve(agent.settings.embedder)
    home = agent.folders.agent_home
    with (
        exclusive(home / "index.lock", what="Index sync", wait_seconds=LOCK_WAIT_SECONDS),
        contextlib.closing(open_state(agent.folders.state_db)) as state,
        contextlib.closing(open_index(agent.folders.index_db)) as index,
    ):
        if force or identity_changed(index, embedder if vectors else None):
            return _rebuild(agent, state, index, embedder if vectors else None, progress)
        return _Sync(agent, state, index, embedder if vectors else None, progress).run()


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


@dataclass(frozen=True, slots=True)
class _Change:
    """One source to be written: replaced, or grown by ``entries``."""

    source: SourceRow
    entries: Sequence[EntryRow]
    grown: bool = False


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
        self._settings = agent.settings.sources
        self._known = store.known_sources(index)
        self._report = SyncReport()

    def run(self) -> SyncReport:
        """Read what changed and write it."""
        before = self._index.total_changes()
        if store.get_meta(self._index, "chunking") is None:
            with write_transaction(self._index):
                store.set_meta(self._index, "chunking", store.CHUNKING_VERSION)
        transcripts = list_transcripts(self._agent, self._state)
        found = find_files(self._agent.workspace)
        self._report.problems.update(found.problems)
        self._report.ignored.update(found.ignored)
        self._remove_missing({file.name for file in transcripts} | {file.path for file in found.files})
        self._take_transcripts(transcripts)
        self._take_notes(found.files)
        if self._embedder is not None:
            self._make_vectors(self._embedder)
        self._report.changed = self._index.total_changes() != before
        return self._report

    # -- what is gone

    def _remove_missing(self, present: set[str]) -> None:
        gone = sorted(set(self._known) - present)
        if not gone:
            return
        with write_transaction(self._index):
            for path in gone:
                store.delete_source(self._index, path)
                del self._known[path]
            store.bump_revision(self._index)
        self._report.removed = len(gone)

    # -- transcripts

    def _take_transcripts(self, files: Sequence[TranscriptFile]) -> None:
        policies = {file.name: transcript_policy_hash(file, self._settings) for file in files}
        changed = [file for file in files if self._transcript_changed(file, policies[file.name])]
        self._report.unchanged += len(files) - len(changed)
        for file in files:
            self._note_skipped(self._known.get(file.name))
        changes = (self._transcript_change(file, policies[file.name]) for file in in_order_of_time(changed))
        self._write("transcripts", len(changed), changes)

    def _transcript_changed(self, file: TranscriptFile, policy: str) -> bool:
        known = self._known.get(file.name)
        return known is None or (known.mtime_ns, known.size, known.provenance_hash) != (
            file.mtime_ns,
            file.size,
            policy,
        )

    def _transcript_change(self, file: TranscriptFile, policy: str) -> _Change:
        known = self._known.get(file.name)
        row = SourceRow(
            path=file.name,
            kind=PathKind.TRANSCRIPT,
            tier=Tier.SESSIONS,
            day=None,
            hash="",
            provenance_hash=policy,
            mtime_ns=file.mtime_ns,
            size=file.size,
            session_id=file.facts.session_id,
            session_key=file.facts.session_key,
            session_kind=file.facts.kind.value,
            chat_type=file.facts.chat_type.value,
        )
        if file.excluded_reason is not None:
            record_exclusion(self._state, file.name, file.facts, file.excluded_reason, self._agent.clock.now_ms())
            return self._skip(row, file.excluded_reason)
        resumable = known is not None and known.provenance_hash == policy and known.skipped is None
        try:
            reading = read_transcript(
                file.path,
                file.name,
                facts=file.facts,
                settings=self._settings,
                from_offset=known.read_to if known is not None and resumable else 0,
                expected_prefix_hash=known.hash if known is not None and resumable else "",
                recalled=RecalledOrigins(self._state),
            )
        except OSError as error:
            return self._skip(row, f"unreadable ({error.strerror})")
        record_reading(self._state, reading, self._agent.clock.now_ms())
        self._report.transcripts_read += 1
        self._count(reading.faults)
        row = replace(
            row,
            hash=reading.prefix_hash,
            read_to=reading.read_to,
            session_id=reading.facts.session_id,
            session_key=reading.facts.session_key,
            session_kind=reading.facts.kind.value,
            chat_type=reading.facts.chat_type.value,
            problems={**reading.faults, **{f"held_back:{key}": value for key, value in reading.held_back.items()}},
        )
        if reading.excluded_reason is not None:
            return self._skip(row, reading.excluded_reason)
        return _Change(row, message_rows(reading.messages), grown=reading.resumed_from > 0)

    # -- notes

    def _take_notes(self, files: Sequence[FoundFile]) -> None:
        changed = [file for file in files if self._note_changed(file)]
        self._report.unchanged += len(files) - len(changed)
        for file in files:
            self._note_skipped(self._known.get(file.path))
        self._write("notes", len(changed), (change for file in changed if (change := self._note_change(file))))

    def _note_changed(self, file: FoundFile) -> bool:
        known = self._known.get(file.path)
        if known is None or (known.mtime_ns, known.size) != (file.mtime_ns, file.size):
            return True
        if known.skipped is not None and not known.hash:
            return True  # unreadable or too large last time; it may be otherwise now
        return known.provenance_hash != provenance_hash(self._state, file.path, known.session_id)

    def _note_change(self, file: FoundFile) -> _Change | None:
        known = self._known.get(file.path)
        tier = tier_of(file.path)
        assert tier is not None  # noqa: S101 - find_files gives only files that have one
        day = note_day(file.path)
        row = SourceRow(
            path=file.path,
            kind=file.kind,
            tier=tier,
            day=day.isoformat() if day and tier is not Tier.CURATED else None,
            hash="",
            provenance_hash="",
            mtime_ns=file.mtime_ns,
            size=file.size,
        )
        if file.size > self._settings.max_file_bytes:
            reason = f"too large ({file.size} bytes, limit {self._settings.max_file_bytes})"
            return self._skip_once(row, reason, known)
        try:
            data = file.real.read_bytes()
        except OSError as error:
            return self._skip_once(row, f"unreadable ({error.strerror})", known)
        digest = content_hash(data)
        result = note_rows(
            self._state,
            self._agent.workspace,
            file.path,
            data,
            observed_at=note_instant(file.path, file.mtime_ns, self._agent.zone),
            messages=SessionMessages(self._messages_of),
        )
        if known is not None and (known.hash, known.provenance_hash) == (digest, result.provenance_hash):
            with write_transaction(self._index):
                store.touch_source(self._index, known.source_id, file.mtime_ns, file.size)
            self._report.unchanged += 1
            return None
        self._report.notes_read += 1
        row = replace(
            row,
            hash=digest,
            provenance_hash=result.provenance_hash,
            session_id=result.session_id,
            problems=result.problems,
        )
        self._count({key: value for key, value in result.problems.items() if key != "first_bad_byte"})
        if "first_bad_byte" in result.problems:
            self._report.problems[file.path] = f"not UTF-8 from byte {result.problems['first_bad_byte']}"
        if result.skipped is not None:
            return self._skip(row, result.skipped)
        return _Change(row, result.entries)

    def _messages_of(self, session_id: str) -> Iterable[tuple[str, Provenance, bool]] | None:
        """Return the texts of a session that is indexed already, for the lines of its dump."""
        rows = list(
            self._index.execute(
                "SELECT text, origin_class, session_kind, observed_at, recalled FROM entries"
                " WHERE session_id = ? AND block = 'message' ORDER BY source_id, ordinal",
                (session_id,),
            )
        )
        if not rows:
            return None
        return [
            (text, Provenance(OriginClass(origin), SessionKind(kind), observed_at, session_id), bool(recalled))
            for text, origin, kind, observed_at, recalled in rows
        ]

    def _count(self, faults: Mapping[str, int]) -> None:
        for kind, count in faults.items():
            self._report.faults[kind] = self._report.faults.get(kind, 0) + count

    # -- skipping

    def _skip(self, row: SourceRow, reason: str) -> _Change:
        self._report.skipped[row.path] = reason
        return _Change(replace(row, skipped=reason), ())

    def _skip_once(self, row: SourceRow, reason: str, known: KnownSource | None) -> _Change | None:
        """Name a source that can't be read; write it down only when the index doesn't say so already."""
        self._report.skipped[row.path] = reason
        same = (
            known is not None and known.skipped == reason and (known.mtime_ns, known.size) == (row.mtime_ns, row.size)
        )
        return None if same else _Change(replace(row, skipped=reason), ())

    def _note_skipped(self, known: KnownSource | None) -> None:
        if known is not None and known.skipped is not None:
            self._report.skipped[known.path] = known.skipped

    # -- writing

    def _write(self, stage: str, total: int, changes: Iterable[_Change]) -> None:
        """Write ``changes`` a few at a time. What the readings report of writes is stored before the rows are."""
        done = 0
        for batch in self._batches(changes):
            with write_transaction(self._index):
                for change in batch:
                    write = store.append_to_source if change.grown else store.write_source
                    write(self._index, change.source, change.entries)
                    self._report.entries_written += len(change.entries)
                store.bump_revision(self._index)
            done += len(batch)
            self._progress(stage, done, total)

    def _batches(self, changes: Iterable[_Change]) -> Iterator[list[_Change]]:
        """Yield changes in batches; the state database holds one transaction a batch, committed before its rows."""
        iterator = iter(changes)
        while True:
            batch: list[_Change] = []
            entries, started = 0, time.monotonic()
            with write_transaction(self._state):
                for change in iterator:
                    batch.append(change)
                    entries += len(change.entries)
                    if entries >= _BATCH_ENTRIES or time.monotonic() - started >= _BATCH_SECONDS:
                        break
            if not batch:
                return
            yield batch

    # -- vectors

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
