"""Columns of candidates and the scores made from them: ages, scales, shares of lanes, neighbours, who may be seen."""

import datetime as dt
import itertools
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.clock import MS_PER_DAY, parse_instant
from recall_runtime.index import fusion, ranking
from recall_runtime.index.candidates import Candidates, stacked
from recall_runtime.index.fusion import Evidence
from recall_runtime.index.lanes import Scope
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.paths import PathKind, kind_of, tier_of
from recall_runtime.records import INVALID_PROJECT
from recall_runtime.vocabulary import Corpus

UTC = ZoneInfo("UTC")
NOW = parse_instant("2026-04-11T00:00:00Z")


def row(
    entry_id: int,
    path: str = "memory/a.md",
    *,
    day: str | None = None,
    ordinal: int = 0,
    talk: bool = False,
    origin: str = "agent",
    status: str = "active",
    importance: int | None = None,
    project: str | None = None,
    observed_at: int = NOW,
    session: str | None = None,
    source: int = 1,
    shapes: str = "",
    substance: float = 1.0,
) -> tuple[Any, ...]:
    julian = dt.date.fromisoformat(day).toordinal() + 1_721_424.5 if day else None
    tier = tier_of(path)
    return (
        *(entry_id, source, ordinal, 1, talk, origin, status, importance, project, observed_at, path),
        *(tier.value if tier else "sessions", julian, kind_of(path).value, session, shapes, substance),
    )


def evidence(
    keyword: Sequence[float],
    cosine: Sequence[float],
    *,
    before: Sequence[float] | None = None,
    after: Sequence[float] | None = None,
    document: Sequence[float] | None = None,
) -> Evidence:
    nothing = [np.nan] * len(keyword)
    lanes = (keyword, cosine, before or nothing, after or nothing, document or [0.0] * len(keyword))
    words, own, earlier, later, whole = (np.array(values, dtype=np.float64) for values in lanes)
    return Evidence(words, own, {-1: earlier, 1: later}, whole)


def many(count: int, *, talk: bool = False) -> Candidates:
    return stacked([row(number, ordinal=number, talk=talk) for number in range(count)])


# -- ages


@pytest.mark.parametrize(
    ("path", "day", "age"),
    [
        ("memory/2026-04-01-standup.md", "2026-04-01", 10),
        ("memory/archive/2025/2025-04-11.md", "2025-04-11", 365),
        ("memory/2031-01-01.md", "2031-01-01", 0),
        ("MEMORY.md", None, None),
        ("memory/projects.md", None, None),
        ("sessions/main/a.jsonl", None, 2),
    ],
)
def test_slugged_notes_and_transcripts_have_an_age_too(path: str, day: str | None, age: float | None) -> None:
    found = stacked([row(1, path, day=day, observed_at=NOW - 2 * MS_PER_DAY)])
    assert found.ages(NOW, UTC).tolist() == pytest.approx([np.nan if age is None else age], nan_ok=True)


def test_the_day_of_the_zone_counts() -> None:
    found = stacked([row(1, "memory/2026-04-10.md", day="2026-04-10")])
    assert found.ages(NOW, ZoneInfo("America/New_York")).tolist() == [0]
    assert found.ages(NOW, UTC).tolist() == [1]


def test_a_note_of_382_days_has_about_a_6800th_of_the_weight_of_a_fresh_one() -> None:
    day = (dt.date(2026, 3, 20) - dt.timedelta(days=382)).isoformat()
    found = stacked([row(1, f"memory/{day}.md", day=day)])
    age = float(found.ages(parse_instant("2026-03-20T12:00:00Z"), UTC)[0])
    assert 1 / ranking.decay(age, 30) == pytest.approx(6_800, rel=0.01)


# -- who may be seen


def test_only_what_the_scope_allows_is_visible() -> None:
    found = stacked(
        [
            row(1),
            row(2, origin="untrusted"),
            row(3, status="superseded"),
            row(4, "sessions/main/a.jsonl", session="agent:main:main"),
            row(5, "sessions/main/b.jsonl", session="agent:main:other"),
            row(6, project=INVALID_PROJECT),
            row(7, "DREAMS.md"),
            row(8, origin="system"),
        ]
    )

    def seen(scope: Scope) -> list[int]:
        ids: list[int] = found.entry_ids[found.visible(scope)].tolist()
        return ids

    assert seen(Scope()) == [1, 2, 7, 8]
    assert seen(Scope(include_untrusted=False)) == [1, 7, 8]
    assert seen(Scope(include_superseded=True)) == [1, 2, 3, 7, 8]
    assert seen(Scope(Corpus.ALL)) == [1, 2, 4, 5, 7, 8]
    assert seen(Scope(Corpus.ALL, sessions=frozenset({"agent:main:main"}))) == [1, 2, 4, 7, 8]
    assert seen(Scope(Corpus.ALL, sessions=frozenset())) == [1, 2, 7, 8]
    assert seen(Scope(injectable=True)) == [1]
    assert seen(Scope(Corpus.ALL, injectable=True, sessions=frozenset())) == [1]


