"""``init`` adopts or creates a workspace and never writes into what exists."""

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.example import dreamline


def settings(place: Path) -> dict[str, object]:
    """Return the settings that ``init`` wrote."""
    return tomllib.loads((place / "home" / "dreamline.toml").read_text(encoding="utf-8"))


def test_init_creates_a_workspace_and_writes_the_resolved_choices_down(tmp_path: Path) -> None:
    done = dreamline("--workspace", "new", "init", "--timezone", "Europe/Oslo", "--embedder", "none", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new" / "memory").is_dir()
    assert settings(tmp_path) == {
        "workspace": str(tmp_path / "new"),
        "timezone": "Europe/Oslo",
        "embedder": {"name": "none"},
        "sources": {"session_folders": []},
    }


def test_auto_is_written_down_as_what_it_means_now(tmp_path: Path) -> None:
    dreamline("--workspace", "new", "init", cwd=tmp_path)
    embedder = settings(tmp_path)["embedder"]
    assert isinstance(embedder, dict)
    assert embedder["name"] in {"static", "minilm"}


def test_init_changes_no_byte_of_an_existing_workspace(tmp_path: Path) -> None:
    (tmp_path / "mine" / "memory").mkdir(parents=True)
    (tmp_path / "mine" / "MEMORY.md").write_bytes(b"# Mine\r\n")
    done = dreamline("--workspace", "mine", "init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.is_dir() or path.read_bytes() for path in (tmp_path / "mine").iterdir()} == {
        "memory": True,
        "MEMORY.md": b"# Mine\r\n",
    }


def test_a_second_init_keeps_the_settings(tmp_path: Path) -> None:
    dreamline("--workspace", "mine", "init", "--embedder", "none", cwd=tmp_path)
    written = (tmp_path / "home" / "dreamline.toml").read_bytes()
    done = dreamline("--workspace", "mine", "init", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home" / "dreamline.toml").read_bytes() == written


def test_init_of_another_workspace_is_refused_and_says_how_to_have_both(tmp_path: Path) -> None:
    dreamline("--workspace", "mine", "init", "--embedder", "none", cwd=tmp_path)
    done = dreamline("--workspace", "other", "init", cwd=tmp_path)
    assert done.returncode == 1
    assert "--home DIR" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("sessions", "given"),
    [
        pytest.param("agents/main/sessions", "", id="the state folder of OpenClaw"),
        pytest.param("agents/main/sessions", "workspace", id="its workspace"),
        pytest.param("sessions", "workspace", id="a workspace with its transcripts beside it"),
    ],
)
def test_openclaw_is_found_from_its_state_folder_or_its_workspace(sessions: str, given: str, tmp_path: Path) -> None:
    claw = tmp_path / "claw"
    (claw / "workspace" / "memory").mkdir(parents=True)
    (claw / sessions).mkdir(parents=True)
    done = dreamline("init", "--from-openclaw", str(claw / given), "--embedder", "none", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = settings(tmp_path)
    assert written["workspace"] == str(claw / "workspace")
    assert written["sources"] == {"session_folders": [str(claw / sessions)]}


def test_a_path_with_quotes_and_letters_of_other_scripts_survives(tmp_path: Path) -> None:
    name = 'notes "ø" 日記'
    done = dreamline("--workspace", name, "init", "--embedder", "none", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert settings(tmp_path)["workspace"] == str(tmp_path / name)


def test_a_wrong_zone_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = dreamline("--workspace", "new", "init", "--timezone", "Europe/Olso", cwd=tmp_path)
    assert done.returncode == 1
    assert "Europe/Olso" in done.stderr
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "new").exists()


def test_status_says_when_the_disk_is_ahead_of_the_index(tmp_path: Path) -> None:
    """A file added behind our back makes status dirty, a sync makes it clean again, also in a new process."""
    workspace = tmp_path / "workspace"
    (workspace / "memory").mkdir(parents=True)
    common = ("--home", str(tmp_path / "home"), "--workspace", str(workspace))
    dreamline(*common, "init", "--embedder", "none", cwd=tmp_path)
    dreamline(*common, "index", cwd=tmp_path)
    states = []
    (workspace / "memory" / "2026-03-04.md").write_text("- The kiln stands in hall 4.\n", encoding="utf-8")
    states.append(json.loads(dreamline(*common, "status", "--json", cwd=tmp_path).stdout)["index"]["disk"])
    dreamline(*common, "index", cwd=tmp_path)
    states.append(json.loads(dreamline(*common, "status", "--json", cwd=tmp_path).stdout)["index"]["disk"])
    assert states == [
        {"state": "behind", "new": 1, "changed": 0, "gone": 0, "reclassified": 0, "rebuild": False},
        {"state": "current", "new": 0, "changed": 0, "gone": 0, "reclassified": 0, "rebuild": False},
    ]
