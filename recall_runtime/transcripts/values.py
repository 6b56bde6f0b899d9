"""Reading values of unknown JSON without ever raising.

Belongs here: the few accessors all adapters share. Does not belong here: knowledge of any one format.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_TEXT_TYPES = frozenset({"text", "input_text", "output_text", None})


def mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` when it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def text_or_none(value: object) -> str | None:
    """Return ``value`` when it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def parts_of(content: object) -> list[Mapping[str, Any]]:
    """Return message content as parts: a plain string is one text part; what is no object is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, Mapping):
        return [content]
    if isinstance(content, list):
        return [
            {"type": "text", "text": part} if isinstance(part, str) else part
            for part in content
            if isinstance(part, str | Mapping)
        ]
    return []


def joined_text(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the text parts, joined by line feeds; images, thoughts and tool calls have no text."""
    texts = (part.get("text") for part in parts if part.get("type") in _TEXT_TYPES)
    return "\n".join(text for text in texts if isinstance(text, str))
