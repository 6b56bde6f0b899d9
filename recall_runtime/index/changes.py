"""Changes of the index on their way to its rows: a few sources at a time, in short transactions.

Belongs here: the record of one change, batches, the order in which the two databases are committed.
Does not belong here: what changed (``index.changed_notes``, ``index.changed_transcripts``), the rows (``index.store``).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import apsw

from recall_runtime.index import store
from recall_runtime.index.store import EntryRow, SourceRow
from recall_runtime.index.sync_report import SyncReport
from recall_runtime.storage.connection import write_transaction

_BATCH_ENTRIES = 2_000  # of one transaction
_BATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """One source to be written: replaced, or grown by ``entries``."""

    source: SourceRow
    entries: Sequence[EntryRow]
    grown: bool = False


def skipping(report: SyncReport, row: SourceRow, reason: str) -> Change:
    """Name in ``report`` why nothing of a source is indexed; return the change that writes it down."""
    report.skipped[row.path] = reason
    return Change(replace(row, skipped=reason), ())


def write_changes(
    state: apsw.Connection,
    index: apsw.Connection,
    changes: Iterable[Change],
    *,
    report: SyncReport,
    on_batch: Callable[[int], None],
) -> None:
    """Write ``changes`` a few at a time; ``on_batch`` is told how many are done.

    ``changes`` is drawn inside transactions of the state database: what the readings report of writes is stored before
    the rows are.
    """
    done = 0
    for batch in _batches(state, changes):
        with write_transaction(index):
            for change in batch:
                write = store.append_to_source if change.grown else store.write_source
                write(index, change.source, change.entries)
                report.entries_written += len(change.entries)
            store.bump_revision(index)
        done += len(batch)
        on_batch(done)


def _batches(state: apsw.Connection, changes: Iterable[Change]) -> Iterator[list[Change]]:
    """Yield changes in batches; the state database holds one transaction a batch, committed before its rows."""
    iterator = iter(changes)
    while True:
        batch: list[Change] = []
        entries, started = 0, time.monotonic()
        with write_transaction(state):
            for change in iterator:
                batch.append(change)
                entries += len(change.entries)
                if entries >= _BATCH_ENTRIES or time.monotonic() - started >= _BATCH_SECONDS:
                    break
        if not batch:
            return
        yield batch
