"""Recall events: one short transaction, a spool when busy, text and class from the place itself."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.clock import parse_instant
from recall_runtime.errors import StoreLockedError
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.notes.identity import query_hash
from recall_runtime.provenance.segments import line_hash
from recall_runtime.signals import spool
from recall_runtime.signals.recalls import drain_spool, record_external_recall, record_recall, record_recalls
from recall_runtime.storage.connection import open_writer
from tests.support.index_agents import agent_over, write_files, write_session

NOTE = "# 2026-03-19\n\n- The pump key is number nineteen.\n- The wifi password: hunter2hunter2hunter2\n"
AT = parse_instant("2026-03-20T23:30:00Z")
MAIN = "agent:main:main"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    workspace = write_files(tmp_path / "ws", {"memory/2026-03-19.md": NOTE})
    made = agent_over(workspace, tmp_path / "home", sessions=tmp_path / "sessions")
    sync(made)
    return made


def rows(agent: Agent, sql: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(apsw.Connection(str(agent.folders.state_db))) as state:
        return state.execute(sql).fetchall()


@contextlib.contextmanager
def busy(agent: Agent) -> Iterator[None]:
    """Hold the write lock of the state database."""
    with contextlib.closing(open_writer(agent.folders.state_db)) as other:
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")


def recall(agent: Agent, query: str, key: str | None = MAIN) -> bool:
    hits = search(agent, query).hits
    return record_recall(agent, query=query, hits=hits, session_key=key, lane="search", now_ms=AT)


def test_what_was_shown_is_stored_with_its_place_score_and_class(agent: Agent) -> None:
    assert recall(agent, "Pump key?")
    assert rows(agent, "SELECT at, day, query, query_hash, session_key, session_kind, lane FROM recall_events") == [
        (AT, "2026-03-20", "Pump key?", query_hash("Pump key?"), MAIN, "interactive", "search")
    ]
    [(rank, path, start, end, score, text, origin)] = rows(
        agent, "SELECT rank, path, start_line, end_line, score, text, origin_class FROM recall_hits"
    )
    assert (rank, path, start, end, text, origin) == (
        1,
        "memory/2026-03-19.md",
        3,
        3,
        "The pump key is number nineteen.",
        "agent",
    )
    assert 0 < score <= 1


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (MAIN, "interactive"),
        ("agent:main:telegram:direct:owner", "interactive"),
        ("agent:main:cron:digest", "cron"),
        ("agent:main:subagent:x", "subagent"),
        ("agent:main:heartbeat", "heartbeat"),
        ("whatever", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_kind_of_session_comes_from_its_key(agent: Agent, key: str | None, kind: str) -> None:
    recall(agent, "pump", key)
    assert rows(agent, "SELECT session_kind FROM recall_events") == [(kind,)]


def test_secrets_are_stored_neither_in_the_query_nor_in_the_text(agent: Agent) -> None:
    query = "wifi password: hunter2hunter2hunter2"
    anchor = {"path": "memory/2026-03-19.md", "startLine": 4, "endLine": 4, "score": 0.9}
    record_external_recall(agent, query=query, results=[anchor], at_ms=AT, session_key=MAIN)
    stored = str(rows(agent, "SELECT query FROM recall_events") + rows(agent, "SELECT text FROM recall_hits"))
    assert "hunter2hunter2hunter2" not in stored
    assert "wifi" in stored


def test_a_busy_database_sends_the_event_to_the_spool_and_a_drain_brings_it_in_once(agent: Agent) -> None:
    with busy(agent):
        assert not recall(agent, "pump key")
        assert not recall(agent, "where is the pump key")
    assert rows(agent, "SELECT count(*) FROM recall_events") == [(0,)]
    assert drain_spool(agent) == 2
    assert drain_spool(agent) == 0
    assert rows(agent, "SELECT query FROM recall_events ORDER BY event_id") == [
        ("pump key",),
        ("where is the pump key",),
    ]
    assert rows(agent, "SELECT count(*) FROM recall_hits") == [(2,)]


def test_a_drain_that_was_killed_is_finished_by_the_next(agent: Agent) -> None:
    with busy(agent):
        recall(agent, "pump key")
    file = agent.folders.spool / "recalls.jsonl"
    file.rename(file.with_suffix(".draining"))
    with busy(agent):
        recall(agent, "another pump key")
    assert drain_spool(agent) == 1
    assert drain_spool(agent) == 1
    assert rows(agent, "SELECT count(*) FROM recall_events") == [(2,)]


def test_a_damaged_line_of_the_spool_is_kept_aside_and_the_others_come_in(agent: Agent) -> None:
    with busy(agent):
        recall(agent, "pump key")
    file = agent.folders.spool / "recalls.jsonl"
    file.write_bytes(b'{"at": 1}\n{"cut' + b"\n" + file.read_bytes())
    assert drain_spool(agent) == 1
    assert (agent.folders.spool / "recalls.damaged").read_text().splitlines() == ['{"at": 1}', '{"cut']


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"session_kind": "bogus"}, id="a kind outside the closed set"),
        pytest.param({"hits": [{}]}, id="a hit without its fields"),
        pytest.param({"hits": [{"path": "a.md"}, 3]}, id="a hit that is a number"),
        pytest.param({"hits": None}, id="no list of hits"),
        pytest.param({"at": "soon"}, id="a time that is no number"),
        pytest.param({"at": 10**30}, id="a number larger than a column holds"),
        pytest.param({"query": ["a"]}, id="a list for a text"),
        pytest.param({"query": "\ud800"}, id="a text that can't be stored"),
        pytest.param({"query": None}, id="nothing where something must be"),
        pytest.param({"day": "2026-02-31"}, id="a day that never was"),
    ],
)
def test_a_line_with_a_wrong_value_is_kept_aside_and_the_others_come_in(agent: Agent, change: dict[str, Any]) -> None:
    with busy(agent):
        recall(agent, "pump key")
    file = agent.folders.spool / "recalls.jsonl"
    whole = file.read_text(encoding="utf-8")
    wrong = json.dumps({**json.loads(whole), "event": "other", **change})
    file.write_text(f"{wrong}\n{whole}", encoding="utf-8")
    assert drain_spool(agent) == 1
    assert (agent.folders.spool / "recalls.damaged").read_text(encoding="utf-8") == f"{wrong}\n"
    assert rows(agent, "SELECT count(*) FROM recall_events") == [(1,)]
    assert rows(agent, "SELECT count(*) FROM recall_hits") == [(1,)]


@pytest.mark.parametrize("key", ["agent:main:a\u2028b", "agent:main:a\x85b", "agent:main:a\x1cb"], ids=ascii)
def test_a_separator_inside_a_text_ends_no_line_of_the_spool(agent: Agent, key: str) -> None:
    with busy(agent):
        recall(agent, "pump key", key)
    assert drain_spool(agent) == 1
    assert rows(agent, "SELECT session_key FROM recall_events") == [(key,)]


def test_a_line_that_was_cut_by_a_kill_costs_itself_alone(agent: Agent) -> None:
    file = agent.folders.spool / "recalls.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text('{"at": 17', encoding="utf-8")
    with busy(agent):
        recall(agent, "pump key")
    assert drain_spool(agent) == 1


EVENT = {
    "at": AT, "day": "2026-03-20", "query": "from outside", "query_hash": "h", "session_key": None,
    "session_kind": "unknown", "lane": "search", "hits": [],
}  # fmt: skip
WRITER = """
import json, sys
from pathlib import Path
from recall_runtime.signals import spool
event = json.loads(sys.argv[2])
for number in range(300):
    spool.append(Path(sys.argv[1]), [event | {"query": f"{sys.argv[3]} {number}", "event": f"{sys.argv[3]} {number}"}])
