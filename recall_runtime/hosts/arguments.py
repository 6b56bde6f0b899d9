"""The arguments of every tool, validated at the edge; the schemas of MCP and OpenAPI are made from them.

Belongs here: names, ranges and meanings of arguments.
Does not belong here: identity. No tool takes a session, a sender or a channel as an argument.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from recall_runtime.intents.lifecycle import IntentStatus
from recall_runtime.intents.matching import MAX_FIRED
from recall_runtime.intents.scopes import Scope, SenderScope
from recall_runtime.intents.store import (
    DEFAULT_COOLDOWN_SECONDS,
    DEFAULT_MAX_FIRES,
    MAX_DESCRIPTION,
    MAX_ID,
    MAX_KEYWORD,
    MAX_KEYWORDS,
)
from recall_runtime.remember.request import MAX_REQUEST
from recall_runtime.vocabulary import Corpus

MAX_MESSAGE = 1_000_000
MAX_ANSWER = 100
_Large = Annotated[int, Field(ge=1, le=10_000_000)]


class Arguments(BaseModel):
    """Base: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchArguments(Arguments):
    """Search long-term memory. Call it before you answer anything about earlier work, decisions, people or wishes."""

    query: str = Field(min_length=1, max_length=MAX_MESSAGE, description="what to look for, in plain words")
    max_results: int | None = Field(default=None, ge=1, le=MAX_ANSWER, description="at most so many hits")
    min_score: float | None = Field(default=None, ge=0, le=1, description="least relevance")
    corpus: Corpus = Field(default=Corpus.MEMORY, description="memory files, transcripts, or both")


class GetArguments(Arguments):
    """Read lines of a memory file that a search named."""

    path: str = Field(min_length=1, max_length=1_000, description="file in the workspace, such as memory/2026-05-01.md")
    from_line: _Large = Field(default=1, description="first line, from 1")
    lines: _Large | None = Field(default=None, description="number of lines; 120 when not given")
    from_character: _Large = Field(default=1, description="first character of the first line, from 1")


class HistoryArguments(Arguments):
    """Read a bounded excerpt of an earlier conversation around a transcript hit."""

    session: str = Field(min_length=1, max_length=500, description="session_key or session_id of the hit")
    message_id: str | None = Field(default=None, max_length=500, description="message_id of the hit")
    before: int = Field(default=5, ge=0, le=20, description="messages before it")
    after: int = Field(default=5, ge=0, le=20, description="messages after it")


class Fire(Arguments):
    """One fire of a turn, as ``turn`` gave it. Instants in milliseconds UTC."""

    id: str = Field(min_length=1, max_length=MAX_ID)
    fired_at: int = Field(ge=0, le=2**53)
    previous_fired_at: int | None = Field(default=None, ge=0, le=2**53)


class IntentArguments(Arguments):
    """Standing intents: what to bring up when something is talked about. Clock times belong to a scheduled task."""

    action: Literal["create", "list", "cancel", "give_back"]
    description: str | None = Field(default=None, max_length=MAX_DESCRIPTION, description="create: what to bring up")
    trigger_keywords: tuple[Annotated[str, Field(max_length=MAX_KEYWORD)], ...] = Field(
        default=(), max_length=MAX_KEYWORDS, description="create: entries of words; all words of one entry must occur"
    )
    scope: Scope | None = Field(default=None, description="create: where it may fire; default this channel")
    sender_scope: SenderScope = Field(default=SenderScope.SENDER, description="create: whose messages may fire it")
    expires_at: str | None = Field(default=None, max_length=40, description="create: ISO 8601; default in 90 days")
    max_fires: int = Field(default=DEFAULT_MAX_FIRES, ge=1, le=1_000_000, description="create: how often at most")
    cooldown_seconds: int = Field(default=DEFAULT_COOLDOWN_SECONDS, ge=0, le=10**9, description="create: least pause")
    status: IntentStatus | None = Field(default=None, description="list: only these")
    id: str | None = Field(default=None, max_length=MAX_ID, description="cancel: id of the intent")
    fired: tuple[Fire, ...] = Field(
        default=(), max_length=MAX_FIRED, description="give_back: `fired` of a turn whose reply was never given"
    )


class RememberArguments(Arguments):
    """Keep what the owner has just asked to remember, in the owner's words. For nothing else than a direct request."""

    text: str = Field(min_length=1, max_length=MAX_REQUEST, description="what the owner said")
    supersedes: str | None = Field(default=None, max_length=500, description="key or words of what it replaces")


class TurnArguments(Arguments):
    """Return everything to inject for one message."""

    message: str = Field(max_length=MAX_MESSAGE, description="the message as it arrived")
    fresh_start: bool = Field(default=False, description="the conversation has just begun")
