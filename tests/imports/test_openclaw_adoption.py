"""Taking over an OpenClaw workspace."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.errors import SourceError
from recall_runtime.imports.history import query_hash
from recall_runtime.imports.openclaw import adopt_openclaw, find_home
from recall_runtime.storage.schema import open_state
from tests.support.sessions import agent_at

NOTE = "memory/2026-03-04.md"


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return agent_at(tmp_path / "agent")


@pytest.fixture
def state(agent: Agent) -> Iterator[apsw.Connection]:
    connection = open_state(agent.folders.state_db)
    yield connection
    connection.close()


def recall(query: str, *results: dict[str, Any], at: str = "2026-03-05T10:00:00.000Z") -> dict[str, Any]:
    return {
        "type": "memory.recall.recorded",
        "timestamp": at,
        "query": query,
        "resultCount": len(results),
        "results": list(results),
    }


def hit(path: str = NOTE, line: int = 3, score: float = 0.8) -> dict[str, Any]:
    return {"path": path, "startLine": line, "endLine": line, "score": score}


def installation(root: Path, *events: Any, store: dict[str, Any] | None = None) -> Path:
    workspace = root / ".openclaw" / "workspace"
    machine = workspace / "memory" / ".dreams"
    machine.mkdir(parents=True)
    (root / ".openclaw" / "agents" / "main" / "sessions").mkdir(parents=True)
    marker = "<!-- openclaw-memory-promotion:memory:memory/2026-03-04.md:3:3 -->"
    (workspace / "MEMORY.md").write_text(f"# Memory\n\n{marker}\n- The key hangs left.\n")
    (workspace / NOTE).write_text("# Day\n\n- the key hangs left\n- token: sk-abcdefghijklmnopqrstuv\n")
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    (machine / "events.jsonl").write_text("".join(line + "\n" for line in lines))
    if store is not None:
        entries = {str(number): entry for number, entry in enumerate(store["entries"])}
        (machine / "short-term-recall.json").write_text(json.dumps({"version": 1, "entries": entries}))
    return root


def tree_hash(root: Path) -> dict[str, str]:
    return {p.as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(root.rglob("*")) if p.is_file()}


def test_questions_of_the_event_log_become_recall_events(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    source = installation(tmp_path / "oc", recall("Where is the key", hit(), hit(line=4)))
    before = tree_hash(source)
    report = adopt_openclaw(agent, source)
    assert (report.recall_events, report.recall_hits, report.promotions) == (1, 2, 1)
    assert tree_hash(source) == before
    events = list(state.execute("SELECT day, query, query_hash, session_kind FROM recall_events"))
    assert events == [("2026-03-05", "Where is the key", query_hash("Where is the key"), "interactive")]
    hits = list(state.execute("SELECT rank, path, start_line, score, text, origin_class FROM recall_hits"))
    assert hits[0] == (1, NOTE, 3, 0.8, "- the key hangs left", "agent")
    assert "abcdefghijklmnop" not in hits[1][4]


def test_worked_query_hash() -> None:
    """openclaw-algorithms 17.2."""
    assert query_hash("Gateway setup") == query_hash(" gateway setup ") == "e9dc9a1bbc5c"


def test_adopting_twice_adds_nothing(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    store = {"entries": [entry()]}
    source = installation(tmp_path / "oc", recall("where", hit()), store=store)
    first = adopt_openclaw(agent, source)
    second = adopt_openclaw(agent, source)
    assert (first.recall_events, second.recall_events) == (3, 0)
    assert second.skipped["already_adopted"] == 3
    assert list(state.execute("SELECT count(*) FROM recall_events")) == [(3,)]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        pytest.param(recall("__dreaming_daily__:2026-03-04", hit()), "own_bookkeeping", id="the sweep's own"),
        pytest.param(recall("x", hit("memory/.dreams/session-corpus/2026-03-04.txt")), "not_memory", id="corpus"),
        pytest.param(recall("x", hit("../etc/passwd")), "not_memory", id="outside"),
        pytest.param(recall("x", {"path": NOTE, "startLine": 0, "endLine": 1}), "damaged", id="no line"),
        pytest.param(recall("x", hit(), at="never"), "damaged", id="no time"),
        pytest.param(recall("", hit()), "damaged", id="no question"),
        pytest.param("{broken", "damaged", id="no JSON"),
    ],
)
def test_what_is_no_question_of_a_person_is_left_out_and_counted(
    agent: Agent, tmp_path: Path, event: Any, reason: str
) -> None:
    report = adopt_openclaw(agent, installation(tmp_path / "oc", event))
    assert (report.recall_events, dict(report.skipped)) == (0, {reason: 1})


def entry(**values: Any) -> dict[str, Any]:
    return {
        "path": NOTE,
        "startLine": 3,
        "endLine": 3,
        "snippet": "the key hangs left",
        "recallCount": 2,
        "dailyCount": 0,
        "groundedCount": 0,
        "totalScore": 1.4,
        "queryHashes": ["aaaaaaaaaaaa", "bbbbbbbbbbbb"],
        "recallDays": ["2026-03-05", "2026-03-06"],
    } | values


@pytest.mark.parametrize(
    ("values", "events"),
    [
        pytest.param({}, [("2026-03-05", "aaaaaaaaaaaa"), ("2026-03-06", "bbbbbbbbbbbb")], id="only questions"),
        pytest.param({"dailyCount": 3}, [], id="the sweep counted too, so nobody knows"),
        pytest.param(
            {"dailyCount": 3, "userQueryHashes": ["cccccccccccc"]}, [("2026-03-05", "cccccccccccc")], id="named"
        ),
        pytest.param({"recallDays": ["2026-02-30"]}, [], id="no real day"),
        pytest.param({"path": 5}, [], id="damaged"),
    ],
)
def test_the_older_store_gives_what_the_log_does_not_hold(
    agent: Agent, state: apsw.Connection, tmp_path: Path, values: dict[str, Any], events: list[tuple[str, str]]
) -> None:
    adopt_openclaw(agent, installation(tmp_path / "oc", store={"entries": [entry(**values)]}))
    assert list(state.execute("SELECT day, query_hash FROM recall_events ORDER BY day")) == events
    scores = {row[0] for row in state.execute("SELECT score FROM recall_hits")}
    assert scores <= {0.7, 0.28}


def test_a_question_in_both_is_counted_once(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    store = {"entries": [entry(queryHashes=[query_hash("where")])]}
    report = adopt_openclaw(agent, installation(tmp_path / "oc", recall("where", hit()), store=store))
    assert report.recall_events == 1


def test_a_preview_writes_nothing(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    report = adopt_openclaw(agent, installation(tmp_path / "oc", recall("where", hit())), dry_run=True)
    assert report.recall_events == 1
    assert list(state.execute("SELECT count(*) FROM recall_events")) == [(0,)]


@pytest.mark.parametrize("below", ["", ".openclaw", ".openclaw/workspace"])
def test_the_parts_are_found_from_any_of_the_usual_folders(tmp_path: Path, below: str) -> None:
    root = installation(tmp_path / "oc").resolve()
    home = find_home(root / below, "main")
    assert home.workspace == root / ".openclaw/workspace"
    assert home.session_folders == (root / ".openclaw/agents/main/sessions",)


def test_the_configured_workspace_is_followed(tmp_path: Path) -> None:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "oc").mkdir()
    tree = {"agents": {"defaults": {"workspace": str(tmp_path / "ws")}}}
    (tmp_path / "oc" / "openclaw.json").write_text(json.dumps(tree))
    assert find_home(tmp_path / "oc", "main").workspace == tmp_path / "ws"


def test_a_folder_without_a_workspace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        find_home(tmp_path, "main")


def intents_database(path: Path) -> None:
    path.parent.mkdir(parents=True)
    database = apsw.Connection(str(path))
    database.execute(
        "CREATE TABLE standing_intents (id TEXT, description TEXT, trigger_keywords TEXT, channel_scope TEXT,"
        " sender_scope TEXT, creator_sender TEXT, status TEXT, expires_at INTEGER, max_fires INTEGER,"
        " fire_count INTEGER, cooldown_seconds INTEGER, last_fired_at INTEGER, created_at INTEGER,"
        " source_session_id TEXT)"
    )
    row = ["i1", "buy bread", '["bakery"]', None, None, "owner-1", "armed", 9, 3, 0, 60, None, 1, None]
    blank = ["i2", *row[1:5], " ", *row[6:]]
    database.executemany(f"INSERT INTO standing_intents VALUES ({','.join('?' * 14)})", [row, blank])  # noqa: S608 - marks only
    database.close()


def test_standing_intents_are_copied_once_and_those_without_creator_left_out(
    agent: Agent, state: apsw.Connection, tmp_path: Path
) -> None:
    root = installation(tmp_path / "oc")
    intents_database(root / ".openclaw/agents/main/agent/openclaw-agent.sqlite")
    before = tree_hash(root)
    reports = [adopt_openclaw(agent, root) for _ in range(2)]
    assert [(report.intents, report.skipped["damaged"]) for report in reports] == [(1, 1), (0, 1)]
    assert list(state.execute("SELECT intent_id, status FROM standing_intents")) == [("i1", "armed")]
    assert tree_hash(root) == before
