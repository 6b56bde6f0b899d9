"""The plan of a night for ``MEMORY.md``: which decisions fit, and the bytes they give.

Belongs here: bounds (growth, loss, budget), composition, the check that the result says what was decided.
Does not belong here: deciding (``deterministic``, ``model_step``), reading entries (``entries``), writing (``apply``).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_assets.consolidation.deterministic import unclear
from memory_assets.consolidation.records import Candidate, Conflict, Decision, Mode, Overtaken, PriorEntry, Refused
from memory_assets.consolidation.validate import allowed_losses
from recall_runtime.config import DeepSettings
from recall_runtime.curated.compose import (
    NewEntry,
    append_entries,
    entry_line,
    remove_lines,
    section_heading,
)
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.identity import normalise
from recall_runtime.records import Anchor
from recall_runtime.vocabulary import EntryStatus, Gate, Operation

RESERVED_CHARACTERS = 21  # of the budget, for a header and line ends (openclaw-algorithms 27)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """New content of ``MEMORY.md`` with what led to it. Equal ``content`` and base means nothing is written."""

    content: bytes | None
    decisions: tuple[Decision, ...]
    refused: tuple[Refused, ...]
    dropped: tuple[PriorEntry, ...] = ()
    overtaken: tuple[Overtaken, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def line_of(candidate: Candidate) -> str:
    """Return the entry line of a candidate. It cites its first source; the ledger holds all of them."""
    first = candidate.sources[0] if candidate.sources else None
    anchor = Anchor(first.path, first.start, first.end) if first else None
    return entry_line(candidate.text, anchor, candidate.annotations)


def build(
    content: bytes | None,
    entries: Sequence[PriorEntry],
    decisions: Sequence[Decision],
    settings: DeepSettings,
    *,
    day: dt.date,
    mode: Mode,
    overtaken: Sequence[Overtaken] = (),
) -> MemoryPlan:
    """Return the plan that ``decisions`` give on ``content``, cut to what one night may do.

    Bounds, each leaving what does not fit eligible: characters added (``max_added_characters``, best score first),
    entries taken away (``allowed_losses``; the candidates' first, then those that are ``overtaken`` by an entry of the
    file), size of the file
    (``memory_budget_characters``: whole generated entries go, oldest first, then the weakest candidates wait).
    A hand-written entry that a decision would replace stays, and is reported beside the newer one.
    """
    decisions, conflicts = _spare_hand_written(decisions)
    allowed = allowed_losses(len(entries), settings.max_prior_entry_loss_fraction)
    kept, refused = _within_loss(decisions, allowed)
    kept, too_much = _within_growth(content, kept, settings.max_added_characters, day=day, mode=mode)
    refused += too_much
    retired = _still_overtaken(overtaken, kept, allowed)
    gone = [one.entry for one in retired]
    limit = settings.memory_budget_characters
    while True:
        dropped: list[PriorEntry] = []
        composed = _compose(content, kept, [*dropped, *gone], day, mode)
        for entry in _droppable(entries, kept, retired, allowed):
            if _fits(composed, content, limit):
                break
            dropped.append(entry)
            composed = _compose(content, kept, [*dropped, *gone], day, mode)
        if _fits(composed, content, limit):
            break
        weakest = max((decision for decision in kept if decision.writes), key=lambda one: one.candidate.rank)
        kept = [decision for decision in kept if decision is not weakest]
        refused.append(Refused(weakest.candidate.claim_id, Gate.BUDGET, "MEMORY.md has no room for it"))
    kept, refused = _drop_orphans(kept, refused)
    if not _says_so(composed, kept):
        hidden = "an open fence or comment would hide it"
        waiting = [Refused(decision.candidate.claim_id, Gate.WRITE, hidden) for decision in kept]
        return MemoryPlan(content, (), (*refused, *waiting))
    names = {decision.candidate.entry_key for decision in kept}
    told = [conflict for conflict in conflicts if conflict.entry_key in names]
    added = [one.candidate for one in kept if one.operation is Operation.ADDED]
    trusted = [entry for entry in entries if entry.is_trusted]
    told += [conflict for candidate in added for conflict in unclear(candidate, trusted)]
    return MemoryPlan(composed, tuple(kept), tuple(refused), tuple(dropped), tuple(retired), tuple(told))


def _spare_hand_written(decisions: Sequence[Decision]) -> tuple[list[Decision], list[Conflict]]:
    spared = []
    conflicts = []
    for decision in decisions:
        if decision.operation is not Operation.SUPERSEDED:
            spared.append(decision)
            continue
        priors = tuple(prior for prior in decision.priors if prior.replaceable)
        conflicts += [
            Conflict(prior.entry_line, prior.line, decision.candidate.text, decision.candidate.entry_key)
            for prior in decision.priors
            if not prior.replaceable
        ]
        operation = Operation.SUPERSEDED if priors else Operation.ADDED
        spared.append(Decision(decision.candidate, operation, priors, decision.because))
    return spared, conflicts


def _within_loss(decisions: Sequence[Decision], allowed: int) -> tuple[list[Decision], list[Refused]]:
    """Keep supersessions, best score first, until the bound; one that goes beyond it takes as many as may still go.

    What it leaves standing is overtaken the night after.
    """
    kept = []
    refused = []
    lost = 0
    for decision in sorted(decisions, key=lambda one: one.candidate.rank):
        if decision.operation is not Operation.SUPERSEDED:
            kept.append(decision)
        elif lost < allowed:
            kept.append(replace(decision, priors=decision.priors[: allowed - lost]))
            lost += len(kept[-1].priors)
        else:
            refused.append(Refused(decision.candidate.claim_id, Gate.BUDGET, "enough entries were replaced tonight"))
    return kept, refused


def _within_growth(
    content: bytes | None, decisions: Sequence[Decision], max_added: int, *, day: dt.date, mode: Mode
) -> tuple[list[Decision], list[Refused]]:
    """Keep what adds at most ``max_added`` characters: headings, marks and line ends count like the entries."""
    kept: list[Decision] = []
    late: list[Decision] = []
    added = 0
    for decision in decisions:
        size = sum(len(line) + 1 for line in _entry_of(decision).lines) if decision.writes else 0
        if size and max_added and added + size > max_added:
            late.append(decision)
        else:
            added += size
            kept.append(decision)
    while max_added and _growth(content, kept, day, mode) > max_added:  # headings, and line ends of two characters
        late.append(next(decision for decision in reversed(kept) if decision.writes))
        kept.remove(late[-1])
    return kept, [Refused(one.candidate.claim_id, Gate.BUDGET, "enough text was added tonight") for one in late]


def _growth(content: bytes | None, kept: Sequence[Decision], day: dt.date, mode: Mode) -> int:
    """Return how many characters ``kept`` adds to what it leaves of the file."""
    return _characters(_compose(content, kept, (), day, mode)) - _characters(_left(content, kept, ()))


def _entry_of(decision: Decision) -> NewEntry:
    candidate = decision.candidate
    return NewEntry(candidate.entry_key, line_of(candidate), candidate.project_key, candidate.lineage_marker)


def _characters(content: bytes | None) -> int:
    return len((content or b"").decode("utf-8", errors="replace"))


def _left(content: bytes | None, kept: Sequence[Decision], dropped: Sequence[PriorEntry]) -> bytes | None:
    """Return what stays of the file."""
    gone = [prior for decision in kept if decision.operation is Operation.SUPERSEDED for prior in decision.priors]
    ranges = [(prior.start_line, prior.end_line) for prior in (*gone, *dropped)]
    return remove_lines(content, ranges) if content is not None and ranges else content


def _compose(
    content: bytes | None, kept: Sequence[Decision], dropped: Sequence[PriorEntry], day: dt.date, mode: Mode
) -> bytes | None:
    fresh = [_entry_of(decision) for decision in kept if decision.writes]
    left = _left(content, kept, dropped)
    return append_entries(left, section_heading(day, consolidated=mode is Mode.MODEL), fresh) if fresh else left


def _still_overtaken(overtaken: Sequence[Overtaken], kept: Sequence[Decision], allowed: int) -> list[Overtaken]:
    """Return which of ``overtaken`` tonight's decisions leave standing, as many as may still go."""
    touched = {prior.start_line for decision in kept for prior in decision.priors}
    free = allowed - _taken(kept)
    left = [one for one in overtaken if touched.isdisjoint((one.entry.start_line, one.newer.start_line))]
    return left[: max(0, free)]


