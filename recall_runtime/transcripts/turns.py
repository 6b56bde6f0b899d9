"""Turns: who set one off, and what it took in.

Belongs here: the rule that gives every message and write of a session its class (openclaw-algorithms 2.4).
Does not belong here: bytes, formats, cutting.
"""

from collections.abc import Collection
from dataclasses import dataclass

from recall_runtime.provenance.sessions import SessionFacts, is_owner_chat, origin_of_writer
from recall_runtime.transcripts.protocol import Speaker, UserEvent
from recall_runtime.vocabulary import OriginClass, SessionKind, worst_origin

FLUSH_TOOL = "memory_flush"
_RECALL_TOOLS = frozenset({"memory_search", "memory_get"})
_OWN_HELPERS = frozenset({"sessions_spawn", "subagent_announce"})
_TRUSTED = frozenset({OriginClass.OWNER, OriginClass.AGENT})


@dataclass(slots=True)
class Turn:
    """One user message and all that follows up to the next one.

    ``origin`` is the class of the message that opened it; ``tainted``: a tool brought in outside content; ``floor``:
    least trusted class of the memory it recalled; ``dropped``: the turn is the recall lane's own.
    """

    origin: OriginClass
    kind: SessionKind = SessionKind.UNKNOWN
    tainted: bool = False
    recalled: bool = False
    floor: OriginClass = OriginClass.OWNER
    dropped: bool = False

    @property
    def agent_origin(self) -> OriginClass:
        """Class of what the agent says or writes at this moment of the turn."""
        if self.tainted:
            return OriginClass.UNTRUSTED
        base = OriginClass.AGENT if self.origin in _TRUSTED else self.origin
        return worst_origin((base, self.floor))


def first_turn() -> Turn:
    """Return the state before any user message: nobody is known to have asked."""
    return Turn(OriginClass.UNTRUSTED)


def open_turn(
    event: UserEvent,
    facts: SessionFacts,
    owner_ids: Collection[str],
    *,
    has_own_words: bool,
    worst_so_far: OriginClass | None,
) -> Turn:
    """Return the turn that a user message opens.

    A flush order inherits the least trusted class since the last compaction, because what it writes comes from there.
    """
    origin = _origin(event, facts, owner_ids, has_own_words=has_own_words)
    if event.speaker is Speaker.HOST and event.source_tool == FLUSH_TOOL:
        origin = worst_so_far or OriginClass.SYSTEM
    dropped = event.speaker is Speaker.HOST and event.source_tool in _RECALL_TOOLS
    return Turn(origin, event.kind, dropped=dropped)


def _origin(event: UserEvent, facts: SessionFacts, owner_ids: Collection[str], *, has_own_words: bool) -> OriginClass:
    match event.speaker:
        case Speaker.HOST:
            return OriginClass.SYSTEM
        case Speaker.SESSION:
            own_helper = event.kind is SessionKind.SUBAGENT or event.source_tool in _OWN_HELPERS
            return OriginClass.SYSTEM if own_helper else OriginClass.UNTRUSTED
        case Speaker.OTHER:
            return OriginClass.UNTRUSTED
        case Speaker.OWNER:
            return OriginClass.SYSTEM if facts.is_scaffold else OriginClass.OWNER
    if facts.is_scaffold:
        return OriginClass.SYSTEM
    if event.sender_id is not None and owner_ids:
        return OriginClass.OWNER if event.sender_id in owner_ids else OriginClass.UNTRUSTED
    if not is_owner_chat(facts, owner_ids):
        return OriginClass.UNTRUSTED
    return OriginClass.OWNER if has_own_words else OriginClass.SYSTEM


def write_origin(turn: Turn, facts: SessionFacts) -> OriginClass:
    """Return the class of a file written now: in a shared chat everybody's words are in the context."""
    if facts.is_shared:
        return worst_origin((turn.agent_origin, origin_of_writer(facts)))
    return turn.agent_origin
