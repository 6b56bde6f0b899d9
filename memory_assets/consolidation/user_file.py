"""The plan of a night for ``USER.md``: directives that passed the gates, by the contract of the user model.

Belongs here: which directive may enter tonight, the size of the file, ledger rows.
Does not belong here: what a directive is about and how one replaces another (``recall_runtime.user_model``).

One active directive a matter; the newest observation wins, also among those of one night; older news never beats newer;
whole directives only, stale superseded ones are pruned before a new one is refused for want of room.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import apsw

from memory_assets.consolidation.records import Candidate, Refused
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry, drops, retirements
from recall_runtime.errors import RefusedError
from recall_runtime.lineage_keys.stored import written_entry
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.markers import promotion_marker
from recall_runtime.paths import USER_FILE
from recall_runtime.text.lines import printable
from recall_runtime.user_model.matter import same_matter
from recall_runtime.user_model.update import DirectiveChange, Outcome, prune, set_directive
from recall_runtime.vocabulary import CandidateStatus, EntryStatus, Gate, Operation

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
    growing = _Growing(content or b"", refused=refused)
    for candidate in newest:
        _take(agent, state, growing, candidate, now_ms)
    unchanged = content is None and not growing.data
    return UserFilePlan(
        None if unchanged else growing.data,
        Effects(tuple(growing.ledger), tuple(growing.claims)),
        tuple(growing.refused),
        tuple(dict.fromkeys(growing.problems)),
    )


@dataclass(slots=True)
class _Growing:
    """The file and its effects while tonight's directives enter one after the other."""

    data: bytes
    refused: list[Refused]
    ledger: list[LedgerEntry] = field(default_factory=list)
    claims: list[ClaimChange] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def _take(agent: Agent, state: apsw.Connection, growing: _Growing, candidate: Candidate, now_ms: int) -> None:
    """Let ``candidate`` enter, or note why it does not."""
    claim_id, cap = candidate.claim_id, agent.settings.dreaming.deep.user_budget_characters
    entries = parse_curated(growing.data, user_file=True).entries
    if any(candidate.entry_key in entry.entry_keys and entry.status is EntryStatus.ACTIVE for entry in entries):
        row = LedgerEntry(Operation.RECONCILED, candidate.entry_key, f"- {candidate.text}", claim_id)
        growing.ledger.append(row)
        growing.claims.append(_promoted(candidate, now_ms))
        return
    observed, marks = day_of(candidate.observed_at, agent.zone), (promotion_marker(candidate.entry_key),)
    try:
        change = set_directive(growing.data, candidate.text, observed, marks=marks)
    except RefusedError as error:
        growing.refused.append(Refused(claim_id, Gate.WRITE, str(error)))
        growing.problems.append(str(error))
        return
    keys, lines = _replaced(growing.data, change)
    if change.outcome is Outcome.LATE or _is_older(state, candidate, keys):
        growing.refused.append(Refused(claim_id, Gate.SUPERSEDED, f"{USER_FILE} holds a newer word on it"))
        growing.claims.append(ClaimChange(claim_id, CandidateStatus.SUPERSEDED, SUPERSEDED_BY + USER_FILE))
        return
    pruned = prune(change.data, cap)
    if not _has_room(pruned.data, growing.data, cap):
        growing.refused.append(Refused(claim_id, Gate.BUDGET, f"{USER_FILE} has no room for it"))
        return
    growing.ledger += [*drops(pruned.gone), _row(candidate, change, lines)]
    growing.claims += [_promoted(candidate, now_ms), *retirements(state, keys, candidate.entry_key)]
    if change.outcome is not Outcome.UNCHANGED:
        growing.data = pruned.data


def _is_older(state: apsw.Connection, candidate: Candidate, replaced: Iterable[str]) -> bool:
    """Return whether one of the entries with these keys was observed or asked for later: the file knows days only."""
    known = [written_entry(state, [key], USER_FILE) for key in replaced]
    return any(one is not None and (one.observed_at or 0) > candidate.observed_at for one in known)


def _row(candidate: Candidate, change: DirectiveChange, lines: tuple[str, ...]) -> LedgerEntry:
    return LedgerEntry(
        _OPERATIONS[change.outcome],
        candidate.entry_key,
        f"- {change.text}",
        candidate.claim_id,
        candidate.sources,
        lines,
        candidate.lineage_key,
        {"because": change.outcome.value, **candidate.gate},
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
