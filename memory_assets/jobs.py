"""Jobs and the nightly schedule.

Belongs here: which assets run together, and when a sweep is due.
Does not belong here: what a sweep does (``memory_assets.sweep``), sensors (their own package).
https://docs.dagster.io/guides/automate/schedules
"""

import datetime as dt
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import dagster as dg

from recall_runtime.agent import DEFAULT_AGENT

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

SWEEP_JOB = "dreaming_sweep"
NOTES_JOB = "index_notes"
TRANSCRIPTS_JOB = "ingest_transcripts"

SWEEP_ASSETS = (
    ("episodic", "daily_notes"),
    ("episodic", "transcript_ingests"),
    ("episodic", "memory_index"),
    ("signals", "recall_signals"),
    ("dreaming", "staged_candidates"),
    ("dreaming", "rem_reflections"),
    ("dreaming", "gate_scores"),
    ("curated", "memory_md"),
    ("curated", "user_md"),
    ("review", "dreams_md"),
    ("analytics", "published_snapshot"),
)
_NOTES_ASSETS = (("episodic", "daily_notes"), ("episodic", "memory_index"))
_TRANSCRIPTS_ASSETS = (("episodic", "transcript_ingests"), ("episodic", "memory_index"))


def name_for(base: str, agent_id: str) -> str:
    """Return the name of a job, schedule or sensor of ``agent_id``: the bare one for the default agent."""
    if agent_id == DEFAULT_AGENT:
        return base
    return f"{base}_{''.join(sign if sign.isascii() and sign.isalnum() else '_' for sign in agent_id)}"


def jobs_of(agent_id: str) -> list["UnresolvedAssetJobDefinition"]:
    """Return the three jobs of ``agent_id``. In process: a step of its own costs seconds and fights for DuckDB."""
    return [
        dg.define_asset_job(
            name_for(base, agent_id),
            selection=dg.AssetSelection.assets(*(dg.AssetKey([agent_id, *path]) for path in paths)),
            executor_def=dg.in_process_executor,
            description=description,
        )
        for base, paths, description in (
            (SWEEP_JOB, SWEEP_ASSETS, "One night: read, stage, reflect, score, curate, report, publish."),
            (NOTES_JOB, _NOTES_ASSETS, "Index the notes that changed."),
            (TRANSCRIPTS_JOB, _TRANSCRIPTS_ASSETS, "Read the transcripts that ended."),
        )
    ]


def sweep_schedule(agent_id: str, *, cron: str, zone: str, running: bool) -> dg.ScheduleDefinition:
    """Return the schedule of the sweep: one run for each due time, in the workspace's zone.

    A sweep covers everything since the last one, so a machine that slept catches up with the most recent due time
    alone; the run key is that time, so that it never runs twice.
    """

    @dg.schedule(
        name=name_for("nightly_sweep", agent_id),
        job_name=name_for(SWEEP_JOB, agent_id),
        cron_schedule=cron,
        execution_timezone=zone,
        default_status=dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED,
        description="Starts the sweep of the night.",
    )
    def nightly_sweep(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        return due_run(context.scheduled_execution_time, zone)

    return nightly_sweep


def due_run(due: dt.datetime, zone: str) -> dg.RunRequest:
    """Return the run that is due at ``due``: keyed by the instant, in the cell of its day in ``zone``."""
    local = due.astimezone(ZoneInfo(zone))
    return dg.RunRequest(run_key=due.astimezone(dt.UTC).isoformat(), partition_key=local.date().isoformat())
