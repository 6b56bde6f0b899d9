"""Markdown as memory: blocks, markers, annotations, curated files, statements, identity, the note writer.

Belongs here: reading and writing the note formats of ``docs/formats.md``.
Does not belong here: searching (``recall_runtime.index``), trust (``recall_runtime.provenance``).
"""
