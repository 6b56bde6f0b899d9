"""The questions benchmark: a replay that is missing is skipped with what it needs."""

import json
from pathlib import Path

import pytest

from benchmarks.questions import main, replay_of


def test_a_replay_that_is_there_is_the_workspace_it_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = tmp_path / "replays/c1/workspace"
    workspace.mkdir(parents=True)
    assert replay_of(tmp_path / "c1", tmp_path / "replays") == workspace
    assert capsys.readouterr().out == ""


def test_a_missing_replay_is_skipped_with_the_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_of(tmp_path / "c1", tmp_path / "replays") is None
    row = json.loads(capsys.readouterr().out)
    assert row["name"] == "questions.replayed.c1"
    assert "replay.py" in row["skipped"]


def test_without_replays_nothing_is_said_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_of(tmp_path / "c1", None) is None
    assert capsys.readouterr().out == ""


def test_without_a_corpus_the_benchmark_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "questions"
