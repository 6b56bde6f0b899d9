"""The tool ``intent``: what a turn that has read content from outside may do, and giving fires back."""

import json
from pathlib import Path

import pytest

from recall_runtime.errors import RefusedError
from recall_runtime.hosts.arguments import IntentArguments
from recall_runtime.hosts.identity import Caller
from recall_runtime.hosts.intent_tool import intent
from recall_runtime.hosts.tools import Service
from tests.hosts.helpers import GROUP, MAIN, Place, make_place
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


def test_a_host_gives_the_fires_of_a_reply_that_failed_back_once(place: Place) -> None:
    intent(place.agent(), OWNER, CREATE.model_copy(update={"max_fires": 1}))
    service = Service(place.agent())
    try:
        fired = service.call("turn", OWNER, {"message": "the boiler drips"})["fired"]
        assert len(fired) == 1
        assert service.call("turn", OWNER, {"message": "the boiler drips"})["fired"] == []
        back = {"action": "give_back", "fired": fired}
        assert service.call("intent", OWNER, back) == {"given_back": 1}
        assert service.call("intent", OWNER, back) == {"given_back": 0}
        assert service.call("turn", OWNER, {"message": "the boiler drips"})["fired"] == fired
    finally:
        service.close()


@pytest.mark.parametrize(
    "change",
    [{"fired_at": 1}, {"id": "another"}, {"previous_fired_at": 2**52}],
    ids=["another turn", "another intent", "no fire before"],
)
def test_only_the_last_fire_of_an_intent_is_given_back(place: Place, change: dict[str, object]) -> None:
    intent(place.agent(), OWNER, CREATE)
    service = Service(place.agent())
    try:
        (fired,) = service.call("turn", OWNER, {"message": "the boiler drips"})["fired"]
        assert service.call("intent", OWNER, {"action": "give_back", "fired": [fired | change]}) == {"given_back": 0}
    finally:
        service.close()


def test_somebody_else_gives_nothing_back(place: Place) -> None:
    with pytest.raises(RefusedError):
        intent(place.agent(), Caller(session_key=GROUP, sender="bo"), IntentArguments(action="give_back"))


def test_the_command_gives_fires_back(place: Place) -> None:
    intent(place.agent(), OWNER, CREATE)
    said = dreamline(
        *place.options, "--json", "turn", "--session", MAIN, "--sender", "owner", "the boiler drips",
        cwd=place.home, now=None,
    )  # fmt: skip
    fired = json.dumps(json.loads(said.stdout)["fired"])
    for shown in ("1 of 1 given back", "0 of 1 given back"):
        done = dreamline(*place.options, "intent", "give-back", fired, cwd=place.home, now=None)
        assert (done.returncode, done.stdout.strip()) == (0, shown)
    refused = dreamline(*place.options, "intent", "give-back", "[{}]", cwd=place.home, now=None)
    assert refused.returncode != 0
    assert "Hand over `fired`" in refused.stderr
