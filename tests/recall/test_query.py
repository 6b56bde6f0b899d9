"""What is looked up for a message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.config import RecallSettings
from recall_runtime.recall.query import MAX_CONTEXT, clean_message, conversation, search_query

TALK = (("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two"), ("user", "third"))


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        pytest.param("a  b\n\n c", "a b c", id="folded"),
        pytest.param("why?\n```\ncode here\n```\nplease", "why? please", id="fenced code"),
        pytest.param("From: ann@example\nSubject: x\nWhich port?", "Which port?", id="headers of a mail"),
        pytest.param("Context:\n<active_memory_plugin>\nold\n</active_memory_plugin>\nnew", "new", id="our own block"),
        pytest.param("-----\nTraceback (most recent call last):\nwhich?", "which?", id="separators and error lines"),
    ],
)
def test_only_the_users_own_words_are_looked_up(message: str, clean: str) -> None:
    assert clean_message(message) == clean


def test_the_query_is_cut_at_480_characters() -> None:
    assert len(search_query("word " * 1_000)) <= 480


def test_a_short_message_is_led_by_the_users_turn_before_it() -> None:
    assert search_query("and why?", TALK) == "third and why?"
    assert search_query("and this long question of its own?", TALK) == "and this long question of its own?"


def test_recent_shows_the_last_turns_then_the_message() -> None:
    shown = conversation("now", TALK, RecallSettings())
    assert shown == ("Recent conversation tail:\nuser: second\nassistant: two\nuser: third\nLatest user message:\nnow")


def test_message_mode_shows_the_message_alone() -> None:
    assert conversation("now", TALK, RecallSettings(query_mode="message")) == "now"


def test_full_mode_shows_all_turns_within_the_bound() -> None:
    shown = conversation("now", TALK * 2_000, RecallSettings(query_mode="full"))
    assert shown.endswith("user: now")
    assert len(shown) <= MAX_CONTEXT


@settings(deadline=None)
@given(st.text(max_size=2_000))
def test_any_message_gives_a_bounded_query(message: str) -> None:
    assert len(search_query(message, (("user", message),))) <= 480 + 121
