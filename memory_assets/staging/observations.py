"""From repeated independent statements to observation signals.

Belongs here: what makes two statements independent, which claims repetition counts for, the routine rule.
Does not belong here: recalls (``recalls``), the gates.

A lone statement is the source of a claim, no signal. From the second independent context on each context is one
signal: a session, or the day of a note whose lines name no session. Repetition counts only for trusted claims of
interactive sessions that hold a telling value (``staging.values``) or are directives, and are no routine. Signals are
worked out anew from the live evidence of a group, so the order in which statements arrive does not matter and reading
again counts nothing.

An observation scores 1: somebody stated the very claim, so it is as relevant to itself as anything can be. With the
default gates three statements on three adjacent days score 0.755 in the following night with a single concept tag and
a single light hit (frequency 0.139, relevance 0.3, diversity 0.09, recency 0.145, consolidation 0.050, tag 0.01, light
hit 0.021); two statements never pass, because the gates ask for three signals.
"""

from collections.abc import Iterable

import apsw

from memory_assets.gates.loading import eligible
from memory_assets.staging.values import telling_values
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import SignalKind, StatementKind

OBSERVATION_SCORE = 1.0
_ROUTINE_CLAIMS = 4  # different values under one pattern …
_ROUTINE_DAYS = 4  # … on as many days: a job's line, not knowledge


def is_routine(state: apsw.Connection, pattern: str) -> bool:
    """Return whether many claims on many days differ from each other in nothing but their values."""
    claims, days = query(
        state,
        """SELECT count(DISTINCT c.claim_id), count(DISTINCT e.day)
             FROM claims c JOIN evidence e USING (claim_id) WHERE c.pattern = ?""",
        (pattern,),
    )[0]
    return bool(claims >= _ROUTINE_CLAIMS and days >= _ROUTINE_DAYS)


def may_repeat(state: apsw.Connection, text: str, kind: str, pattern: str) -> bool:
    """Return whether repetition of a claim says anything: it holds something specific and is no routine."""
    specific = kind == StatementKind.DIRECTIVE or bool(telling_values(text))
    return specific and not is_routine(state, pattern)


def observe(state: apsw.Connection, roots: Iterable[str]) -> int:
    """Bring the observation signals of the groups ``roots`` in line with their evidence.

    Returns the number of new signals. Runs inside the caller's write transaction.
    """
    added = 0
    for root in sorted(set(roots)):
        wanted = _wanted(state, root)
        present = {
            (claim_id, context, day)
            for claim_id, context, day in query(
                state,
                """SELECT s.claim_id, s.context, s.day FROM signals s JOIN claims c USING (claim_id)
                    WHERE c.root_id = ? AND s.kind = 'observation'""",
                (root,),
            )
        }
        state.executemany(
            "DELETE FROM signals WHERE kind = 'observation' AND claim_id = ? AND context = ? AND day = ?",
            sorted(present - wanted.keys()),
        )
        new = sorted(wanted.keys() - present)
        state.executemany(
            "INSERT INTO signals(claim_id, kind, context, day, score, observed_at, evidence_id)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(claim, SignalKind.OBSERVATION.value, context, day, OBSERVATION_SCORE, *wanted[claim, context, day])
             for claim, context, day in new],
        )  # fmt: skip
        added += len(new)
    return added


def _wanted(state: apsw.Connection, root: str) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return the observations a group has earned: (claim, context, day) with time and evidence."""
    first: dict[str, tuple[str, str, int, int]] = {}
    session_days: set[str] = set()
    open_days: dict[str, tuple[str, str, int, int]] = {}
    recalled_at = _recalled_at(state, root)
    for claim_id, day, session_id, at, evidence_id in _statements(state, root):
        place = (claim_id, day, at, evidence_id)
        if session_id is None:
            open_days.setdefault(day, place)
        elif recalled_at.get((session_id, day), at) >= at:
            first.setdefault(f"session:{session_id}", place)
            session_days.add(day)
    # A note line of no known session on a day when a session said the same is that session's own note.
    first.update((f"day:{day}", place) for day, place in open_days.items() if day not in session_days)
    if len(first) < 2:
        return {}
    return {(claim, context, day): (at, evidence) for context, (claim, day, at, evidence) in first.items()}


def _statements(state: apsw.Connection, root: str) -> list[tuple[str, str, str | None, int, int]]:
    """Return (claim, day, session, time, evidence) of the live statements of a group that may count, oldest first."""
    found = []
    for claim_id, text, kind, pattern, origin, session_kind in query(
        state, "SELECT claim_id, text, kind, pattern, origin_class, session_kind FROM claims WHERE root_id = ?", (root,)
    ):
        if not eligible(origin, session_kind) or not may_repeat(state, text, kind, pattern):
            continue
        found += [
            (claim_id, *row)
            for row in query(
                state,
                "SELECT day, session_id, observed_at, evidence_id FROM evidence"
                " WHERE claim_id = ? AND live = 1 AND echo = 0 AND batch IS NULL",
                (claim_id,),
            )
        ]
    return sorted(found, key=lambda row: (row[3], row[1], row[4]))


def _recalled_at(state: apsw.Connection, root: str) -> dict[tuple[str, str], int]:
    """Return by session and day when this group was first shown: what is said afterwards is not independent."""
    rows = query(
        state,
        """SELECT t.session_id, r.day, min(r.at) FROM claims c JOIN signals s USING (claim_id)
             JOIN recall_events r USING (event_id) JOIN transcripts t ON t.session_key = r.session_key
            WHERE c.root_id = ? AND t.session_id IS NOT NULL GROUP BY t.session_id, r.day""",
        (root,),
    )
    return {(session, day): at for session, day, at in rows}
