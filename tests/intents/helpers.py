"""Speakers, turns and a fresh state database for the tests of standing intents."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw

from recall_runtime.intents.matching import IntentMatch, Turn, match
from recall_runtime.intents.scopes import Scope, SenderScope, Speaker
from recall_runtime.intents.store import IntentDraft, StandingIntent, create
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import SessionKind

UTC = ZoneInfo("UTC")
NOW = 1_772_355_600_000  # 2026-03-01T09:00:00Z
DAY = 86_400_000
OWNER = Speaker("ada", "webchat", "default", "lobby", "thread-1", is_owner=True)


@contextlib.contextmanager
def state(folder: Path) -> Iterator[apsw.Connection]:
    """Open a fresh state database below ``folder``."""
    connection = open_state(folder / "state.sqlite")
    try:
        yield connection
    finally:
        connection.close()


def anywhere(*keywords: str, description: str = "Mention the filter.", **bounds: int | None) -> IntentDraft:
    """Return a draft that fires anywhere for anyone."""
    return IntentDraft(description, keywords, Scope.ANYWHERE, SenderScope.ANYONE, **bounds)  # type: ignore[arg-type]  # bounds are numbers


def arm(connection: apsw.Connection, *keywords: str, at: int = NOW, **bounds: int | None) -> StandingIntent:
    """Store an intent that fires anywhere for anyone."""
    return create(connection, anywhere(*keywords, **bounds), OWNER, at)


def say(connection: apsw.Connection, text: str, at: int = NOW, speaker: Speaker = OWNER) -> IntentMatch:
    """Match one interactive message."""
    return match(connection, Turn(text, speaker, SessionKind.INTERACTIVE, "agent:main:main"), at, UTC)
