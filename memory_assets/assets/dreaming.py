"""Group ``dreaming``: the three phases up to the verdicts. None of them touches a curated file.

Belongs here: light, REM, and the scores of the deep phase, one cell a night.
Does not belong here: what is written (``curated``).
"""

from typing import Any

import dagster as dg

from memory_assets.assets.building import POOL, Days, report, spec_of, step
from memory_assets.assets.counting import gate_counts, reflection_counts
from memory_assets.sweep import Sweep
from memory_assets.sweep_report import staging_counts
from resources.agents import AgentsResource
from resources.clock import ClockResource
from resources.nights import NightsResource


def assets_of(agent_id: str, days: Days | None) -> list[dg.AssetsDefinition]:
    """Return the assets of this group for ``agent_id``."""
    staged = spec_of(
        agent_id,
        "dreaming/staged_candidates",
        upstream=("episodic/memory_index", "signals/recall_signals"),
        description="Light phase: statements become claims with evidence and signals, each counted once.",
        kinds={"sqlite"},
        partitions=days,
    )
    reflections = spec_of(
        agent_id,
        "dreaming/rem_reflections",
        upstream=("dreaming/staged_candidates",),
        description="REM phase: themes and candidate truths; reinforces, never writes long-term memory.",
        kinds={"sqlite"},
        partitions=days,
    )
    scores = spec_of(
        agent_id,
        "dreaming/gate_scores",
        upstream=("dreaming/rem_reflections",),
        description="Deep phase: six components, every gate with its threshold, one verdict a candidate.",
        kinds={"duckdb", "sql"},
        partitions=days,
    )

    def staged_candidates(
        agents: AgentsResource, clock: ClockResource, nights: NightsResource
    ) -> dg.MaterializeResult[Any]:
        return report(staged.key, staging_counts(nights.step(agents.open(agent_id, clock.clock()), Sweep.stage)))

    def rem_reflections(
        agents: AgentsResource, clock: ClockResource, nights: NightsResource
    ) -> dg.MaterializeResult[Any]:
        return report(
            reflections.key, reflection_counts(nights.step(agents.open(agent_id, clock.clock()), Sweep.reflect))
        )

    def gate_scores(agents: AgentsResource, clock: ClockResource, nights: NightsResource) -> dg.MaterializeResult[Any]:
        return report(scores.key, gate_counts(nights.step(agents.open(agent_id, clock.clock()), Sweep.score)))

    return [
        step(agent_id, staged_candidates, [staged]),
        step(agent_id, rem_reflections, [reflections]),
        step(agent_id, gate_scores, [scores], pool=POOL),
    ]
