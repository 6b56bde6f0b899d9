"""Text as such: lines, words, similarity, concept tags, masking of secrets, escaping.

Belongs here: functions from text to text or words, without knowledge of Markdown notes.
Does not belong here: Markdown structure (``recall_runtime.notes``), trust (``recall_runtime.provenance``).
"""
