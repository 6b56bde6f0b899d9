"""Backfill: old notes and sessions, staged as grounded signals that can be taken back.

Belongs here: preview, staging and rollback of a range of days outside the look-back.
Does not belong here: the nightly staging (``stage``), promotion.

A statement of the past gets one grounded signal a context (its session, else its day), dated with its own day and
observed at the time of the backfill, since somebody asked for it now. The rule of repetition is that of observations:
something specific, no routine. A source that was staged before is left alone.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import apsw

from memory_assets.gates.loading import eligible
from memory_assets.staging import claims, grouping, observations
from memory_assets.staging.reading import evidence_day, rows_of, unstaged_sources
from memory_assets.staging.splitting import SplitSource, split
from memory_assets.staging.stage import roots_of, settle_groups, write_sources
from recall_runtime.agent import Agent
from recall_runtime.storage.connection import query, write_transaction
from recall_runtime.vocabulary import SignalKind, Tier

GROUNDED_SCORE = 0.9  # as the worked example of openclaw-algorithms 24.5


class BackfillKind(StrEnum):
    """What is read."""

    NOTES = "notes"
    SESSIONS = "sessions"


_TIERS = {BackfillKind.NOTES: Tier.EPISODIC, BackfillKind.SESSIONS: Tier.SESSIONS}


@dataclass(frozen=True, slots=True)
class BackfillItem:
    """One source of a backfill: candidates in it, and its refusals by reason."""

    path: str
    day: str
    candidates: int
    refused: Counter[str]


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What a backfill would stage (``batch`` is ``None``) or has staged under the name ``batch``."""

    batch: str | None
    items: tuple[BackfillItem, ...]
    new_claims: int = 0
    signals: int = 0


@dataclass(frozen=True, slots=True)
class RollbackReport:
    """What a rollback took back. Claims that were promoted meanwhile stay, with their evidence."""

    signals: int
    places: int
    claims: int


def preview(
    agent: Agent,
    kind: BackfillKind,
    *,
    index: apsw.Connection,
    state: apsw.Connection,
    first_day: dt.date | None = None,
    last_day: dt.date | None = None,
) -> BackfillReport:
    """Return what a backfill of these days would stage; writes nothing."""
    found = _read(agent, kind, state, index, first_day, last_day)
    return BackfillReport(None, tuple(_item(source, day) for source, day in found))


def stage_backfill(
    agent: Agent,
    kind: BackfillKind,
    *,
    batch: str,
    now_ms: int,
    index: apsw.Connection,
    state: apsw.Connection,
    first_day: dt.date | None = None,
    last_day: dt.date | None = None,
) -> BackfillReport:
    """Stage the days as grounded signals under the name ``batch``. Days both included; none means no bound.

    Sources are remembered as staged, so a backfill that was cut off goes on where it stopped.

    Raises:
        StoreLockedError: another process writes the state database for longer than we wait.
    """
    found = list(_read(agent, kind, state, index, first_day, last_day))
    sources = [source for source, _ in found]
    with write_transaction(state):
        book = claims.ClaimBook(state, now_ms=now_ms, batch=batch)
        write_sources(state, book, sources, now_ms)
        settle_groups(state, book.touched, book.new, threshold=agent.settings.dreaming.light.dedupe_similarity)
        signals = _ground(state, sources, batch, now_ms)
    return BackfillReport(batch, tuple(_item(source, day) for source, day in found), len(book.new), signals)


def rollback(state: apsw.Connection, batch: str) -> RollbackReport:
    """Take back everything ``batch`` staged; what else is known of the same claims stays as it is."""
    with write_transaction(state):
        touched = {
            claim for (claim,) in query(state, "SELECT DISTINCT claim_id FROM evidence WHERE batch = ?", (batch,))
        }
        roots = roots_of(state, touched)
        state.execute("DELETE FROM signals WHERE batch = ?", (batch,))
        signals = state.changes()
        state.execute(
            "UPDATE evidence SET batch = NULL WHERE batch = ? AND claim_id IN"
            " (SELECT claim_id FROM claims WHERE status IN ('promoted', 'superseded'))",
            (batch,),
        )
        state.execute("DELETE FROM evidence WHERE batch = ?", (batch,))
        places = state.changes()
        state.execute("DELETE FROM staged_sources WHERE batch = ?", (batch,))
        gone = [
            claim
            for claim in sorted(touched)
            if not query(state, "SELECT 1 FROM evidence WHERE claim_id = ? LIMIT 1", (claim,))
        ]
        state.executemany("DELETE FROM claims WHERE claim_id = ?", [(claim,) for claim in gone])
        for root in sorted(roots):
            grouping.reroot(state, root)
        left = touched - set(gone)
        claims.settle(state, left)
        grouping.inherit(state, left)
        claims.withdraw(state, roots_of(state, left))
    return RollbackReport(signals, places, len(gone))


def _read(
    agent: Agent,
    kind: BackfillKind,
    state: apsw.Connection,
    index: apsw.Connection,
    first_day: dt.date | None,
    last_day: dt.date | None,
) -> Iterator[tuple[SplitSource, str]]:
    """Yield the sources of the days that were never staged, oldest first, with their day."""
    for source in unstaged_sources(state, index, _TIERS[kind]):
        rows = rows_of(index, source)
        if not rows:
            continue
        day = evidence_day(source, rows[0], agent.zone)
        if (first_day and day < first_day.isoformat()) or (last_day and day > last_day.isoformat()):
            continue
        yield split(agent, source, rows), day


def _item(source: SplitSource, day: str) -> BackfillItem:
    return BackfillItem(source.source.path, day, sum(source.candidates), Counter(source.refused))


def _ground(state: apsw.Connection, sources: Sequence[SplitSource], batch: str, now_ms: int) -> int:
    """Give each fit statement its grounded signal, one a claim and context; return how many were new."""
    added = 0
    for source in sources:
        for each, candidate in zip(source.stated, source.candidates, strict=True):
            if not candidate or each.echo or not _counts(state, each.claim_id):
                continue
            context = f"session:{each.session_id}" if each.session_id else f"day:{each.day}"
            state.execute(
                "INSERT INTO signals(claim_id, kind, context, day, score, observed_at, batch)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(claim_id, kind, context, day) DO NOTHING",
                (each.claim_id, SignalKind.GROUNDED.value, context, each.day, GROUNDED_SCORE, now_ms, batch),
            )
            added += state.changes()
    return added


def _counts(state: apsw.Connection, claim_id: str) -> bool:
    ((text, kind, pattern, origin, session_kind),) = query(
        state, "SELECT text, kind, pattern, origin_class, session_kind FROM claims WHERE claim_id = ?", (claim_id,)
    )
    return eligible(origin, session_kind) and observations.may_repeat(state, text, kind, pattern)
