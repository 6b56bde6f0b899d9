"""The order of one staging: read what changed, write claims, count signals, reinforce.

Belongs here: the sequence, its transactions, the accounting rows.
Does not belong here: the rules of each step (the other modules of this room).
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import apsw

from memory_assets.staging import claims, grouping, light, observations, recalls, reopening
from memory_assets.staging.reading import choose_sources, rows_of
from memory_assets.staging.records import StagingReport, Verdict
from memory_assets.staging.splitting import SplitSource, split
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of, start_of_day_ms
from recall_runtime.storage.connection import query, write_transaction
from recall_runtime.vocabulary import SessionKind

Progress = Callable[[int, int], None]  # sources done, sources in all


def stage(
    agent: Agent,
    *,
    sweep_id: str,
    now_ms: int,
    state: apsw.Connection,
    index: apsw.Connection,
    progress: Progress | None = None,
) -> StagingReport:
    """Bring claims, evidence and signals up to date with the index and the recall events.

    Two transactions: claims with their evidence, then signals with the marks of the light phase. Reading, splitting and
    attributing recalls happen outside of them. A crash in between loses nothing, because recall events stay pending
    until their signals are stored; a second run over the same input changes nothing.

    Args:
        agent: Whose memory; gives the zone and the settings of the light phase.
        sweep_id: Under which the accounting is kept.
        now_ms: The instant of the sweep.
        state: The state database, open for writing.
        index: The index, synced; only read.
        progress: Called with (sources done, sources in all).

    Raises:
        StoreLockedError: another process writes the state database for longer than we wait.
    """
    settings = agent.settings.dreaming.light
    hits, last_event = recalls.pending_hits(state)
    oldest = day_of(now_ms, agent.zone) - dt.timedelta(days=settings.lookback_days)
    choice = choose_sources(
        state,
        index,
        oldest_day=oldest,
        oldest_ms=start_of_day_ms(oldest, agent.zone),
        recalled={hit.path for hit in hits},
    )
    sources = []
    for number, source in enumerate(choice.to_read, start=1):
        sources.append(split(agent, source, rows_of(index, source)))
        if progress:
            progress(number, len(choice.to_read))
    with write_transaction(state):
        book = claims.ClaimBook(state, now_ms=now_ms)
        firsts = write_sources(state, book, sources, now_ms)
        drop_sources(state, book, choice.vanished)
        withdrawn = settle_groups(state, book.touched, book.new, threshold=settings.dedupe_similarity)
        _account(state, sweep_id, sources, firsts, waiting=())
    attribution = recalls.Attribution(state, index, recalls.Nearness(agent.settings.embedder))
    attributed = recalls.attribute(hits, attribution)
    with write_transaction(state):
        recalled, recalled_claims = recalls.drain(state, attributed, last_event)
        roots = roots_of(state, book.touched | recalled_claims)
        observed = observations.observe(state, roots)
        staged = light.stage_groups(state, roots, limit=settings.limit, now_ms=now_ms)
        verdicts = _account(state, sweep_id, sources, firsts, waiting=staged.waiting)
    return StagingReport(
        sources=len(sources),
        seen=sum(source.seen for source in sources),
        verdicts=verdicts,
        held_back=sum((source.held_back for source in sources), Counter[SessionKind]()),
        new_claims=len(book.new),
        gone=book.gone,
        withdrawn=withdrawn,
        recalls=recalled,
        bystanders=attributed.bystanders,
        unattributed=attributed.unattributed,
        observations=observed,
        staged=staged.roots,
        waiting=staged.waiting,
    )


def settle_groups(state: apsw.Connection, touched: Iterable[str], new: Iterable[str], *, threshold: float) -> int:
    """Work out the state of touched claims and of their groups; return how many claims were withdrawn."""
    touched = set(touched)
    claims.settle(state, touched)
    grouping.link(state, new, threshold=threshold)
    roots = roots_of(state, touched)
    reopened = reopening.reopen(state, roots)
    claims.settle(state, reopened)
    grouping.inherit(state, touched.union(reopened))
    return len(claims.withdraw(state, roots))


def roots_of(state: apsw.Connection, claim_ids: Iterable[str]) -> set[str]:
    """Return the roots of the groups that ``claim_ids`` belong to."""
    return {query(state, "SELECT root_id FROM claims WHERE claim_id = ?", (claim_id,))[0][0] for claim_id in claim_ids}


def write_sources(
    state: apsw.Connection, book: claims.ClaimBook, sources: Sequence[SplitSource], now_ms: int
) -> dict[str, list[str]]:
    """Store the evidence of ``sources``; return by path the candidates that brought a new claim."""
    firsts: dict[str, list[str]] = {}
    for source in sources:
        path = source.source.path
        may_be = {id(each) for each, candidate in zip(source.stated, source.candidates, strict=True) if candidate}
        taken = book.take(path, source.stated)
        firsts[path] = [each.claim_id for each, first in taken if first and id(each) in may_be]
        claims.name_projects(state, source.stated)
        state.execute(
            "INSERT OR REPLACE INTO staged_sources(path, hash, provenance_hash, batch, staged_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (path, source.source.hash, source.source.provenance_hash, book.batch, now_ms),
        )
    return firsts


def drop_sources(state: apsw.Connection, book: claims.ClaimBook, paths: Iterable[str]) -> None:
    """Note that ``paths`` are no longer there."""
    for path in paths:
        book.take(path, ())
        state.execute("DELETE FROM staged_sources WHERE path = ?", (path,))


def _account(
    state: apsw.Connection,
    sweep_id: str,
    sources: Sequence[SplitSource],
    firsts: Mapping[str, Sequence[str]],
    *,
    waiting: Iterable[str],
) -> dict[str, Counter[str]]:
    """Give every statement its verdict and store the sums of each source under the sweep."""
    late_roots = set(waiting)
    verdicts: dict[str, Counter[str]] = {}
    for source in sources:
        path = source.source.path
        counts = Counter(source.refused)
        new = firsts[path]
        late = sum(root in late_roots for claim in new for root in roots_of(state, [claim]))
        counts[Verdict.WAITING] = late
        counts[Verdict.TAKEN] = len(new) - late
        counts[Verdict.DUPLICATE] = sum(source.candidates) - len(new)
        verdicts[path] = +counts
        state.execute(
            "INSERT OR REPLACE INTO accounting_seen(sweep_id, source, lines) VALUES (?, ?, ?)",
            (sweep_id, path, source.seen),
        )
        state.execute("DELETE FROM accounting WHERE sweep_id = ? AND source = ?", (sweep_id, path))
        state.executemany(
            "INSERT INTO accounting(sweep_id, source, verdict, lines) VALUES (?, ?, ?, ?)",
            [(sweep_id, path, str(verdict), count) for verdict, count in sorted(verdicts[path].items())],
        )
    return verdicts
