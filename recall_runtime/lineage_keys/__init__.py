"""Lineage: which claims are about the same thing, so that a newer value retires an older one.

Belongs here: values and their shapes, the deterministic key of a claim, the rule by which one claim retires another,
keys of stored claims and of entries that stand in a curated file. The sweep and a direct request go by the same rules.
Does not belong here: whether two texts state the same fact (``notes.identity``), deciding what is written, changing
files, lineage as a graph of who wrote what (``memory_assets.lineage``).
"""