# -- scales and shares


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_the_unit_scale_stays_within_0_and_1_and_keeps_the_order(values: list[float]) -> None:
    scaled = fusion.unit_scale(np.array(values, dtype=np.float64)).tolist()
    assert all(0 <= value <= 1 for value in scaled)
    order = sorted(range(len(values)), key=lambda place: values[place])
    assert all(scaled[a] <= scaled[b] for a, b in itertools.pairwise(order))


lane_values = st.lists(st.floats(0, 50) | st.just(np.nan), min_size=6, max_size=6)
cosine_values = st.lists(st.floats(-1, 1) | st.just(np.nan), min_size=6, max_size=6)


@given(lane_values, cosine_values, cosine_values, cosine_values, st.booleans())
def test_a_fused_score_is_0_to_1_for_any_lanes(
    keyword: list[float], cosine: list[float], before: list[float], after: list[float], talk: bool
) -> None:
    given_evidence = evidence(keyword, cosine, before=before, after=after, document=[0, 1, 2, 3, 4, 5])
    scores = fusion.fused(many(6, talk=talk), given_evidence, FusionWeights())
    assert len(scores) == 6
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in scores.tolist())


def test_a_lane_that_found_nothing_takes_no_share() -> None:
    weights = FusionWeights(document=0, talk=0)
    assert fusion.fused(many(2), evidence([5, 1], [np.nan, np.nan]), weights).tolist() == [1, 0]
    assert fusion.fused(many(2), evidence([np.nan, np.nan], [0.9, 0.1]), weights).tolist() == [1, 0]


def test_no_candidate_at_all_has_no_score() -> None:
    assert fusion.fused(stacked([]), evidence([], []), FusionWeights()).tolist() == []


def test_a_cosine_is_the_weighted_mean_with_those_beside_it_so_the_ends_of_a_talk_lose_nothing() -> None:
    lanes = evidence([1, 1, 1], [0.5, 0.5, 0.5], before=[0.4, np.nan, np.nan], after=[0.2, 0.2, np.nan])
    expected = [(0.5 + 0.5 * 0.4 + 0.5 * 0.2) / 2, (0.5 + 0.5 * 0.2) / 1.5, 0.5]
    assert fusion.with_neighbours(lanes, (0.5,)).tolist() == pytest.approx(expected)


def test_an_entry_without_a_vector_gets_none_from_its_neighbours() -> None:
    assert np.isnan(fusion.with_neighbours(evidence([1], [np.nan], before=[0.9]), (0.4,))).all()


def test_a_document_is_as_near_as_the_mean_of_its_five_best() -> None:
    sources = np.array([1, 2, 1, 1, 1, 1, 1, 2])
    values = np.array([0.1, 0.5, 0.2, 0.3, 0.4, 0.5, 0.6, np.nan])
    means = fusion.best_of_document(sources, values).tolist()
    assert means == pytest.approx([0.4, 0.5, 0.4, 0.4, 0.4, 0.4, 0.4, np.nan], nan_ok=True)


def test_no_cosine_at_all_says_nothing_of_documents() -> None:
    assert np.isnan(fusion.best_of_document(np.array([1, 1]), np.array([np.nan, np.nan]))).all()


def test_factors_agree_with_the_single_ones() -> None:
    rows = [
        row(1, "MEMORY.md", importance=9, project="github.com/a/b"),
        row(2, "memory/2026-04-01.md", day="2026-04-01", importance=3),
        row(3, "memory/x.md", project="github.com/c/d"),
        row(4, "memory/x.md", origin="untrusted", substance=0.7),
    ]
    found = stacked(rows)
    assert PathKind.MEMORY.value == rows[0][13]
    active = ("github.com/a/b",)
    factors = fusion.factors(found, found.ages(NOW, UTC), active, 30.0, 0.5).tolist()
    assert factors == pytest.approx(
        [
            1.2 * ranking.importance_factor(9) * ranking.PROJECT_MATCH,
            (0.5 + 0.5 * ranking.decay(10, 30)) * ranking.importance_factor(3),
            ranking.PROJECT_FOREIGN,
            ranking.UNTRUSTED * 0.7,
        ]
    )
