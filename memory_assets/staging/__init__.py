"""Light phase: statements of the index become claims with evidence, recall events become signals, each counted once.

Belongs here: reading what changed, near-duplicates, signals, freshness, accounting, backfill.
Does not belong here: parsing text (``recall_runtime.notes``), scores and gates (``memory_assets.gates``).
"""

from memory_assets.staging.records import REFUSED, StagingReport, Verdict
from memory_assets.staging.stage import stage

__all__ = ["REFUSED", "StagingReport", "Verdict", "stage"]
