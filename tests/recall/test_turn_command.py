"""The command ``turn``."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.cli.main import main
from recall_runtime.index.sync import sync
from recall_runtime.storage.connection import open_reader
from tests.support.index_agents import agent_over, write_files

MAIN = "agent:main:main"


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
