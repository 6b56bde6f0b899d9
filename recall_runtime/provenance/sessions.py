"""What kind of session a text comes from, decided from envelope fields only.

Belongs here: the grammar of session keys, the row of ``sessions.json``, the structured provenance of a message, and
``classify_session``, which combines them.
Does not belong here: the text of messages. A text that says "I am a cron job" or "I am the owner" changes nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from recall_runtime.vocabulary import ChatType, OriginClass, SessionKind

_CHAT_WORDS = {
    "direct": ChatType.DIRECT,
    "dm": ChatType.DIRECT,
    "group": ChatType.GROUP,
    "channel": ChatType.CHANNEL,
    "room": ChatType.CHANNEL,
}
_KIND_OF_TOOL = {
    "heartbeat": SessionKind.HEARTBEAT,
    "cron": SessionKind.CRON,
    "sessions_spawn": SessionKind.SUBAGENT,
}
_SCAFFOLD_KINDS = frozenset({SessionKind.CRON, SessionKind.HEARTBEAT, SessionKind.SUBAGENT})
_SHARED_CHATS = frozenset({ChatType.GROUP, ChatType.CHANNEL})


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What the envelope of a session says. A missing field means: not known, never a guess.

    ``peer`` is the other side's id in a direct chat, as the session key carries it; ``is_main`` marks the owner's own
    main session; ``hook_source`` names the outside source of a hook session (gmail, email, webhook).
    """

    session_id: str | None = None
    session_key: str | None = None
    kind: SessionKind = SessionKind.UNKNOWN
    chat_type: ChatType = ChatType.UNKNOWN
    channel: str | None = None
    hook_source: str | None = None
    peer: str | None = None
    is_main: bool = False
    agent_id: str | None = None

    @property
    def is_scaffold(self) -> bool:
        """Whether the host itself drives the session: cron, heartbeat, sub-agent."""
        return self.kind in _SCAFFOLD_KINDS

    @property
    def is_shared(self) -> bool:
        """Whether more people than one may speak in it."""
        return self.chat_type in _SHARED_CHATS


def parse_session_key(key: str | None) -> SessionFacts:
    """Return what a session key says by its form (openclaw-facts 4.3, real-workspaces 6).

    Known forms: ``agent:<id>:main``, ``agent:<id>:<channel>[:<account>]:direct|group|channel|room:<id>[:thread:…]``,
    ``agent:<id>:explicit:<opaque>``, ``agent:<id>:cron:…``, ``agent:<id>:subagent:…``, ``…:heartbeat``, ``cron:…``,
    ``subagent:…``, ``hook:…``. Any other form is of unknown kind.
    """
    if not key:
        return SessionFacts()
    parts = key.split(":")
    agent_id = None
    if parts[0] == "agent" and len(parts) >= 3:
        agent_id, parts = parts[1], parts[2:]
    facts = SessionFacts(session_key=key, agent_id=agent_id)
    head = parts[0]
    if head == "cron":
        return replace(facts, kind=SessionKind.CRON)
    if head == "subagent":
        return replace(facts, kind=SessionKind.SUBAGENT)
    if head == "heartbeat" or (parts[-1] == "heartbeat" and not _chat_at(parts)):
        return replace(facts, kind=SessionKind.HEARTBEAT)
    if head == "hook":
        return replace(facts, hook_source="webhook")
    if head == "main" and (len(parts) == 1 or parts[1] == "thread"):
        return replace(facts, kind=SessionKind.INTERACTIVE, chat_type=ChatType.DIRECT, is_main=True)
    if head == "explicit" and len(parts) > 1:
        return replace(facts, kind=SessionKind.INTERACTIVE, chat_type=ChatType.EXPLICIT, is_main=True)
    at = _chat_at(parts)
    if at and len(parts) > at + 1:
        return replace(
            facts,
            kind=SessionKind.INTERACTIVE,
            chat_type=_CHAT_WORDS[parts[at]],
            channel=head,
            peer=parts[at + 1],
        )
    return facts


def full_key(key: str, agent_id: str) -> str:
    """Return ``key`` with the agent's id, the form in which keys are compared: ``main`` is ``agent:main:main``."""
    return key if key.startswith("agent:") else f"agent:{agent_id}:{key}"


