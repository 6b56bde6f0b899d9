"""What a step reports: its numbers.

Belongs here: turning the report of a step into named numbers.
Does not belong here: names or texts of anything that was read; the event log can't forget.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any

import apsw

from memory_assets.consolidation.apply import ConsolidationReport
from memory_assets.gates import GateRow
from memory_assets.reflection import Reflection
from memory_assets.warehouse.publish import PublishReport
from recall_runtime.agent import Agent
from recall_runtime.index.files import find_files
from recall_runtime.index.sync_report import SyncReport
from recall_runtime.paths import note_day, tier_of
from recall_runtime.storage.connection import query
from recall_runtime.transcripts.sources import list_transcripts
from recall_runtime.vocabulary import Tier


def note_counts(agent: Agent, days: Collection[str]) -> dict[str, Any]:
    """Return the notes of ``days`` (of all days when there are none), and what could not be looked at."""
    found = find_files(agent.workspace)
    notes = [file for file in found.files if tier_of(file.path) is Tier.EPISODIC]
    dated = [(file, note_day(file.path)) for file in notes]
    chosen = [file for file, day in dated if day and (not days or day.isoformat() in days)]
    return {
        "files": len(chosen),
        "bytes": sum(file.size for file in chosen),
        "files_of_all_days": len(notes),
        "not_readable": len(found.problems),
    }


def transcript_counts(agent: Agent) -> dict[str, Any]:
    """Return the session files there are, and how many may not be read, by the kind of reason."""
    files = list_transcripts(agent)
    excluded = Counter(file.excluded_reason.split(":")[0] for file in files if file.excluded_reason)
    return {"files": len(files), "bytes": sum(file.size for file in files), "excluded": dict(excluded)}


def index_counts(report: SyncReport) -> dict[str, Any]:
    """Return what a sync read and wrote."""
    return {
        "notes_read": report.notes_read,
        "transcripts_read": report.transcripts_read,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "entries_written": report.entries_written,
        "vectors_made": report.vectors_made,
        "vectors_refused": report.vectors_refused,
        "skipped": len(report.skipped),
        "with_problems": len(report.problems),
        "faults": report.faults,
        "vectors_missing": report.vector_error is not None,
    }


def recall_counts(state: apsw.Connection) -> dict[str, Any]:
    """Return the recall events there are, by kind of session."""
    kinds = dict(query(state, "SELECT session_kind, count(*) FROM recall_events GROUP BY 1"))
    hits = query(state, "SELECT count(*) FROM recall_hits")[0][0]
    return {"events": sum(kinds.values()), "events_by_session": kinds, "hits_shown": hits}


def reflection_counts(reflected: Reflection) -> dict[str, Any]:
    """Return what the REM phase looked at and found."""
    return {
        "traces": reflected.traces,
        "themes": len(reflected.themes),
        "candidate_truths": len(reflected.truths),
        "reinforced": reflected.reinforced,
    }


def gate_counts(rows: Collection[GateRow]) -> dict[str, Any]:
    """Return the verdicts, by the first gate that failed."""
    failed = Counter(row.failed_gate.value for row in rows if row.failed_gate)
    scores = [row.score for row in rows]
    return {
        "candidates": len(rows),
        "passed": sum(row.passed for row in rows),
        "failed": dict(failed),
        "best_score": max(scores, default=0.0),
    }


def file_counts(curated: ConsolidationReport, file: str) -> dict[str, Any]:
    """Return the operations on ``file``, and its size afterwards when it was written."""
    operations = Counter(change.operation.value for change in curated.changes if change.file == file)
    written = [change for change in curated.files if change.file == file]
    counts: dict[str, Any] = {"operations": dict(operations), "written": len(written)}
    if written:
        counts["bytes"] = len(written[0].after or b"")
    return counts


def consolidation_counts(curated: ConsolidationReport) -> dict[str, Any]:
    """Return what did not get in, and what the model was asked."""
    return {
        "refused_late": dict(curated.refusals),
        "conflicts_for_the_owner": len(curated.conflicts),
        "problems": len(curated.problems),
        "model_calls": curated.model_calls,
    }


def publish_counts(published: PublishReport) -> dict[str, Any]:
    """Return the rows that were new or changed, and those of every published table."""
    return {"handed_over": published.handed_over, "rows": published.rows}
