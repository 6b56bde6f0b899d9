"""What a recall tool gave to a turn.

Belongs here: reading the results of ``memory_search`` and ``memory_get``. Does not belong here: searching.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from recall_runtime.transcripts.values import mapping, text_or_none
from recall_runtime.vocabulary import OriginClass, worst_origin

_MAX_RESULTS = 100
_CLASSES = {member.value: member for member in OriginClass}


class RecalledOrigin(Protocol):
    """Tells the class of text that memory gave back."""

    def origin_of(self, path: str, text: str) -> OriginClass | None:
        """Return the class of ``text`` as it stands in ``path``; ``None``: nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer of a recall tool: whether it held anything, and the least trusted class in it, if known."""

    any: bool
    origin: OriginClass | None = None


def read_recalled(text: str, origins: RecalledOrigin | None) -> Recalled:
    """Read the text of a recall tool's result.

    The class is the worst of what the result declares (``origin_class``, ``originClass``) and of what ``origins``
    knows of its texts. A declared class can only lower trust: without any, the turn keeps its own.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return Recalled(any=bool(text.strip()))
    results = list(_results(tree))[:_MAX_RESULTS]
    classes = [origin for result in results for origin in _classes(result, origins)]
    return Recalled(any=bool(results), origin=worst_origin(classes) if classes else None)


def _results(tree: object) -> Iterator[Mapping[str, Any]]:
    rows = mapping(tree).get("results", tree)
    for row in rows if isinstance(rows, list) else [rows]:
        if _shown(mapping(row)):
            yield row


def _shown(result: Mapping[str, Any]) -> str | None:
    return text_or_none(result.get("snippet")) or text_or_none(result.get("text"))


def _classes(result: Mapping[str, Any], origins: RecalledOrigin | None) -> Iterator[OriginClass]:
    nested = mapping(result.get("provenance"))
    for value in (
        result.get("origin_class"), result.get("originClass"), nested.get("origin_class"), nested.get("originClass"),
    ):  # fmt: skip
        if isinstance(value, str) and value in _CLASSES:
            yield _CLASSES[value]
    path, shown = text_or_none(result.get("path")), _shown(result)
    if origins is not None and path and shown:
        found = origins.origin_of(path, shown)
        if found is not None:
            yield found
