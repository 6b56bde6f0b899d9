"""Prompt hooks: the host's record in, the host's record out, in a real process."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.hosts.prompt_hook import (
    MAX_CONTEXT,
    HookCall,
    HookEvent,
    answer,
    fitted,
    projects_of,
    read_call,
)
from recall_runtime.index.sync import sync
from recall_runtime.recall.bootstrap import InjectedFile
from recall_runtime.recall.turn import TurnResult
from tests.hosts.helpers import GROUP, MAIN, PRIVATE, ROOT, Place, make_place
from tests.support.index_agents import write_files

PROMPT = {
    "session_id": "abc",
    "transcript_path": "t.jsonl",
    "cwd": ".",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "which gate code?",
}
ORIGIN = "git@git.example:a/boat.git"
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


def test_the_folder_a_session_starts_in_decides_its_project_memory(tmp_path: Path) -> None:
    """Each event is a process of its own: the prompts of a session know the repository that it was started in."""
    place, repository = make_place(tmp_path), tmp_path / "boat"
    line = "- Slow tests need the flag. <!-- project: git.example/a/boat --> <!-- trigger: slow tests -->\n"
    write_files(place.workspace, {"MEMORY.md": line})
    sync(place.agent())
    for command in (["init", "-q", str(repository)], ["-C", str(repository), "remote", "add", "origin", ORIGIN]):
        subprocess.run(["git", *command], check=True, capture_output=True)
    prompt = PROMPT | {"prompt": "run the slow tests"}
    assert hook(place, prompt) == {}
    start = hook(place, START | {"cwd": str(repository)})["hookSpecificOutput"]["additionalContext"]
    assert "Slow tests need the flag." in start
    assert "Slow tests need the flag." in hook(place, prompt)["hookSpecificOutput"]["additionalContext"]
    assert hook(place, prompt | {"session_id": "another", "cwd": str(repository)}) == {}


ODD = [5, None, "x" * 5_000, "a\x00b", ""]


@pytest.mark.parametrize(("field", "values"), [("session_id", ODD), ("cwd", [*ODD, "/no/such/folder"])])
def test_an_odd_session_or_folder_costs_the_project_memory_alone(
    tmp_path: Path, field: str, values: list[object]
) -> None:
    place = make_place(tmp_path)
    for value in values:
        call = read_call(json.dumps(START | {field: value}))
        assert call is not None
        assert projects_of(place.agent(), call) == ()


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


NOTE = "".join(f"- Today we looked at the matter number {n} and it was interesting.\n" for n in range(40))
LONG = "".join(f"- Fact number {n} of the long list of facts about the shed.\n" for n in range(400))
TODAY, YESTERDAY = "memory/2026-03-20.md", "memory/2026-03-19.md"


@pytest.mark.parametrize(
    ("files", "shown", "named"),
    [
        pytest.param(
            {TODAY: NOTE, YESTERDAY: NOTE}, {TODAY, YESTERDAY}, set(), id="a small memory leaves room for all"
        ),
        pytest.param(
            {"MEMORY.md": LONG, TODAY: "- Short.\n"}, {"MEMORY.md", TODAY}, set(), id="a full one for one note"
        ),
        pytest.param(
            {"MEMORY.md": LONG, TODAY: NOTE, YESTERDAY: NOTE, "memory/2026-03-19-x.md": NOTE},
            {"MEMORY.md", TODAY},
            {"memory/2026-03-19-x.md"},
            id="where the notes don't all fit one of them goes, never the memory",
        ),
    ],
)
def test_a_full_memory_never_leaves_the_start_of_a_session_empty(
    tmp_path: Path, files: dict[str, str | bytes], shown: set[str], named: set[str]
) -> None:
    place = make_place(tmp_path)
    write_files(place.workspace, files)
    context = hook(place, START)["hookSpecificOutput"]["additionalContext"]
    assert len(context) <= MAX_CONTEXT
    assert {name for name in ("MEMORY.md", *files) if f"## {name}\n" in context} >= shown
    left_out = context.partition("[left out here for want of room: ")[2].partition("]")[0]
    assert set(filter(None, left_out.split(", "))) == named


@given(
    sizes=st.lists(st.integers(min_value=0, max_value=12_000), min_size=4, max_size=4),
    notes=st.integers(min_value=0, max_value=200),
    event=st.sampled_from(HookEvent),
)
def test_what_doesn_t_fit_is_named(sizes: list[int], notes: int, event: HookEvent) -> None:
    applies, triggers, intents, deep = (letter * size for letter, size in zip("QXZJ", sizes, strict=True))
    days = [InjectedFile(f"memory/2026-03-20-{n}.md", "n") for n in range(notes)]
    files = (InjectedFile("MEMORY.md", deep), *days)
    result = TurnResult(
        files=files, project=intents, applies_now=applies, triggers=triggers, intents=intents, deep=deep
    )
    context = answer(HookCall(event), result).get("hookSpecificOutput", {}).get("additionalContext", "")
    assert len(context) <= MAX_CONTEXT
    expected = (deep, intents) if event is HookEvent.SESSION_START else (applies, triggers, intents, deep)
    assert all(block in context for block in expected) or "[left out here for want of room: " in context


def test_budgets_of_the_settings_are_only_ever_lowered(place: Place) -> None:
    agent = place.agent()
    small = agent.settings.bootstrap.model_copy(update={"max_chars": 500, "total_max_chars": 600})
    narrow = replace(agent, settings=agent.settings.model_copy(update={"bootstrap": small}))
    assert fitted(narrow).settings.bootstrap == small


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_without_an_error(data: str) -> None:
    call = read_call(data)
    assert call is None or call.event in tuple(HookEvent)
