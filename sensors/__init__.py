"""Dagster sensors: what starts a run by itself.

Belongs here: cursor arithmetic (pure, ``changes``) and the sensors around it.
Does not belong here: jobs and the nightly schedule (``memory_assets.jobs``), reading the files' content.
"""
