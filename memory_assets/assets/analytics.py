"""Group ``analytics``: what analysts open.

Belongs here: the step that publishes the snapshot.
Does not belong here: its tables (``memory_assets.warehouse``).
"""

import contextlib
from typing import Any

import dagster as dg

from memory_assets.assets.building import POOL, Days, report, spec_of, step
from memory_assets.assets.counting import publish_counts
from memory_assets.warehouse.publish import publish
from recall_runtime.storage.schema import open_state
from resources.agents import AgentsResource
from resources.clock import ClockResource


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``."""
    snapshot = spec_of(
        agent_id,
        "analytics/published_snapshot",
        upstream=("review/dreams_md",),
        description="`recall.duckdb` and Parquet, swapped whole: an open reader keeps what it opened.",
        kinds={"duckdb", "parquet"},
    )

    def published_snapshot(agents: AgentsResource, clock: ClockResource) -> dg.MaterializeResult[Any]:
        agent = agents.open(agent_id, clock.clock())
        with contextlib.closing(open_state(agent.folders.state_db)) as state:
            return report(snapshot.key, publish_counts(publish(agent, state=state)))

    return [step(agent_id, published_snapshot, [snapshot], pool=POOL)]