"""
IN_THE_MIDDLE = """
import sys
from pathlib import Path
from recall_runtime.storage.locks import exclusive
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
with exclusive(folder / "append.lock", what="x"), (folder / "recalls.jsonl").open("a") as stream:
    print("open", flush=True)
    sys.stdin.read()
    stream.write(sys.argv[2] + chr(10))
"""


@contextlib.contextmanager
def process(agent: Agent, code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``code`` in a process of its own."""
    command = [sys.executable, "-c", code, str(agent.folders.spool), json.dumps(EVENT), *arguments]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()


def test_events_of_several_processes_all_come_in_while_the_spool_is_drained(agent: Agent) -> None:
    drained = 0
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(process(agent, WRITER, name)) for name in "abc"]
        while any(writer.poll() is None for writer in writers):
            drained += drain_spool(agent)
        assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert drained + drain_spool(agent) == 900
    assert rows(agent, "SELECT count(DISTINCT query) FROM recall_events") == [(900,)]


def test_a_drain_waits_for_a_process_that_is_in_the_middle_of_a_line(agent: Agent) -> None:
    """It has the file open; taken away and removed, the file would take the line along."""
    with process(agent, IN_THE_MIDDLE) as writer, ThreadPoolExecutor(1) as pool:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "open\n"
        drained = pool.submit(drain_spool, agent)
        with contextlib.suppress(TimeoutError):
            drained.result(0.3)
        writer.stdin.close()
        writer.wait()
        assert drained.result() + drain_spool(agent) == 1


def test_nothing_is_appended_while_another_process_holds_the_spool(agent: Agent) -> None:
    with process(agent, IN_THE_MIDDLE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError):
            spool.append(agent.folders.spool, [EVENT])


