"""Group ``review``: what the owner reads in the morning.

Belongs here: the step that writes the reports.
Does not belong here: their text (``memory_assets.review``).
"""

from typing import Any

import dagster as dg

from memory_assets.assets.building import Days, report, spec_of, step
from memory_assets.sweep import Sweep
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.nights import NightsResource


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``."""
    dreams = spec_of(
        agent_id,
        "review/dreams_md",
        upstream=("curated/memory_md", "curated/user_md"),
        description="`DREAMS.md` and the reports of the phases. Never a source of memory.",
        kinds={"markdown"},
    )

    def dreams_md(agents: AgentsResource, clock: ClockResource, nights: NightsResource) -> dg.MaterializeResult[Any]:
        agent = agents.open(agent_id, clock.clock())
        reviewed = nights.step(agent, Sweep.review)
        nights.finish(agent)
        return report(dreams.key, {"files_changed": len(reviewed.changed), "problems": len(reviewed.problems)})

    return [step(agent_id, dreams_md, [dreams])]
