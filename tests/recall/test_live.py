"""What the index says of a text is asked again before the text is injected."""

import contextlib
from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.index.sync import sync
from recall_runtime.notes.writer import append_note
from recall_runtime.provenance.segments import line_hash
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.tools import memory_search
from recall_runtime.recall.turn import turn
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import open_state
from tests.support.index_agents import agent_over, write_files

MAIN = "agent:main:main"
NOTE, CURATED = "memory/2026-03-18.md", "MEMORY.md"
LINES = {
    NOTE: "- We decided the gateway host is beta.",
    CURATED: "- The oven is hot. <!-- trigger: oven door -->",
}
QUESTIONS = {NOTE: "What did we decide about the gateway host?", CURATED: "the oven door"}


def made_agent(tmp_path: Path, memory: str = f"{LINES[CURATED]}\n") -> Agent:
    agent = agent_over(
        write_files(tmp_path / "ws", {NOTE: f"{LINES[NOTE]}\n", CURATED: memory}),
        tmp_path / "home",
        settings={"bootstrap": {"max_chars": 1, "total_max_chars": 1}},
    )
    sync(agent)
    return agent


def report(agent: Agent, path: str, line: str, origin: str = "untrusted") -> None:
    """Record that a session of that class wrote ``line``; the index knows nothing of it yet."""
    with contextlib.closing(open_state(agent.folders.state_db)) as state, write_transaction(state):
        state.execute(
            "INSERT INTO reported_writes(path, line_hash, session_id, origin_class, session_kind, observed_at)"
            " VALUES (?, ?, 's1', ?, 'interactive', 1)",
            (path, line_hash(line), origin),
        )


def injected(agent: Agent, path: str) -> str:
    """Return what a turn injects of ``path`` through its triggers and lane 2, with and without warm state."""
    cold = turn(agent, QUESTIONS[path], session_key=MAIN, record=False)
    with Runtime(agent) as runtime:
        warm = turn(agent, QUESTIONS[path], session_key=MAIN, record=False, runtime=runtime)
    assert (cold.triggers, cold.deep) == (warm.triggers, warm.deep)
    return cold.triggers + cold.deep


@pytest.mark.parametrize("path", LINES)
def test_a_line_that_turns_out_to_be_untrusted_is_not_injected_before_the_next_sync(tmp_path: Path, path: str) -> None:
    agent = made_agent(tmp_path)
    assert LINES[path][2:10] in injected(agent, path)
    report(agent, path, LINES[path])
    assert LINES[path][2:10] not in injected(agent, path)


@pytest.mark.parametrize("path", LINES)
def test_a_record_of_another_line_takes_nothing_away(tmp_path: Path, path: str) -> None:
    agent = made_agent(tmp_path)
    report(agent, path, "- Some other line.")
    assert LINES[path][2:10] in injected(agent, path)


def test_a_note_that_a_group_has_appended_to_keeps_its_trusted_lines(tmp_path: Path) -> None:
    agent = made_agent(tmp_path)
    append_note(agent, "We decided that the bakery opens at six.", session_key=MAIN)
    sync(agent)
    append_note(agent, "Noise of a group.", session_key="agent:main:telegram:group:7")
    made = turn(agent, "What did we decide about the bakery?", session_key=MAIN, record=False)
    assert "opens at six" in made.deep
    assert "Noise" not in made.text


def test_a_search_frames_what_turns_out_to_be_untrusted(tmp_path: Path) -> None:
    agent = made_agent(tmp_path)
    report(agent, NOTE, LINES[NOTE])
    (result,) = memory_search(agent, None, "gateway host", session_key=MAIN)["results"]
    assert result["origin_class"] == "untrusted"
    assert result["snippet"].startswith("<<<EXTERNAL_UNTRUSTED_CONTENT")


LONG = "The oven is hot. " * 300  # three rows of the index


@pytest.mark.parametrize(
    ("before", "after", "stays"),
    [
        pytest.param("The port is 80", "The port is 8080", False, id="a longer value is another one"),
        pytest.param("The port is 80", "The port is 80, not 8080", False, id="a sentence that goes on says more"),
        pytest.param("The port is 8080", "The port is 80", False, id="a shorter value is another one"),
        pytest.param("The port is 80", "The port is 80", True, id="what stays is live"),
        pytest.param(
            "The password: hunter2hunter2 works",
            "The password: hunter2hunter2 works",
            True,
            id="a masked entry is live",
        ),
        pytest.param(LONG, LONG, True, id="a long entry is live piece by piece"),
        pytest.param(LONG, LONG.replace("hot", "cold"), False, id="a long entry that changed is not"),
    ],
)
def test_a_trigger_injects_what_the_file_says_now(tmp_path: Path, before: str, after: str, stays: bool) -> None:
    mark = "<!-- trigger: oven door -->"
    agent = made_agent(tmp_path, f"- {before} {mark}\n")
    indexed = turn(agent, "the oven door", session_key=MAIN, record=False).triggers
    assert indexed
    write_files(agent.workspace, {CURATED: f"- {after} {mark}\n- Another line.\n"})
    made = turn(agent, "the oven door", session_key=MAIN, record=False)
    assert made.triggers == (indexed if stays else "")
    assert (("triggers", "changed_since_index") in [(one.what, one.reason) for one in made.omissions]) is not stays