def test_what_one_turn_showed_is_written_in_one_transaction(agent: Agent) -> None:
    """A second event that can't be stored takes the first along to the file."""
    hits = search(agent, "pump key").hits
    shown = [("trigger", hits), ("recall", hits)]
    assert record_recalls(agent, query="pump", shown=shown, session_key=MAIN, now_ms=AT)
    assert rows(agent, "SELECT lane FROM recall_events ORDER BY event_id") == [("trigger",), ("recall",)]
    with contextlib.closing(apsw.Connection(str(agent.folders.state_db))) as state:
        state.execute(
            "CREATE TRIGGER full AFTER INSERT ON recall_events WHEN new.lane = 'recall'"
            " BEGIN SELECT raise(ABORT, 'no more'); END"
        )
    assert not record_recalls(agent, query="again", shown=shown, session_key=MAIN, now_ms=AT)
    assert rows(agent, "SELECT count(*) FROM recall_events") == [(2,)]


def test_a_recall_that_can_be_written_nowhere_is_reported_and_raises_nothing(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.folders.spool.write_text("a file in the way", encoding="utf-8")
    with busy(agent):
        assert not recall(agent, "pump key")
    assert "can't be recorded" in caplog.text


def test_a_drain_while_the_database_is_busy_loses_nothing(agent: Agent) -> None:
    with busy(agent):
        recall(agent, "pump key")
        with pytest.raises(StoreLockedError):
            drain_spool(agent)
    assert drain_spool(agent) == 1


def external(agent: Agent, **anchor: Any) -> list[tuple[Any, ...]]:
    result = {"path": "memory/2026-03-19.md", "startLine": 3, "endLine": 3, "score": 0.931, **anchor}
    record_external_recall(agent, query="pump", results=[result], at_ms=AT, session_key=MAIN)
    return rows(agent, "SELECT path, start_line, end_line, score, text, origin_class FROM recall_hits")


def test_an_anchor_told_by_a_host_gets_the_text_of_the_file_now(agent: Agent) -> None:
    changed = NOTE.replace("nineteen", "twenty")
    (agent.workspace / "memory/2026-03-19.md").write_text(changed, encoding="utf-8")
    assert external(agent) == [("memory/2026-03-19.md", 3, 3, 0.931, "The pump key is number twenty.", "agent")]


def test_an_anchor_has_the_class_of_its_lines(agent: Agent) -> None:
    with contextlib.closing(apsw.Connection(str(agent.folders.state_db))) as state:
        state.execute(
            "INSERT INTO reported_writes(path, line_hash, session_id, origin_class, session_kind, observed_at)"
            " VALUES ('memory/2026-03-19.md', ?, 's', 'untrusted', 'interactive', 1)",
            (line_hash("- The pump key is number nineteen."),),
        )
    assert external(agent)[0][-1] == "untrusted"


def test_an_anchor_into_a_transcript_is_answered_by_the_index(agent: Agent, tmp_path: Path) -> None:
    write_session(tmp_path / "sessions", "s1", [("user", "The ladder stands behind the shed.")])
    sync(agent)
    found = external(agent, path="sessions/main/s1.jsonl", startLine=2, endLine=2)
    assert found[0][4] == "The ladder stands behind the shed."


@pytest.mark.parametrize(
    "anchor",
    [
        {"path": "memory/none.md"},
        {"path": "../outside.md"},
        {"path": "/etc/passwd"},
        {"startLine": 900, "endLine": 901},
        {"startLine": 0},
        {"startLine": "x"},
        {"endLine": 2},
        {"path": "memory/\x00.md"},
    ],
)
def test_an_anchor_that_leads_nowhere_is_left_out_and_the_event_stays(agent: Agent, anchor: dict[str, Any]) -> None:
    assert external(agent, **anchor) == []
    assert rows(agent, "SELECT count(*) FROM recall_events") == [(1,)]


def test_long_texts_are_cut_at_800_characters_between_visible_signs(agent: Agent) -> None:
    long = "- " + "a👨‍👩‍👧‍👦" * 300 + "\n"
    (agent.workspace / "memory/2026-03-19.md").write_text(long, encoding="utf-8")
    text = external(agent, startLine=1, endLine=1)[0][4]
    assert 780 < len(text) <= 800
    assert text.endswith(("a", "👨‍👩‍👧‍👦"))


def test_the_spool_is_readable_by_its_owner_alone(agent: Agent) -> None:
    with busy(agent):
        recall(agent, "pump \ud800 key")
    file = agent.folders.spool / "recalls.jsonl"
    assert os.name != "posix" or file.stat().st_mode & 0o077 == 0
    assert len([json.loads(line) for line in file.read_text().splitlines()]) == 1
