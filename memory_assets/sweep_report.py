"""What a sweep did: one record for the command, the row in ``sweeps`` and the review.

Belongs here: the report, its counts, the reason of an empty sweep, the facts handed to the review.
Does not belong here: running anything (``memory_assets.sweep``), wording of review files (``memory_assets.review``).
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from memory_assets.consolidation.apply import ConsolidationReport
from memory_assets.consolidation.effects import CONFLICTS
from memory_assets.consolidation.records import Mode
from memory_assets.gates import GateRow
from memory_assets.gates.loading import speaker_of
from memory_assets.reflection import Reflection
from memory_assets.review import records as review
from memory_assets.review.aspirations import collect_due
from memory_assets.staging import REFUSED, StagingReport
from recall_runtime.agent import Agent
from recall_runtime.index.sync_report import SyncReport
from recall_runtime.records import Anchor
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import Gate, Operation

Outcome = Literal["promoted", "nothing_to_do", "dry_run"]
_LIGHT_SHOWN = 50
_GATES_OF_NUMBERS = (Gate.MIN_RECALL_COUNT, Gate.MIN_UNIQUE_QUERIES, Gate.MAX_AGE_DAYS, Gate.MIN_SCORE)
# Confidence of a statement nobody asked for yet (openclaw-algorithms 20.1, 20.2)
_CONFIDENCE = {"note": 0.62, "transcript": 0.58}


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One sweep. Steps that were not run are ``None`` or empty; ``reason`` says why nothing was promoted."""

    sweep_id: str
    day: dt.date
    now_ms: int
    outcome: Outcome
    reason: str | None
    dry_run: bool
    indexed: SyncReport | None = None
    staged: StagingReport | None = None
    reflected: Reflection | None = None
    scored: tuple[GateRow, ...] = ()
    curated: ConsolidationReport | None = None
    reviewed: review.ReviewResult | None = None
    problems: tuple[str, ...] = ()

    @property
    def failed_gates(self) -> Counter[str]:
        """Candidates held back, by the first gate that failed, late refusals included."""
        failed = Counter(row.failed_gate.value for row in self.scored if row.failed_gate)
        if self.curated:
            failed.update(self.curated.refusals)
        return failed

    @property
    def operations(self) -> Counter[Operation]:
        """Changes of curated files by operation."""
        return Counter(change.operation for change in self.curated.changes) if self.curated else Counter()

    @property
    def counts(self) -> dict[str, Any]:
        """Numbers only, for the row in ``sweeps``, ``status`` and event metadata."""
        counts: dict[str, Any] = {}
        if self.indexed:
            counts["index"] = {
                "notes_read": self.indexed.notes_read,
                "transcripts_read": self.indexed.transcripts_read,
                "unchanged": self.indexed.unchanged,
                "removed": self.indexed.removed,
                "skipped": len(self.indexed.skipped),
                "vectors_made": self.indexed.vectors_made,
            }
        if self.staged:
            counts["staging"] = staging_counts(self.staged)
        if self.reflected:
            counts["reflection"] = {
                "traces": self.reflected.traces,
                "themes": len(self.reflected.themes),
                "truths": len(self.reflected.truths),
            }
        if self.curated or self.scored:
            counts["gates"] = {
                "scored": len(self.scored),
                "passed": sum(row.passed for row in self.scored),
                "failed": dict(self.failed_gates),
                "nearest_miss": self._nearest_miss(),
            }
        if self.curated:
            counts["operations"] = {operation.value: count for operation, count in self.operations.items()}
            counts["model_calls"] = self.curated.model_calls
        return counts

    def _nearest_miss(self) -> float | None:
        """Return the best score that a gate of numbers held back."""
        missed = [row.score for row in self.scored if row.failed_gate in _GATES_OF_NUMBERS]
        return round(max(missed), 6) if missed else None


