"""Recording what memory was needed: recall events and their spool.

Belongs here: writing ``recall_events`` and ``recall_hits``.
Does not belong here: what counts as a signal (``memory_assets.staging``), search, injection.
"""
