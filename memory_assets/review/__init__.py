"""What people read about a sweep: ``DREAMS.md`` and the phase reports.

Belongs here: composing and writing these files, the aspirations they list.
Does not belong here: deciding anything about memory (staging, gates, consolidation). Review files are never a source.
"""
