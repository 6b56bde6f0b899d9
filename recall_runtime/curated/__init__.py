"""The curated files ``MEMORY.md`` and ``USER.md``: composing their bytes, and the one writer that replaces them.

Belongs here: byte-exact composition, pre-images, the write journal, recovery, undo, time travel.
Does not belong here: what to write (``memory_assets.consolidation``, ``user_model``), parsing (``notes``).
"""
