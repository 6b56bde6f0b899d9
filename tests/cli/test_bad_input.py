"""Bad input: one clear line that names file and cure; the rest of the run goes on; counts in status."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from recall_runtime.storage.locks import exclusive
from tests.support.example import dreamline


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A small workspace that is set up, with one good note and one good transcript."""
    notes = tmp_path / "workspace" / "memory"
    notes.mkdir(parents=True)
    (tmp_path / "sessions").mkdir()
    (notes / "2026-05-01.md").write_text("- The harbour licence HV-2207 covers 11 guests.\n", encoding="utf-8")
    done = dreamline("--workspace", "workspace", "init", "--sessions", "sessions", "--embedder", "none", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def status(place: Path) -> dict[str, dict[str, object]]:
    """Return what ``status --json`` says."""
    done = dreamline("status", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the one line of a failed command."""
    assert done.returncode == 1, (done.stdout, done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.startswith("dreamline: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def test_a_missing_workspace_is_named_with_its_cure(place: Path) -> None:
    (place / "workspace").rename(place / "elsewhere")
    for command in (("status",), ("index",), ("search", "x"), ("note", "x", "--session", "agent:main:main")):
        line = one_line(dreamline(*command, cwd=place))
        assert str(place / "workspace") in line
        assert "--workspace DIR" in line


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_workspace_is_named_with_its_cure(place: Path) -> None:
    (place / "workspace").chmod(0)
    try:
        assert str(place / "workspace") in one_line(dreamline("index", cwd=place))
    finally:
        (place / "workspace").chmod(0o755)


def test_a_workspace_that_is_a_file_is_named(place: Path) -> None:
    line = one_line(dreamline("--workspace", "workspace/memory/2026-05-01.md", "index", cwd=place))
    assert "2026-05-01.md" in line


def test_a_note_that_is_not_utf8_is_named_and_the_others_are_indexed(place: Path) -> None:
    (place / "workspace" / "memory" / "2026-05-02.md").write_bytes(b"- caf\xe9 at pier 3\n- plain line\n")
    done = dreamline("index", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "memory/2026-05-02.md" in done.stdout
    assert "HV-2207" in dreamline("search", "harbour licence", cwd=place).stdout
    assert "memory/2026-05-02.md" in status(place)["index"]["sources_with_faults"]  # type: ignore[operator]  # JSON


def test_a_broken_transcript_line_is_counted_and_the_others_are_read(place: Path) -> None:
    rows = [
        '{"type":"session","version":3,"id":"5b0c1d62-0000-4000-8000-0000000000a1","timestamp":"2026-05-03T07:00:00.000Z"}',
        '{"type":"message","id":"0a1b2c3d","parentId":null,"timestamp":"2026-05-03T07:00:01.000Z","message":'
        '{"role":"user","content":[{"type":"text","text":"The bilge pump is on breaker F7."}],'
        '"timestamp":1777791601000,"provenance":{"kind":"external_user"},"__openclaw":{"senderIsOwner":true}}}',
        '{"type":"message","id":"1a1b2c3d","par',
        "not json at all",
    ]
    (place / "sessions" / "5b0c1d62-0000-4000-8000-0000000000a1.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    done = dreamline("index", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "breaker F7" in dreamline("search", "bilge pump breaker", "--corpus", "sessions", cwd=place).stdout
    assert sum(status(place)["index"]["faults"].values()) == 2  # type: ignore[attr-defined]  # JSON


@contextlib.contextmanager
def another_process_holds(database: Path) -> Iterator[None]:
    """Let a second process hold a write lock on ``database``."""
    code = (
        "import sys, apsw; c = apsw.Connection(sys.argv[1]); c.execute('BEGIN EXCLUSIVE');"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield
        finally:
            holder.stdin.close()


def test_a_locked_index_is_one_line_and_search_still_answers(place: Path) -> None:
    assert dreamline("index", cwd=place).returncode == 0
    (place / "workspace" / "memory" / "2026-05-02.md").write_text("- The radio is on channel 12.\n", encoding="utf-8")
    with another_process_holds(place / "home" / "agents" / "main" / "index.sqlite"):
        assert "run again" in one_line(dreamline("index", cwd=place))
        assert "HV-2207" in dreamline("search", "harbour licence", cwd=place).stdout
    assert dreamline("index", cwd=place).returncode == 0


def test_a_sync_that_runs_already_is_named(place: Path) -> None:
    with exclusive(place / "home" / "agents" / "main" / "index.lock", what="Index sync"):
        line = one_line(dreamline("index", cwd=place))
    assert "already running" in line


@pytest.mark.parametrize("name", ["index", "state"])
def test_a_database_of_a_newer_version_is_left_alone_and_named(name: str, place: Path) -> None:
    assert dreamline("index", cwd=place).returncode == 0
    database = place / "home" / "agents" / "main" / f"{name}.sqlite"
    with contextlib.closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA user_version = 9999")
    line = one_line(dreamline("index", cwd=place))
    assert str(database) in line
    assert "Upgrade dreamline" in line
    part = status(place)["index" if name == "index" else "memory"]
    assert part["state"] == "unusable"
    assert str(database) in str(part["error"])
    assert dreamline("doctor", cwd=place).returncode == 1


@pytest.mark.parametrize("name", ["index", "state"])
def test_a_file_that_is_no_database_is_named_with_its_cure(name: str, place: Path) -> None:
    assert dreamline("index", cwd=place).returncode == 0
    database = place / "home" / "agents" / "main" / f"{name}.sqlite"
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    database.write_bytes(b"this is no database" * 400)
    assert str(database) in one_line(dreamline("index", cwd=place))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        pytest.param('timezome = "UTC"', "timezone", id="unknown key, nearest one named"),
        pytest.param("[search]\nmax_result = 3", "search.max_results", id="unknown key in a section"),
        pytest.param("[search]\nmax_results = 0", "max_results", id="out of range"),
        pytest.param('timezone = "Europe/Olso"', "Europe/Olso", id="wrong zone"),
        pytest.param("[search", "dreamline.toml", id="no TOML"),
    ],
)
def test_a_wrong_setting_is_named_with_file_or_value_and_cure(line: str, named: str, place: Path) -> None:
    config = place / "home" / "dreamline.toml"
    kept = "" if "timezone" in line else 'timezone = "UTC"\n'
    config.write_text(f'workspace = "{place / "workspace"}"\n{kept}{line}\n', encoding="utf-8")
    assert named in one_line(dreamline("status", cwd=place))


def test_a_wrong_setting_in_the_environment_is_named(place: Path) -> None:
    assert "search.max_results" in one_line(dreamline("status", cwd=place, DREAMLINE_SEARCH__MAX_RESULT="3"))


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md",
        "/etc/hostname",
        "memory/../../outside.md",
        "memory/.dreams/events.jsonl",
        "sessions/main/x.jsonl",
    ],
)
def test_a_path_that_is_no_memory_file_is_refused(path: str, place: Path) -> None:
    assert path in one_line(dreamline("get", path, cwd=place))


def test_control_signs_of_a_note_never_reach_the_terminal(place: Path) -> None:
    (place / "workspace" / "memory" / "2026-05-02.md").write_bytes(b"- pier \x1b[31mred\x1b[0m \xe2\x80\xaeright\n")
    assert dreamline("index", cwd=place).returncode == 0
    for command in (("search", "pier red"), ("get", "memory/2026-05-02.md"), ("search", "pier red", "--json")):
        shown = dreamline(*command, cwd=place).stdout
        assert "pier" in shown
        assert not set(shown) & {"\x1b", "\u202e"}
