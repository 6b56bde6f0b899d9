"""The light runtime of Dreamline (ring 1): contracts, parsing, index, recall lanes.

Belongs here: everything a turn needs, and every contract the pipeline shares with it.
Does not belong here: staging, gates, consolidation (``memory_assets``), Dagster, DuckDB, Polars.
Importing this package wires nothing and loads no heavy module.
"""

__version__ = "0.1.0"
