"""The pre-compaction flush: the last chance to note what a conversation produced before it is shortened.

Belongs here: when a flush is due, what the host is told, writing its result once per compaction.
Does not belong here: running a model (the host does), the note writer (``recall_runtime.notes.writer``).
"""
