"""Themes and candidate truths as pure functions over traces.

Belongs here: the formulas of openclaw-algorithms 22 and their records.
Does not belong here: the database.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recall_runtime.config import RemSettings
from recall_runtime.records import Anchor
from recall_runtime.text.similarity import jaccard

_NO_THEMES = frozenset({"assistant", "user", "system", "subagent", "the"})
_EVIDENCE_PER_THEME = 3
_SAME_TRUTH = 0.88
_LEAST_CONFIDENCE = 0.45
_MOST_TRUTHS = 3


@dataclass(frozen=True, slots=True)
class Trace:
    """One staged claim as the phase sees it. ``total_score`` sums the scores of its ``signal_count`` signals."""

    claim_id: str
    text: str
    anchor: Anchor | None
    tags: tuple[str, ...]
    recall_count: int
    signal_count: int
    total_score: float
    day_count: int
    promoted: bool = False


@dataclass(frozen=True, slots=True)
class Theme:
    """A concept that keeps surfacing: in ``count`` of the traces, with up to three places."""

    tag: str
    count: int
    strength: float
    evidence: tuple[Anchor, ...]


@dataclass(frozen=True, slots=True)
class CandidateTruth:
    """A claim that looks lasting. ``confidence`` lies in 0..1."""

    claim_id: str
    text: str
    confidence: float
    anchor: Anchor | None


def theme_strength(count: int, traces: int) -> float:
    """Return min(1, 2 * count / traces) (openclaw-algorithms 22)."""
    return min(1.0, 2 * count / traces) if traces else 0.0


def find_themes(traces: Sequence[Trace], settings: RemSettings) -> list[Theme]:
    """Return the strongest themes: by strength, count, then tag."""
    places: dict[str, list[Trace]] = {}
    for trace in traces:
        for tag in dict.fromkeys(trace.tags):
            if tag not in _NO_THEMES:
                places.setdefault(tag, []).append(trace)
    themes = [
        Theme(tag, len(found), theme_strength(len(found), len(traces)), _anchors(found))
        for tag, found in places.items()
    ]
    kept = [theme for theme in themes if theme.strength >= settings.min_pattern_strength]
    kept.sort(key=lambda theme: (-theme.strength, -theme.count, theme.tag))
    return kept[: settings.limit]


def _anchors(traces: Iterable[Trace]) -> tuple[Anchor, ...]:
    anchors = dict.fromkeys(trace.anchor for trace in traces if trace.anchor)
    return tuple(anchors)[:_EVIDENCE_PER_THEME]


def confidence(trace: Trace) -> float:
    """Return 0.45 mean score + 0.25 recalls + 0.20 days + 0.10 tags, each capped (openclaw-algorithms 22)."""
    mean = min(1.0, max(0.0, trace.total_score / trace.signal_count)) if trace.signal_count else 0.0
    return (
        0.45 * mean
        + 0.25 * min(1.0, math.log(1 + trace.recall_count) / math.log(7))
        + 0.20 * min(1.0, trace.day_count / 3)
        + 0.10 * min(1.0, len(trace.tags) / 6)
    )


def find_truths(traces: Sequence[Trace], settings: RemSettings) -> list[CandidateTruth]:
    """Return at most three claims that are not promoted yet, most confident first, no two of them alike."""
    ranked = sorted(
        ((confidence(trace), trace) for trace in traces if not trace.promoted),
        key=lambda pair: (-pair[0], pair[1].text),
    )
    chosen: list[CandidateTruth] = []
    for value, trace in ranked:
        if value < _LEAST_CONFIDENCE or len(chosen) >= max(1, min(_MOST_TRUTHS, settings.limit)):
            break
        if all(jaccard(trace.text, other.text) < _SAME_TRUTH for other in chosen):
            chosen.append(CandidateTruth(trace.claim_id, trace.text, value, trace.anchor))
    return chosen