def staging_counts(staged: StagingReport) -> dict[str, Any]:
    """Return the numbers of a light phase; seen is the sum of taken, duplicate, waiting and refused."""
    totals = staged.totals
    refused = {verdict.removeprefix(REFUSED): n for verdict, n in totals.items() if verdict.startswith(REFUSED)}
    return {
        "sources": staged.sources,
        "seen": staged.seen,
        "taken": totals["taken"],
        "duplicate": totals["duplicate"],
        "waiting": totals["waiting"],
        "refused": sum(refused.values()),
        "refused_by": refused,
        "held_back": {kind.value: count for kind, count in staged.held_back.items()},
        "gone": staged.gone,
        "withdrawn": staged.withdrawn,
        "recalls": staged.recalls,
        "bystanders": staged.bystanders,
        "unattributed": staged.unattributed,
        "observations": staged.observations,
        "groups_staged": len(staged.staged),
        "groups_waiting": len(staged.waiting),
    }


def outcome_of(
    staged: StagingReport | None,
    scored: Sequence[GateRow],
    curated: ConsolidationReport | None,
    *,
    dry_run: bool,
    indexed: SyncReport | None,
) -> tuple[Outcome, str | None]:
    """Return how a sweep ended and, when nothing was written, why."""
    changed = bool(curated and curated.changes)
    reason = None if changed else _why_nothing(staged, scored, curated, indexed)
    if dry_run:
        return "dry_run", reason
    return ("promoted" if changed else "nothing_to_do"), reason


def _why_nothing(
    staged: StagingReport | None,
    scored: Sequence[GateRow],
    curated: ConsolidationReport | None,
    indexed: SyncReport | None,
) -> str:
    if curated is None:
        return "the deep phase was not run"
    passed = sum(row.passed for row in scored)
    if passed:
        late = ", ".join(f"{reason} {count}" for reason, count in curated.refusals.most_common())
        return f"{passed} passed the gates, none could be written" + (f": {late}" if late else "")
    if scored:
        failed = Counter(row.failed_gate.value for row in scored if row.failed_gate)
        held = ", ".join(f"{gate} {count}" for gate, count in failed.most_common())
        return f"none of {len(scored)} candidates passed the gates: {held}"
    if indexed and not (indexed.notes_read or indexed.transcripts_read or indexed.unchanged):
        return "the workspace holds no notes and no transcripts"
    if staged and not staged.sources and not staged.recalls:
        return "nothing new was written or recalled, and no candidate has a recent signal"
    return "no candidate has a signal yet: nothing was recalled, and nothing said twice"


def review_of(agent: Agent, state: apsw.Connection, report: SweepReport) -> review.SweepReport:
    """Return what the review shows of ``report``. Themes and truths are shown once, by the sweep that found them.

    What the database keeps of the sweep is read from there, so that a sweep that was cut off and run again at the same
    instant shows what both runs did.
    """
    reflected = report.reflected if report.reflected and report.reflected.reinforced else None
    curated = report.curated
    written = written_review(state, report.sweep_id, at=report.now_ms, day=report.day)
    return replace(
        written,
        ranked=len(report.scored),
        mode=f"the model {agent.settings.model.model}" if curated and curated.mode is Mode.MODEL else "the rules",
        reason=(curated.why or None) if curated and written.lines else report.reason,
        light=_light(state, report.now_ms) if report.staged else (),
        themes=tuple(
            review.Theme(theme.tag, theme.strength, theme.count, theme.evidence)
            for theme in (reflected.themes if reflected else ())
        ),
        truths=tuple(
            review.Truth(truth.text, truth.confidence, (truth.anchor,) if truth.anchor else ())
            for truth in (reflected.truths if reflected else ())
        ),
        aspirations=collect_due(agent.workspace, state, report.day),
    )


def written_review(state: apsw.Connection, sweep_id: str, *, at: int, day: dt.date) -> review.SweepReport:
    """Return what the database alone tells of a sweep, whoever finished it.

    Args:
        state: Open state database.
        sweep_id: The sweep.
        at: Its instant, milliseconds UTC.
        day: Its day.
    """
    scored = query(state, "SELECT count(*) FROM gate_scores WHERE sweep_id = ?", (sweep_id,))
    modes = query(
        state,
        "SELECT gate ->> '$.mode' FROM ledger WHERE sweep_id = ? AND gate ->> '$.mode' IS NOT NULL"
        " ORDER BY ledger_id LIMIT 1",
        (sweep_id,),
    )
    return review.SweepReport(
        sweep_id=sweep_id,
        at=at,
        day=day,
        ranked=scored[0][0],
        failed_gates=_failed_gates(state, sweep_id),
        lines=_lines(state, sweep_id),
        mode=modes[0][0] if modes else "rules",
        conflicts=_conflicts(state, sweep_id),
    )


