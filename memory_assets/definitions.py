"""The code location ``memory``: assets, checks, jobs, schedule and sensors of every configured agent.

Belongs here: putting them together, and policies that hold for all of them.
Does not belong here: what they do (``assets``, ``checks``, ``jobs``, ``sensors``), the lineage (its own location).
https://docs.dagster.io/guides/build/projects-and-components/organizing-dagster-projects
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from memory_assets.assets import analytics, curated, dreaming, episodic, review, signals
from memory_assets.checks import checks_of
from memory_assets.jobs import jobs_of, sweep_schedule
from memory_assets.metadata import AGENT_TAG
from memory_assets.partitions import days_in
from recall_runtime.agent import DEFAULT_AGENT, default_home
from recall_runtime.clock import zone_of
from recall_runtime.config import DreamingSettings, configured_agents, load_settings
from recall_runtime.errors import ConfigError
from recall_runtime.text.escaping import markdown
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.nights import NightsResource
from sensors.notes import changed_notes_sensor
from sensors.runs import reload_lineage_sensor, sweep_failure_sensor
from sensors.transcripts import ended_transcripts_sensor


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """What the definitions of one agent depend on.

    ``problem`` says why it can't run as it is. ``cells`` is false for a single run on a day that has no cell, such as
    a replay with the clock in the future; Dagster can't run partitioned assets without a partition.
    """

    agent_id: str
    zone: str = "UTC"
    cron: str = DreamingSettings().frequency
    running: bool = False
    cells: bool = True
    problem: str | None = None


def plan_for(agent_id: str, home: Path) -> AgentPlan:
    """Return the plan of ``agent_id``. Never raises: a location that can't load loses its schedule and cursors."""
    try:
        settings = load_settings(home, agent_id)
        zone_of(settings.timezone)
    except ConfigError as error:
        return AgentPlan(agent_id, problem=str(error))
    cron = settings.dreaming.frequency
    if not _is_cron(cron):
        problem = f"dreaming.frequency {cron!r} is no cron expression. Correct it in dreamline.toml."
        return AgentPlan(agent_id, zone=settings.timezone, problem=problem)
    if settings.workspace is None:
        problem = "No workspace is set. Run `dreamline --workspace DIR init`, then reload this location."
        return AgentPlan(agent_id, zone=settings.timezone, cron=cron, problem=problem)
    return AgentPlan(agent_id, zone=settings.timezone, cron=cron, running=settings.dreaming.enabled)


def _is_cron(expression: str) -> bool:
    try:
        dg.ScheduleDefinition(name="probe", job_name="probe", cron_schedule=expression)
    except dg.DagsterInvalidDefinitionError:
        return False
    return True


def plans(home: Path) -> list[AgentPlan]:
    """Return the plan of every agent configured below ``home``."""
    try:
        return [plan_for(agent_id, home) for agent_id in configured_agents(home)]
    except ConfigError as error:
        return [AgentPlan(DEFAULT_AGENT, problem=str(error))]


def build_defs(
    *,
    home: Path | None = None,
    agents: Sequence[AgentPlan] | None = None,
    resources: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """Return the definitions.

    Args:
        home: State folder; ``None``: ``$DREAMLINE_HOME``, or ``~/.dreamline``.
        agents: Plans to build instead of the configured ones.
        resources: Resources that replace the default ones of the same name.
    """
    home = home or default_home()
    chosen = plans(home) if agents is None else list(agents)
    running = any(plan.running for plan in chosen)
    sweeps = [jobs_of(plan.agent_id)[0] for plan in chosen]
    defaults = {"agents": AgentsResource(home=str(home)), "clock": ClockResource(), "nights": NightsResource()}
    shared = dg.Definitions(
        resources=defaults | dict(resources or {}),
        executor=dg.in_process_executor,
        sensors=[
            reload_lineage_sensor(sweeps, running=running),
            sweep_failure_sensor(sweeps, agents=[plan.agent_id for plan in chosen], running=running),
        ],
    )
    return dg.Definitions.merge(*(_agent_defs(plan) for plan in chosen), shared)


def _agent_defs(plan: AgentPlan) -> dg.Definitions:
    agent_id, days = plan.agent_id, days_in(plan.zone)
    groups = (episodic, signals, dreaming, curated, review, analytics)
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = [
        asset for group in groups for asset in group.assets_of(agent_id, days if plan.cells else None)
    ]
    if plan.problem:
        assets.append(_problem(plan))
    return dg.Definitions(
        assets=assets,
        asset_checks=checks_of(agent_id),
        jobs=jobs_of(agent_id),
        schedules=[sweep_schedule(agent_id, cron=plan.cron, zone=plan.zone, running=plan.running)],
        sensors=[
            changed_notes_sensor(agent_id, days=days, running=plan.running),
            ended_transcripts_sensor(agent_id, running=plan.running),
        ],
    )


def _problem(plan: AgentPlan) -> dg.AssetSpec:
    """Return the asset that tells a person in the UI what keeps this agent from dreaming."""
    return dg.AssetSpec(
        key=dg.AssetKey([plan.agent_id, "setup_needed"]),
        description=markdown(plan.problem or ""),
        tags={AGENT_TAG: plan.agent_id},
        group_name="setup",
    )


defs = build_defs()
