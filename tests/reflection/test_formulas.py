"""Themes and candidate truths: worked values of openclaw-algorithms 22."""

import pytest

from memory_assets.reflection import Trace, find_themes, find_truths
from memory_assets.reflection.formulas import confidence, theme_strength
from recall_runtime.config import RemSettings
from recall_runtime.records import Anchor

DEFAULTS = RemSettings()


def trace(number: int, *tags: str, **changes: object) -> Trace:
    values: dict[str, object] = {
        "claim_id": f"{number:012x}",
        "text": f"Fact number {number} stands alone",
        "anchor": Anchor("memory/2026-03-01.md", number + 1, number + 1),
        "tags": tags,
        "recall_count": 3,
        "signal_count": 3,
        "total_score": 2.7,
        "day_count": 3,
    }
    return Trace(**(values | changes))  # type: ignore[arg-type]  # names and types are those of the record


@pytest.mark.parametrize(("count", "traces", "value"), [(2, 4, 1.0), (3, 8, 0.75), (3, 10, 0.6), (4, 10, 0.8)])
def test_theme_strength(count, traces, value):
    assert theme_strength(count, traces) == pytest.approx(value)


@pytest.mark.parametrize(("carriers", "kept"), [(3, True), (2, False)])
def test_a_theme_below_the_least_strength_is_dropped(carriers, kept):
    traces = [trace(n, *(["harbour"] if n < carriers else [])) for n in range(8)]
    assert [theme.tag for theme in find_themes(traces, DEFAULTS)] == (["harbour"] if kept else [])


def test_a_tag_in_every_trace_has_full_strength_and_three_places():
    (theme,) = find_themes([trace(n, "harbour") for n in range(5)], DEFAULTS)
    assert (theme.strength, theme.count, len(theme.evidence)) == (1.0, 5, 3)


def test_words_of_the_machinery_are_no_themes():
    assert find_themes([trace(0, "assistant", "user", "system", "subagent", "the")], DEFAULTS) == []


def test_themes_come_by_strength_count_and_name_up_to_the_limit():
    traces = [trace(0, "b", "a", "c"), trace(1, "b", "a"), trace(2, "b")]
    assert [theme.tag for theme in find_themes(traces, RemSettings(limit=2, min_pattern_strength=0))] == ["b", "a"]


@pytest.mark.parametrize(
    ("recalls", "signals", "total", "days", "tags", "value"),
    [
        (0, 3, 1.86, 3, 4, 0.545667),
        (3, 3, 2.7, 3, 6, 0.883104),
        (0, 1, 0.58, 1, 2, 0.361),
        (0, 2, 1.24, 2, 3, 0.462333),
        (1, 1, 0.9, 1, 1, 0.577385),
        (6, 6, 6, 3, 6, 1.0),
    ],
)
def test_confidence(recalls, signals, total, days, tags, value):
    made = trace(
        0,
        *(f"t{n}" for n in range(tags)),
        recall_count=recalls,
        signal_count=signals,
        total_score=total,
        day_count=days,
    )
    assert confidence(made) == pytest.approx(value, abs=5e-7)


def test_a_weak_trace_is_no_truth():
    weak = trace(0, "a", "b", recall_count=0, signal_count=1, total_score=0.58, day_count=1)
    assert find_truths([weak], DEFAULTS) == []


def test_a_promoted_claim_is_never_a_truth():
    assert find_truths([trace(0, promoted=True)], DEFAULTS) == []


def test_two_wordings_of_one_truth_are_listed_once():
    first = trace(0, text="The deploy target is the blue cluster")
    second = trace(1, text="the deploy target is the blue cluster.", day_count=2)
    assert [truth.claim_id for truth in find_truths([second, first], DEFAULTS)] == [first.claim_id]


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (2, 2), (10, 3)])
def test_at_most_three_truths_and_at_least_one(limit, count):
    texts = ["Copper pipes freeze", "Anna leads the roofers", "Snow load decides", "Slates come late"]
    traces = [trace(n, text=text) for n, text in enumerate(texts)]
    assert len(find_truths(traces, RemSettings(limit=limit))) == count


def test_nothing_staged_gives_nothing():
    assert (find_themes([], DEFAULTS), find_truths([], DEFAULTS)) == ([], [])
