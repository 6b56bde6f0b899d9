"""What a turn injects, and the tools an agent calls.

Belongs here: bootstrap, triggers, project scope, recall intent, lane 2, ``turn``, the tool functions.
Does not belong here: searching itself (``recall_runtime.index``), servers (``recall_runtime.hosts``).
"""
