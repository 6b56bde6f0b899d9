"""Bounds and refusals of creating, listing and cancelling standing intents."""

from dataclasses import replace
from pathlib import Path

import pytest

from recall_runtime.errors import RefusedError
from recall_runtime.intents.lifecycle import IntentStatus
from recall_runtime.intents.scopes import Scope, Speaker
from recall_runtime.intents.store import IntentDraft, cancel, create, list_intents
from tests.intents.helpers import DAY, NOW, OWNER, anywhere, arm, state

GOOD = IntentDraft("Ask for the old filter back.", ("boiler service",))


def test_defaults_are_three_fires_a_day_of_rest_and_ninety_days(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        made = create(connection, GOOD, OWNER, NOW, session_id="s1")
    assert (made.max_fires, made.cooldown_seconds, made.expires_at) == (3, 86_400, NOW + 90 * DAY)
    assert made.status is IntentStatus.ARMED
    assert made.channel_scope == '["v1","channel","webchat","default","lobby"]'
    assert made.sender_scope == '["v1","webchat","default","ada"]'
    assert made.source_session_id == "s1"


@pytest.mark.parametrize(
    ("speaker", "reason"),
    [
        (replace(OWNER, is_owner=False), "not an owner"),
        (replace(OWNER, sender=""), "no sender"),
        (replace(OWNER, sender="Unknown "), "unknown sender"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_only_an_authenticated_owner_creates(tmp_path: Path, speaker: Speaker, reason: str) -> None:
    with state(tmp_path) as connection, pytest.raises(RefusedError, match="authenticated"):
        create(connection, GOOD, speaker, NOW)


@pytest.mark.parametrize(
    ("draft", "says"),
    [
        (replace(GOOD, description="  "), "description is empty"),
        (replace(GOOD, description="x" * 501), "longer than 500"),
        (replace(GOOD, description="'" * 300 + "a"), "longer than 500"),
        (replace(GOOD, keywords=()), "No usable keyword"),
        (replace(GOOD, keywords=("", "  ")), "No usable keyword"),
        (replace(GOOD, keywords=("...",)), "no plain words"),
        (replace(GOOD, keywords=('" OR 1=1 --',)), "no plain words"),
        (replace(GOOD, keywords=("x" * 121,)), "longer than 120"),
        (replace(GOOD, keywords=tuple(f"word{n}" for n in range(25))), "More than 24"),
        (replace(GOOD, expires_at=NOW), "is past"),
        (replace(GOOD, max_fires=0), "max_fires"),
        (replace(GOOD, cooldown_seconds=-1), "cooldown_seconds"),
        (replace(GOOD, scope=Scope.CONVERSATION), ""),
    ],
)
def test_out_of_bounds_is_refused_with_the_cure(tmp_path: Path, draft: IntentDraft, says: str) -> None:
    speaker = replace(OWNER, conversation="")
    with state(tmp_path) as connection, pytest.raises(RefusedError, match=says or "scope anywhere"):
        create(connection, draft, speaker, NOW)


@pytest.mark.parametrize(
    "description",
    [
        "Remind me at 9:00 to call.",
        "Call the dentist at 5 pm",
        "Erinnere mich um halb sieben an die Tonne.",
        "Recuérdame mañana llamar al banco.",
        "Rappelle-moi à 18 h de sortir le chien.",
        "Lembra-me às 9 de ligar.",
        "Напомни в 9:00 позвонить.",
        "明天早上九点提醒我打电话。",
        "6時半に電話を思い出させて。",
    ],
)
def test_clock_times_are_sent_to_the_scheduler(tmp_path: Path, description: str) -> None:
    with state(tmp_path) as connection, pytest.raises(RefusedError, match="scheduled task"):
        create(connection, anywhere("dentist", description=description), OWNER, NOW)


@pytest.mark.parametrize("keyword", ["09:00", "9 pm", "tomorrow", "next week", "um 9 Uhr", "明天", "в 9:00"])
def test_a_keyword_that_is_only_a_time_is_refused(tmp_path: Path, keyword: str) -> None:
    with state(tmp_path) as connection, pytest.raises(RefusedError, match="scheduled task"):
        create(connection, anywhere(keyword), OWNER, NOW)


@pytest.mark.parametrize(
    "description",
    [
        "When the release comes up, mention the meeting at 14:30.",
        "Mention the new flags.",
        "提醒要回旧滤芯。",
        "Sag ihr, dass der Filter zurück muss.",
    ],
)
def test_a_time_inside_the_message_of_an_event_is_no_clock_time(tmp_path: Path, description: str) -> None:
    with state(tmp_path) as connection:
        assert create(connection, anywhere("release", description=description), OWNER, NOW)


def test_keywords_are_folded_and_kept_once(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        made = arm(connection, "Boiler  Service", "boiler service", '"Invoice"')
    assert made.keywords == ("boiler service", "invoice")


def test_the_same_intent_said_twice_is_one(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        assert arm(connection, "parcel").intent_id == arm(connection, "parcel", at=NOW + 5).intent_id
        assert len(list_intents(connection, NOW + 5)) == 1


def test_cancelling_keeps_the_row_and_works_once(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        made = arm(connection, "parcel")
        assert cancel(connection, made.intent_id, NOW)
        assert not cancel(connection, made.intent_id, NOW)
        assert [row.status for row in list_intents(connection, NOW)] == [IntentStatus.CANCELLED]
        assert not connection.execute("SELECT count(*) FROM standing_intent_terms").fetchone()[0]


def test_cancelling_an_unknown_or_endless_id_is_no_crash(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        assert not cancel(connection, "nobody", NOW)
        with pytest.raises(RefusedError, match="no id"):
            cancel(connection, "x" * 201, NOW)


def test_list_can_be_narrowed_to_a_status(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        arm(connection, "parcel")
        cancel(connection, arm(connection, "invoice").intent_id, NOW)
        assert [row.keywords for row in list_intents(connection, NOW, status=IntentStatus.ARMED)] == [("parcel",)]


def test_control_signs_of_a_description_are_made_visible(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        made = arm(connection, "parcel", description="Tell \x1b[31mAda\u202e first.\nNow.")  # type: ignore[arg-type]  # a text among numbers
    assert made.description == "Tell \\x1b[31mAda\\u202e first. Now."
