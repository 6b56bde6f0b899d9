"""Prompt hooks: the host's record in, the host's record out, in a real process."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.hosts.prompt_hook import MAX_CONTEXT, HookEvent, fitted, read_call
from tests.hosts.helpers import GROUP, MAIN, PRIVATE, ROOT, Place, make_place
from tests.support.index_agents import write_files

PROMPT = {
    "session_id": "abc",
    "transcript_path": "t.jsonl",
    "cwd": ".",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "which gate code?",
}
START = {"session_id": "abc", "transcript_path": "t.jsonl", "cwd": ".", "hook_event_name": "SessionStart"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("hook"))


def hook(place: Place, record: object, *, key: str = MAIN) -> dict[str, Any]:
    """Run the hook as a host does; it always succeeds and prints one JSON object."""
    data = record if isinstance(record, bytes) else json.dumps(record).encode()
    command = [*place.command, "turn", "--hook", "--session", key, "--sender", "owner"]
    done = subprocess.run(command, input=data, capture_output=True, cwd=ROOT, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_a_session_starts_with_the_curated_files(place: Place) -> None:
    answer = hook(place, START | {"source": "startup"})["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert PRIVATE in answer["additionalContext"]
    assert "Prefer short answers." in answer["additionalContext"]


def test_a_prompt_adds_what_it_triggers_and_not_the_files_again(place: Place) -> None:
    answer = hook(place, PROMPT)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    assert answer["additionalContext"].count(PRIVATE) == 1
    assert "# Memory" not in answer["additionalContext"]
    assert hook(place, PROMPT | {"prompt": "hello"}) == {}


def test_a_group_is_given_nothing(place: Place) -> None:
    assert hook(place, PROMPT, key=GROUP) == {}
    assert hook(place, START, key=GROUP) == {}


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"no json",
        b"[]",
        b"\xff\xfe",
        {},
        PROMPT | {"hook_event_name": "Stop"},
        PROMPT | {"hook_event_name": 5},
        PROMPT | {"prompt": None},
    ],
)
def test_a_record_that_is_not_ours_adds_nothing(place: Place, record: object) -> None:
    assert hook(place, record) == {}


def test_a_broken_installation_lets_the_prompt_pass(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    (place.home / "dreamline.toml").write_text("nonsense = 1\n", encoding="utf-8")
    assert hook(place, PROMPT) == {}


def test_a_large_memory_is_thinned_to_what_the_host_shows(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    lines = "".join(f"- Fact number {number} of the long list of facts about the shed.\n" for number in range(400))
    write_files(place.workspace, {"MEMORY.md": lines})
    context = hook(place, START)["hookSpecificOutput"]["additionalContext"]
    assert 4_000 < len(context) <= MAX_CONTEXT
    assert "Prefer short answers." in context


def test_budgets_of_the_settings_are_only_ever_lowered(place: Place) -> None:
    agent = place.agent()
    small = agent.settings.bootstrap.model_copy(update={"max_chars": 500, "total_max_chars": 600})
    narrow = replace(agent, settings=agent.settings.model_copy(update={"bootstrap": small}))
    assert fitted(narrow).settings.bootstrap == small


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_without_an_error(data: str) -> None:
    call = read_call(data)
    assert call is None or call.event in tuple(HookEvent)
