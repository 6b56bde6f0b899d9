"""The arithmetic of ranking, with the worked values of openclaw-algorithms 7 to 11 and 16.3."""

import math

import numpy as np
import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.index import openclaw_mode, ranking
from recall_runtime.index.openclaw_mode import Candidate

NOW = parse_instant("2026-04-11T00:00:00Z")


@pytest.mark.parametrize(
    ("rank", "score"),
    [(-4.2, 0.807692), (-2.1, 0.677419), (-0.5, 0.333333), (0, 1), (1, 0.5), (10, 0.090909), (math.inf, 0.001)],
)
def test_bm25_to_score_by_the_table_of_7_2(rank: float, score: float) -> None:
    assert openclaw_mode.bm25_score(rank) == pytest.approx(score, abs=1e-6)


def test_lexical_boost_by_the_examples_of_7_3() -> None:
    path, text = "memory/2026-04-01.md", "Configured the router for the guest network."
    score = openclaw_mode.bm25_score(-0.3)
    assert openclaw_mode.ranking_score("router vlan", path, text, score) == pytest.approx(0.669103, abs=1e-6)
    score = openclaw_mode.bm25_score(-0.5)
    text = "Gateway binds to loopback only."
    assert openclaw_mode.ranking_score("gateway loopback", "memory/gateway.md", text, score) == 1.0


def test_query_tokens_by_7_1() -> None:
    assert openclaw_mode.query_tokens("FOO_bar baz-1") == ["FOO_bar", "baz", "1"]
    assert openclaw_mode.query_tokens("  ") == []


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("that thing we discussed about the API", ["discussed", "api"]),
        ("what was the solution for the bug", ["solution", "bug"]),
    ],
)
def test_keywords_by_section_12(query: str, kept: list[str]) -> None:
    assert openclaw_mode.keywords(query) == kept


@pytest.mark.parametrize(
    ("query", "tier"),
    [("2026-04-01", 1), ("memory/2026-04-01.md", 3), ("x/2026-04-01.md", 0), ("2026-04-01.MD", 2), ("", 0), (".", 0)],
)
def test_exact_path_tiers_by_7_5(query: str, tier: int) -> None:
    assert ranking.path_tier(query, "memory/2026-04-01.md") == tier


@pytest.mark.parametrize(
    ("days", "factor"),
    [(0, 1.0), (1, 0.977160), (7, 0.850667), (10, 0.793701), (14, 0.723635), (28, 0.523647), (30, 0.5), (-5, 1.0)],
)
def test_decay_by_the_table_of_section_10(days: float, factor: float) -> None:
    assert ranking.decay(days, 30) == pytest.approx(factor, abs=1e-6)


@pytest.mark.parametrize("half_life", [0, -1])
def test_a_half_life_that_is_none_decays_nothing(half_life: float) -> None:
    assert ranking.decay(100, half_life) == 1


@pytest.mark.parametrize(
    ("importance", "factor"),
    [(None, 1), (1, 0.8), (3, 0.9), (5, 1.0), (8, 1.15), (9, 1.2), (10, 1.25), (0, 0.8), (12, 1.25), (7.9, 1.1)],
)
def test_importance_by_the_table_of_section_11(importance: float | None, factor: float) -> None:
    assert ranking.importance_factor(importance) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("key", "active", "factor"),
    [
        (None, ("a",), 1.0),
        ("a", (), 1.0),
        ("a", ("a", "b"), 1.15),
        ("a; b", ("a",), 0.9),
        ("a; b", ("b", "a"), 1.15),
        ("c", ("a",), 0.9),
    ],
)
def test_project_factor_by_16_3(key: str | None, active: tuple[str, ...], factor: float) -> None:
    assert ranking.project_factor(key, active) == factor


def candidate(path: str, **values: float | str | None) -> Candidate:
    return Candidate(key=1, path=path, start_line=1, text="", **values)  # type: ignore[arg-type] - a table of columns


@pytest.mark.parametrize(
    ("path", "age"),
    [
        ("memory/2026-04-01.md", 10),
        ("memory/2026-04-01-standup.md", None),  # slugged names do not match in the original
        ("memory/2026-02-30.md", None),
        ("MEMORY.md", None),
        ("memory/projects.md", None),
        ("memory/2099-01-01.md", 0),
    ],
)
def test_the_original_rule_dates_plain_notes_only(path: str, age: float | None) -> None:
    assert openclaw_mode.age_days(candidate(path), NOW) == age


def ranked(*found: Candidate, query: str = "q", **values: object) -> list[tuple[str, float]]:
    options = {"now_ms": NOW, "half_life_days": 30.0, "active": (), "with_vectors": True, **values}
    result = openclaw_mode.rank(found, query=query, **options)  # type: ignore[arg-type] - a table of options
    return [(item.path, score) for item, score in result]


