"""Dagster resources: what assets, sensors and checks are handed.

Belongs here: thin wrappers that open the agent and tell the time.
Does not belong here: logic; DuckDB and SQLite connections (their rooms own them).
"""
