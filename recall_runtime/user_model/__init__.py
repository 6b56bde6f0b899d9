"""The user model: directives of the owner in ``USER.md``.

Belongs here: the grammar of a directive, what it is about, superseding in place, the linter, what is injected.
Does not belong here: writing the file (``curated.writer`` does, with pre-image and hash check), the bootstrap's order.

Contract (openclaw-algorithms 31): a metadata comment with ``observed`` and ``status``, an optional blank line, one
bullet that begins with an imperative. Superseded directives stay in the file right before their successor.
"""
