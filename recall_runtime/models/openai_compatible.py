"""Client for OpenAI-compatible chat completions (also llama.cpp, vLLM, LM Studio and most hosted services).

Belongs here: this wire format.
Does not belong here: transport, retries.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recall_runtime.models.answers import (
    count,
    cut_error,
    json_answer,
    refusal_error,
    schema_instruction,
    shape_error,
    tool_arguments,
)
from recall_runtime.models.protocol import ChatAnswer, ChatMessage, ChatRequest, ChatRole, ToolCall
from recall_runtime.models.transport import Endpoint, HttpStatusError, post_json


@dataclass(slots=True)
class OpenAICompatibleModel:
    """``POST {base_url}/chat/completions``; ``base_url`` usually ends in ``/v1``."""

    endpoint: Endpoint
    model: str
    timeout_seconds: float = 60.0
    _enforces_schema: bool = field(default=True, init=False)

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"openai-compatible/{self.model}"

    def complete(self, request: ChatRequest, *, cancel: threading.Event | None = None) -> ChatAnswer:
        """Return the answer; see ``ChatModel.complete``."""
        give_up_at = time.monotonic() + (request.timeout_seconds or self.timeout_seconds)
        try:
            return self._ask(request, give_up_at, cancel)
        except HttpStatusError as error:
            if request.schema is None or not self._enforces_schema or not _is_about_schema(error):
                raise
        self._enforces_schema = False  # this server has no response_format; say the schema in words from now on
        return self._ask(request, give_up_at, cancel)

    def _ask(self, request: ChatRequest, give_up_at: float, cancel: threading.Event | None) -> ChatAnswer:
        limit = max(0.001, give_up_at - time.monotonic())
        tree = post_json(
            self.endpoint, "/chat/completions", self._payload(request), timeout_seconds=limit, cancel=cancel
        )
        return _read(self.endpoint.label, request, self.model, tree)

    def _payload(self, request: ChatRequest) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": [_message(message) for message in request.messages],
            "max_tokens": request.max_tokens,
            "stream": False,
        }
        if request.temperature is not None:
            payload["temperature"] = request.temperature
        if request.tools:
            payload["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.schema is not None and self._enforces_schema:
            payload["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": request.schema_name, "schema": request.schema, "strict": True},
            }
        elif request.schema is not None:
            payload["messages"].insert(0, {"role": "system", "content": schema_instruction(request.schema)})
        return payload


def _is_about_schema(error: HttpStatusError) -> bool:
    detail = error.detail.lower()
    return error.status in (400, 422) and any(
        word in detail for word in ("response_format", "json_schema", "schema", "grammar")
    )


def _message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role.value, "content": message.text}
    if message.role is ChatRole.TOOL:
        wire["tool_call_id"] = message.call_id
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return wire


def _read(label: str, request: ChatRequest, model: str, tree: Mapping[str, Any]) -> ChatAnswer:
    choices = tree.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise shape_error(label, "choices[0].message")
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        raise refusal_error(label)
    if choice.get("finish_reason") == "length":
        raise cut_error(label, request)
    calls = tuple(_call(label, raw) for raw in message.get("tool_calls") or ())
    text = message.get("content") or ""
    if not isinstance(text, str) or not (text or calls):
        raise shape_error(label, "text")
    usage = tree.get("usage")
    return ChatAnswer(
        text=text,
        model=str(tree.get("model") or model),
        data=json_answer(label, text) if request.schema is not None and not calls else None,
        tool_calls=calls,
        prompt_tokens=count(usage, "prompt_tokens"),
        answer_tokens=count(usage, "completion_tokens"),
    )


def _call(label: str, raw: Any) -> ToolCall:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise shape_error(label, "the name of a called tool")
    return ToolCall(str(raw.get("id") or ""), function["name"], tool_arguments(label, function.get("arguments")))
