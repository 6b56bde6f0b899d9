"""What a text says at all: shapes of values, and how much of an answer it can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.index.content import ECHO, MARK, shapes_of, substance_of


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        pytest.param("Queue for ambervane is jobs.14598.", ("=jobs.#",), id="an identifier"),
        pytest.param("预算上限 90000 EUR", ("=#_eur",), id="a number with its unit, any language"),
        pytest.param("Logi ambervane: /var/log/app/7.log", ("=/var/log/app/#.log",), id="a path"),
        pytest.param("Robin likes tea.", (), id="no value"),
        pytest.param("It happened at 14:30 on 2026-03-01.", (), id="any text may hold a time"),
        pytest.param("42", (), id="a bare number has no shape of its own"),
        pytest.param("a-1 ab-2 abc-3 abcd-4 abcde-5", (), id="a report, not a fact with a value"),
    ],
)
def test_shapes_are_the_masked_values(text: str, shapes: tuple[str, ...]) -> None:
    assert shapes_of(text) == shapes


@given(st.text(max_size=300))
def test_a_shape_is_one_word_that_no_question_holds(text: str) -> None:
    for shape in shapes_of(text):
        assert shape.startswith(MARK)
        assert not any(sign.isspace() for sign in shape)


@pytest.mark.parametrize(
    ("text", "block"),
    [
        pytest.param("Decisions", "heading", id="a heading"),
        pytest.param("where does ambervane run in production?", "bullet", id="a question"),
        pytest.param("HEARTBEAT_OK", "message", id="a control token"),
        pytest.param("Heartbeat check at 10:15: nothing needs attention.", "bullet", id="a routine line"),
    ],
)
def test_what_states_no_fact_says_less_than_a_statement(text: str, block: str) -> None:
    statement = substance_of(
        "Production for ambervane runs on box-7.example.net.", "bullet", recalled=False, spoken=False
    )
    assert substance_of(text, block, recalled=False, spoken=block == "message") < statement == 1


def test_a_question_in_a_talk_says_as_much_as_any_other_line() -> None:
    """LoCoMo, tuning split: temporal questions lost six points when questions among the turns were put back."""
    assert substance_of("Did you see the lighthouse last week?", "message", recalled=False, spoken=True) == 1


def test_a_recalled_text_is_a_copy() -> None:
    text = "Production for ambervane runs on box-7.example.net."
    assert substance_of(text, "bullet", recalled=True, spoken=False) == ECHO


def test_the_more_pieces_a_text_was_cut_into_the_less_each_of_them_counts() -> None:
    text = "Production for ambervane runs on box-7.example.net."
    shares = [substance_of(text, "message", recalled=False, spoken=True, pieces=count) for count in (1, 2, 8, 100)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[-1] > 0.3


@given(st.text(max_size=300), st.sampled_from(["bullet", "heading", "message", "code"]), st.booleans(), st.booleans())
def test_substance_is_a_share_for_any_text(text: str, block: str, recalled: bool, spoken: bool) -> None:
    assert 0 < substance_of(text, block, recalled=recalled, spoken=spoken) <= 1
