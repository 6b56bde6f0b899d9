"""Sensors that answer to runs: load the lineage again after a sweep, show a sweep that failed.

Belongs here: reactions to the end of runs.
Does not belong here: the request itself (``resources.lineage_reload``), the outcome in the state database (the sweep
writes it).
https://docs.dagster.io/guides/automate/run-status-sensors
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from resources.lineage_reload import reload_lineage

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition


def reload_lineage_sensor(sweeps: Sequence["UnresolvedAssetJobDefinition"], *, running: bool) -> dg.SensorDefinition:
    """Return the sensor that has the UI load the location ``lineage``, and only that, after each sweep."""

    @dg.run_status_sensor(
        run_status=dg.DagsterRunStatus.SUCCESS,
        name="reload_lineage",
        monitored_jobs=list(sweeps),
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="Shows the entries of the last sweep in the lineage. Best effort: without a UI nothing is wrong.",
    )
    def reload_after_sweep(context: dg.RunStatusSensorContext) -> dg.SkipReason | None:
        problem = reload_lineage()
        return dg.SkipReason(f"Lineage not reloaded: {problem}.") if problem else None

    return reload_after_sweep


def sweep_failure_sensor(
    sweeps: Sequence["UnresolvedAssetJobDefinition"], *, agents: Sequence[str], running: bool
) -> dg.SensorDefinition:
    """Return the sensor that puts a failed sweep on the page of the file that stayed as it was."""
    agent_of = {job.name: agent_id for job, agent_id in zip(sweeps, agents, strict=True)}

    @dg.run_failure_sensor(
        name="sweep_failed",
        monitored_jobs=list(sweeps),
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="Notes a failed sweep on curated/memory_md, whose freshness turns red after 36 hours.",
    )
    def sweep_failed(context: dg.RunFailureSensorContext) -> None:
        run = context.dagster_run
        failed = sorted(event.step_key for event in context.get_step_failure_events() if event.step_key)
        context.instance.report_runless_asset_event(
            dg.AssetObservation(
                asset_key=dg.AssetKey([agent_of[run.job_name], "curated", "memory_md"]),
                description="The sweep failed; the curated files are as the last good sweep left them.",
                metadata={"failed_run": dg.MetadataValue.dagster_run(run.run_id), "failed_steps": len(failed)},
            )
        )

    return sweep_failed
