"""Session files of OpenClaw, Claude Code and Codex behind one protocol.

Belongs here: finding transcripts, reading them row by row, cutting out what is not the speaker's own words, the class
of every message, the writes to notes they report.
Does not belong here: statements and candidates (``recall_runtime.notes``, ``memory_assets``), index rows.
"""
