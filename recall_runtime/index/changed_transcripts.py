"""Transcripts that differ from what the index holds, read as changes.

Belongs here: which transcript is read, from which byte, under which policy.
Does not belong here: reading a transcript (``recall_runtime.transcripts``), writing rows (``index.changes``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import apsw

from recall_runtime.agent import Agent
from recall_runtime.index.changes import Change, skipping
from recall_runtime.index.rows import message_rows, transcript_policy_hash
from recall_runtime.index.store import KnownSource, SourceRow
from recall_runtime.index.sync_report import SyncReport
from recall_runtime.paths import PathKind
from recall_runtime.provenance.note_lines import RecalledOrigins
from recall_runtime.transcripts.ingest import record_exclusion, record_reading
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.transcripts.sources import TranscriptFile, in_order_of_time
from recall_runtime.vocabulary import Tier


class ChangedTranscripts:
    """The transcripts a sync reads.

    Args:
        agent: Whose transcripts.
        state: The state database, open for writing.
        known: What the index holds, by name.
        report: Where readings, faults and skipped sources are counted.
        files: All transcripts there are.
    """

    def __init__(
        self,
        agent: Agent,
        state: apsw.Connection,
        known: Mapping[str, KnownSource],
        report: SyncReport,
        files: Sequence[TranscriptFile],
    ) -> None:
        self._agent, self._state, self._known, self._report = agent, state, known, report
        self._settings = agent.settings.sources
        settings = self._settings.model_dump_json()
        self._policies = {
            file.name: transcript_policy_hash(file.facts, file.excluded_reason, settings) for file in files
        }
        self._changed: list[TranscriptFile] = []
        for file in files:
            before = known.get(file.name)
            if self._is_changed(file):
                self._changed.append(file)
            elif before is not None and before.skipped is not None:
                report.skipped[file.name] = before.skipped
        report.unchanged += len(files) - len(self._changed)

    def __len__(self) -> int:
        """Return how many are read."""
        return len(self._changed)

    def __iter__(self) -> Iterator[Change]:
        """Read one after the other, in the order in which they were begun."""
        return (self._read(file) for file in in_order_of_time(self._changed))

    def _is_changed(self, file: TranscriptFile) -> bool:
        known = self._known.get(file.name)
        return known is None or (known.mtime_ns, known.size, known.provenance_hash) != (
            file.mtime_ns,
            file.size,
            self._policies[file.name],
        )

    def _read(self, file: TranscriptFile) -> Change:
        known = self._known.get(file.name)
        policy = self._policies[file.name]
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
        now_ms = self._agent.clock.now_ms()
        if file.excluded_reason is not None:
            record_exclusion(self._state, file.name, file.facts, file.excluded_reason, now_ms)
            return skipping(self._report, row, file.excluded_reason)
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
            return skipping(self._report, row, f"unreadable ({error.strerror})")
        record_reading(self._state, reading, now_ms)
        self._report.transcripts_read += 1
        self._report.count_faults(reading.faults)
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
            return skipping(self._report, row, reading.excluded_reason)
        return Change(row, message_rows(reading.messages), grown=reading.resumed_from > 0)
