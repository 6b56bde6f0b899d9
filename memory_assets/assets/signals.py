"""Group ``signals``: what replies were shown.

Belongs here: taking in what the runtime recorded.
Does not belong here: what counts as a signal (``memory_assets.staging``).
"""

import contextlib
from typing import Any

import dagster as dg

from memory_assets.assets.building import Days, report, spec_of, step
from memory_assets.assets.counting import recall_counts
from recall_runtime.signals.recalls import drain_spool
from recall_runtime.storage.schema import open_state
from resources.agents import AgentsResource
from resources.clock import ClockResource


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``."""
    recalls = spec_of(
        agent_id,
        "signals/recall_signals",
        upstream=("episodic/memory_index",),
        description="What replies were shown, as the runtime recorded it. Staging turns it into signals.",
        kinds={"sqlite"},
        partitions=days,
    )

    def recall_signals(agents: AgentsResource, clock: ClockResource) -> dg.MaterializeResult[Any]:
        agent = agents.open(agent_id, clock.clock())
        taken = drain_spool(agent)
        with contextlib.closing(open_state(agent.folders.state_db)) as state:
            return report(recalls.key, recall_counts(state) | {"taken_from_spool": taken})

    return [step(agent_id, recall_signals, [recalls])]
