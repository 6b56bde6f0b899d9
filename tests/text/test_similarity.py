"""Similarity: the worked values, and scripts the original forgot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.similarity import containment, jaccard


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ("Deploy target is the blue cluster", "The deploy target is the blue cluster", 1.0),
        ("Deploy target is the blue cluster.", "Deploy target is the green cluster now", 0.625),
        ("今天讨论", "今天讨论部署", 0.636364),
        pytest.param("сервер стоит", "сервер лежит", 1 / 3, id="Cyrillic words count"),
        pytest.param("🚀", "🎉", 0.0, id="emoji differ"),
        pytest.param("...", "...", 1.0, id="without tokens equal texts are equal"),
        pytest.param("...", "!!!", 0.0, id="without tokens other texts differ"),
    ],
)
def test_worked_values(a: str, b: str, value: float) -> None:
    assert jaccard(a, b) == pytest.approx(value, abs=1e-6)


@given(st.text(max_size=60), st.text(max_size=60))
def test_similarity_is_symmetric_and_bounded(a: str, b: str) -> None:
    assert jaccard(a, b) == jaccard(b, a)
    assert 0 <= jaccard(a, b) <= 1
    assert jaccard(a, a) == 1


def test_containment_is_the_share_of_the_part() -> None:
    assert containment("blue cluster", "the blue cluster runs") == 1
    assert containment("blue cluster", "the blue bucket") == 0.5
