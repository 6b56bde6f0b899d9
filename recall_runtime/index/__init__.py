"""The derived index of an agent: sync, embedders, vectors, search and ranking.

Belongs here: everything that writes or reads ``index.sqlite``.
Does not belong here: parsing of notes and transcripts (their rooms), what a turn injects (``recall_runtime.recall``),
signals (``recall_runtime.signals``). Nothing in this database is original: deleting it changes no answer after a sync.
"""
