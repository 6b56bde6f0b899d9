"""Who may see private memory."""

import contextlib
from pathlib import Path

import pytest

from recall_runtime.errors import RefusedError
from recall_runtime.index.sync import sync
from recall_runtime.recall.tools import memory_get, memory_search
from recall_runtime.recall.turn import turn
from recall_runtime.recall.visibility import Audience, access_of, readable_sessions
from recall_runtime.storage.connection import open_reader
from tests.support.index_agents import agent_over, write_files, write_session

OWNER = {"sources": {"owner_ids": ("ada",)}}
TABLE = [
    pytest.param("agent:main:main", None, Audience.OWNER, id="main session"),
    pytest.param("agent:main:main", "ada", Audience.OWNER, id="main session, the owner speaks"),
    pytest.param("agent:main:main", "eve", Audience.OTHER_PERSON, id="main session, somebody else speaks"),
    pytest.param("agent:main:explicit:ui-1", None, Audience.OWNER, id="explicit session of the owner's UI"),
    pytest.param("agent:main:telegram:direct:ada", "ada", Audience.OWNER, id="direct chat of the owner"),
    pytest.param("agent:main:telegram:direct:eve", "eve", Audience.OTHER_PERSON, id="direct chat of another person"),
    pytest.param("agent:main:telegram:direct:eve", "ada", Audience.OTHER_PERSON, id="the owner in another's chat"),
    pytest.param("agent:main:telegram:group:42", "ada", Audience.SHARED, id="group, even when the owner speaks"),
    pytest.param("agent:main:slack:channel:c1", "ada", Audience.SHARED, id="channel"),
    pytest.param("agent:main:matrix:room:r1", None, Audience.SHARED, id="room"),
    pytest.param("agent:main:cron:job", None, Audience.SCAFFOLD, id="cron"),
    pytest.param("agent:main:main:heartbeat", None, Audience.SCAFFOLD, id="heartbeat"),
    pytest.param("agent:main:subagent:x", None, Audience.SCAFFOLD, id="sub-agent"),
    pytest.param("hook:mail", None, Audience.UNKNOWN, id="hook"),
    pytest.param("whatever", None, Audience.UNKNOWN, id="unknown form"),
    pytest.param("", None, Audience.UNKNOWN, id="empty"),
    pytest.param(None, None, Audience.UNKNOWN, id="none"),
    pytest.param("agent:other:main", None, Audience.OTHER_AGENT, id="another agent"),
]


@pytest.mark.parametrize(("key", "sender", "audience"), TABLE)
def test_the_audience_of_a_session(tmp_path: Path, key: str | None, sender: str | None, audience: Audience) -> None:
    agent = agent_over(write_files(tmp_path / "ws", {}), tmp_path / "home", settings=OWNER)
    assert access_of(agent, key, sender).audience is audience


@pytest.mark.parametrize(("key", "sender", "audience"), TABLE)
def test_private_memory_reaches_the_owners_private_conversations_only(
    tmp_path: Path, key: str | None, sender: str | None, audience: Audience
) -> None:
    files = {
        "MEMORY.md": "- The safe code is violet. <!-- trigger: safe code -->\n",
        "USER.md": "- Always say violet.\n",
        "memory/2026-03-19.md": "- Violet note about what we decided.\n",
    }
    agent = agent_over(write_files(tmp_path / "ws", files), tmp_path / "home", settings=OWNER)
    sync(agent)
    made = turn(agent, "What did we decide about the safe code?", session_key=key, sender=sender, fresh_start=True)
    assert ("iolet" in made.text) is (audience is Audience.OWNER)
    assert made.audience is audience
    if audience is not Audience.OWNER:
        assert made.text == ""
        assert {one.what for one in made.omissions} >= {"bootstrap", "triggers", "intents", "deep"}


@pytest.mark.parametrize(("key", "sender", "audience"), TABLE)
def test_tools_answer_the_owner_and_the_hosts_own_jobs_only(
    tmp_path: Path, key: str | None, sender: str | None, audience: Audience
) -> None:
    agent = agent_over(write_files(tmp_path / "ws", {"MEMORY.md": "- Violet.\n"}), tmp_path / "home", settings=OWNER)
    sync(agent)
    may_ask = audience in (Audience.OWNER, Audience.SCAFFOLD)
    for call in (
        lambda: memory_search(agent, None, "violet", session_key=key, sender=sender),
        lambda: memory_get(agent, None, "MEMORY.md", session_key=key, sender=sender),
    ):
        with contextlib.nullcontext() if may_ask else pytest.raises(RefusedError, match="private"):
            call()


def test_only_private_conversations_are_a_source_and_never_the_current_one(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    keys = {
        "s1": "agent:main:main",
        "s2": "agent:main:telegram:direct:ada",
        "s3": "agent:main:telegram:group:42",
        "s4": "agent:main:telegram:direct:eve",
        "s5": "agent:main:cron:job",
    }
    for session, key in keys.items():
        write_session(sessions, session, [("user", f"Violet in {session} today.")], key=key)
    agent = agent_over(write_files(tmp_path / "ws", {}), tmp_path / "home", settings=OWNER, sessions=sessions)
    sync(agent)
    with contextlib.closing(open_reader(agent.folders.index_db)) as reader:
        everywhere, rejected = readable_sessions(agent, reader)
        others, _ = readable_sessions(agent, reader, without="agent:main:main")
    assert everywhere == {"agent:main:main", "agent:main:telegram:direct:ada"}
    assert others == {"agent:main:telegram:direct:ada"}
    assert rejected == 3


@pytest.mark.parametrize(
    ("stored", "asking"),
    [
        pytest.param("agent:main:main", "main", id="the host leaves the agent out"),
        pytest.param("main", "agent:main:main", id="the transcript leaves the agent out"),
        pytest.param("agent:main:main:thread:5", "main:thread:5", id="the key of a thread"),
        pytest.param("telegram:direct:ada", "agent:main:telegram:direct:ada", id="a direct chat"),
    ],
)
def test_the_current_conversation_is_known_however_its_key_is_spelt(tmp_path: Path, stored: str, asking: str) -> None:
    sessions = tmp_path / "sessions"
    write_session(sessions, "s1", [("user", "We decided that the garden pump is violet.")], key=stored)
    settings = OWNER | {"search": {"remember_across_conversations": True}}
    agent = agent_over(write_files(tmp_path / "ws", {}), tmp_path / "home", settings=settings, sessions=sessions)
    sync(agent)
    question = "What did we decide about the garden pump?"
    assert "violet" not in turn(agent, question, session_key=asking, record=False).text
    assert "violet" in turn(agent, question, session_key="agent:main:main:thread:9", record=False).text
