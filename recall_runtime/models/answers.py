"""Reading the parts that all wire formats share out of a foreign JSON answer.

Belongs here: typed look-ups that raise ``ModelError``, JSON answers, tool arguments.
Does not belong here: the shape of one provider's answer.
"""

import json
from collections.abc import Mapping
from typing import Any

from recall_runtime.errors import ModelError
from recall_runtime.models.protocol import ChatRequest


def shape_error(label: str, what: str) -> ModelError:
    """Return the error for an answer whose shape is not that of the provider."""
    return ModelError(f"{label} answered without {what}", "Check model.provider and model.base_url.")


def refusal_error(label: str) -> ModelError:
    """Return the error for a model that declined."""
    return ModelError(f"{label} refused to answer", "Use another model, or none: the rules work without.")


def cut_error(label: str, request: ChatRequest) -> ModelError:
    """Return the error for an answer that hit the token limit."""
    return ModelError(
        f"{label} was cut at {request.max_tokens} tokens", "Use a model that answers more briefly, or none."
    )


def json_answer(label: str, text: str) -> Any:
    """Return the one JSON value that ``text`` is; chatter around it is an error, never cut away."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{label} answered text that is no JSON", "Use a model that keeps to a schema.") from error


def tool_arguments(label: str, raw: Any) -> Mapping[str, Any]:
    """Return the arguments of a tool call, given as an object or as JSON text of one."""
    value = json_answer(label, raw or "{}") if isinstance(raw, str) else raw
    if not isinstance(value, Mapping):
        raise shape_error(label, "an object of tool arguments")
    return value


def count(tree: Any, name: str) -> int | None:
    """Return a token count, or ``None`` when the server reported none."""
    value = tree.get(name) if isinstance(tree, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def schema_instruction(schema: Mapping[str, Any]) -> str:
    """Return the instruction for servers that can't enforce a schema."""
    return "Answer with one JSON value of this JSON schema and nothing else:\n" + json.dumps(schema, ensure_ascii=False)
