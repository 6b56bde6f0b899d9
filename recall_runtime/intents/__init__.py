"""Prospective memory: standing intents, scheduled tasks, and telling the two apart.

Belongs here: storing, matching and retiring standing intents; classifying what an owner asks; the hand-over of
clock times to the host's scheduler.
Does not belong here: who the sender is (the host says so), injecting the block (``recall``), aspirations in notes
(``memory_assets.review``).
"""
