"""The history of the curated files as a graph: entries, the lines they cite, the notes those lines stand in.

Belongs here: turning ledger rows into plain records.
Does not belong here: Dagster's way to show them (``memory_assets.lineage_location``).
"""
