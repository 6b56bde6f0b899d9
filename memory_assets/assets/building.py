"""How an asset of the pipeline is declared and what it reports.

Belongs here: the decorator all groups share, the result made of counts.
Does not belong here: bodies of assets.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from memory_assets.jobs import name_for
from memory_assets.metadata import AGENT_TAG, numbers_only

Days = dg.DailyPartitionsDefinition
POOL = "duckdb"  # one step at a time: DuckDB lets one process write, and a sweep is one process


def spec_of(
    agent_id: str,
    path: str,
    *,
    description: str,
    kinds: set[str],
    upstream: Sequence[str] = (),
    partitions: Days | None = None,
    freshness: dg.FreshnessPolicy | None = None,
) -> dg.AssetSpec:
    """Return the spec of ``group/name`` for ``agent_id``, downstream of other ``group/name`` of the same agent."""
    return dg.AssetSpec(
        key=key_of(agent_id, path),
        deps=[key_of(agent_id, other) for other in upstream],
        description=description,
        group_name=path.split("/")[0],
        kinds=kinds,
        tags={AGENT_TAG: agent_id},
        partitions_def=partitions,
        freshness_policy=freshness,
    )


def key_of(agent_id: str, path: str) -> dg.AssetKey:
    """Return the asset key of ``group/name`` for ``agent_id``."""
    return dg.AssetKey([agent_id, *path.split("/")])


def step(
    agent_id: str,
    body: Callable[..., Any],
    specs: Sequence[dg.AssetSpec],
    *,
    pool: str | None = None,
) -> dg.AssetsDefinition:
    """Return the step that runs ``body`` and gives all ``specs``. A range of days is one run, not one run a day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill_policy is beta; drop when Dagster says it is stable
        decorate = dg.multi_asset(
            name=name_for(body.__name__, agent_id),
            specs=specs,
            pool=pool,
            backfill_policy=dg.BackfillPolicy.single_run() if specs[0].partitions_def else None,
        )
        return decorate(body)


def report(key: dg.AssetKey, counts: Mapping[str, Any]) -> dg.MaterializeResult[Any]:
    """Return the result for ``key``: numbers, nothing else."""
    return dg.MaterializeResult(asset_key=key, metadata=numbers_only(counts))


def cells_of(context: dg.AssetExecutionContext) -> list[str]:
    """Return the days the run is about; none when the sweep's day has no cell."""
    return list(context.partition_keys) if context.has_partition_key or context.has_partition_key_range else []
