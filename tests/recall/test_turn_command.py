"""The command ``turn``."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.cli.main import main
from recall_runtime.index.sync import sync
from recall_runtime.storage.connection import open_reader, open_writer
from tests.support.index_agents import agent_over, write_files

MAIN = "agent:main:main"
PROMPT = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "the oven door"})


@pytest.fixture
def place(tmp_path: Path) -> list[str]:
    """Return the global options of a small workspace that is indexed."""
    agent = agent_over(
        write_files(tmp_path / "ws", {"MEMORY.md": "- The oven runs hot. <!-- trigger: oven door -->\n"}),
        tmp_path / "home",
    )
    sync(agent)
    (tmp_path / "home" / "dreamline.toml").write_text('[embedder]\nname = "none"\n', encoding="utf-8")
    options = ["--home", str(tmp_path / "home"), "--workspace", str(tmp_path / "ws")]
    return [*options, "--now", "2026-03-20T12:00:00Z"]


def asked(place: list[str], capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*place, "--json", "turn", *arguments]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_it_prints_the_text_the_lanes_and_the_sizes(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(place, capsys, "--session", MAIN, "the oven door")
    assert "The oven runs hot." in answer["blocks"]["triggers"]
    assert answer["blocks"]["triggers"] in answer["text"]
    assert answer["lanes"]["triggers"]["decision"] == "ran"
    sizes = {file["name"]: (file["raw_chars"], file["injected_chars"], file["omitted"]) for file in answer["files"]}
    assert sizes == {"USER.md": (0, 0, "missing"), "MEMORY.md": (49, 20, None)}


def test_what_was_shown_is_recorded_after_it_was_printed(
    place: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked(place, capsys, "--session", MAIN, "the oven door")
    reader = open_reader(tmp_path / "home" / "agents" / "main" / "state.sqlite")
    rows = reader.execute("SELECT lane, query, session_kind FROM recall_events").fetchall()
    reader.close()
    assert rows == [("trigger", "the oven door", "interactive")]


def test_the_message_may_come_from_standard_input(
    place: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("the oven door"))
    assert "The oven runs hot." in asked(place, capsys, "--session", MAIN)["text"]


def test_a_group_gets_nothing_and_the_reason(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    answer = asked(place, capsys, "--session", "agent:main:x:group:1", "the oven door")
    assert (answer["text"], answer["audience"]) == ("", "shared")
    assert {one["reason"] for one in answer["omissions"]} == {"group"}


def test_people_see_what_each_lane_did(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*place, "turn", "--session", MAIN, "the oven door"]) == 0
    shown = capsys.readouterr().out
    assert "- The oven runs hot. (Source: MEMORY.md#L1)" in shown
    assert "# deep: skipped" in shown
    assert "# left out: USER.md, missing, 1" in shown


def test_the_key_of_a_repository_is_printed_for_annotations(
    place: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "boat" / "src"
    folder.mkdir(parents=True)
    assert main([*place, "project", str(folder)]) == 1
    assert "no Git repository" in capsys.readouterr().err
    subprocess.run(["git", "init", "-q", str(folder.parent)], check=True, capture_output=True)
    assert main([*place, "project", str(folder.parent)]) == 0
    assert capsys.readouterr().out.strip() == f"path:{folder.parent}"


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        pytest.param(["--json", "turn", "--session", MAIN, "the oven door"], "", id="an answer for programs"),
        pytest.param(["turn", "--session", MAIN, "the oven door"], "", id="an answer for people"),
        pytest.param(["turn", "--session", MAIN, "--hook"], PROMPT, id="a hook"),
        pytest.param(["--json", "search", "--session", MAIN, "oven"], "", id="a search"),
    ],
)
def test_an_answer_stands_when_its_record_can_be_written_nowhere(
    place: list[str], tmp_path: Path, arguments: list[str], given: str
) -> None:
    (tmp_path / "home" / "agents" / "main" / "spool").write_text("a file in the way", encoding="utf-8")
    command = [sys.executable, "-m", "recall_runtime.cli.main", *place]
    with contextlib.closing(open_writer(tmp_path / "home" / "agents" / "main" / "state.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        done = subprocess.run([*command, *arguments], input=given, capture_output=True, text=True, check=False)
        other.execute("ROLLBACK")
    assert done.returncode == 0
    assert "runs hot" in done.stdout
    assert done.stdout.lstrip()[0] != "{" or json.loads(done.stdout)
    assert "can't be recorded" in done.stderr
