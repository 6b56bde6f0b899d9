"""Partitions: the days of a workspace.

Belongs here: the one daily partition set that notes and sweeps share, in the workspace's zone.
Does not belong here: which day an instant belongs to (``recall_runtime.clock.day_of``).
"""

import datetime as dt

import dagster as dg

FIRST_DAY = "2020-01-01"  # older notes have no cell of their own; the index holds them all the same


def days_in(zone: str) -> dg.DailyPartitionsDefinition:
    """Return the days since 2020 in ``zone``, today included: today's note exists before midnight."""
    return dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone=zone, end_offset=1)


def cell_of(day: dt.date, days: dg.DailyPartitionsDefinition) -> str | None:
    """Return the key of ``day``, or ``None`` when it has no cell (before 2020, or after today)."""
    key = day.isoformat()
    return key if days.has_partition_key(key) else None
