"""Where and for whom a standing intent holds.

Belongs here: the canonical JSON of scopes (openclaw-algorithms 32.2) and comparing by it.
Does not belong here: finding out who speaks; the host hands that over.

Scopes are compared as whole strings, so anything unparsable or written otherwise matches nobody.
"""

import json
from dataclasses import dataclass, replace
from enum import StrEnum

from recall_runtime.errors import RefusedError

LOCAL_PROVIDER = "local"  # whoever speaks on this machine, not through a channel
UNKNOWN_SENDERS = frozenset({"", "unknown"})


class Scope(StrEnum):
    """Where an intent may fire."""

    CONVERSATION = "conversation"
    CHANNEL = "channel"
    ANYWHERE = "anywhere"


class SenderScope(StrEnum):
    """Whose messages may fire an intent."""

    SENDER = "sender"
    ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who sent a message and where, as authenticated by the host. Text never says who speaks.

    ``channel`` names the kind of place inside the provider (a channel or chat id), ``conversation`` the thread.
    """

    sender: str
    provider: str = LOCAL_PROVIDER
    account: str = "default"
    channel: str = ""
    conversation: str = ""
    is_owner: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the host knows the sender."""
        return self.sender.strip().lower() not in UNKNOWN_SENDERS


def channel_scope(scope: Scope, speaker: Speaker) -> str | None:
    """Return the stored place of ``scope``, or ``None`` for anywhere.

    Raises:
        RefusedError: the host gave no channel or conversation to bind the intent to.
    """
    if scope is Scope.ANYWHERE:
        return None
    identity = speaker.channel if scope is Scope.CHANNEL else speaker.conversation
    if not identity.strip():
        raise RefusedError(f"The host gave no {scope} for this intent", "Use the scope anywhere.")
    return _place(scope, speaker, identity)


def places_of(speaker: Speaker) -> tuple[str, ...]:
    """Return the places a message of ``speaker`` is in, in stored form."""
    pairs = ((Scope.CHANNEL, speaker.channel), (Scope.CONVERSATION, speaker.conversation))
    return tuple(_place(scope, speaker, identity) for scope, identity in pairs if identity.strip())


def sender_identity(speaker: Speaker) -> str:
    """Return the stored identity of a sender; provider and account are part of it."""
    return _dump(["v1", _provider(speaker), speaker.account or "default", speaker.sender.strip()])


def identities_of(speaker: Speaker) -> tuple[str, ...]:
    """Return the identities, in stored form, whose intents a message of ``speaker`` may fire.

    Whoever made an intent on this machine (``dreamline intent add --sender``) named an account and no provider, as
    ``sources.owner_ids`` does: it holds in every provider. One made in a channel holds for that provider's account.
    """
    if not speaker.is_known:
        return ()
    own = sender_identity(speaker)
    return tuple(dict.fromkeys((own, sender_identity(replace(speaker, provider=LOCAL_PROVIDER, account="default")))))


def _place(scope: Scope, speaker: Speaker, identity: str) -> str:
    return _dump(["v1", scope.value, _provider(speaker), speaker.account or "default", identity.strip()])


def _provider(speaker: Speaker) -> str:
    return speaker.provider.strip().lower()


def _dump(parts: list[str]) -> str:
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
