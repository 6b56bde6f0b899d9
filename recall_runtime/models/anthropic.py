"""Client for the Anthropic messages format.

Belongs here: this wire format. A schema becomes one forced tool whose input is the answer.
Does not belong here: transport, retries.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recall_runtime.errors import ModelError
from recall_runtime.models.answers import count, cut_error, refusal_error, shape_error, tool_arguments
from recall_runtime.models.protocol import ChatAnswer, ChatMessage, ChatRequest, ChatRole, ToolCall
from recall_runtime.models.transport import Endpoint, post_json

DEFAULT_BASE_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True)
class AnthropicModel:
    """``POST {base_url}/v1/messages``."""

    endpoint: Endpoint
    model: str
    timeout_seconds: float = 60.0

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"anthropic/{self.model}"

    def complete(self, request: ChatRequest, *, cancel: threading.Event | None = None) -> ChatAnswer:
        """Return the answer; see ``ChatModel.complete``."""
        limit = request.timeout_seconds or self.timeout_seconds
        tree = post_json(self.endpoint, "/v1/messages", self._payload(request), timeout_seconds=limit, cancel=cancel)
        return _read(self.endpoint.label, request, self.model, tree)

    def _payload(self, request: ChatRequest) -> dict[str, Any]:
        spoken = [message for message in request.messages if message.role is not ChatRole.SYSTEM]
        system = "\n\n".join(message.text for message in request.messages if message.role is ChatRole.SYSTEM)
        payload: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": [_message(message) for message in spoken],
        }
        if system:
            payload["system"] = system
        if request.temperature is not None:
            payload["temperature"] = request.temperature
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        if request.schema is not None:
            tools.append(
                {"name": request.schema_name, "description": "Give the answer.", "input_schema": request.schema}
            )
            if not request.tools:
                payload["tool_choice"] = {"type": "tool", "name": request.schema_name}
        if tools:
            payload["tools"] = tools
        return payload


def _message(message: ChatMessage) -> dict[str, Any]:
    if message.role is ChatRole.TOOL:
        block = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
        return {"role": "user", "content": [block]}
    if not message.tool_calls:
        return {"role": message.role.value, "content": message.text}
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    blocks += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    return {"role": message.role.value, "content": blocks}


def _read(label: str, request: ChatRequest, model: str, tree: Mapping[str, Any]) -> ChatAnswer:
    blocks = tree.get("content")
    if not isinstance(blocks, list):
        raise shape_error(label, "content")
    if tree.get("stop_reason") == "refusal":
        raise refusal_error(label)
    if tree.get("stop_reason") == "max_tokens":
        raise cut_error(label, request)
    blocks = [block for block in blocks if isinstance(block, Mapping)]
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text")
    calls = tuple(
        ToolCall(str(block.get("id") or ""), str(block.get("name") or ""), tool_arguments(label, block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    given = [call for call in calls if request.schema is not None and call.name == request.schema_name]
    others = tuple(call for call in calls if call not in given)
    if request.schema is not None and not given and not others:
        raise ModelError(f"{label} answered text that is no JSON", "Use a model that keeps to a schema.")
    if not text and not calls:
        raise shape_error(label, "text")
    usage = tree.get("usage")
    return ChatAnswer(
        text=text,
        model=str(tree.get("model") or model),
        data=dict(given[0].arguments) if given else None,
        tool_calls=others,
        prompt_tokens=count(usage, "input_tokens"),
        answer_tokens=count(usage, "output_tokens"),
    )
