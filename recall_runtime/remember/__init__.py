"""What the owner asks for directly: the second, and only other, way into a curated file.

Belongs here: who may ask, where a request goes, writing it through the guarded writers, how to take it back.
Does not belong here: the sweep (``memory_assets``), the grammar of directives (``user_model``), matching and running
what was handed over (``intents``), transports (``hosts``, ``cli``).
"""
