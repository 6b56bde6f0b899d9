"""Deep phase, second half: what passed the gates becomes entries of ``MEMORY.md`` and directives of ``USER.md``.

Belongs here: looking sources up again, the plan of a night, validation of a model's operations, trace.
Does not belong here: scores and gates (``memory_assets.gates``), writing files (``recall_runtime.curated``).
"""
