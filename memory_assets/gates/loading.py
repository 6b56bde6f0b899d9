"""Candidates and signals as the scoring SQL takes them: one row a group of near-duplicates.

Belongs here: grouping claims, choosing the one that speaks for a group, the rule of eligibility.
Does not belong here: formulas and gates (the ``.sql`` files), what counts as a signal (``memory_assets.staging``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from recall_runtime.clock import MS_PER_DAY
from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import (
    ELIGIBLE_ORIGINS,
    CandidateStatus,
    OriginClass,
    SessionKind,
    SignalKind,
    StatementKind,
)

# A group whose newest signal is older than this many times the age limit can't pass and is not scored again.
_AGE_LIMITS_KEPT = 2
_STATUS_ORDER = (
    CandidateStatus.PROMOTED,
    CandidateStatus.SUPERSEDED,
    CandidateStatus.WAITING,
    CandidateStatus.REFUSED,
    CandidateStatus.WITHDRAWN,
)


def eligible(origin_class: str, session_kind: str) -> bool:
    """Return whether text of this class and kind may ever become durable: the rule of every gate and injection."""
    return origin_class in ELIGIBLE_ORIGINS and session_kind == SessionKind.INTERACTIVE


@dataclass(frozen=True, slots=True)
class Candidate:
    """One group: the claim that speaks for it and what the gates ask about it.

    ``path`` cites a live place, ``members`` are the claims whose signals count for the group.
    """

    group_id: int
    claim_id: str
    root_id: str
    path: str
    live: bool
    origin_class: OriginClass
    session_kind: SessionKind
    status: CandidateStatus
    tags: int
    members: tuple[str, ...]
    light_hits: int = 0
    rem_hits: int = 0
    last_light_at: int | None = None
    last_rem_at: int | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """One counted signal of a group. ``context`` is the query hash, ``session:<id>`` or ``day:<day>``; day is ISO."""

    group_id: int
    kind: SignalKind
    context: str
    day: str
    score: float
    observed_at: int


@dataclass(frozen=True, slots=True)
class _Claim:
    claim_id: str
    root_id: str
    origin_class: OriginClass
    session_kind: SessionKind
    status: CandidateStatus
    taken_back: bool  # by an undo; nobody stated it anew since
    kind: StatementKind
    tags: frozenset[str]
    first_seen_at: int
    note_path: str | None
    live_path: str | None

    @property
    def eligible(self) -> bool:
        return eligible(self.origin_class, self.session_kind) and self.status is not CandidateStatus.REFUSED


def speaker_of(state: apsw.Connection, root_id: str) -> tuple[str, CandidateStatus] | None:
    """Return the eligible claim that speaks for a group, and the state of the group; ``None`` without an eligible one.

    The root of a group is its oldest claim, which may be an untrusted one: its text must not be shown in its place.
    """
    members = [claim for claim in _claims_of(state, root_id) if claim.eligible]
    if not members:
        return None
    speaker = min(members, key=_speaks_first)
    return speaker.claim_id, speaker.status


def load_groups(
    state: apsw.Connection, *, now_ms: int, max_age_days: int, roots: Iterable[str] = ()
) -> tuple[list[Candidate], list[Signal]]:
    """Return every group with a recent signal, and its signals; with ``roots`` those groups alone, signals or not.

    Claims that may be promoted and claims that may not are never counted together: a group that has both gives two
    candidates, so the recalls of an untrusted restatement lend nothing to the trusted claim.
    """
    wanted = _wanted_roots(state, now_ms - _AGE_LIMITS_KEPT * max_age_days * MS_PER_DAY, tuple(roots))
    claims = [claim for root in wanted for claim in _claims_of(state, root)]
    buckets: dict[tuple[str, bool], list[_Claim]] = {}
    for claim in claims:
        buckets.setdefault((claim.root_id, claim.eligible), []).append(claim)
    candidates = []
    group_of: dict[str, int] = {}
    for group_id, ((root_id, _), members) in enumerate(sorted(buckets.items(), key=lambda item: item[0])):
        candidates.append(_candidate(state, group_id, root_id, members))
        group_of.update((member.claim_id, group_id) for member in members)
    return candidates, [signal for claim in claims for signal in _signals_of(state, claim.claim_id, group_of)]


def _wanted_roots(state: apsw.Connection, since_ms: int, roots: tuple[str, ...]) -> list[str]:
    if roots:
        return sorted(set(roots))
    rows = query(
        state,
        "SELECT DISTINCT c.root_id FROM signals s JOIN claims c USING (claim_id) WHERE s.observed_at >= ? ORDER BY 1",
        (since_ms,),
    )
    return [root for (root,) in rows]


def _claims_of(state: apsw.Connection, root_id: str) -> list[_Claim]:
    rows = query(
        state,
        """SELECT c.claim_id, c.root_id, c.origin_class, c.session_kind, c.status,
                  coalesce(c.reason GLOB ?, 0), c.kind, c.concept_tags,
                  c.first_seen_at,
                  (SELECT min(e.path) FROM evidence e
                    WHERE e.claim_id = c.claim_id AND e.live = 1 AND e.source = 'note' AND e.echo = 0),
                  (SELECT min(e.path) FROM evidence e WHERE e.claim_id = c.claim_id AND e.live = 1)
             FROM claims c WHERE c.root_id = ? ORDER BY c.first_seen_at, c.claim_id""",
        (UNDONE_BY + "*", root_id),
    )
    return [
        _Claim(
            claim_id=claim_id,
            root_id=root,
            origin_class=OriginClass(origin),
            session_kind=SessionKind(kind),
            status=CandidateStatus(status),
            taken_back=bool(undone),
            kind=StatementKind(statement),
            tags=frozenset(tag for tag in tags.split("; ") if tag),
            first_seen_at=first_seen_at,
            note_path=note_path,
            live_path=live_path,
        )
        for claim_id, root, origin, kind, status, undone, statement, tags, first_seen_at, note_path, live_path in rows
    ]


def _candidate(state: apsw.Connection, group_id: int, root_id: str, members: list[_Claim]) -> Candidate:
    speaker = min(members, key=_speaks_first)
    hits = query(
        state,
        "SELECT light_hits, rem_hits, last_light_at, last_rem_at FROM phase_signals WHERE claim_id = ?",
        (root_id,),
    ) or [(0, 0, None, None)]
    return Candidate(
        group_id=group_id,
        claim_id=speaker.claim_id,
        root_id=root_id,
        path=speaker.note_path or speaker.live_path or "",
        live=any(member.live_path for member in members),
        origin_class=speaker.origin_class,
        session_kind=speaker.session_kind,
        status=speaker.status,
        tags=len(frozenset[str]().union(*(member.tags for member in members))),
        members=tuple(member.claim_id for member in members),
        light_hits=hits[0][0],
        rem_hits=hits[0][1],
        last_light_at=hits[0][2],
        last_rem_at=hits[0][3],
    )


def _speaks_first(claim: _Claim) -> tuple[bool, bool, int, bool, bool, bool, int, str]:
    """Order of the right to speak for a group: status, the form of a directive, a live note line, any place, age.

    What an undo took back decides for all its wordings, unless one of them stands in a file.
    """
    return (
        claim.status is not CandidateStatus.PROMOTED,
        not claim.taken_back,
        _STATUS_ORDER.index(claim.status),
        claim.kind is not StatementKind.DIRECTIVE,
        claim.note_path is None,
        claim.live_path is None,
        claim.first_seen_at,
        claim.claim_id,
    )


def _signals_of(state: apsw.Connection, claim_id: str, group_of: dict[str, int]) -> list[Signal]:
    rows = query(
        state,
        "SELECT kind, context, day, score, observed_at FROM signals WHERE claim_id = ? ORDER BY signal_id",
        (claim_id,),
    )
    return [Signal(group_of[claim_id], SignalKind(kind), *rest) for kind, *rest in rows]
