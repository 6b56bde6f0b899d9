"""Group ``episodic``: notes, transcripts, and the index over both.

Belongs here: what was written and said, as far as it has been read.
Does not belong here: what it means (``dreaming``).
"""

from typing import Any

import dagster as dg

from memory_assets.assets.building import Days, cells_of, report, spec_of, step
from memory_assets.assets.counting import index_counts, note_counts, transcript_counts
from memory_assets.sweep import Sweep
from recall_runtime.index.sync import sync
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.nights import NightsResource


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``."""
    notes = spec_of(
        agent_id,
        "episodic/daily_notes",
        description="Notes of the workspace, one cell a day. The files are the data; nothing is copied.",
        kinds={"markdown"},
        partitions=days,
    )
    transcripts = spec_of(
        agent_id,
        "episodic/transcript_ingests",
        description="Session files, listed with what may be read of them. `memory_index` reads them.",
        kinds={"json"},
    )
    index = spec_of(
        agent_id,
        "episodic/memory_index",
        upstream=("episodic/daily_notes", "episodic/transcript_ingests"),
        description="The derived index: rows with provenance, words, vectors. May be deleted at any time.",
        kinds={"sqlite"},
    )

    def daily_notes(
        context: dg.AssetExecutionContext, agents: AgentsResource, clock: ClockResource
    ) -> dg.MaterializeResult[Any]:
        return report(notes.key, note_counts(agents.open(agent_id, clock.clock()), cells_of(context)))

    def transcript_ingests(agents: AgentsResource, clock: ClockResource) -> dg.MaterializeResult[Any]:
        return report(transcripts.key, transcript_counts(agents.open(agent_id, clock.clock())))

    def memory_index(agents: AgentsResource, clock: ClockResource, nights: NightsResource) -> dg.MaterializeResult[Any]:
        agent = agents.open(agent_id, clock.clock())
        if nights.is_sweep(agent_id):
            return report(index.key, index_counts(nights.step(agent, Sweep.index)))
        return report(index.key, index_counts(sync(agent)))

    return [
        step(agent_id, daily_notes, [notes]),
        step(agent_id, transcript_ingests, [transcripts]),
        step(agent_id, memory_index, [index]),
    ]
