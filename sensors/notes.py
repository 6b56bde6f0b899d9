"""The sensor for changed notes.

Belongs here: listing the notes, turning changes into runs.
Does not belong here: cursor arithmetic (``sensors.changes``), finding files (``recall_runtime.index.files``).

A run reads every changed note anyway, so the first look at a workspace starts one run instead of one for each of its
days; after that every changed day gets a run in its own cell. The run key holds the content's signature: Dagster
uses a key once for ever, so a key made of the day alone would hide every later change of that day.
https://docs.dagster.io/guides/automate/sensors
"""

import datetime as dt
from collections.abc import Iterable

import dagster as dg

from memory_assets.jobs import NOTES_JOB, name_for
from memory_assets.metadata import SIGNATURE_TAG
from memory_assets.partitions import cell_of
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.errors import DreamlineError
from recall_runtime.index.files import find_files
from recall_runtime.paths import note_day, tier_of
from recall_runtime.vocabulary import Tier
from resources.agents import AgentsResource
from sensors.changes import Cursor, FileStamp, changes_since, signature_of

MOST_FILES = 50
MOST_RUNS = 5


def note_stamps(agent: Agent) -> list[FileStamp]:
    """Return a stamp of every note of ``agent``; curated and review files are written by sweeps and start none."""
    return [
        FileStamp(file.path, file.mtime_ns, file.size)
        for file in find_files(agent.workspace).files
        if tier_of(file.path) in (Tier.EPISODIC, Tier.IMPORTS)
    ]


def runs_for(
    batch: Iterable[FileStamp],
    *,
    days: dg.DailyPartitionsDefinition,
    today: dt.date,
    first_look: bool,
    agent_id: str,
) -> list[dg.RunRequest]:
    """Return the runs for ``batch``: one per day, or one in all at first look and when too many days changed."""
    by_cell: dict[str, list[FileStamp]] = {}
    for stamp in batch:
        day = note_day(stamp.path)
        cell = cell_of(day, days) if day else None
        by_cell.setdefault(cell or today.isoformat(), []).append(stamp)
    if first_look or len(by_cell) > MOST_RUNS:
        by_cell = {today.isoformat(): [stamp for stamps in by_cell.values() for stamp in stamps]}
    return [
        dg.RunRequest(
            run_key=f"{agent_id}:notes:{cell}:{signature_of(stamps)}",
            partition_key=cell,
            tags={SIGNATURE_TAG: signature_of(stamps)},
        )
        for cell, stamps in sorted(by_cell.items())
        if stamps
    ]


def changed_notes_sensor(agent_id: str, *, days: dg.DailyPartitionsDefinition, running: bool) -> dg.SensorDefinition:
    """Return the sensor of ``agent_id``."""

    @dg.sensor(
        name=name_for("changed_notes", agent_id),
        job_name=name_for(NOTES_JOB, agent_id),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="Indexes notes soon after they were written.",
    )
    def changed_notes(context: dg.SensorEvaluationContext, agents: AgentsResource) -> dg.SensorResult | dg.SkipReason:
        try:
            agent = agents.open(agent_id)
        except DreamlineError as error:
            return dg.SkipReason(str(error))
        now_ms = agent.clock.now_ms()
        cursor = Cursor.loads(context.cursor)
        cap = 1_000_000 if cursor.is_new else MOST_FILES
        changes = changes_since(cursor, note_stamps(agent), now_ns=now_ms * 1_000_000, cap=cap)
        runs = runs_for(
            changes.batch,
            days=days,
            today=day_of(now_ms, agent.zone),
            first_look=cursor.is_new,
            agent_id=agent_id,
        )
        skip = None if runs else f"No note changed; {changes.unsettled} still being written."
        return dg.SensorResult(run_requests=runs, skip_reason=skip, cursor=changes.cursor.dumps())

    return changed_notes
