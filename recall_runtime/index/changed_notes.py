"""Notes and curated files that differ from what the index holds, read as changes.

Belongs here: which file is read, and what a file that can't be read leaves behind.
Does not belong here: rows of a note (``index.rows``), the classes of its lines (``provenance``), writing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.index import store
from recall_runtime.index.changes import Change, skipping
from recall_runtime.index.files import FoundFile
from recall_runtime.index.rows import note_instant, note_rows
from recall_runtime.index.store import KnownSource, SourceRow
from recall_runtime.index.sync_report import SyncReport
from recall_runtime.paths import note_day, tier_of
from recall_runtime.provenance.note_lines import ProvenanceHashes, SessionMessages
from recall_runtime.records import Provenance
from recall_runtime.storage.atomic import content_hash
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import OriginClass, SessionKind, Tier


class ChangedNotes:
    """The notes and curated files a sync reads.

    Args:
        agent: Whose files.
        state: The state database, open for writing; transcripts have been read already.
        index: The index, open for writing.
        known: What the index holds, by path.
        report: Where readings, faults and skipped sources are counted.
        files: All files there are.
    """

    def __init__(
        self,
        agent: Agent,
        state: apsw.Connection,
        index: apsw.Connection,
        known: Mapping[str, KnownSource],
        report: SyncReport,
        files: Sequence[FoundFile],
    ) -> None:
        self._agent, self._state, self._index, self._known, self._report = agent, state, index, known, report
        hashes = ProvenanceHashes(state)
        self._changed: list[FoundFile] = []
        for file in files:
            before = known.get(file.path)
            if self._is_changed(file, hashes):
                self._changed.append(file)
            elif before is not None and before.skipped is not None:
                report.skipped[file.path] = before.skipped
        report.unchanged += len(files) - len(self._changed)

    def __len__(self) -> int:
        """Return how many are looked into."""
        return len(self._changed)

    def __iter__(self) -> Iterator[Change]:
        """Read one after the other; those that turn out to be the same bytes under the same records give nothing."""
        return (change for file in self._changed if (change := self._read(file)))

    def _is_changed(self, file: FoundFile, hashes: ProvenanceHashes) -> bool:
        known = self._known.get(file.path)
        if known is None or (known.mtime_ns, known.size) != (file.mtime_ns, file.size):
            return True
        if known.skipped is not None and not known.hash:
            return True  # unreadable or too large last time; it may be otherwise now
        return known.provenance_hash != hashes.of(file.path, known.session_id)

    def _read(self, file: FoundFile) -> Change | None:
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
        limit = self._agent.settings.sources.max_file_bytes
        if file.size > limit:
            return self._skip_once(row, f"too large ({file.size} bytes, limit {limit})", known)
        try:
            data = Path(file.real).read_bytes()
        except OSError as error:
            return self._skip_once(row, f"unreadable ({error.strerror})", known)
        digest = content_hash(data)
        result = note_rows(
            self._state,
            self._agent.workspace,
            file.path,
            data,
            observed_at=note_instant(file.path, file.mtime_ns, self._agent.zone),
            zone=self._agent.zone,
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
        self._report.count_faults({key: value for key, value in result.problems.items() if key != "first_bad_byte"})
        if "first_bad_byte" in result.problems:
            self._report.problems[file.path] = f"not UTF-8 from byte {result.problems['first_bad_byte']}"
        if result.skipped is not None:
            return skipping(self._report, row, result.skipped)
        return Change(row, result.entries)

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

    def _skip_once(self, row: SourceRow, reason: str, known: KnownSource | None) -> Change | None:
        """Name a source that can't be read; write it down only when the index doesn't say so already."""
        change = skipping(self._report, row, reason)
        same = (
            known is not None and known.skipped == reason and (known.mtime_ns, known.size) == (row.mtime_ns, row.size)
        )
        return None if same else change
