"""The real UI in a real browser: the graph of one entry, and hostile text that stays text."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.storage.schema import open_state
from resources.lineage_reload import reload_lineage
from tests.support.browser import dom, find_chromium, screenshot
from tests.support.dagster_ui import graphql, locations, serve
from tests.support.state_rows import add_claim, add_promotion, make_agent

pytestmark = pytest.mark.slow
ENTRY = "3fa9c2d10b7e"
HOSTILE = "![x](http://127.0.0.1:9/pixel.png) <img src=http://127.0.0.1:9/a> [y](javascript:alert(1))"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    """Return an agent with one promoted entry that cites three notes."""
    agent = make_agent(tmp_path_factory.mktemp("ui"))
    agent.folders.home.mkdir(parents=True)
    (agent.folders.home / "dreamline.toml").write_text(f"workspace = '{agent.workspace}'\n")
    days = ("2026-03-05", "2026-03-07", "2026-03-08")
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        add_claim(state, ENTRY, HOSTILE, status="promoted")
        sources = [{"path": f"memory/{day}.md", "start": 3, "end": 3, "day": day} for day in days]
        add_promotion(state, ENTRY, f"- {HOSTILE}", sources=sources, gate={"score": 0.81})
    return agent


@pytest.fixture(scope="module")
def port(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Serve the UI of ``agent``."""
    with serve(agent.folders.home, tmp_path_factory.mktemp("log") / "ui.log") as port:
        yield port


def test_both_locations_load(port: int) -> None:
    assert locations(port) == {"memory": "RepositoryLocation", "lineage": "RepositoryLocation"}


def test_the_entry_hangs_on_its_lines_their_notes_and_the_curated_file(port: int) -> None:
    nodes = graphql(port, "{assetNodes{assetKey{path} dependencyKeys{path}}}")["assetNodes"]
    upstream = {"/".join(n["assetKey"]["path"]): {"/".join(d["path"]) for d in n["dependencyKeys"]} for n in nodes}
    lines = {f"main/evidence/2026-03-0{day}-L3" for day in (5, 7, 8)}
    assert upstream[f"main/entries/{ENTRY}"] == lines | {"main/curated/memory_md"}
    assert upstream["main/evidence/2026-03-05-L3"] == {"main/notes/2026-03-05"}
    assert upstream["main/notes/2026-03-05"] == {"main/episodic/daily_notes"}
    assert "main/dreaming/gate_scores" in upstream["main/curated/memory_md"]


def test_only_the_lineage_is_loaded_again(agent: Agent, port: int) -> None:
    before = _loaded(port)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        add_promotion(state, "91be04c7aa12", "- Backups run at 02:15")
    assert reload_lineage(port) is None
    keys = [node["assetKey"]["path"] for node in graphql(port, "{assetNodes{assetKey{path}}}")["assetNodes"]]
    assert ["main", "entries", "91be04c7aa12"] in keys
    after = _loaded(port)
    assert after["memory"] == before["memory"]
    assert after["lineage"] > before["lineage"]


def test_without_a_ui_there_is_a_reason_and_no_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert "no UI answers" in str(reload_lineage(unused.getsockname()[1]))


def _loaded(port: int) -> dict[str, float]:
    query = "{workspaceOrError{...on Workspace{locationEntries{name updatedTimestamp}}}}"
    entries = graphql(port, query)["workspaceOrError"]["locationEntries"]
    return {entry["name"]: entry["updatedTimestamp"] for entry in entries}


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_a_browser_draws_the_graph_of_an_entry(port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{port}/assets/main/entries/{ENTRY}?view=lineage&lineageScope=upstream&lineageDepth=3"
    screenshot(url, tmp_path / "lineage.png")
    assert (tmp_path / "lineage.png").stat().st_size > 20_000
    document = dom(url)
    for name in (ENTRY, "2026-03-05-L3", "memory_md"):
        assert name in document


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_hostile_text_is_shown_and_does_nothing(port: int) -> None:
    document = dom(f"http://127.0.0.1:{port}/assets/main/entries/{ENTRY}?view=overview")
    assert "javascript:alert" in document  # it is shown, as text
    for harm in ('src="http://127.0.0.1:9', "src=http://127.0.0.1:9/a>", 'href="javascript:'):
        assert harm not in document
