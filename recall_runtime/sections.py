"""Sections of the settings: plain frozen classes whose values pydantic judges, imported only where they need judging.

Belongs here: ``Section``, ``Range``, taking values that are already of the right type.
Does not belong here: the settings themselves and where they are read (``recall_runtime.config``).

Importing pydantic and building its models takes 100 ms, a third of a cold turn. A value of exactly the type and range
that its section asks for needs no judge; anything else, right or wrong, is left to pydantic, so that there is one rule
for what is converted and one wording of errors. Methods carry the names pydantic's models give them.
"""

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin


class _NeedsJudgingError(Exception):
    """A value is not plainly right."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number, for ``Annotated``."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None

    def holds(self, value: float) -> bool:
        """Return whether ``value`` is inside."""
        return (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
        )

    def __get_pydantic_core_schema__(self, source: object, handler: Any) -> dict[str, Any]:
        """Tell pydantic the bounds."""
        bounds = {name: getattr(self, name) for name in ("ge", "gt", "le") if getattr(self, name) is not None}
        return {**handler(source), **bounds}


class Section:
    """Base of all sections: frozen, unknown keys refused. Subclasses are frozen dataclasses with defaults.

    ``model_fields_set`` are the names that were given rather than left to their defaults.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    model_fields_set: ClassVar[set[str]]  # one set an instance; a class variable only to be no field

    def __new__(cls, *_: object, **given: object) -> Self:
        """Note which fields are given."""
        made = super().__new__(cls)
        object.__setattr__(made, "model_fields_set", set(given))
        return made

    @classmethod
    def model_validate(cls, tree: object) -> Self:
        """Return the section that ``tree`` describes.

        Raises:
            pydantic.ValidationError: a key is unknown, or a value is wrong.
        """
        try:
            made: Self = _plainly(cls, tree)
        except _NeedsJudgingError:  # anything but plainly right
            from pydantic import TypeAdapter

            made = TypeAdapter(cls).validate_python(tree)
            _note_given(made, tree)
        return made

    def model_copy(self, *, update: Mapping[str, object] | None = None) -> Self:
        """Return a copy with other values, which are not checked."""
        changes = dict(update or {})
        copied = type(self)(**{**{name: getattr(self, name) for name in _hints(type(self))}, **changes})
        object.__setattr__(copied, "model_fields_set", self.model_fields_set | set(changes))
        return copied

    def model_dump(self, *, include: set[str] | None = None) -> dict[str, Any]:
        """Return the values by name, those of inner sections too."""
        tree = dataclasses.asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        return {name: value for name, value in tree.items() if include is None or name in include}

    def model_dump_json(self) -> str:
        """Return the values as JSON without blanks."""
        return json.dumps(self.model_dump(), ensure_ascii=False, separators=(",", ":"), default=str)


def _hints(section: type[Section]) -> dict[str, Any]:
    return {field.name: field.type for field in dataclasses.fields(section)}  # type: ignore[arg-type]  # a dataclass


def _plainly(section: type[Any], tree: object) -> Any:
    if isinstance(tree, section):
        return tree
    if not isinstance(tree, Mapping):
        raise _NeedsJudgingError
    hints = _hints(section)
    if not hints.keys() >= tree.keys():
        raise _NeedsJudgingError
    return section(**{name: _fitting(hints[name], value) for name, value in tree.items()})


def _fitting(kind: Any, value: Any) -> Any:
    """Return ``value`` as its field holds it.

    Raises:
        _NeedsJudgingError: it is wrong, or has to be converted by rules that are not obvious.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        fitting = _fitting(parts[0], value)
        if all(bounds.holds(fitting) for bounds in parts[1:]):
            return fitting
    elif origin is Literal:
        if type(value) is str and value in parts:
            return value
    elif origin is types.UnionType:
        return None if value is None else _fitting(parts[0], value)
    elif origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(_fitting(parts[0], item) for item in value)
    elif origin is dict:
        if isinstance(value, Mapping) and all(type(key) is str for key in value):
            return {key: _fitting(parts[1], item) for key, item in value.items()}
    elif kind is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    elif kind is Path:
        if isinstance(value, str | Path):
            return Path(value)
    elif isinstance(kind, type) and issubclass(kind, Section):
        return _plainly(kind, value)
    elif type(value) is kind:
        return value
    raise _NeedsJudgingError


def _note_given(section: Section, tree: object) -> None:
    """Note in ``section`` and the sections in it which fields ``tree`` gives."""
    if not isinstance(tree, Mapping):
        return
    object.__setattr__(section, "model_fields_set", set(tree))
    for name, value in tree.items():
        inner = getattr(section, name)
        if isinstance(inner, Section):
            _note_given(inner, value)
