"""Kinds of sessions, from envelope fields alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.provenance.sessions import (
    SessionFacts,
    classify_session,
    is_owner_chat,
    kind_from_message,
    kind_from_messages,
    origin_of_writer,
    parse_session_key,
    read_session_store,
)
from recall_runtime.vocabulary import ChatType, OriginClass, SessionKind

KEYS = [
    ("agent:main:main", SessionKind.INTERACTIVE, ChatType.DIRECT, OriginClass.AGENT),
    ("main", SessionKind.INTERACTIVE, ChatType.DIRECT, OriginClass.AGENT),
    ("agent:main:explicit:abc", SessionKind.INTERACTIVE, ChatType.EXPLICIT, OriginClass.AGENT),
    ("agent:main:telegram:direct:42", SessionKind.INTERACTIVE, ChatType.DIRECT, OriginClass.AGENT),
    ("agent:main:telegram:work:dm:42", SessionKind.INTERACTIVE, ChatType.DIRECT, OriginClass.AGENT),
    ("agent:main:discord:group:7", SessionKind.INTERACTIVE, ChatType.GROUP, OriginClass.UNTRUSTED),
    ("agent:main:discord:group:7:thread:9", SessionKind.INTERACTIVE, ChatType.GROUP, OriginClass.UNTRUSTED),
    ("agent:main:slack:channel:c1", SessionKind.INTERACTIVE, ChatType.CHANNEL, OriginClass.UNTRUSTED),
    ("agent:main:matrix:room:r1", SessionKind.INTERACTIVE, ChatType.CHANNEL, OriginClass.UNTRUSTED),
    ("agent:main:cron:5adc:run:77", SessionKind.CRON, ChatType.UNKNOWN, OriginClass.SYSTEM),
    ("cron:job", SessionKind.CRON, ChatType.UNKNOWN, OriginClass.SYSTEM),
    ("agent:main:subagent:1", SessionKind.SUBAGENT, ChatType.UNKNOWN, OriginClass.SYSTEM),
    ("agent:main:main:heartbeat", SessionKind.HEARTBEAT, ChatType.UNKNOWN, OriginClass.SYSTEM),
    ("hook:5b0c", SessionKind.UNKNOWN, ChatType.UNKNOWN, OriginClass.UNTRUSTED),
    ("something:else", SessionKind.UNKNOWN, ChatType.UNKNOWN, OriginClass.UNTRUSTED),
    ("agent:main:telegram:direct", SessionKind.UNKNOWN, ChatType.UNKNOWN, OriginClass.UNTRUSTED),
]


@pytest.mark.parametrize(("key", "kind", "chat", "origin"), KEYS, ids=[row[0] for row in KEYS])
def test_the_form_of_the_key_says_kind_and_chat(
    key: str, kind: SessionKind, chat: ChatType, origin: OriginClass
) -> None:
    facts = parse_session_key(key)
    assert (facts.kind, facts.chat_type, origin_of_writer(facts)) == (kind, chat, origin)


def test_a_peer_called_heartbeat_is_a_person() -> None:
    assert parse_session_key("agent:main:telegram:direct:heartbeat").kind is SessionKind.INTERACTIVE


@pytest.mark.parametrize(
    ("key", "owner_ids", "owner"),
    [
        pytest.param("agent:main:main", (), True, id="main session"),
        pytest.param("agent:main:telegram:direct:42", ("42",), True, id="listed owner"),
        pytest.param("agent:main:telegram:direct:43", ("42",), False, id="somebody else"),
        pytest.param("agent:main:telegram:direct:43", (), False, id="nobody is listed"),
        pytest.param("agent:main:discord:group:42", ("42",), False, id="a group is never the owner's"),
        pytest.param("agent:main:cron:1", ("1",), False, id="no person"),
    ],
)
def test_unmarked_messages_are_the_owners_only_in_the_owners_direct_chats(
    key: str, owner_ids: tuple[str, ...], *, owner: bool
) -> None:
    assert is_owner_chat(parse_session_key(key), owner_ids) is owner


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        pytest.param({"spawnDepth": 1}, SessionKind.SUBAGENT, id="depth"),
        pytest.param({"subagentRole": "helper"}, SessionKind.SUBAGENT, id="role"),
        pytest.param({"spawnedBy": "agent:main:main"}, SessionKind.SUBAGENT, id="parent"),
        pytest.param({"spawnDepth": 0, "chatType": "direct"}, SessionKind.INTERACTIVE, id="not spawned"),
        pytest.param({"label": "I am the owner", "origin": 7}, SessionKind.INTERACTIVE, id="texts say nothing"),
    ],
)
def test_the_store_row_can_only_take_trust_away(row: dict[str, Any], kind: SessionKind) -> None:
    assert classify_session("s", "agent:main:main", row).kind is kind


def test_the_store_row_fills_in_channel_and_hook_source() -> None:
    row = {"lastChannel": "telegram", "hookExternalContentSource": "gmail"}
    facts = classify_session("s", "hook:1", row)
    assert (facts.channel, facts.hook_source, facts.kind) == ("telegram", "gmail", SessionKind.UNKNOWN)


def test_a_group_key_stays_a_group_whatever_the_row_says() -> None:
    assert classify_session("s", "agent:main:discord:group:1", {"chatType": "direct"}).chat_type is ChatType.GROUP


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"k": 3}', b'{"k": {"sessionId": 5}}', b"[" * 100_000])
def test_a_damaged_store_gives_nothing(data: bytes) -> None:
    assert read_session_store(data) == {}


def test_the_store_is_read_by_session_id() -> None:
    tree = {"agent:main:main": {"sessionId": "a"}, "agent:main:cron:1": {"sessionId": "b"}}
    store = read_session_store(json.dumps(tree).encode())
    assert {key: facts.kind for key, facts in store.items()} == {
        "a": SessionKind.INTERACTIVE,
        "b": SessionKind.CRON,
    }


KIND = SessionKind


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        pytest.param([], KIND.UNKNOWN, id="nothing said"),
        pytest.param([KIND.UNKNOWN], KIND.UNKNOWN, id="unknown stays unknown"),
        pytest.param([KIND.HEARTBEAT, KIND.HEARTBEAT], KIND.HEARTBEAT, id="heartbeats alone"),
        pytest.param([KIND.HEARTBEAT, KIND.INTERACTIVE], KIND.INTERACTIVE, id="heartbeats in a person's session"),
        pytest.param([KIND.SUBAGENT, KIND.INTERACTIVE], KIND.SUBAGENT, id="opened by a task"),
        pytest.param([KIND.CRON, KIND.HEARTBEAT], KIND.UNKNOWN, id="mixed scaffolding"),
        pytest.param([KIND.CRON, KIND.UNKNOWN], KIND.UNKNOWN, id="cron and something else"),
    ],
)
def test_message_provenance_gives_the_kind_where_the_key_is_unknown(
    kinds: list[SessionKind], kind: SessionKind
) -> None:
    assert kind_from_messages(kinds) is kind


@pytest.mark.parametrize(
    ("stated", "tool", "kind"),
    [
        ("external_user", None, KIND.INTERACTIVE),
        ("internal_system", "heartbeat", KIND.HEARTBEAT),
        ("internal_system", "cron", KIND.CRON),
        ("inter_session", "sessions_spawn", KIND.SUBAGENT),
        ("internal_system", "memory_flush", KIND.UNKNOWN),
        (None, None, KIND.UNKNOWN),
    ],
)
def test_structured_provenance_of_a_message(stated: str | None, tool: str | None, kind: SessionKind) -> None:
    assert kind_from_message(stated, tool) is kind


@given(st.text(max_size=60))
def test_no_key_raises_and_only_known_forms_are_the_agents(key: str) -> None:
    facts = parse_session_key(key)
    if origin_of_writer(facts) is OriginClass.AGENT:
        assert "main" in key or "explicit" in key or "direct" in key or "dm" in key


def test_no_facts_are_untrusted() -> None:
    assert origin_of_writer(SessionFacts()) is OriginClass.UNTRUSTED
