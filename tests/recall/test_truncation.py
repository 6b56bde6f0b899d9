"""Fitting a file into a prompt budget (openclaw-algorithms 30)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.recall.truncation import truncate


def _kept(text: str, total: int) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines[0]), len(lines[-1])


@pytest.mark.parametrize(
    ("length", "limit", "name", "head", "tail", "total"),
    [
        pytest.param(1_000, 200, "MEMORY.md", 72, 24, 200, id="a small limit"),
        pytest.param(25_000, 20_000, "MEMORY.md", 14_917, 4_972, 19_999, id="the default limit of a file"),
        pytest.param(5_000, 4_000, "USER.md", 2_922, 974, 3_999, id="the limit of the user file"),
        pytest.param(1_000, 64, "MEMORY.md", 30, 10, 63, id="the compact marker"),
    ],
)
def test_worked_values(length: int, limit: int, name: str, head: int, tail: int, total: int) -> None:
    cut = truncate("x" * length, limit, name)
    assert (*_kept(cut, length), len(cut)) == (head, tail, total)


def test_a_limit_below_the_compact_marker_leaves_the_marker_alone() -> None:
    cut = truncate("x" * 1_000, 20, "MEMORY.md")
    assert "x" not in cut
    assert len(cut) <= 20


def test_a_text_within_its_limit_only_loses_trailing_blanks() -> None:
    assert truncate("a\nb \n\n", 10, "MEMORY.md") == "a\nb"


@given(st.text(min_size=1, max_size=1_000), st.integers(1, 400))
def test_the_limit_is_never_exceeded(text: str, limit: int) -> None:
    assert len(truncate(text, limit, "MEMORY.md")) <= limit


@given(st.text(alphabet=st.characters(exclude_characters="\n"), min_size=500, max_size=900), st.integers(130, 400))
def test_head_and_tail_are_verbatim_slices(text: str, limit: int) -> None:
    text = text.rstrip() + "."
    cut = truncate(text, limit, "MEMORY.md")
    head, *_, tail = cut.split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
