"""One sweep now, in this process, recorded in the Dagster instance of the state folder.

Belongs here: running the job ``dreaming_sweep`` for the command line, without daemon or UI.
Does not belong here: printing; dry runs and single phases (``memory_assets.sweep.run_sweep``, without Dagster).
"""

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from memory_assets.dagster_home import prepare
from memory_assets.definitions import AgentPlan, build_defs
from memory_assets.jobs import SWEEP_JOB, name_for
from memory_assets.metadata import SWEEP_TAG
from memory_assets.partitions import cell_of, days_in
from memory_assets.sweep import sweep_id_of
from recall_runtime.agent import DEFAULT_AGENT, Agent, open_agent
from recall_runtime.clock import FixedClock, SystemClock, day_of, format_instant
from recall_runtime.errors import DreamlineError, StoreError
from recall_runtime.storage.connection import query
from recall_runtime.storage.schema import read_state
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.lineage_reload import reload_lineage
from resources.nights import NightsResource

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True)
class DreamRun:
    """One recorded sweep. What it did stands in the state database under ``sweep_id``.

    Attributes:
        sweep_id: Identity of the sweep (``sweeps.sweep_id``).
        run_id: Identity of the Dagster run.
        outcome: ``promoted`` or ``nothing_to_do``.
        reason: Why nothing was promoted, or ``None``.
        problems: What went wrong after the sweep itself had succeeded, such as a snapshot that could not be published.
    """

    sweep_id: str
    run_id: str
    outcome: str
    reason: str | None
    problems: tuple[str, ...] = ()


def run_dreaming(
    *,
    home: Path,
    agent_id: str = DEFAULT_AGENT,
    workspace: Path | None = None,
    now_ms: int | None = None,
) -> DreamRun:
    """Run one sweep of ``agent_id`` and return what became of it.

    Args:
        home: State folder; the Dagster instance is ``$DAGSTER_HOME`` or lies in it.
        agent_id: Whose memory.
        workspace: Workspace to use instead of the configured one.
        now_ms: Instant to take for now, milliseconds UTC; ``None``: the machine's time.

    Raises:
        StoreLockedError: another sweep of this agent is running.
        DreamlineError: the sweep failed; the row in ``sweeps`` says so too.
    """
    clock = SystemClock() if now_ms is None else FixedClock(now_ms)
    agent = open_agent(home=home, agent_id=agent_id, workspace=workspace, clock=clock)
    sweep_id = sweep_id_of(clock.now_ms())
    with dg.DagsterInstance.from_config(os.fspath(prepare(home))) as instance:
        run_id, problems = _execute(agent, sweep_id, instance, fixed_ms=now_ms)
    outcome, reason = _row(agent, sweep_id)
    if outcome is None:
        raise StoreError(f"Sweep {sweep_id} left no record", "Look at the run in `dreamline ui`.")
    reload_lineage()
    return DreamRun(sweep_id, run_id, outcome, reason, problems)


def _execute(
    agent: Agent, sweep_id: str, instance: dg.DagsterInstance, *, fixed_ms: int | None
) -> tuple[str, tuple[str, ...]]:
    agent_id, zone = agent.folders.agent_id, agent.settings.timezone
    resources = {
        "agents": AgentsResource(home=str(agent.folders.home), workspace=str(agent.workspace)),
        "clock": ClockResource(now="" if fixed_ms is None else format_instant(fixed_ms)),
        "nights": NightsResource(sweep_id=sweep_id),
    }
    cell = cell_of(day_of(agent.clock.now_ms(), agent.zone), days_in(zone))
    plan = AgentPlan(agent_id, zone=zone, cells=cell is not None)
    job = build_defs(home=agent.folders.home, agents=[plan], resources=resources).resolve_job_def(
        name_for(SWEEP_JOB, agent_id)
    )
    try:
        result = job.execute_in_process(
            instance=instance,
            partition_key=cell,
            run_config=_QUIET,
            tags={SWEEP_TAG: sweep_id},
        )
    except DreamlineError as error:
        runs = instance.get_run_records(dg.RunsFilter(tags={SWEEP_TAG: sweep_id}), limit=1)
        if runs and _row(agent, sweep_id)[0] in ("promoted", "nothing_to_do"):
            return runs[0].dagster_run.run_id, (str(error),)
        raise
    return result.run_id, ()


def _row(agent: Agent, sweep_id: str) -> tuple[str | None, str | None]:
    """Return outcome and reason of the sweep, or nothing when it left no row."""
    if not agent.folders.state_db.exists():
        return None, None
    with closing(read_state(agent.folders.state_db)) as state:
        rows = query(state, "SELECT outcome, reason FROM sweeps WHERE sweep_id = ?", (sweep_id,))
    return (rows[0][0], rows[0][1]) if rows else (None, None)
