"""Closed claims that are stated anew: a value that returns, a fact that somebody states after its entry was taken back.

Belongs here: when such a claim waits again.
Does not belong here: what else a claim is made of its evidence (``claims``), whether it is then written (the gates, the
consolidation).

A claim is stated anew by a group: another wording of it counts as well. Only live places of owner or agent in
interactive sessions count, and nothing that merely repeats recalled memory. All functions run inside the caller's write
transaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from memory_assets.gates.loading import eligible
from recall_runtime.curated.effects import SUPERSEDED_BY
from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import CandidateStatus, Gate


@dataclass(frozen=True, slots=True)
class _Place:
    """Where and when a group was stated. ``counts``: by whom and how it must be to be stated anew."""

    at: int
    context: str
    counts: bool


def reopen(state: apsw.Connection, roots: Iterable[str]) -> list[str]:
    """Let the closed claims of the groups ``roots`` that were stated anew wait; return them.

    A superseded claim is stated anew by a place that is newer than every observation of what took its place; one that
    an undo took back by a session, or the day of a note without one, that had not stated it before the undo. A group
    with an entry in a curated file stays as it is.
    """
    reopened = []
    for root in sorted(set(roots)):
        members = query(
            state, "SELECT claim_id, status, reason, origin_class, session_kind FROM claims WHERE root_id = ?", (root,)
        )
        if any(status == CandidateStatus.PROMOTED for _, status, *_ in members):
            continue
        closed = [
            (claim_id, reason)
            for claim_id, _, reason, origin, kind in members
            if reason and reason.startswith((SUPERSEDED_BY, UNDONE_BY)) and eligible(origin, kind)
        ]
        places = _places(state, root) if closed else []
        reopened += [claim_id for claim_id, reason in closed if _stated_anew(state, claim_id, reason, places)]
    state.executemany(
        "UPDATE claims SET status = 'waiting', reason = NULL, promoted_at = NULL, entry_key = NULL WHERE claim_id = ?",
        [(claim_id,) for claim_id in reopened],
    )
    return reopened


def _places(state: apsw.Connection, root: str) -> list[_Place]:
    rows = query(
        state,
        """SELECT e.observed_at, coalesce('session:' || e.session_id, 'day:' || e.day), e.live AND NOT e.echo,
                  e.origin_class, e.session_kind
             FROM evidence e JOIN claims c USING (claim_id) WHERE c.root_id = ?""",
        (root,),
    )
    return [_Place(at, context, bool(counts) and eligible(origin, kind)) for at, context, counts, origin, kind in rows]


def _stated_anew(state: apsw.Connection, claim_id: str, reason: str, places: list[_Place]) -> bool:
    if reason.startswith(UNDONE_BY):
        since = _taken_back_at(state, reason)
        known = {place.context for place in places if place.at <= since}
        return any(place.counts and place.context not in known for place in places)
    since = _last_said(state, claim_id, reason.removeprefix(SUPERSEDED_BY))
    return any(place.counts and place.at > since for place in places)


def _taken_back_at(state: apsw.Connection, undo: str) -> int:
    """Return the instant of an undo, by the name its write has in the ledger."""
    return int(query(state, "SELECT coalesce(max(at), 0) FROM ledger WHERE sweep_id = ?", (undo,))[0][0])


def _last_said(state: apsw.Connection, claim_id: str, successor: str) -> int:
    """Return when what took a claim's place was last observed or asked for, and what took the place of that.

    ``USER.md`` alone is named where the file held a newer word that no claim stands behind: then it is the instant at
    which that was found, as long as its verdict is kept. The next sweep asks the file again.
    """
    seen: set[str] = set()
    last = 0
    key: str | None = successor
    while key is not None and key not in seen:
        seen.add(key)
        at, key = _observed(state, key)
        last = max(last, at or 0)
    if last:
        return last
    judged = query(
        state,
        "SELECT coalesce(max(s.started_at), 0) FROM gate_scores g JOIN sweeps s USING (sweep_id)"
        " WHERE g.claim_id = ? AND g.failed_gate = ?",
        (claim_id, Gate.SUPERSEDED),
    )
    return int(judged[0][0])


def _observed(state: apsw.Connection, entry_key: str) -> tuple[int | None, str | None]:
    """Return when the claims of an entry were last observed or asked for, and the entry that superseded it, if any."""
    claims = query(
        state,
        "SELECT claim_id FROM claims WHERE entry_key = ?1"
        " UNION SELECT claim_id FROM ledger WHERE entry_key = ?1 AND claim_id IS NOT NULL",
        (entry_key,),
    )
    times = [
        at
        for (claim_id,) in claims
        for (at,) in query(state, "SELECT max(observed_at) FROM evidence WHERE claim_id = ? AND echo = 0", (claim_id,))
    ]
    times += query(
        state, "SELECT max(at) FROM ledger WHERE entry_key = ? AND gate ->> '$.because' = 'remember'", (entry_key,)
    )[0]
    superseded = query(
        state,
        "SELECT substr(reason, ?) FROM claims WHERE entry_key = ? AND status = ? AND reason GLOB ?",
        (len(SUPERSEDED_BY) + 1, entry_key, CandidateStatus.SUPERSEDED, SUPERSEDED_BY + "*"),
    )
    return max((at for at in times if at is not None), default=None), superseded[0][0] if superseded else None
