"""The sensor for ended transcripts.

Belongs here: telling which sessions have ended.
Does not belong here: cursor arithmetic (``sensors.changes``), finding and reading them
(``recall_runtime.transcripts``).

A session file grows while the session lasts. It counts as ended when it was quiet for half an hour; one that grows
again later is simply read on from where we stopped. All that ended since the last tick go into one run.
"""

import dagster as dg

from memory_assets.jobs import TRANSCRIPTS_JOB, name_for
from memory_assets.metadata import SIGNATURE_TAG
from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError
from recall_runtime.transcripts.sources import list_transcripts
from resources.agents import AgentsResource
from sensors.changes import Cursor, FileStamp, changes_since

MOST_FILES = 200
QUIET_NS = 30 * 60 * 1_000_000_000


def transcript_stamps(agent: Agent) -> list[FileStamp]:
    """Return a stamp of every session file of ``agent`` that may be read."""
    return [
        FileStamp(file.name, file.mtime_ns, file.size)
        for file in list_transcripts(agent)
        if file.excluded_reason is None
    ]


def ended_transcripts_sensor(agent_id: str, *, running: bool) -> dg.SensorDefinition:
    """Return the sensor of ``agent_id``."""

    @dg.sensor(
        name=name_for("ended_transcripts", agent_id),
        job_name=name_for(TRANSCRIPTS_JOB, agent_id),
        minimum_interval_seconds=120,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="Reads session files once they were quiet for half an hour.",
    )
    def ended_transcripts(
        context: dg.SensorEvaluationContext, agents: AgentsResource
    ) -> dg.SensorResult | dg.SkipReason:
        try:
            agent = agents.open(agent_id)
        except DreamlineError as error:
            return dg.SkipReason(str(error))
        changes = changes_since(
            Cursor.loads(context.cursor),
            transcript_stamps(agent),
            now_ns=agent.clock.now_ms() * 1_000_000,
            cap=MOST_FILES,
            settled_ns=QUIET_NS,
        )
        cursor = changes.cursor.dumps()
        if not changes.batch:
            return dg.SensorResult(skip_reason=f"No session ended; {changes.unsettled} still open.", cursor=cursor)
        run = dg.RunRequest(
            run_key=f"{agent_id}:transcripts:{changes.signature}", tags={SIGNATURE_TAG: changes.signature}
        )
        return dg.SensorResult(run_requests=[run], cursor=cursor)

    return ended_transcripts
