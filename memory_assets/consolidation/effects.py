"""What a plan of ``MEMORY.md`` means beside its bytes: rows of the ledger, changes of claims.

Belongs here: turning decisions into ``Effects``; what the ledger remembers about entries that were taken back.
Does not belong here: writing them (``recall_runtime.curated``), deciding, ``USER.md`` (``user_file``).
"""

import json
from collections.abc import Mapping, Sequence

import apsw

from memory_assets.consolidation.plan import MemoryPlan, line_of
from memory_assets.consolidation.records import Decision, Mode, Overtaken, PriorEntry, Refused
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry, retirements
from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.vocabulary import CandidateStatus, Operation

CONFLICTS = "conflicts"  # in a ledger row's ``gate``
OVERTAKEN = "both stood in the file before it was known that they are about one thing"


def effects_of(
    state: apsw.Connection, plan: MemoryPlan, refused: Sequence[Refused], *, mode: Mode, now_ms: int
) -> Effects:
    """Return ledger rows and changes of claims that ``plan`` means, with the late refusals of the night.

    Args:
        state: Open state database, for the claims behind entries that go.
        plan: What is written.
        refused: Candidates that are not written.
        mode: Who decided.
        now_ms: Instant of the night, milliseconds UTC.
    """
    lines = {one.candidate.entry_key: line_of(one.candidate) for one in plan.decisions if one.writes}
    ledger: list[LedgerEntry] = []
    claims: list[ClaimChange] = []
    for decision in plan.decisions:
        row = _row(plan, decision, lines, mode)
        ledger.append(row)
        claims.append(ClaimChange(decision.candidate.claim_id, CandidateStatus.PROMOTED, None, now_ms, row.entry_key))
        if decision.operation is Operation.SUPERSEDED:
            claims += retirements(state, _keys_of(decision.priors), row.entry_key)
    for one in plan.overtaken:
        ledger.append(_overtaking_row(one))
        claims += retirements(state, one.entry.keys, ledger[-1].entry_key)
    ledger += [
        LedgerEntry(Operation.DROPPED, entry.keys[-1], entry.line, entry.claim_id, lineage_key=entry.lineage_key)
        for entry in plan.dropped
    ]
    claims += [
        ClaimChange(one.claim_id, CandidateStatus.SUPERSEDED, SUPERSEDED_BY + one.superseded_by)
        for one in refused
        if one.superseded_by
    ]
    return Effects(tuple(ledger), tuple(claims))


def _row(plan: MemoryPlan, decision: Decision, lines: Mapping[str, str], mode: Mode) -> LedgerEntry:
    candidate = decision.candidate
    key = candidate.entry_key if decision.writes else decision.into or candidate.entry_key
    joined = decision.priors[0].line if decision.priors else lines.get(key, "")
    return LedgerEntry(
        decision.operation,
        key,
        lines[key] if decision.writes else joined,
        candidate.claim_id,
        candidate.sources,
        tuple(prior.line for prior in decision.priors) if decision.writes else (),
        candidate.lineage_key,
        {"mode": mode.value, "because": decision.because, **_told(plan, decision), **candidate.gate},
    )


def _overtaking_row(one: Overtaken) -> LedgerEntry:
    """Return the row of an entry that stands already: without a claim, for an undo must not withdraw the newer one."""
    return LedgerEntry(
        Operation.SUPERSEDED,
        one.newer.keys[-1],
        one.newer.line,
        priors=(one.entry.line,),
        lineage_key=one.newer.lineage_key,
        gate={"mode": Mode.DETERMINISTIC.value, "because": OVERTAKEN},
    )


def _told(plan: MemoryPlan, decision: Decision) -> dict[str, list[dict[str, int | str]]]:
    """Return what the owner is told about an entry written tonight, kept with it: a second run finds it there."""
    told = [one for one in plan.conflicts if decision.writes and one.entry_key == decision.candidate.entry_key]
    return {CONFLICTS: [{"line": one.line, "message": one.message} for one in told]} if told else {}


def not_brought_back(state: apsw.Connection, found: Sequence[Overtaken]) -> list[Overtaken]:
    """Leave out those that the owner brought back by undoing the sweep that had retired them."""
    if not found:
        return []
    undone = {
        (key, prior)
        for key, priors in state.execute(
            "SELECT l.entry_key, l.priors FROM ledger l JOIN ledger u ON u.sweep_id = ? || l.sweep_id"
            " AND u.entry_key = l.entry_key AND u.operation = ? WHERE l.gate ->> '$.because' = ?",
            (UNDONE_BY, Operation.UNDONE, OVERTAKEN),
        )
        for prior in json.loads(priors)
    }
    return [one for one in found if (one.newer.keys[-1], one.entry.line) not in undone]


def _keys_of(priors: Sequence[PriorEntry]) -> list[str]:
    return sorted({key for prior in priors for key in prior.keys})
