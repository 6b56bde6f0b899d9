"""What a sweep hands over to be shown: plain facts, no file contents.

Belongs here: the input records of ``review``. ``sweep.py`` fills them.
Does not belong here: wording and Markdown (the other modules of this room).

Texts may hold anything; whoever renders them redacts and neutralises. Confidence and strength are 0..1.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from recall_runtime.records import Anchor
from recall_runtime.vocabulary import Operation


@dataclass(frozen=True, slots=True)
class LightCandidate:
    """A claim the light phase staged."""

    text: str
    confidence: float
    evidence: tuple[Anchor, ...]
    recalls: int
    signals: int = 0


@dataclass(frozen=True, slots=True)
class Theme:
    """A concept that kept surfacing (openclaw-algorithms 22)."""

    tag: str
    strength: float
    memories: int
    evidence: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """A candidate truth of the REM phase."""

    text: str
    confidence: float
    evidence: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One operation on a curated file: the line as written and the lines it replaced."""

    operation: Operation
    file: str
    entry_key: str
    text: str
    sources: tuple[Anchor, ...] = ()
    priors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerConflict:
    """Something only the owner can settle, such as two active directives on one matter."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Aspiration:
    """A line with a review date. ``expires`` is the day from which it is shown as expired."""

    path: str
    line: int
    text: str
    review: dt.date
    expires: dt.date


@dataclass(frozen=True, slots=True)
class SweepReport:
    """One sweep, as it is to be shown.

    Args:
        sweep_id: Identity of the sweep; showing it twice changes nothing.
        at: Instant of the sweep, milliseconds UTC.
        day: The day it belongs to in the workspace's zone.
        ranked: Candidates that were scored.
        failed_gates: Candidates held back, by the first gate that failed.
        lines: Operations on curated files, in order.
        mode: Who decided what was written: the rules, or the model with its name.
        reason: Why nothing was promoted, or why the model's answer was not taken; ``None`` when all went well.
        light: Candidates staged in this sweep, in order.
        themes: Themes of the REM phase.
        truths: Candidate truths of the REM phase.
        conflicts: What only the owner can settle.
        aspirations: Lines whose review day has come.
    """

    sweep_id: str
    at: int
    day: dt.date
    ranked: int = 0
    failed_gates: Mapping[str, int] = field(default_factory=dict)
    lines: tuple[ReviewLine, ...] = ()
    mode: str = "the rules"
    reason: str | None = None
    light: tuple[LightCandidate, ...] = ()
    themes: tuple[Theme, ...] = ()
    truths: tuple[Truth, ...] = ()
    conflicts: tuple[OwnerConflict, ...] = ()
    aspirations: tuple[Aspiration, ...] = ()

    def count(self, operation: Operation) -> int:
        """Return how many lines came from ``operation``."""
        return sum(line.operation is operation for line in self.lines)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show: such a sweep creates and changes no review file."""
        return not (self.lines or self.light or self.themes or self.truths or self.conflicts or self.aspirations)


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """Which files changed (workspace-relative), what could not be written and why."""

    changed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
