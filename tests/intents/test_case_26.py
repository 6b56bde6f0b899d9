"""Case 26: twelve intents and 21 turns fire exactly as listed."""

import json
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.errors import RefusedError
from recall_runtime.intents.lifecycle import IntentStatus
from recall_runtime.intents.matching import Turn, match
from recall_runtime.intents.scopes import Scope, SenderScope, Speaker
from recall_runtime.intents.store import IntentDraft, cancel, create, list_intents
from recall_runtime.vocabulary import SessionKind
from tests.intents.helpers import UTC, arm, say, state

CASE = Path(__file__).parents[1] / "cases" / "26-standing-intents"
INTENTS = json.loads((CASE / "intents.json").read_text(encoding="utf-8"))["intents"]
TURNS = json.loads((CASE / "turns.json").read_text(encoding="utf-8"))
ADA = Speaker("ada", "webchat", channel="lobby", is_owner=True)


def draft_of(intent: dict[str, Any]) -> IntentDraft:
    return IntentDraft(
        description=intent["description"],
        keywords=tuple(intent["keywords"]),
        scope=Scope.ANYWHERE,
        sender_scope=SenderScope.ANYONE if intent["sender"] == "any" else SenderScope.SENDER,
        expires_at=parse_instant(intent["expires"]) if "expires" in intent else None,
    )


def test_intents_fire_exactly_as_listed(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        names: dict[str, str] = {}
        for intent in INTENTS:
            created = parse_instant(intent["created"])
            if intent["id"] == "n11":
                with pytest.raises(RefusedError, match="no plain words"):
                    create(connection, draft_of(intent), ADA, created)
                continue
            record = create(connection, draft_of(intent), ADA, created)
            names[record.intent_id] = intent["id"]
            if intent.get("status") == "cancelled":
                assert cancel(connection, record.intent_id, created)
        for turn in TURNS:
            speaker = Speaker(turn["sender"], "webchat", channel="lobby")
            said = Turn(turn["text"], speaker, SessionKind(turn["session_kind"]), "agent:main:main")
            result = match(connection, said, parse_instant(turn["at"]), UTC)
            assert sorted(names[fired.intent_id] for fired in result.fired) == sorted(turn["fires"]), turn
        states = {
            names[row.intent_id]: (row.status, row.fire_count)
            for row in list_intents(connection, parse_instant("2026-03-20T10:00:00Z"))
        }
    assert states["n1"] == (IntentStatus.DONE, 3)
    assert states["n2"][1] == states["n3"][1] == 1
    assert states["n4"] == (IntentStatus.CANCELLED, 0)
    assert states["n5"] == (IntentStatus.EXPIRED, 0)


def test_c_is_not_c_plus_plus_on_a_fresh_store(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        arm(connection, "C++ build")
        assert not say(connection, "Does the C build pass?").fired
        assert say(connection, "Does the C++ build pass?").fired


def test_c_plus_plus_is_not_c(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        arm(connection, "C build")
        assert not say(connection, "Does the C++ build pass?").fired
