"""What a chat model is to the rest of Dreamline: one completion in, one answer out.

Belongs here: the request and answer records and the protocol.
Does not belong here: wire formats (one module a provider) and transport (``models.transport``).
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class ChatRole(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool the model may call; ``parameters`` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asks for. Nothing is executed here."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. ``tool_calls`` belong to the assistant, ``call_id`` to the answer of a tool."""

    role: ChatRole
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One completion.

    ``schema`` asks for an answer that is one JSON value of that JSON schema; servers that can't enforce it get it
    as an instruction. ``timeout_seconds`` bounds the whole call, connection and body included; ``None`` takes the
    client's own limit. ``temperature`` is sent only when given, because some servers refuse the field.
    """

    messages: tuple[ChatMessage, ...]
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    tools: tuple[ToolDefinition, ...] = ()
    max_tokens: int = 2_048
    temperature: float | None = None
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What came back. ``data`` is the parsed JSON value when a schema was asked for; token counts as reported."""

    text: str
    model: str
    data: Any = None
    tool_calls: tuple[ToolCall, ...] = ()
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class ChatModel(Protocol):
    """A model that answers one request at a time and keeps nothing between requests."""

    @property
    def name(self) -> str:
        """Provider and model for reports and breaker keys, such as ``ollama/qwen3``."""
        ...

    def complete(self, request: ChatRequest, *, cancel: threading.Event | None = None) -> ChatAnswer:
        """Return the model's answer; setting ``cancel`` from another thread ends the call.

        Raises:
            ModelTimeoutError: no complete answer within the limit, or cancelled.
            ModelError: the endpoint is missing or refused, or answered something else than asked.
        """
        ...
