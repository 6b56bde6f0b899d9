"""The order of one sweep: index, light, REM, deep, curation, review, publishing.

Belongs here: the sequence, its lock, the row in ``sweeps``, dry runs. Each step can be called alone.
Does not belong here: the work of a step (the rooms), what a report says (``memory_assets.sweep_report``), Dagster.
"""

import contextlib
import dataclasses
import datetime as dt
import json
import tempfile
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from pathlib import Path

import apsw

from memory_assets import staging
from memory_assets.consolidation.apply import ConsolidationReport, consolidate
from memory_assets.gates import GateRow, score
from memory_assets.reflection import Reflection, reflect
from memory_assets.review.records import ReviewResult
from memory_assets.review.write import write_review
from memory_assets.staging import StagingReport
from memory_assets.sweep_report import SweepReport, outcome_of, review_of, written_review
from memory_assets.time_travel import is_past, past_workspace, rewind
from memory_assets.warehouse.publish import publish
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of, format_instant
from recall_runtime.curated.writer import recover
from recall_runtime.errors import DreamlineError, ModelError, StoreError
from recall_runtime.index.sync import sync
from recall_runtime.index.sync_report import Progress, SyncReport
from recall_runtime.models.protocol import ChatModel
from recall_runtime.models.registry import model_from
from recall_runtime.signals.recalls import drain_spool
from recall_runtime.storage.binding import take_over
from recall_runtime.storage.connection import open_reader, query, write_transaction
from recall_runtime.storage.locks import exclusive
from recall_runtime.storage.schema import open_state, read_index

LOCK_FILE = "sweep.lock"


class Phase(StrEnum):
    """Parts of a sweep that can be run alone. The index is synced before any of them."""

    LIGHT = "light"
    REM = "rem"
    DEEP = "deep"


class SweepStep(StrEnum):
    """Steps of a sweep in their order; ``on_step`` is called after each, and after each step of a write in between."""

    RECOVERED = "recovered"
    INDEXED = "indexed"
    STAGED = "staged"
    REFLECTED = "reflected"
    SCORED = "scored"
    CURATED = "curated"
    REVIEWED = "reviewed"
    FINISHED = "finished"


OnStep = Callable[[str], None]


