"""The tool ``intent``: create, list and cancel standing intents, and give fires back, as plain data.

Belongs here: turning arguments into calls, records into plain data.
Does not belong here: bounds, scopes and lifecycle (``recall_runtime.intents``), identity (``hosts.identity``), who
may ask (``remember.request``).
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import format_instant, parse_instant
from recall_runtime.errors import RefusedError
from recall_runtime.hosts.arguments import Fire, IntentArguments
from recall_runtime.hosts.identity import Caller
from recall_runtime.intents.matching import FiredIntent, give_back
from recall_runtime.intents.scopes import Scope, Speaker
from recall_runtime.intents.store import IntentDraft, StandingIntent, cancel, create, list_intents
from recall_runtime.remember.request import require_owner, require_untainted
from recall_runtime.storage.schema import open_state


def intent(agent: Agent, caller: Caller, asked: IntentArguments) -> dict[str, Any]:
    """Run one action for the owner in a private conversation.

    A turn that has read content from outside makes no intent: what fires later speaks as the owner. It may list,
    cancel and give fires back.

    Raises:
        RefusedError: somebody else asks, the turn has read content from outside, something is missing or out of
            bounds, or no live intent has the id.
    """
    speaker = require_owner(agent, caller.session_key, caller.sender, caller.channel)
    now = agent.clock.now_ms()
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        if asked.action == "create":
            require_untainted(agent, state, caller.session_key, now)
            made = create(state, _draft(asked, speaker), speaker, now, session_id=caller.session_key)
            return {"intent": as_json(made), "undo": f"dreamline intent cancel {made.intent_id}"}
        if asked.action == "cancel":
            if not asked.id or not cancel(state, asked.id, now):
                raise RefusedError(f"No live intent {asked.id!r}", "Take the id from the action list.")
            return {"id": asked.id, "cancelled": True}
        if asked.action == "give_back":
            return {"given_back": give_back_fires(state, asked.fired)}
        return {"intents": [as_json(one) for one in list_intents(state, now, status=asked.status)]}


def as_json(one: StandingIntent) -> dict[str, Any]:
    """Return the intent as plain data; instants as ISO 8601."""
    return {
        "id": one.intent_id,
        "description": one.description,
        "trigger_keywords": list(one.keywords),
        "status": one.status.value,
        "anywhere": one.channel_scope is None,
        "anyone": one.sender_scope is None,
        "fire_count": one.fire_count,
        "max_fires": one.max_fires,
        "cooldown_seconds": one.cooldown_seconds,
        "expires_at": None if one.expires_at is None else format_instant(one.expires_at),
        "created_at": format_instant(one.created_at),
    }


def give_back_fires(state: apsw.Connection, fired: Sequence[Fire]) -> int:
    """Give the fires of one turn back that still are the last of their intents; return how many were."""
    return give_back(state, [FiredIntent(one.id, "", one.fired_at, one.previous_fired_at) for one in fired])


def _draft(asked: IntentArguments, speaker: Speaker) -> IntentDraft:
    if not asked.description or not asked.trigger_keywords:
        raise RefusedError(
            "An intent needs description and trigger_keywords", "Say what to bring up, and on what words."
        )
    try:
        expires = None if asked.expires_at is None else parse_instant(asked.expires_at)
    except ValueError as error:
        raise RefusedError(
            f"expires_at {asked.expires_at!r} is no ISO 8601 time", "Write 2026-12-31T09:00:00Z."
        ) from error
    return IntentDraft(
        description=asked.description,
        keywords=asked.trigger_keywords,
        scope=asked.scope or (Scope.CHANNEL if speaker.channel else Scope.ANYWHERE),
        sender_scope=asked.sender_scope,
        expires_at=expires,
        max_fires=asked.max_fires,
        cooldown_seconds=asked.cooldown_seconds,
    )
