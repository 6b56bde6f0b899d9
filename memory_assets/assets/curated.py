"""Group ``curated``: the two files an agent is given with every conversation.

Belongs here: the one step that consolidates what passed into both files.
Does not belong here: plans and validation (``memory_assets.consolidation``), the writer (``recall_runtime.curated``).
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import dagster as dg

from memory_assets.assets.building import Days, report, spec_of, step
from memory_assets.assets.counting import consolidation_counts, file_counts
from memory_assets.sweep import Sweep
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.nights import NightsResource

FRESH_FOR = dt.timedelta(hours=36)


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``. Only the present state of a file is true, so no cells."""
    memory = spec_of(
        agent_id,
        "curated/memory_md",
        upstream=("dreaming/gate_scores",),
        description="`MEMORY.md`: lasting facts, each with its source. Hash-checked, pre-image first.",
        kinds={"markdown"},
        freshness=dg.FreshnessPolicy.time_window(fail_window=FRESH_FOR),
    )
    user = spec_of(
        agent_id,
        "curated/user_md",
        upstream=("dreaming/gate_scores",),
        description="`USER.md`: standing directives of the owner, one active on each matter.",
        kinds={"markdown"},
    )

    def curated_files(
        agents: AgentsResource, clock: ClockResource, nights: NightsResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        curated = nights.step(agents.open(agent_id, clock.clock()), Sweep.curate)
        yield report(memory.key, file_counts(curated, MEMORY_FILE) | consolidation_counts(curated))
        yield report(user.key, file_counts(curated, USER_FILE))

    return [step(agent_id, curated_files, [memory, user])]