class Sweep:
    """One sweep, opened. Its steps keep what they found for the ones after them and for the report.

    Args:
        agent: Whose memory.
        state: Its state database, open for writing.
        sweep_id: Identity of the sweep; the same id again continues the same sweep.
        now_ms: Its instant, milliseconds UTC.
        dry_run: Write neither curated nor review files, and publish nothing.
        on_step: Called after each step.
    """

    def __init__(
        self,
        agent: Agent,
        state: apsw.Connection,
        *,
        sweep_id: str,
        now_ms: int,
        dry_run: bool = False,
        on_step: OnStep | None = None,
    ) -> None:
        self.agent = agent
        self.sweep_id = sweep_id
        self.now_ms = now_ms
        self.dry_run = dry_run
        self._state = state
        self._on_step: OnStep = on_step or _no_hook
        self._indexed: SyncReport | None = None
        self._staged: StagingReport | None = None
        self._reflected: Reflection | None = None
        self._scored: tuple[GateRow, ...] = ()
        self._curated: ConsolidationReport | None = None
        self._reviewed: ReviewResult | None = None
        self._problems: list[str] = []

    def begin(self) -> None:
        """Finish or roll back what a crash left, and open the row of this sweep."""
        recovered = () if self.dry_run else recover(self.agent, self._state)
        self._problems += [
            f"a write of {each.file} by sweep {each.sweep_id} had been cut off and was "
            + ("finished" if each.finished else "rolled back")
            for each in recovered
        ]
        with write_transaction(self._state):
            self._state.execute(
                "INSERT INTO sweeps(sweep_id, day, started_at, outcome) VALUES (?, ?, ?, 'running')"
                " ON CONFLICT(sweep_id) DO NOTHING",
                (self.sweep_id, day_of(self.now_ms, self.agent.zone).isoformat(), self.now_ms),
            )
        self._on_step(SweepStep.RECOVERED)

    def index(self, *, progress: Progress | None = None) -> SyncReport:
        """Bring the index up to date."""
        self._indexed = sync(self.agent, progress=progress)
        self._on_step(SweepStep.INDEXED)
        return self._indexed

    def stage(self) -> StagingReport:
        """Light phase: claims, evidence, signals, reinforcement. Recall events that waited in the spool come first."""
        drain_spool(self.agent)
        with contextlib.closing(read_index(self.agent.folders.index_db)) as index:
            self._staged = staging.stage(
                self.agent, sweep_id=self.sweep_id, now_ms=self.now_ms, state=self._state, index=index
            )
        self._on_step(SweepStep.STAGED)
        return self._staged

    def reflect(self) -> Reflection:
        """REM phase: themes and candidate truths."""
        self._reflected = reflect(self.agent, now_ms=self.now_ms, state=self._state)
        self._on_step(SweepStep.REFLECTED)
        return self._reflected

    def score(self) -> tuple[GateRow, ...]:
        """Deep phase, first half: components and verdicts of every candidate with a recent signal."""
        self._scored = tuple(score(self.agent, sweep_id=self.sweep_id, now_ms=self.now_ms, state=self._state))
        self._on_step(SweepStep.SCORED)
        return self._scored

    def curate(self) -> ConsolidationReport:
        """Deep phase, second half: write what passed, by the verdicts stored under this sweep."""
        passed = query(
            self._state,
            "SELECT claim_id FROM gate_scores WHERE sweep_id = ?1 AND failed_gate IS NULL"
            " AND claim_id NOT IN (SELECT claim_id FROM ledger WHERE sweep_id = ?1 AND claim_id IS NOT NULL)"
            " ORDER BY detail ->> '$.place', score DESC, claim_id",
            (self.sweep_id,),
        )
        self._curated = consolidate(
            self.agent,
            self._state,
            sweep_id=self.sweep_id,
            now_ms=self.now_ms,
            passed=[claim_id for (claim_id,) in passed],
            model=self._model(),
            dry_run=self.dry_run,
            on_step=self._on_step,
        )
        self._on_step(SweepStep.CURATED)
        return self._curated

    def review(self) -> ReviewResult:
        """Write ``DREAMS.md`` and the phase reports, when there is something new to tell."""
        if self.dry_run:
            self._reviewed = ReviewResult()
        else:
            self._review_cut_off()
            shown = review_of(self.agent, self._state, self.report())
            self._reviewed = write_review(self.agent, shown, model=self._model())
            self._problems += self._reviewed.problems
            sync(self.agent)  # what was just written can be found, and fire as a trigger, from the next message on
        self._on_step(SweepStep.REVIEWED)
        return self._reviewed

    def _review_cut_off(self) -> None:
        """Tell what sweeps had written that died before they could, and close their rows.

        The lock is held, so whatever else is called running does not run.
        """
        rows = query(
            self._state,
            "SELECT sweep_id, started_at, day, EXISTS (SELECT 1 FROM ledger l WHERE l.sweep_id = sweeps.sweep_id)"
            " FROM sweeps WHERE outcome = 'running' AND sweep_id <> ? ORDER BY started_at",
            (self.sweep_id,),
        )
        for sweep_id, at, day, wrote in rows:
            if wrote:
                earlier = written_review(self._state, sweep_id, at=at, day=dt.date.fromisoformat(day))
                self._problems += write_review(self.agent, earlier).problems
            with write_transaction(self._state):
                self._state.execute(
                    "UPDATE sweeps SET finished_at = ?, outcome = ?, reason = 'it was cut off' WHERE sweep_id = ?",
                    (self.now_ms, "promoted" if wrote else "failed", sweep_id),
                )

    def finish(self) -> SweepReport:
        """Close the row of this sweep with outcome, reason and counts; return the whole report."""
        report = self.report()
        with write_transaction(self._state):
            self._state.execute(
                # A second run at the same instant finds nothing left to do; what the first one did stands.
                "UPDATE sweeps SET finished_at = ?, outcome = ?, reason = ?, counts = ? WHERE sweep_id = ?"
                " AND NOT (outcome = 'promoted' AND ? = 'nothing_to_do')",
                (
                    self.agent.clock.now_ms(),
                    report.outcome,
                    report.reason,
                    json.dumps(report.counts, sort_keys=True),
                    self.sweep_id,
                    report.outcome,
                ),
            )
            self._state.execute(
                # Nor did a run do nothing that was cut off after it had written.
                "UPDATE sweeps SET outcome = 'promoted', reason = NULL WHERE sweep_id = ?1"
                " AND outcome = 'nothing_to_do' AND EXISTS (SELECT 1 FROM ledger WHERE sweep_id = ?1)",
                (self.sweep_id,),
            )
        self._on_step(SweepStep.FINISHED)
        return report

    def publish(self) -> None:
        """Hand the state over to analysts; one of them who is in the way is no reason to fail."""
        try:
            publish(self.agent, state=self._state)
        except StoreError as error:
            self._problems.append(str(error))

    def fail(self, error: BaseException) -> None:
        """Close the row of this sweep as failed."""
        reason = str(error) if isinstance(error, DreamlineError) else type(error).__name__
        with contextlib.suppress(StoreError, apsw.Error), write_transaction(self._state):
            self._state.execute(
                "UPDATE sweeps SET finished_at = ?, outcome = 'failed', reason = ?"
                " WHERE sweep_id = ? AND outcome = 'running'",
                (self.agent.clock.now_ms(), reason, self.sweep_id),
            )

    def report(self) -> SweepReport:
        """Return what the steps found so far."""
        outcome, reason = outcome_of(
            self._staged, self._scored, self._curated, dry_run=self.dry_run, indexed=self._indexed
        )
        return SweepReport(
            sweep_id=self.sweep_id,
            day=day_of(self.now_ms, self.agent.zone),
            now_ms=self.now_ms,
            outcome=outcome,
            reason=reason,
            dry_run=self.dry_run,
            indexed=self._indexed,
            staged=self._staged,
            reflected=self._reflected,
            scored=self._scored,
            curated=self._curated,
            reviewed=self._reviewed,
            problems=tuple(self._problems),
        )

    def _model(self) -> ChatModel | None:
        try:
            return model_from(self.agent.settings.model)
        except ModelError as error:
            if str(error) not in self._problems:
                self._problems.append(str(error))
            return None


