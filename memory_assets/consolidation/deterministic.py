"""Deciding without a model: exact merge, near-duplicate merge, keyed supersession, else added.

Belongs here: the rules, in their order.
Does not belong here: bounds and composition (``consolidation.plan``), when one claim
retires another (``recall_runtime.lineage_keys``).

Equal means equal after normalising; near is a question for supersession: the newer observation wins, an older one never
beats a newer, and a statement that says it stands *beside* another ("also", "a second") retires nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_assets.consolidation.records import Candidate, Conflict, Decision, Overtaken, PriorEntry, Refused
from recall_runtime.lineage_keys.succession import retires, same_matter, says_no_longer, stands_beside
from recall_runtime.notes.identity import normalise, same_claim, subject_words
from recall_runtime.vocabulary import Gate, Operation

MAX_MEANT = 3  # entries that an unclear correction may mean


def reduce_night(candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Decision], list[Refused]]:
    """Return the candidates that stand for the night, those that join one of them, and those a newer one replaced."""
    kept: list[Candidate] = []
    joined: list[Decision] = []
    refused: list[Refused] = []
    for candidate in sorted(candidates, key=lambda one: (-one.observed_at, one.rank)):
        twin = next((other for other in kept if _says_the_same(candidate, other)), None)
        if twin is not None:
            joined.append(Decision(candidate, Operation.MERGED, because="said twice tonight", into=twin.entry_key))
            continue
        successor = next((other for other in kept if retires(other, candidate)), None)
        if successor is not None:
            refused.append(
                Refused(candidate.claim_id, Gate.SUPERSEDED, f"newer: {successor.text}", successor.entry_key)
            )
            continue
        kept.append(candidate)
    return sorted(kept, key=lambda one: one.rank), joined, refused


def _says_the_same(candidate: Candidate | PriorEntry, other: Candidate | PriorEntry) -> bool:
    if candidate.project_key != other.project_key and candidate.project_key and other.project_key:
        return False
    if says_no_longer(candidate.text) != says_no_longer(other.text):
        return False
    if normalise(candidate.text) == normalise(other.text) or same_claim(candidate.text, other.text):
        return True
    return same_matter(candidate, other) and bool(candidate.values) and candidate.values == other.values


def against_file(candidate: Candidate, entries: Sequence[PriorEntry]) -> Decision | Refused:
    """Return what becomes of ``candidate`` beside the entries that stand in the file."""
    own = next((entry for entry in entries if candidate.entry_key in entry.keys), None)
    if own is not None:
        return Decision(candidate, Operation.RECONCILED, (own,), "its marker is in the file", candidate.entry_key)
    same = _best(entry for entry in entries if _says_the_same(candidate, entry))
    if same is not None:
        operation = Operation.MERGED if same.keys else Operation.RECONCILED
        return Decision(candidate, operation, (same,), "the file says so already", same.keys[0] if same.keys else None)
    newer = next(
        (
            entry
            for entry in entries
            if same_matter(candidate, entry)
            and entry.observed_at > candidate.observed_at
            and entry.values != candidate.values
        ),
        None,
    )
    if newer is not None and not stands_beside(candidate.text):
        key = newer.keys[0] if newer.keys else ""
        return Refused(candidate.claim_id, Gate.SUPERSEDED, f"the file holds a newer value: {newer.text}", key)
    priors = tuple(entry for entry in entries if retires(candidate, entry))
    if priors:
        return Decision(candidate, Operation.SUPERSEDED, priors, "a newer value for the same thing")
    return Decision(candidate, Operation.ADDED, because="new")


def overtaken(entries: Sequence[PriorEntry]) -> list[Overtaken]:
    """Return the entries that a newer entry beside them retires or repeats, those first whose newer one is older.

    Both were written while nobody had said which project they belong to, so neither had a lineage key to meet by; or a
    night could not take away all that its newest value retired. Of two equally old ones the later in the file is newer.
    """
    lineages: dict[str, list[PriorEntry]] = {}
    for entry in entries:
        if entry.lineage_key is not None:
            lineages.setdefault(entry.lineage_key, []).append(entry)
    found = []
    for lineage in lineages.values():
        ours = sorted((entry for entry in lineage if entry.keys), key=_age)
        for number, entry in enumerate(ours):
            newer = [other for other in ours[number + 1 :] if retires(other, entry) or _says_the_same(entry, other)]
            if newer and entry.replaceable and not stands_beside(entry.text):
                found.append(Overtaken(entry, newer[-1]))
    return sorted(found, key=lambda one: (_age(one.newer), one.entry.start_line))


def _age(entry: PriorEntry) -> tuple[int, int]:
    return entry.observed_at, entry.start_line


def unclear(candidate: Candidate, entries: Sequence[PriorEntry]) -> list[Conflict]:
    """Return the entries that a correction may mean which gives no value by which to find them.

    Those that share most of what it names; more than a few of them are no clue.
    """
    if not candidate.is_correction or candidate.values:
        return []
    named = subject_words(candidate.text)
    shared = [(len(named & subject_words(entry.text)), entry) for entry in entries]
    most = max((count for count, _ in shared), default=0)
    meant = [entry for count, entry in shared if count == most] if most else []
    if len(meant) > MAX_MEANT:
        return []
    return [
        Conflict(entry.entry_line, entry.text, candidate.text, candidate.entry_key, is_certain=False) for entry in meant
    ]


def _best(entries: Iterable[PriorEntry]) -> PriorEntry | None:
    """Return the entry to join: one with a key before a hand-written one."""
    return min(entries, key=lambda entry: (not entry.keys, entry.entry_line), default=None)


def follow(
    joined: Sequence[Decision], decisions: Sequence[Decision], refused: Sequence[Refused]
) -> tuple[list[Decision], list[Refused]]:
    """Let candidates that join another one of tonight share its fate: the entry it joins itself, or its refusal."""
    leaders = {decision.candidate.entry_key: decision for decision in decisions}
    fates = {refusal.claim_id: refusal for refusal in refused}
    following = []
    lost = []
    for decision in joined:
        leader = leaders.get(decision.into or "")
        if leader is not None:
            shared = decision if leader.writes else replace(decision, into=leader.into, priors=leader.priors)
            following.append(shared)
            continue
        fate = fates.get((decision.into or "").rpartition(":")[2])
        lost.append(
            replace(fate, claim_id=decision.candidate.claim_id)
            if fate
            else Refused(decision.candidate.claim_id, Gate.SUPERSEDED, "the candidate it joins was not written")
        )
    return following, lost
