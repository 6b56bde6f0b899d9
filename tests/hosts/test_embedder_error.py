"""A named embedder that fails at a question: an error with what words found, and never a lost turn."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError
from recall_runtime.hosts.http_api import make_http_server
from recall_runtime.hosts.tools import Service
from recall_runtime.index.embedders.remote import RemoteEmbedder
from recall_runtime.index.hits import LaneState
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.tools import memory_search
from recall_runtime.recall.turn import Lane, turn
from tests.hosts.helpers import OWNER, post
from tests.index.test_embedders import Endpoint
from tests.support.index_agents import agent_over, write_files

MAIN = "agent:main:main"
NOTE = {"memory/2026-03-01.md": "- The boiler in the cellar is made by Hansen.\n"}


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Agent]:
    """An agent whose named provider made the vectors of the index and answers 500 ever since."""
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.serve_forever, daemon=True)
    thread.start()
    workspace = write_files(tmp_path / "workspace", NOTE)
    provider = {"name": "ollama", "base_url": endpoint.url, "model": "m", "dimensions": 16}
    settings = {"embedder": provider, "recall": {"mode": "always"}}
    agent = agent_over(workspace, tmp_path / "home", settings=settings)
    report = sync(agent)
    assert report.vector_error is None
    endpoint.broken_after = 0
    yield agent
    endpoint.shutdown()
    endpoint.server_close()
    thread.join()


def test_a_search_says_the_error_and_gives_what_words_found(failing: Agent) -> None:
    answer = search(failing, "boiler Hansen")
    assert answer.lanes["vector"].state is LaneState.FAILED
    assert answer.error is not None
    assert "words alone" in answer.error
    assert [hit.entry.path for hit in answer.hits] == ["memory/2026-03-01.md"]


def test_the_tool_names_type_and_message(failing: Agent) -> None:
    with Runtime(failing) as runtime:
        answer = memory_search(failing, runtime, "boiler Hansen", session_key=MAIN, sender="owner")
    assert answer["error"]["type"] == "EmbedderError"
    assert len(answer["results"]) == 1


def test_over_http_it_is_a_bad_gateway_with_the_results(failing: Agent) -> None:
    with contextlib.closing(Service(failing)) as service:
        server = make_http_server(service, "token", 0)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            code, tree = post(
                address, "/v1/memory_search", {"query": "boiler"}, OWNER | {"authorization": "Bearer token"}
            )
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    assert (code, tree["error"]["type"], len(tree["results"])) == (502, "EmbedderError", 1)


def test_a_turn_never_fails_and_names_the_lane(failing: Agent) -> None:
    made = turn(failing, "who made the boiler in the cellar again?", session_key=MAIN, sender="owner", record=False)
    assert made.lanes[Lane.DEEP].decision == "failed"
    assert "words alone" in made.lanes[Lane.DEEP].detail
    assert ("vectors", "failed") in {(one.what, one.reason) for one in made.omissions}
    assert "Hansen" in made.deep


def test_one_that_nobody_named_only_degrades(failing: Agent) -> None:
    """The default embedder missing its package is said, not raised; here: none of the settings names one."""
    unnamed = failing.settings.embedder.model_copy()
    unnamed.model_fields_set.discard("name")
    assert "name" not in unnamed.model_fields_set
    settings = failing.settings.model_copy(update={"embedder": unnamed})
    answer = search(Agent(failing.folders, settings, failing.zone, failing.clock), "boiler")
    assert (answer.lanes["vector"].state, answer.error, len(answer.hits)) == (LaneState.FAILED, None, 1)


def test_a_question_is_not_asked_twice(failing: Agent) -> None:
    """A provider that answers 500 to a question costs one request: somebody waits, and words alone are quicker."""
    waits: list[float] = []
    patient = RemoteEmbedder(failing.settings.embedder, sleep=waits.append)
    with pytest.raises(EmbedderError):
        patient.embed_query("boiler")
    patient.close()
    assert waits == []