def sweep_id_of(now_ms: int) -> str:
    """Return the identity of the sweep at ``now_ms``: its instant in UTC. The same instant is the same sweep."""
    return format_instant(now_ms)


@contextlib.contextmanager
def open_sweep(
    agent: Agent, *, sweep_id: str | None = None, dry_run: bool = False, on_step: OnStep | None = None
) -> Iterator[Sweep]:
    """Open a sweep at the agent's present instant for the body, holding the sweep lock.

    A body that raises leaves a row that says ``failed`` and why. A dry run works on a copy of both databases, so it
    leaves no trace at all.

    Raises:
        StoreLockedError: another sweep of this agent is running.
    """
    now_ms = agent.clock.now_ms()
    with contextlib.ExitStack() as stack:
        if dry_run:
            agent = stack.enter_context(_copied(agent, now_ms))
        lock = agent.folders.agent_home / LOCK_FILE
        stack.enter_context(exclusive(lock, what=f"A sweep of agent {agent.folders.agent_id}"))
        state = stack.enter_context(contextlib.closing(open_state(agent.folders.state_db)))
        sweep = Sweep(
            agent, state, sweep_id=sweep_id or sweep_id_of(now_ms), now_ms=now_ms, dry_run=dry_run, on_step=on_step
        )
        try:
            sweep.begin()
            yield sweep
        except BaseException as error:
            sweep.fail(error)
            raise


def run_sweep(
    agent: Agent,
    *,
    sweep_id: str | None = None,
    dry_run: bool = False,
    phases: Collection[Phase] = tuple(Phase),
    publishing: bool = True,
    on_step: OnStep | None = None,
    progress: Progress | None = None,
) -> SweepReport:
    """Run one sweep at the agent's present instant and return what it did.

    Args:
        agent: Whose memory.
        sweep_id: Another identity than the instant, such as a run id.
        dry_run: Show what would happen; nothing is written anywhere.
        phases: Which phases are run; the index is synced in any case.
        publishing: Whether analysts get a new snapshot at the end.
        on_step: Called after each step (``SweepStep``) and each step of a write (``curated.writer.Step``).
        progress: Called by the index sync with (stage, done, total).

    Raises:
        StoreLockedError: another sweep of this agent is running.
        WorkspaceError: a curated file can't be read or written.
    """
    with open_sweep(agent, sweep_id=sweep_id, dry_run=dry_run, on_step=on_step) as sweep:
        sweep.index(progress=progress)
        if Phase.LIGHT in phases:
            sweep.stage()
        if Phase.REM in phases:
            sweep.reflect()
        if Phase.DEEP in phases:
            sweep.score()
            sweep.curate()
        sweep.review()
        report = sweep.finish()
        if publishing and not dry_run:
            sweep.publish()
    return report


@contextlib.contextmanager
def _copied(agent: Agent, now_ms: int) -> Iterator[Agent]:
    """Yield the agent with copies of its databases in a folder that goes away with the body.

    An instant before sweeps that were run already gets the state and the files as they were then.
    """
    with tempfile.TemporaryDirectory(prefix="dreamline-dry-run-") as folder:
        copy = dataclasses.replace(agent, folders=dataclasses.replace(agent.folders, home=Path(folder)))
        for source, target in (
            (agent.folders.state_db, copy.folders.state_db),
            (agent.folders.index_db, copy.folders.index_db),
        ):
            if source.exists():
                _copy_database(source, target)
        with contextlib.closing(open_state(copy.folders.state_db)) as state:
            if is_past(state, now_ms):
                workspace = Path(folder) / "workspace"
                workspace.mkdir()
                copy = past_workspace(copy, state, now_ms, workspace)
                rewind(state, now_ms)
        take_over(copy.folders)
        yield copy


def _copy_database(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        contextlib.closing(open_reader(source)) as live,
        contextlib.closing(apsw.Connection(str(target))) as copy,
        copy.backup("main", live, "main") as backup,
    ):
        backup.step(-1)


def _no_hook(step: str) -> None:
    """Do nothing after a step."""
