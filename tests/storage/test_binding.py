"""The databases of an agent are of one workspace, and say so."""

import contextlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from recall_runtime.agent import Agent, open_agent
from recall_runtime.errors import StoreError, WorkspaceError
from recall_runtime.index.freshness import compare
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.tools import memory_search, sessions_history
from recall_runtime.recall.turn import turn
from recall_runtime.signals.recalls import record_recall
from recall_runtime.storage.binding import take_over
from recall_runtime.storage.connection import open_writer
from tests.support.example import dreamline
from tests.support.index_agents import NOW, agent_over, write_files

MAIN = "agent:main:main"
QUESTION = "What did we decide about the salary of Robin?"
SECRET = "91000"


@pytest.fixture
def mine(tmp_path: Path) -> Agent:
    """Return an agent whose workspace is indexed."""
    files = {"MEMORY.md": f"- We decided that the salary of Robin is {SECRET}. <!-- trigger: salary of Robin -->\n"}
    agent = agent_over(write_files(tmp_path / "mine", files), tmp_path / "home")
    sync(agent)
    return agent


def other_over(mine: Agent) -> Agent:
    """Return an agent with another workspace and the same state folder."""
    files = {"MEMORY.md": "- Notes of another project. <!-- trigger: other notes -->\n"}
    return agent_over(write_files(mine.workspace.parent / "other", files), mine.folders.home)


def forget_names(agent: Agent) -> None:
    """Leave the databases as a version wrote them that named no workspace."""
    for path, statement in (
        (agent.folders.state_db, "DELETE FROM watermarks WHERE name = 'workspace'"),
        (agent.folders.index_db, "DELETE FROM meta WHERE key = 'workspace'"),
    ):
        with contextlib.closing(open_writer(path)) as connection:
            connection.execute(statement)


def warm(agent: Agent) -> object:
    """Search with a server's warm state."""
    with Runtime(agent) as runtime:
        return memory_search(agent, runtime, QUESTION, session_key=MAIN, record=False)


READERS: dict[str, Callable[[Agent], object]] = {
    "memory_search": lambda agent: memory_search(agent, None, QUESTION, session_key=MAIN),
    "memory_search of a server": warm,
    "sessions_history": lambda agent: sessions_history(agent, None, "s1", session_key=MAIN),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_takes_the_index_of_another_workspace(mine: Agent, reader: str) -> None:
    with pytest.raises(StoreError, match="another workspace"):
        READERS[reader](other_over(mine))


def test_a_search_over_the_index_of_another_workspace_finds_nothing_and_says_why(mine: Agent) -> None:
    answer = search(other_over(mine), QUESTION)
    assert (answer.hits, {"another workspace" in lane.reason for lane in answer.lanes.values()}) == ((), {True})


def test_a_turn_injects_nothing_of_another_workspace(mine: Agent) -> None:
    made = turn(other_over(mine), QUESTION, session_key=MAIN)
    assert SECRET not in made.text
    assert {name for name, lane in made.lanes.items() if "another workspace" in lane.detail} == {"triggers", "deep"}


def test_opening_an_agent_over_another_workspace_is_refused_with_the_cure(mine: Agent) -> None:
    other = other_over(mine)
    with pytest.raises(WorkspaceError, match=r"--home DIR.*init --moved"):
        open_agent(home=mine.folders.home, workspace=other.workspace)
    assert open_agent(home=mine.folders.home, workspace=mine.workspace).workspace == mine.workspace


def test_a_sync_of_another_workspace_is_refused_and_changes_nothing(mine: Agent) -> None:
    with pytest.raises(WorkspaceError, match="is of the workspace"):
        sync(other_over(mine), force=True)
    assert SECRET in search(mine, QUESTION).hits[0].snippet


def test_databases_without_a_name_are_read_and_named_by_the_next_sync(mine: Agent) -> None:
    forget_names(mine)
    assert SECRET in search(mine, QUESTION).hits[0].snippet
    assert not sync(mine).rebuilt
    assert search(other_over(mine), QUESTION).hits == ()


def test_an_index_of_another_workspace_is_built_anew(mine: Agent) -> None:
    other = agent_over(other_over(mine).workspace, mine.folders.home.parent / "own")
    other.folders.agent_home.mkdir(parents=True)
    shutil.copy(mine.folders.index_db, other.folders.index_db)
    assert not compare(other).is_fresh
    assert sync(other).rebuilt
    assert search(other, QUESTION).hits == ()
    assert search(other, "another project").hits
    assert not sync(other).changed


def test_a_workspace_that_was_moved_takes_its_memory_along(mine: Agent) -> None:
    with contextlib.closing(open_writer(mine.folders.state_db)) as state:
        record_recall(
            mine, query=QUESTION, hits=search(mine, QUESTION).hits, session_key=MAIN, lane="search", now_ms=NOW
        )
        events = state.execute("SELECT count(*) FROM recall_events").fetchall()
        moved = agent_over(shutil.move(mine.workspace, mine.workspace.with_name("moved")), mine.folders.home)
        take_over(moved.folders)
        assert not sync(moved).rebuilt
        assert state.execute("SELECT count(*) FROM recall_events").fetchall() == events == [(1,)]
    assert SECRET in search(moved, QUESTION).hits[0].snippet


def test_init_moved_is_the_way_on_that_the_error_names(tmp_path: Path) -> None:
    write_files(tmp_path / "old", {"MEMORY.md": f"- The salary of Robin is {SECRET}.\n"})
    dreamline("--workspace", "old", "init", "--embedder", "none", cwd=tmp_path)
    dreamline("index", cwd=tmp_path)
    (tmp_path / "old").rename(tmp_path / "new")
    missing = dreamline("search", "salary", cwd=tmp_path)
    assert (missing.returncode, "init --moved" in missing.stderr) == (1, True)
    refused = dreamline("--workspace", "new", "search", "salary", cwd=tmp_path)
    assert (refused.returncode, "init --moved" in refused.stderr) == (1, True)
    done = dreamline("--workspace", "new", "init", "--moved", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET in dreamline("search", "salary", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('# Mine.\r\nworkspace = "{old}"  # here\r\ntimezone = "UTC"\r\n', True, id="its line alone"),
        pytest.param("workspace='{old}'\n[search]\nmax_results = 5\n", True, id="in other quotes"),
        pytest.param('[agents.main]\nworkspace = "{old}"\n', False, id="named for one agent"),
        pytest.param('workspace = """\n{old}"""\n', False, id="over two lines"),
    ],
)
def test_init_moved_corrects_the_line_of_the_settings_and_no_other_byte(
    tmp_path: Path, before: str, after: bool
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "home").mkdir()
    config = tmp_path / "home" / "dreamline.toml"
    text = before.replace("{old}", str(tmp_path / "old"))
    config.write_bytes(text.encode())
    done = dreamline("--workspace", "new", "init", "--moved", cwd=tmp_path)
    assert (done.returncode == 0) is after, done.stderr
    expected = re.sub(r"(workspace ?= ?)(['\"]).*old\2", lambda match: f'workspace = "{tmp_path / "new"}"', text)
    assert config.read_bytes().decode() == (expected if after else text)


@pytest.mark.skipif(os.name != "posix", reason="paths are text there")
def test_a_path_may_hold_bytes_that_are_no_text(tmp_path: Path) -> None:
    agent = agent_over(write_files(tmp_path / os.fsdecode(b"w\xff"), {"MEMORY.md": "- A fact.\n"}), tmp_path / "home")
    sync(agent)
    assert search(agent, "fact").hits
