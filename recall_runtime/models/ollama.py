"""Client for Ollama's own chat format.

Belongs here: this wire format.
Does not belong here: transport, retries, pulling of models.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recall_runtime.models.answers import count, cut_error, json_answer, shape_error, tool_arguments
from recall_runtime.models.protocol import ChatAnswer, ChatMessage, ChatRequest, ChatRole, ToolCall
from recall_runtime.models.transport import Endpoint, post_json

DEFAULT_BASE_URL = "http://127.0.0.1:11434"


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """``POST {base_url}/api/chat``."""

    endpoint: Endpoint
    model: str
    timeout_seconds: float = 60.0

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"ollama/{self.model}"

    def complete(self, request: ChatRequest, *, cancel: threading.Event | None = None) -> ChatAnswer:
        """Return the answer; see ``ChatModel.complete``."""
        limit = request.timeout_seconds or self.timeout_seconds
        tree = post_json(self.endpoint, "/api/chat", self._payload(request), timeout_seconds=limit, cancel=cancel)
        return _read(self.endpoint.label, request, self.model, tree)

    def _payload(self, request: ChatRequest) -> dict[str, Any]:
        options: dict[str, Any] = {"num_predict": request.max_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": [_message(message) for message in request.messages],
            "stream": False,
            "options": options,
        }
        if request.schema is not None:
            payload["format"] = request.schema
        if request.tools:
            payload["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        return payload


def _message(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role.value, "content": message.text}
    if message.role is ChatRole.TOOL:
        wire["tool_name"] = message.call_id  # this format has no call ids: the name stands for them
    if message.tool_calls:
        wire["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in message.tool_calls
        ]
    return wire


def _read(label: str, request: ChatRequest, model: str, tree: Mapping[str, Any]) -> ChatAnswer:
    message = tree.get("message")
    if not isinstance(message, Mapping):
        raise shape_error(label, "message")
    if tree.get("done_reason") == "length":
        raise cut_error(label, request)
    calls = tuple(_call(label, raw) for raw in message.get("tool_calls") or ())
    text = message.get("content") or ""
    if not isinstance(text, str) or not (text or calls):
        raise shape_error(label, "text")
    return ChatAnswer(
        text=text,
        model=str(tree.get("model") or model),
        data=json_answer(label, text) if request.schema is not None and not calls else None,
        tool_calls=calls,
        prompt_tokens=count(tree, "prompt_eval_count"),
        answer_tokens=count(tree, "eval_count"),
    )


def _call(label: str, raw: Any) -> ToolCall:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise shape_error(label, "the name of a called tool")
    return ToolCall(function["name"], function["name"], tool_arguments(label, function.get("arguments")))