def _conflicts(state: apsw.Connection, sweep_id: str) -> tuple[review.OwnerConflict, ...]:
    rows = query(
        state,
        "SELECT file, gate -> ?1 FROM ledger WHERE sweep_id = ?2 AND gate -> ?1 IS NOT NULL ORDER BY ledger_id",
        (f"$.{CONFLICTS}", sweep_id),
    )
    return tuple(
        review.OwnerConflict(file, told["line"], told["message"]) for file, found in rows for told in json.loads(found)
    )


def _failed_gates(state: apsw.Connection, sweep_id: str) -> dict[str, int]:
    rows = query(
        state,
        "SELECT failed_gate, count(*) FROM gate_scores WHERE sweep_id = ? AND failed_gate IS NOT NULL"
        " GROUP BY failed_gate ORDER BY failed_gate",
        (sweep_id,),
    )
    return dict(rows)


def _lines(state: apsw.Connection, sweep_id: str) -> tuple[review.ReviewLine, ...]:
    rows = query(
        state,
        "SELECT operation, file, entry_key, text, sources, priors FROM ledger WHERE sweep_id = ? AND operation <> ?"
        " ORDER BY ledger_id",
        (sweep_id, Operation.UNDONE),
    )
    return tuple(
        review.ReviewLine(
            Operation(operation),
            file,
            entry_key,
            text,
            tuple(Anchor(source["path"], source["start"], source["end"]) for source in json.loads(sources)),
            tuple(json.loads(priors)),
        )
        for operation, file, entry_key, text, sources, priors in rows
    )


def _light(state: apsw.Connection, now_ms: int) -> tuple[review.LightCandidate, ...]:
    """Return the groups that the light phase of this instant reinforced, in its own order."""
    roots = query(
        state,
        """SELECT p.claim_id FROM phase_signals p JOIN claims c ON c.root_id = p.claim_id
             LEFT JOIN signals s ON s.claim_id = c.claim_id
            WHERE p.last_light_at = ? AND c.origin_class IN ('owner', 'agent') AND c.session_kind = 'interactive'
            GROUP BY p.claim_id
            ORDER BY count(s.signal_id) DESC, coalesce(max(s.observed_at), 0) DESC, max(c.last_seen_at) DESC, p.claim_id
            LIMIT ?""",
        (now_ms, _LIGHT_SHOWN),
    )
    return tuple(_light_candidate(state, root) for (root,) in roots)


def _light_candidate(state: apsw.Connection, root: str) -> review.LightCandidate:
    speaker = speaker_of(state, root)
    claim_id = speaker[0] if speaker else ""
    text = "".join(row[0] for row in query(state, "SELECT text FROM claims WHERE claim_id = ?", (claim_id,)))
    ((signals, recalls, mean),) = query(
        state,
        """SELECT count(*), coalesce(sum(s.kind = 'recall'), 0), avg(s.score)
             FROM claims c JOIN signals s USING (claim_id)
            WHERE c.root_id = ? AND c.origin_class IN ('owner', 'agent') AND c.session_kind = 'interactive'""",
        (root,),
    )
    places = query(
        state,
        """SELECT e.path, e.start_line, e.end_line, e.source FROM claims c JOIN evidence e USING (claim_id)
            WHERE c.root_id = ? AND e.live = 1 AND c.origin_class IN ('owner', 'agent')
            ORDER BY e.source, e.observed_at, e.path LIMIT 3""",
        (root,),
    )
    confidence = mean if mean is not None else max((_CONFIDENCE[place[3]] for place in places), default=0.0)
    return review.LightCandidate(text, confidence, tuple(Anchor(*place[:3]) for place in places), recalls, signals)
