"""The plan of a night for ``USER.md``: directives that passed the gates, by the contract of the user model.

Belongs here: which directive may enter tonight, the size of the file, ledger rows.
Does not belong here: what a directive is about and how one replaces another (``recall_runtime.user_model``).

One active directive a matter; the newest observation wins, also among those of one night; older news never beats newer;
whole directives only, stale superseded ones are pruned before a new one is refused for want of room.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from memory_assets.consolidation.records import Candidate, Refused
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry, retirements
from recall_runtime.errors import RefusedError
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.markers import promotion_marker
from recall_runtime.paths import USER_FILE
from recall_runtime.text.lines import printable
from recall_runtime.user_model.matter import same_matter
from recall_runtime.user_model.update import DirectiveChange, Outcome, prune, set_directive
from recall_runtime.vocabulary import CandidateStatus, Gate, Operation

_OPERATIONS = {
    Outcome.ADDED: Operation.ADDED,
    Outcome.SUPERSEDED: Operation.SUPERSEDED,
    Outcome.UNCHANGED: Operation.RECONCILED,
}


@dataclass(frozen=True, slots=True)
class UserFilePlan:
    """New content of ``USER.md`` (``None``: it stays missing), its effects, and what did not enter."""

    content: bytes | None
    effects: Effects
    refused: tuple[Refused, ...] = ()
    problems: tuple[str, ...] = ()


def plan_user_file(
    agent: Agent, state: apsw.Connection, content: bytes | None, candidates: Sequence[Candidate], *, now_ms: int
) -> UserFilePlan:
    """Return what tonight's directives make of ``USER.md``."""
    newest, refused = _newest_of_each_matter(candidates)
    data = content or b""
    ledger: list[LedgerEntry] = []
    claims: list[ClaimChange] = []
    problems: list[str] = []
    for candidate in newest:
        if any(candidate.entry_key in entry.entry_keys for entry in parse_curated(data, user_file=True).entries):
            row = LedgerEntry(Operation.RECONCILED, candidate.entry_key, f"- {candidate.text}", candidate.claim_id)
            ledger.append(row)
            claims.append(_promoted(candidate, now_ms))
            continue
        try:
            change = set_directive(
                data,
                candidate.text,
                day_of(candidate.observed_at, agent.zone),
                marks=(promotion_marker(candidate.entry_key),),
            )
        except RefusedError as error:
            refused.append(Refused(candidate.claim_id, Gate.WRITE, str(error)))
            problems.append(str(error))
            continue
        if change.outcome is Outcome.LATE:
            refused.append(Refused(candidate.claim_id, Gate.SUPERSEDED, f"{USER_FILE} holds a newer word on it"))
            claims.append(ClaimChange(candidate.claim_id, CandidateStatus.SUPERSEDED, SUPERSEDED_BY + USER_FILE))
            continue
        grown = prune(change.data, agent.settings.dreaming.deep.user_budget_characters)
        if not _has_room(grown, data, agent.settings.dreaming.deep.user_budget_characters):
            refused.append(Refused(candidate.claim_id, Gate.BUDGET, f"{USER_FILE} has no room for it"))
            continue
        keys, lines = _replaced(data, change)
        ledger.append(
            LedgerEntry(
                _OPERATIONS[change.outcome],
                candidate.entry_key,
                f"- {change.text}",
                candidate.claim_id,
                candidate.sources,
                lines,
                candidate.lineage_key,
                {"because": change.outcome.value, **candidate.gate},
            )
        )
        claims.append(_promoted(candidate, now_ms))
        claims += retirements(state, keys, candidate.entry_key)
        data = grown if change.outcome is not Outcome.UNCHANGED else data
    unchanged = content is None and not data
    return UserFilePlan(
        None if unchanged else data,
        Effects(tuple(ledger), tuple(claims)),
        tuple(refused),
        tuple(dict.fromkeys(problems)),
    )


def _newest_of_each_matter(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Refused]]:
    """Return the last word on each matter, oldest first, and those that a later word of the same night replaced."""
    kept: list[Candidate] = []
    refused: list[Refused] = []
    for candidate in sorted(candidates, key=lambda one: (-one.observed_at, one.rank)):
        later = next((other for other in kept if same_matter(candidate.text, other.text)), None)
        if later is None:
            kept.append(candidate)
        else:
            refused.append(Refused(candidate.claim_id, Gate.SUPERSEDED, f"a later word tonight: {later.text}"))
    return kept[::-1], refused


def _promoted(candidate: Candidate, now_ms: int) -> ClaimChange:
    return ClaimChange(candidate.claim_id, CandidateStatus.PROMOTED, None, now_ms, candidate.entry_key)


def _has_room(new: bytes, old: bytes, cap: int) -> bool:
    size = len(new.decode("utf-8", errors="replace"))
    return not cap or size <= cap or len(new) <= len(old)


def _replaced(data: bytes, change: DirectiveChange) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return keys and lines of the entries that ``change`` marks superseded."""
    starts = {directive.start_line for directive in change.replaced}
    entries = [entry for entry in parse_curated(data, user_file=True).entries if entry.start_line in starts]
    return tuple(key for entry in entries for key in entry.entry_keys), tuple(printable(entry.raw) for entry in entries)
