"""The folder of Dagster's history and the process that serves the UI."""

import importlib
from pathlib import Path

import pytest
import yaml

from memory_assets.dagster_home import dagster_home, prepare
from memory_assets.ui import ui_command, ui_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_dagster_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the machine's own DAGSTER_HOME away."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def test_the_default_lies_in_the_state_folder(tmp_path: Path) -> None:
    assert dagster_home(tmp_path) == tmp_path / "dagster"


def test_a_home_that_is_set_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "mine"))
    assert prepare(tmp_path / "home") == tmp_path / "mine"


def test_a_new_home_sends_nothing_and_asks_nothing(tmp_path: Path) -> None:
    settings = yaml.safe_load((prepare(tmp_path) / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert settings["nux"] == {"enabled": False}
    assert settings["concurrency"]["pools"]["default_limit"] == 1


def test_the_operator_s_own_settings_stay(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / "dagster" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    prepare(tmp_path)
    assert (tmp_path / "dagster" / "dagster.yaml").read_text() == "telemetry:\n  enabled: false\n"


def test_the_workspace_of_the_repository_is_the_packaged_one(tmp_path: Path) -> None:
    assert (prepare(tmp_path) / "workspace.yaml").read_bytes() == (ROOT / "workspace.yaml").read_bytes()


def _locations() -> list[dict[str, str]]:
    tree = yaml.safe_load((ROOT / "workspace.yaml").read_text())
    return [entry["python_module"] for entry in tree["load_from"]]


def test_the_names_of_the_locations_are_fixed() -> None:
    assert [location["location_name"] for location in _locations()] == ["memory", "lineage"]


@pytest.mark.parametrize("location", _locations(), ids=lambda location: location["location_name"])
def test_every_module_of_the_workspace_imports(location: dict[str, str]) -> None:
    assert importlib.import_module(location["module_name"]).defs


@pytest.mark.parametrize("package", ["sensors", "resources", "memory_assets"])
def test_the_generic_package_names_are_ours(package: str) -> None:
    assert Path(str(importlib.import_module(package).__file__)).is_relative_to(ROOT)


def test_the_ui_listens_on_this_machine_only(tmp_path: Path) -> None:
    command = ui_command(prepare(tmp_path), 3456)
    assert command[1:6] == ["dev", "-w", str(tmp_path / "dagster" / "workspace.yaml"), "-h", "127.0.0.1"]
    assert command[6:8] == ["-p", "3456"]


def test_the_ui_knows_its_homes_and_port(tmp_path: Path) -> None:
    environment = ui_environment(tmp_path, port=3456, workspace=tmp_path / "w", environ={"PATH": "/bin"})
    assert environment == {
        "PATH": "/bin",
        "DREAMLINE_HOME": str(tmp_path),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "DREAMLINE_UI_PORT": "3456",
        "DREAMLINE_WORKSPACE": str(tmp_path / "w"),
        "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
        "PYTHONPATH": str(ROOT),
    }
