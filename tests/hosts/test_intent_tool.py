"""The tool ``intent``: a turn that has read content from outside may look and cancel, and makes nothing."""

from pathlib import Path

import pytest

from recall_runtime.errors import RefusedError
from recall_runtime.hosts.arguments import IntentArguments
from recall_runtime.hosts.identity import Caller
from recall_runtime.hosts.intent_tool import intent
from tests.hosts.helpers import MAIN, Place, make_place
from tests.support.example import dreamline
from tests.support.index_agents import read_a_page, write_session

OWNER = Caller(session_key=MAIN, sender="owner")
CREATE = IntentArguments(action="create", description="Ask about the warranty.", trigger_keywords=("boiler",))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace whose main conversation has one message and has read nothing."""
    place = make_place(tmp_path)
    write_session(place.sessions, "s1", [("user", "Look at this page.")])
    return place


def test_an_intent_asked_for_in_a_clean_turn_is_made(place: Place) -> None:
    assert intent(place.agent(), OWNER, CREATE)["intent"]["status"] == "armed"


def test_a_turn_that_read_a_web_page_makes_no_intent_and_says_the_cure(place: Place) -> None:
    read_a_page(place.sessions / "s1.jsonl")
    with pytest.raises(RefusedError, match=r"read content from outside.* Ask for it in a message of its own"):
        intent(place.agent(), OWNER, CREATE)
    assert intent(place.agent(), OWNER, IntentArguments(action="list")) == {"intents": []}


def test_a_turn_that_read_a_web_page_may_list_and_cancel(place: Place) -> None:
    made = intent(place.agent(), OWNER, CREATE)["intent"]["id"]
    read_a_page(place.sessions / "s1.jsonl")
    listed = intent(place.agent(), OWNER, IntentArguments(action="list"))
    assert [one["id"] for one in listed["intents"]] == [made]
    cancelled = intent(place.agent(), OWNER, IntentArguments(action="cancel", id=made))
    assert cancelled == {"id": made, "cancelled": True}


def test_the_command_of_the_operator_belongs_to_no_turn(place: Place) -> None:
    """As with ``user set``: it names no session, so no session can taint it."""
    read_a_page(place.sessions / "s1.jsonl")
    done = dreamline(
        *place.options, "intent", "add", "Ask about the warranty.", "--when", "boiler", cwd=place.home, now=None
    )
    assert done.returncode == 0, done.stderr
    assert len(intent(place.agent(), OWNER, IntentArguments(action="list"))["intents"]) == 1