def _taken(kept: Sequence[Decision]) -> int:
    return sum(len(one.priors) for one in kept if one.operation is Operation.SUPERSEDED)


def _droppable(
    entries: Sequence[PriorEntry], kept: Sequence[Decision], retired: Sequence[Overtaken], allowed: int
) -> list[PriorEntry]:
    """Return the generated entries the budget may drop tonight, oldest first."""
    touched = {prior.start_line for decision in kept for prior in decision.priors}
    touched |= {entry.start_line for one in retired for entry in (one.entry, one.newer)}
    free = allowed - _taken(kept) - len(retired)
    candidates = [entry for entry in entries if entry.generated and entry.start_line not in touched]
    return sorted(candidates, key=lambda entry: (entry.day, entry.start_line))[: max(0, free)]


def _fits(composed: bytes | None, content: bytes | None, limit: int) -> bool:
    """Return whether the file is within the budget, or at least did not grow."""
    if not limit or composed is None or composed == content:
        return True
    size = _characters(composed)
    return size <= limit - RESERVED_CHARACTERS or (content is not None and len(composed) <= len(content))


def _drop_orphans(kept: list[Decision], refused: list[Refused]) -> tuple[list[Decision], list[Refused]]:
    """Refuse what joins a candidate of tonight that is not written after all."""
    fates = {refusal.claim_id: refusal for refusal in refused}
    left = []
    more = []
    for decision in kept:
        leader = (decision.into or "").rpartition(":")[2]
        if not decision.writes and not decision.priors and leader in fates:
            more.append(Refused(decision.candidate.claim_id, fates[leader].reason, fates[leader].detail))
        else:
            left.append(decision)
    return left, refused + more


def _says_so(composed: bytes | None, kept: Sequence[Decision]) -> bool:
    """Return whether reading the result gives each written entry once, with its text."""
    wanted = {one.candidate.entry_key: normalise(one.candidate.text) for one in kept if one.writes}
    if not wanted:
        return True
    found: dict[str, list[str]] = {}
    for entry in parse_curated(composed or b"").entries:
        for key in entry.entry_keys if entry.status is EntryStatus.ACTIVE else ():
            found.setdefault(key, []).append(normalise(entry.text))
    return all(found.get(key) == [text] for key, text in wanted.items())
