"""Adopting what other tools remember.

Belongs here: copying the memory files of Codex, Claude Code and Hermes; taking over the history of an OpenClaw
workspace. Sources are only read.
Does not belong here: trust in what was imported (``recall_runtime.provenance``: imports are untrusted), indexing.
"""
