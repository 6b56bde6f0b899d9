"""Global options, exit codes, and the one line of an error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.example import ROOT, dreamline


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="no command"),
        pytest.param(("dreem",), id="unknown command"),
        pytest.param(("search",), id="missing argument"),
        pytest.param(("--now", "yesterday", "status"), id="no instant"),
        pytest.param(("search", "x", "--max-results", "0"), id="number out of range"),
        pytest.param(("search", "x", "--min-score", "2"), id="share out of range"),
        pytest.param(("search", "x", "--corpus", "everything"), id="outside a closed set"),
        pytest.param(("--js", "status"), id="abbreviations are not guessed"),
    ],
)
def test_a_usage_error_ends_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert dreamline(*arguments, cwd=tmp_path, now=None).returncode == 2


def test_an_error_is_one_line_on_standard_error_with_its_cure(tmp_path: Path) -> None:
    done = dreamline("status", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "dreamline: No workspace is set. Run `dreamline --workspace DIR init` once.\n"


@pytest.mark.parametrize("arguments", [("--json", "status"), ("status", "--json")], ids=["before", "after"])
def test_json_errors_are_json_wherever_the_option_stands(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = dreamline(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "ok": False,
        "error": {
            "type": "WorkspaceError",
            "message": "No workspace is set. Run `dreamline --workspace DIR init` once.",
        },
    }


def test_the_clock_may_stand_after_the_command(tmp_path: Path) -> None:
    dreamline("--workspace", "w", "init", "--embedder", "none", cwd=tmp_path)
    done = dreamline(
        "note",
        "The pier is closed.",
        "--session",
        "agent:main:main",
        "--now",
        "2026-02-03T10:00:00Z",
        cwd=tmp_path,
        now=None,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "w" / "memory" / "2026-02-03.md").is_file()


def test_a_reader_that_leaves_a_pipe_early_is_no_error(tmp_path: Path) -> None:
    dreamline("--workspace", "w", "init", "--embedder", "none", cwd=tmp_path)
    command = f"{sys.executable} -m recall_runtime.cli.main --home home --json status | true"
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.stderr == b""


def test_a_terminal_without_the_letters_shows_escapes_instead_of_failing(tmp_path: Path) -> None:
    done = dreamline("--workspace", "日記", "init", "--embedder", "none", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\u65e5" in done.stdout
