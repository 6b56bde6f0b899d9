"""Light phase: which groups are new, changed or recalled since they were last staged, in the order of their worth.

Belongs here: freshness, order, the cap, the marks left on the groups.
Does not belong here: reading, grouping and counting (the other modules), the report's text (``memory_assets.review``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, CandidateStatus, SessionKind

MAX_HITS = 9_999


@dataclass(frozen=True, slots=True)
class Staged:
    """What the light phase reinforced, best first, and what has to wait because of the cap."""

    roots: tuple[str, ...]
    waiting: tuple[str, ...]


def stage_groups(state: apsw.Connection, touched: Iterable[str], *, limit: int, now_ms: int) -> Staged:
    """Give a light hit to the groups in ``touched`` and to those that waited, at most ``limit`` of them.

    Only groups with a waiting claim that may be promoted are staged, none that an undo took back. Worth is the number
    of signals, then the time of the last one, then the time last stated; so a recalled group never waits for one that
    nobody asked for. Nothing is ever evicted: what waits is staged first-come by the same order in the next sweep.
    """
    roots = sorted(set(touched) | set(_never_staged(state)))
    ranked = sorted((worth for root in roots if (worth := _worth(state, root))), key=lambda worth: worth[:4])
    chosen = [worth[-1] for worth in ranked]
    state.executemany(
        """INSERT INTO phase_signals(claim_id, light_hits, last_light_at) VALUES (?, 1, ?)
           ON CONFLICT(claim_id) DO UPDATE SET
               light_hits = min(?, light_hits + 1), last_light_at = excluded.last_light_at""",
        [(root, now_ms, MAX_HITS) for root in chosen[:limit]],
    )
    return Staged(tuple(chosen[:limit]), tuple(chosen[limit:]))


def _never_staged(state: apsw.Connection) -> list[str]:
    """Return the groups without a light hit."""
    rows = query(
        state,
        """SELECT DISTINCT root_id FROM claims c
            WHERE status = 'waiting' AND NOT EXISTS (
                SELECT 1 FROM phase_signals p WHERE p.claim_id = c.root_id AND p.light_hits > 0)""",
    )
    return [root for (root,) in rows]


def _worth(state: apsw.Connection, root: str) -> tuple[int, int, int, str, str] | None:
    """Return a key that sorts the best group first, or ``None`` when nothing of it may be promoted."""
    rows = query(
        state,
        """SELECT c.status IN ('promoted', 'superseded') OR coalesce(c.reason GLOB ?, 0),
                  c.origin_class, c.session_kind, c.status, c.last_seen_at,
                  (SELECT count(*) FROM signals s WHERE s.claim_id = c.claim_id),
                  (SELECT coalesce(max(s.observed_at), 0) FROM signals s WHERE s.claim_id = c.claim_id)
             FROM claims c WHERE c.root_id = ?""",
        (UNDONE_BY + "*", root),
    )
    if any(closed for closed, *_ in rows):
        return None
    fit = [
        (seen_at, count, signal_at)
        for _, origin, kind, status, seen_at, count, signal_at in rows
        if origin in ELIGIBLE_ORIGINS and kind == SessionKind.INTERACTIVE and status == CandidateStatus.WAITING
    ]
    if not fit:
        return None
    signals = sum(row[1] for row in fit)
    return (-signals, -max(row[2] for row in fit), -max(row[0] for row in fit), root, root)