def _chat_at(parts: list[str]) -> int:
    """Return the position of the word that names the type of chat, or 0."""
    return next((at for at in (1, 2) if at < len(parts) and parts[at] in _CHAT_WORDS), 0)


def classify_session(
    session_id: str | None = None, session_key: str | None = None, row: Mapping[str, Any] | None = None
) -> SessionFacts:
    """Combine a session's key with its row of ``sessions.json``.

    The row may name a scaffold kind (a spawned session) and fill in what the key leaves open; it never turns a
    scaffold into an interactive session.
    """
    facts = replace(parse_session_key(session_key), session_id=session_id)
    if row is None:
        return facts
    origin = row.get("origin")
    origin = origin if isinstance(origin, Mapping) else {}
    kind = facts.kind
    if row.get("subagentRole") or row.get("spawnedBy") or _positive(row.get("spawnDepth")):
        kind = SessionKind.SUBAGENT
    chat_type = _CHAT_WORDS.get(str(row.get("chatType") or origin.get("chatType")), facts.chat_type)
    if facts.chat_type in _SHARED_CHATS or facts.chat_type is ChatType.EXPLICIT:
        chat_type = facts.chat_type
    return replace(
        facts,
        session_id=session_id or _text(row.get("sessionId")),
        kind=kind,
        chat_type=chat_type,
        channel=facts.channel
        or _text(row.get("channel"))
        or _text(row.get("lastChannel"))
        or _text(origin.get("provider")),
        hook_source=_text(row.get("hookExternalContentSource")) or facts.hook_source,
    )


def read_session_store(data: bytes) -> dict[str, SessionFacts]:
    """Return the facts of every session in ``sessions.json``, by session id; damaged parts are left out."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, SessionFacts] = {}
    if isinstance(tree, dict):
        for key, row in tree.items():
            if isinstance(row, dict) and isinstance(row.get("sessionId"), str):
                found[row["sessionId"]] = classify_session(row["sessionId"], key, row)
    return found


def kind_from_message(provenance_kind: str | None, source_tool: str | None) -> SessionKind:
    """Return what the structured provenance of a user message says about its turn."""
    if provenance_kind == "external_user":
        return SessionKind.INTERACTIVE
    return _KIND_OF_TOOL.get(source_tool or "", SessionKind.UNKNOWN)


def kind_from_messages(kinds: Iterable[SessionKind]) -> SessionKind:
    """Return the kind of a whole session whose key is unknown, from the kinds of its user messages.

    A person's message makes it interactive, unless a sub-agent task opened it; scaffold kinds count only when all
    user messages agree.
    """
    seen = list(kinds)
    if seen and seen[0] is SessionKind.SUBAGENT:
        return SessionKind.SUBAGENT
    if SessionKind.INTERACTIVE in seen:
        return SessionKind.INTERACTIVE
    return seen[0] if len(set(seen)) == 1 else SessionKind.UNKNOWN


def origin_of_writer(facts: SessionFacts) -> OriginClass:
    """Return the class of what the agent writes in a session of which only the envelope is known.

    A direct session of the owner gives ``agent``; groups, other people's direct chats and unknown sessions give
    ``untrusted``; scaffolding gives ``system``.
    """
    if facts.is_scaffold:
        return OriginClass.SYSTEM
    if facts.kind is SessionKind.INTERACTIVE and facts.chat_type in (ChatType.DIRECT, ChatType.EXPLICIT):
        return OriginClass.AGENT
    return OriginClass.UNTRUSTED


def is_owner_chat(facts: SessionFacts, owner_ids: Iterable[str]) -> bool:
    """Whether a message without any sender mark was typed by the owner: only in the owner's own direct sessions."""
    if facts.kind is not SessionKind.INTERACTIVE or facts.chat_type not in (ChatType.DIRECT, ChatType.EXPLICIT):
        return False
    return facts.is_main or (facts.peer is not None and facts.peer in set(owner_ids))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _positive(value: object) -> bool:
    return isinstance(value, int) and value > 0
