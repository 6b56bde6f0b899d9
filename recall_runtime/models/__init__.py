"""Clients for chat models over HTTP behind one protocol.

Belongs here: the protocol, the three wire formats, the hard deadline, errors that say the cure.
Does not belong here: prompts, validation of what a model proposes, retries and fallbacks (the callers decide).
"""
