"""Who is behind a text, decided by code from where and how it entered.

Belongs here: classifiers of paths, sessions and tools; the records of who wrote which part of a note; the class of a
note line.
Does not belong here: reading transcripts (``recall_runtime.transcripts``), gates (``memory_assets``). Nothing here
reads trust out of the text itself.
"""
