"""Who would read an answer: the rule of session visibility, asked on every request.

Belongs here: deciding from envelope fields whether private memory may be shown, which transcripts may be read, and the
speaker of a message. Does not belong here: parsing session keys (``provenance.sessions``), searching.

Private memory is shown in the owner's own direct conversations with this agent and nowhere else. A field that is
missing or of an unknown form never opens anything.
"""

from dataclasses import dataclass
from enum import StrEnum

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import RefusedError
from recall_runtime.intents.scopes import LOCAL_PROVIDER, Speaker
from recall_runtime.provenance.sessions import SessionFacts, full_key, is_owner_chat, parse_session_key
from recall_runtime.vocabulary import ChatType, SessionKind, Tier


class Audience(StrEnum):
    """Who reads what is injected into a session."""

    OWNER = "owner"
    SCAFFOLD = "scaffold"
    SHARED = "shared"
    OTHER_PERSON = "other_person"
    OTHER_AGENT = "other_agent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Access:
    """What a session may see. ``reason`` names why it is not the owner's private conversation."""

    audience: Audience
    facts: SessionFacts
    reason: str = ""

    @property
    def is_private(self) -> bool:
        """Whether memory may be injected on its own."""
        return self.audience is Audience.OWNER

    @property
    def may_ask(self) -> bool:
        """Whether an explicit request for memory is answered: also to the host's own jobs for this agent."""
        return self.audience in (Audience.OWNER, Audience.SCAFFOLD)


def access_of(agent: Agent, session_key: str | None, sender: str | None = None) -> Access:
    """Return what the session ``session_key`` may see when ``sender`` speaks in it.

    Where the settings name the owner's ids, a sender who is none of them is another person, in the main session too.
    """
    facts = parse_session_key(session_key)
    owners = agent.settings.sources.owner_ids
    if facts.agent_id is not None and facts.agent_id != agent.folders.agent_id:
        return Access(Audience.OTHER_AGENT, facts, "other_agent")
    if facts.is_shared:
        return Access(Audience.SHARED, facts, facts.chat_type.value)
    if facts.is_scaffold:
        return Access(Audience.SCAFFOLD, facts, facts.kind.value)
    if facts.kind is not SessionKind.INTERACTIVE:
        return Access(Audience.UNKNOWN, facts, "unknown_session")
    if not is_owner_chat(facts, owners) or (sender and owners and sender not in owners):
        return Access(Audience.OTHER_PERSON, facts, "other_person")
    return Access(Audience.OWNER, facts)


def require_may_ask(access: Access) -> None:
    """Let explicit requests of the owner and of the host's own jobs pass.

    Raises:
        RefusedError: somebody else would read the answer.
    """
    if not access.may_ask:
        raise RefusedError(
            f"Memory is private and this session is not the owner's ({access.reason})",
            "Ask in a direct conversation; sources.owner_ids names the owner's accounts.",
        )


def speaker_of(access: Access, session_key: str | None, channel: str | None, sender: str | None) -> Speaker:
    """Return who speaks, as standing intents know people and places."""
    return Speaker(
        sender=sender or "",
        provider=access.facts.channel or LOCAL_PROVIDER,
        channel=channel or access.facts.channel or "",
        conversation=session_key or "",
        is_owner=access.is_private,
    )


def readable_sessions(
    agent: Agent, reader: apsw.Connection, *, without: str | None = None
) -> tuple[frozenset[str], int]:
    """Return the keys of the sessions whose transcripts a private conversation may read, and how many may not.

    Only private conversations of this agent's owner count. Groups, channels, other people's chats and archives whose
    session is not known well enough are rejected; ``without`` leaves out the conversation that asks, however its key
    is spelt.
    """
    agent_id = agent.folders.agent_id
    current = full_key(without, agent_id) if without else None
    allowed: set[str] = set()
    rejected = 0
    rows = reader.execute("SELECT session_key, session_kind, chat_type FROM sources WHERE tier = ?", (Tier.SESSIONS,))
    for key, kind, chat in rows:
        private = (
            key is not None
            and access_of(agent, key).is_private
            and kind == SessionKind.INTERACTIVE
            and chat in (ChatType.DIRECT, ChatType.EXPLICIT)
        )
        if private and full_key(key, agent_id) != current:
            allowed.add(key)
        else:
            rejected += not private
    return frozenset(allowed), rejected
