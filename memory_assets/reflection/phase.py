"""One REM phase over the state database.

Belongs here: which traces are looked at, and the marks left on them.
Does not belong here: formulas (``formulas``), files.
"""

from dataclasses import dataclass

import apsw

from memory_assets.gates.loading import speaker_of
from memory_assets.reflection.formulas import CandidateTruth, Theme, Trace, find_themes, find_truths
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY
from recall_runtime.records import Anchor
from recall_runtime.storage.connection import query, write_transaction
from recall_runtime.vocabulary import CandidateStatus

MAX_HITS = 9_999

_CONSIDERED_NOW = "p.light_hits > 0 AND p.last_rem_considered_at = ?"
_PENDING = (
    "p.light_hits > 0 AND p.last_light_at > max(coalesce(p.last_rem_at, -1), coalesce(p.last_rem_considered_at, -1))"
)


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one REM phase found. ``reinforced`` is false when nothing new was staged since one before this instant."""

    traces: int
    themes: tuple[Theme, ...]
    truths: tuple[CandidateTruth, ...]
    reinforced: bool


def reflect(agent: Agent, *, now_ms: int, state: apsw.Connection) -> Reflection:
    """Look at what was staged since the last REM phase; mark it as considered, give the chosen truths a REM hit.

    With nothing new it looks back over ``dreaming.rem.lookback_days`` for the report's sake and marks nothing, so
    that a sweep over unchanged input changes no score. Called again at the same instant, as after a crash, it finds the
    same again and marks nothing. Untrusted and system text is never looked at.
    """
    settings = agent.settings.dreaming.rem
    pending = _traces(state, _PENDING, (), now_ms)
    again = [] if pending else _traces(state, _CONSIDERED_NOW, (now_ms,), now_ms)
    oldest = now_ms - settings.lookback_days * MS_PER_DAY
    traces = pending or again or _traces(state, "p.light_hits > 0 AND p.last_light_at >= ?", (oldest,), now_ms)
    themes = find_themes(traces, settings)
    truths = find_truths(traces, settings)
    if pending:
        with write_transaction(state):
            state.executemany(
                "UPDATE phase_signals SET last_rem_considered_at = ? WHERE claim_id = ?",
                [(now_ms, trace.claim_id) for trace in pending],
            )
            state.executemany(
                "UPDATE phase_signals SET rem_hits = min(?, rem_hits + 1), last_rem_at = ? WHERE claim_id = ?",
                [(MAX_HITS, now_ms, truth.claim_id) for truth in truths],
            )
    return Reflection(len(traces), tuple(themes), tuple(truths), reinforced=bool(pending or again))


def _traces(state: apsw.Connection, where: str, values: tuple[int, ...], now_ms: int) -> list[Trace]:
    """Return the staged groups that ``where`` (over ``phase_signals p``) selects, as traces keyed by their roots.

    What the sweep of this very instant promoted counts as not promoted yet: it was not when this phase ran.
    """
    rows = query(
        state,
        f"SELECT p.claim_id FROM phase_signals p WHERE {where} ORDER BY p.last_light_at DESC, p.claim_id",  # noqa: S608 - one of the constant conditions
        values,
    )
    traces = []
    for (root,) in rows:
        speaker = speaker_of(state, root)
        if speaker is not None and speaker[1] in (CandidateStatus.WAITING, CandidateStatus.PROMOTED):
            before = speaker[1] is CandidateStatus.PROMOTED and not _promoted_at(state, speaker[0], now_ms)
            traces.append(_trace(state, root, speaker[0], promoted=before))
    return traces


def _promoted_at(state: apsw.Connection, claim_id: str, now_ms: int) -> bool:
    return bool(query(state, "SELECT 1 FROM claims WHERE claim_id = ? AND promoted_at = ?", (claim_id, now_ms)))


def _trace(state: apsw.Connection, root_id: str, speaker: str, *, promoted: bool) -> Trace:
    ((text, tags),) = query(state, "SELECT text, concept_tags FROM claims WHERE claim_id = ?", (speaker,))
    ((signals, recalls, total, days),) = query(
        state,
        """SELECT count(*), coalesce(sum(s.kind = 'recall'), 0), total(s.score), count(DISTINCT s.day)
             FROM claims c JOIN signals s USING (claim_id)
            WHERE c.root_id = ? AND c.origin_class IN ('owner', 'agent') AND c.session_kind = 'interactive'""",
        (root_id,),
    )
    place = query(
        state,
        "SELECT path, start_line, end_line FROM evidence WHERE claim_id = ? AND live = 1"
        " ORDER BY source, observed_at, path LIMIT 1",
        (speaker,),
    )
    return Trace(
        claim_id=root_id,
        text=text,
        anchor=Anchor(*place[0]) if place else None,
        tags=tuple(tag for tag in tags.split("; ") if tag),
        recall_count=recalls,
        signal_count=signals,
        total_score=total,
        day_count=days,
        promoted=promoted,
    )
