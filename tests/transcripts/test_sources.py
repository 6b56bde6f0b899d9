"""Finding transcripts, admission, and what is stored of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from recall_runtime.config import ExcludeSessions
from recall_runtime.provenance.sessions import SessionFacts
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import open_state
from recall_runtime.transcripts.ingest import record_exclusion, record_reading, taken
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.transcripts.sources import (
    exclusion,
    find_session,
    in_order_of_time,
    list_transcripts,
    session_id_of,
)
from recall_runtime.vocabulary import ChatType, OriginClass, SessionKind
from tests.support.sessions import START, SessionBuilder, agent_at

NAMES = [
    ("a.jsonl", True),
    ("b.jsonl.reset.2026-01-22T11-50-54.000Z", True),
    ("c.jsonl.deleted.2026-01-22T11-50-54.000Z", True),
    ("d-topic-7.jsonl", True),
    ("a.checkpoint.5b0c.jsonl", False),
    ("a.jsonl.lock", False),
    ("e.jsonl.deleted.2026-01-22.zst", False),
    ("sessions.json", False),
    ("notes.txt", False),
]


@pytest.mark.parametrize(("name", "listed"), NAMES)
def test_live_and_archived_sessions_are_listed_copies_and_locks_are_not(
    tmp_path: Path, name: str, *, listed: bool
) -> None:
    agent = agent_at(tmp_path)
    (tmp_path / "sessions" / name).write_text("{}")
    assert [file.name for file in list_transcripts(agent)] == ([f"sessions/main/{name}"] if listed else [])


def test_a_missing_session_folder_gives_nothing(tmp_path: Path) -> None:
    assert list_transcripts(agent_at(tmp_path, sources={"session_folders": [tmp_path / "none"]})) == ()


def test_sub_folders_are_walked(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    SessionBuilder("c").save(tmp_path / "sessions" / "2026" / "01")
    assert [file.name for file in list_transcripts(agent)] == ["sessions/main/2026/01/c.jsonl"]


@pytest.mark.parametrize(
    ("name", "session_id"),
    [("a.jsonl", "a"), ("a-topic-7.jsonl", "a"), ("a.jsonl.reset.2026", "a"), ("x-1.jsonl.deleted.T", "x-1")],
)
def test_the_file_name_holds_the_session_id(name: str, session_id: str) -> None:
    assert session_id_of(name) == session_id


def store(folder: Path, **sessions: dict[str, object]) -> None:
    rows = {row.pop("key"): row | {"sessionId": session_id} for session_id, row in sessions.items()}
    (folder / "sessions.json").write_text(json.dumps(rows))


def test_facts_come_from_the_store_beside_the_file(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    SessionBuilder("a").save(tmp_path / "sessions")
    store(tmp_path / "sessions", a={"key": "agent:main:discord:group:1", "chatType": "group"})
    facts = list_transcripts(agent)[0].facts
    assert (facts.kind, facts.chat_type, facts.channel) == (SessionKind.INTERACTIVE, ChatType.GROUP, "discord")


def test_facts_are_remembered_when_the_store_forgets_them(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    path = SessionBuilder("a").save(tmp_path / "sessions")
    store(tmp_path / "sessions", a={"key": "agent:main:cron:1"})
    state = open_state(agent.folders.state_db)
    try:
        file = list_transcripts(agent, state)[0]
        with write_transaction(state):
            record_reading(state, read_transcript(path, file.name, facts=file.facts), 1)
        store(tmp_path / "sessions")
        again = list_transcripts(agent, state)[0]
        assert (again.facts.session_key, again.facts.kind) == ("agent:main:cron:1", SessionKind.CRON)
    finally:
        state.close()


CHANNEL = {"channels": ["telegram"]}
FACTS = SessionFacts("s", "k", SessionKind.INTERACTIVE, ChatType.GROUP, "telegram", "gmail")


@pytest.mark.parametrize(
    ("policy", "tombstones", "reason"),
    [
        pytest.param({}, (), None, id="nothing excluded"),
        pytest.param({"channels": ["telegram"]}, (), "channel:telegram", id="channel"),
        pytest.param({"channels": ["Telegram"]}, (), None, id="values are exact"),
        pytest.param({"chat_types": ["group"]}, (), "chatType:group", id="chat type"),
        pytest.param({"hook_sources": ["gmail"]}, (), "hookExternalContentSource:gmail", id="hook source"),
        pytest.param(CHANNEL | {"hook_sources": ["gmail"]}, (), "hookExternalContentSource:gmail", id="hook first"),
        pytest.param(CHANNEL | {"chat_types": ["group"]}, (), "channel:telegram", id="channel before chat type"),
        pytest.param({"channels": ["telegram"]}, ("s",), "forgotten", id="forgotten before all"),
    ],
)  # fmt: skip
def test_the_admission_policy_is_checked_in_its_order(
    policy: dict[str, list[str]], tombstones: tuple[str, ...], reason: str | None
) -> None:
    assert exclusion(FACTS, ExcludeSessions.model_validate(policy), tombstones) == reason


def test_what_is_not_known_never_matches_the_policy() -> None:
    policy = ExcludeSessions(channels=("telegram",), hook_sources=("gmail",), chat_types=("direct",))
    assert exclusion(SessionFacts("s"), policy) is None


def test_an_excluded_session_is_listed_with_its_reason(tmp_path: Path) -> None:
    agent = agent_at(tmp_path, sources={"exclude_sessions": {"channels": ["telegram"]}})
    SessionBuilder("a").save(tmp_path / "sessions")
    store(tmp_path / "sessions", a={"key": "agent:main:main", "lastChannel": "telegram"})
    assert list_transcripts(agent)[0].excluded_reason == "channel:telegram"


def test_an_exclusion_outlives_the_store_that_gave_its_reason(tmp_path: Path) -> None:
    agent = agent_at(tmp_path, sources={"exclude_sessions": {"channels": ["telegram"]}})
    SessionBuilder("a").save(tmp_path / "sessions")
    store(tmp_path / "sessions", a={"key": "agent:main:main", "lastChannel": "telegram"})
    state = open_state(agent.folders.state_db)
    try:
        file = list_transcripts(agent, state)[0]
        with write_transaction(state):
            record_exclusion(state, file.name, file.facts, str(file.excluded_reason), 1)
        store(tmp_path / "sessions")
        assert list_transcripts(agent, state)[0].excluded_reason == "channel:telegram"
        assert taken(state, file.name).read_to == 0
    finally:
        state.close()


def test_a_tombstone_excludes_a_session(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    SessionBuilder("a").save(tmp_path / "sessions")
    state = open_state(agent.folders.state_db)
    try:
        state.execute("INSERT INTO tombstones VALUES ('a', 'asked', 1)")
        assert list_transcripts(agent, state)[0].excluded_reason == "forgotten"
    finally:
        state.close()


def test_transcripts_are_ordered_by_their_first_row(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    SessionBuilder("a", start=START + 5).save(tmp_path / "sessions")
    SessionBuilder("b", start=START).save(tmp_path / "sessions")
    (tmp_path / "sessions" / "c.jsonl").write_text("damaged\n")
    names = [file.path.name for file in in_order_of_time(list_transcripts(agent))]
    assert names == ["b.jsonl", "a.jsonl", "c.jsonl"]


@pytest.mark.parametrize(("key", "session_id"), [(None, "a"), ("agent:main:main", None), ("agent:main:main", "a")])
def test_a_live_session_is_found_by_id_or_key(tmp_path: Path, key: str | None, session_id: str | None) -> None:
    agent = agent_at(tmp_path)
    path = SessionBuilder("a").save(tmp_path / "sessions")
    store(tmp_path / "sessions", a={"key": "agent:main:main"})
    found = find_session(agent, key, session_id)
    assert found is not None
    assert found[0] == path


@pytest.mark.parametrize("session_id", ["b", "../a", "*", "a*", "[a]"])
def test_no_other_file_is_taken_for_a_session(tmp_path: Path, session_id: str) -> None:
    agent = agent_at(tmp_path)
    SessionBuilder("a").save(tmp_path / "sessions")
    assert find_session(agent, None, session_id) is None


def test_storing_a_reading_twice_changes_nothing(tmp_path: Path) -> None:
    session = SessionBuilder("a")
    session.user("note it")
    session.assistant("Done.", ("1", "edit", {"path": "memory/a.md", "append": "- one\n- two"}))
    reading = read_transcript(session.save(tmp_path), "sessions/main/a.jsonl")
    state = open_state(tmp_path / "state.sqlite")
    try:
        dumps = []
        for now in (1, 2):
            with write_transaction(state):
                record_reading(state, reading, now)
            transcripts = list(state.execute("SELECT * FROM transcripts"))
            dumps.append((transcripts, list(state.execute("SELECT * FROM reported_writes"))))
        assert dumps[0] == dumps[1]
        assert len(dumps[0][1]) == 2
        assert taken(state, "sessions/main/a.jsonl").read_to == reading.read_to
    finally:
        state.close()


def test_a_reported_write_only_ever_loses_trust(tmp_path: Path) -> None:
    session = SessionBuilder("a")
    session.user("note it")
    session.assistant("Done.", ("1", "edit", {"path": "memory/a.md", "append": "- one"}))
    reading = read_transcript(session.save(tmp_path), "sessions/main/a.jsonl")
    write = reading.writes[0]
    worse = replace(write, provenance=replace(write.provenance, origin_class=OriginClass.UNTRUSTED))
    state = open_state(tmp_path / "state.sqlite")
    try:
        for writes in ((write,), (worse,), (write,)):
            with write_transaction(state):
                record_reading(state, replace(reading, writes=writes), 1)
        assert list(state.execute("SELECT origin_class FROM reported_writes")) == [("untrusted",)]
    finally:
        state.close()


def test_messages_of_a_growing_file_are_counted_up(tmp_path: Path) -> None:
    session = SessionBuilder("a")
    session.user("one")
    first = read_transcript(session.save(tmp_path), "a")
    session.user("two")
    second = read_transcript(
        session.save(tmp_path), "a", from_offset=first.read_to, expected_prefix_hash=first.prefix_hash
    )
    state = open_state(tmp_path / "state.sqlite")
    try:
        for reading in (first, second):
            with write_transaction(state):
                record_reading(state, reading, 1)
        assert list(state.execute("SELECT messages FROM transcripts")) == [(2,)]
    finally:
        state.close()
