"""The pipeline of Dreamline: pure logic (ring 2) and Dagster glue (ring 3).

Belongs here: nothing; import the concrete modules, so that importing the package wires nothing.
Does not belong here: what a turn needs (``recall_runtime``), sensors and resources (their own packages).
"""