@pytest.mark.parametrize(
    ("vector", "keyword", "path", "importance", "active", "final"),
    [
        (0.82, 0.64, "memory/2026-04-01.md", None, (), 0.607975),
        (0.82, 0.64, "memory/2026-04-01.md", 9, (), 0.729570),
        (0.82, 0.64, "memory/2026-04-01.md", 9, ("p",), 0.839005),
        (0.82, 0.64, "memory/2026-04-01.md", 9, ("q",), 0.656613),
        (0.50, 0.0, "memory/2026-03-12.md", 5, (), 0.175),
        (0.60, 0.50, "MEMORY.md", 10, ("p",), 0.819375),
    ],
)
def test_the_worked_table_of_section_9(
    vector: float, keyword: float, path: str, importance: int | None, active: tuple[str, ...], final: float
) -> None:
    """The text is empty and the query nowhere, so the score of the keyword lane is the one given."""
    found = candidate(path, vector=vector, text_score=keyword, importance=importance, project_key="p")
    assert ranked(found, query="zzz", active=active) == [(path, pytest.approx(final, abs=1e-6))]


def test_disjoint_lanes_give_63_and_30_hundredths() -> None:
    only_vector = candidate("a.md", vector=0.9)
    text = "q " * 400
    only_words = Candidate(key=2, path="b.md", start_line=1, text=text, text_score=1.0)
    assert ranked(only_vector, only_words) == [("a.md", pytest.approx(0.63)), ("b.md", pytest.approx(0.30))]


def test_exact_names_come_first_by_their_content_with_public_score_one() -> None:
    exact = [
        candidate(f"memory/{name}.md", vector=value, exact_tier=1) for name, value in (("low", 0.1), ("high", 0.9))
    ]
    assert ranked(candidate("b.md", vector=1.4), *exact)[:2] == [("memory/high.md", 1.0), ("memory/low.md", 1.0)]


def test_an_old_strong_hit_ranks_below_a_fresh_good_one() -> None:
    old = candidate("memory/2026-02-11.md", vector=0.95)
    fresh = candidate("memory/2026-04-11.md", vector=0.8)
    assert [path for path, _ in ranked(old, fresh)] == ["memory/2026-04-11.md", "memory/2026-02-11.md"]


def test_a_note_of_the_year_2000_falls_below_a_thousandth() -> None:
    assert ranked(candidate("memory/2000-01-01.md", vector=1.0))[0][1] < 0.001


def test_selection_keeps_keyword_hits_when_nothing_reaches_the_minimum() -> None:
    by_words = candidate("a.md", text_score=0.2)
    by_meaning = candidate("b.md", vector=0.4)
    pairs = [(by_words, 0.2), (by_meaning, 0.28)]
    assert openclaw_mode.select(pairs, 6, 0.35, with_vectors=True) == [(by_words, 0.2)]
    strong = candidate("c.md", vector=0.9)
    filled = openclaw_mode.select([(strong, 0.63), *pairs], 6, 0.35, with_vectors=True)
    assert filled == [(strong, 0.63), (by_words, 0.2)]


def test_lane_limit_is_four_times_the_results_at_most_200() -> None:
    assert [openclaw_mode.lane_limit(n) for n in (0, 6, 100)] == [1, 24, 200]


# -- our own arithmetic


def test_relevance_is_comparable_without_vectors_and_prefers_the_better_lane() -> None:
    assert ranking.relevance(0.8, None) == 0.8
    assert ranking.relevance(0.2, 1.0) == pytest.approx(0.76)
    assert ranking.relevance(1.0, 0.2) == pytest.approx(0.76)


def test_many_relevances_are_those_of_each_pair() -> None:
    covered, meaning = np.array([0.2, 1.0, 0.0]), np.array([1.0, 0.2, 0.0])
    pairs = zip(covered.tolist(), meaning.tolist(), strict=True)
    assert ranking.relevances(covered, meaning).tolist() == [ranking.relevance(*pair) for pair in pairs]


def test_text_that_only_repeats_the_question_answers_nothing() -> None:
    terms = frozenset({"webhook", "path"})
    assert ranking.repeats_question(frozenset({"webhook"}), terms)
    assert not ranking.repeats_question(frozenset({"webhook", "path", "hooks"}), terms)
    assert not ranking.repeats_question(frozenset(), terms)
    assert not ranking.repeats_question(frozenset({"webhook"}), frozenset())


def test_mmr_reorders_only_and_puts_variety_first() -> None:
    bags = {"a": frozenset("xy"), "b": frozenset("xy"), "c": frozenset("z")}
    chosen = ranking.mmr([("a", 1.0), ("b", 0.99), ("c", 0.7)], lambda key: bags[key], 0.5, 3)
    assert chosen == ["a", "c", "b"]
