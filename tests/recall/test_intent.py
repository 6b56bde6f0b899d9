"""Does a message ask about the past?"""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.recall.intent import asks_about_past

LABELLED = Path(__file__).parent / "data" / "recall_intent.jsonl"


@pytest.mark.parametrize(
    "message",
    [
        "What did we decide about the deploy target?",
        "Do you remember my flight preferences?",
        "Remind me what we chose",
        "three weeks ago you mentioned a server",
        "summarize our chats",
        "Did we talk about pricing?",
        pytest.param("Which database did we use", id="a noun stands between"),
        pytest.param("How have I set this up?", id="an unlisted verb"),
    ],
)
def test_worked_questions_about_the_past(message: str) -> None:
    assert asks_about_past(message)


@pytest.mark.parametrize(
    "message",
    [
        "Please fix the failing test",
        "remind me tomorrow to call Bob",
        "Remember that I prefer TypeScript",
        "what's the weather today",
        pytest.param("The function used to return null", id="nobody who did something"),
        "",
    ],
)
def test_worked_messages_that_do_not_ask(message: str) -> None:
    assert not asks_about_past(message)


@pytest.mark.parametrize("split", ["test", "tune", "fresh", "later", "third"])
def test_f1_on_the_labelled_set(split: str) -> None:
    """Asked for: at least 0.95 on the half kept apart (issue on recall, 6).

    The last three were written blind, before the cues were read or after they were mended; their first runs stand in
    docs/decisions.md.
    """
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    right = wrong = missed = 0
    for row in (row for row in rows if row["split"] == split):
        asks = asks_about_past(row["message"])
        right += asks and row["asks"]
        wrong += asks and not row["asks"]
        missed += row["asks"] and not asks
    assert 2 * right / (2 * right + wrong + missed) >= 0.95


def test_the_labelled_set_is_as_large_and_broad_as_asked() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 300
    assert {row["language"] for row in rows} >= {"en", "de", "es", "fr", "pt", "ru", "zh", "ja"}


def test_a_question_at_either_end_of_a_megabyte_is_seen() -> None:
    pasted = "lorem ipsum dolor " * 60_000
    assert asks_about_past(f"What did we decide about this?\n{pasted}")
    assert asks_about_past(f"{pasted}\nWhat did we decide about this?")


def test_words_that_are_quoted_are_not_the_askers_own() -> None:
    assert not asks_about_past("Translate “what did we decide yesterday” into German")


@settings(deadline=None)
@given(st.text(max_size=500))
def test_any_text_gives_an_answer(message: str) -> None:
    assert asks_about_past(message) in (True, False)
