"""House rules that no linter knows."""

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("recall_runtime", "memory_assets", "sensors", "resources")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SUFFIXES = {".py", ".sql", ".toml", ".yaml", ".txt", ".md", ".json", ".jsonl", ".tsv", ".sh", ""}
FOLDERS = (*PACKAGES, "tests", "benchmarks", "scripts", "examples", "docs", ".ci")
AT_THE_ROOT = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "constraints.txt", "workspace.yaml",
    ".gitignore",
)  # fmt: skip
OURS = [ROOT / name for name in AT_THE_ROOT] + sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix in SUFFIXES and not {"cases", "cases_real"} & set(path.parts)
)
# written in pieces, so that the rule does not break itself
REGISTRIES = re.compile(
    "|".join((r"py" + r"pi\.(org|python)", "python" + "hosted", "index-url", "npm" + "js")), re.IGNORECASE
)
MACHINE_PATHS = re.compile(r"(?<![\w.~])/(work|root)\b")
TEMPORARY_PATHS = re.compile(r"(?<![\w.~])/tmp\b")
TELL_TEMPORARY_PATHS = {"recall_runtime/notes/scaffolding.py", "tests/notes/test_hygiene.py"}  # in what notes say


def name(path: Path) -> str:
    """Return the path below the repository, for test ids."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_says_what_belongs_there_and_what_does_not(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    documentation = ast.get_docstring(ast.parse(text)) or ""
    assert documentation, f"{name(path)} has no docstring"
    if path.name == "__init__.py":
        return
    assert "Belongs here:" in documentation, f"{name(path)} does not say what belongs there"
    assert "not belong here" in documentation, f"{name(path)} does not say what does not belong there"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_are_absolute(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    relative = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []


@pytest.mark.parametrize("path", [path for path in MODULES if "dagster" in path.read_text(encoding="utf-8")], ids=name)
def test_modules_that_speak_to_dagster_keep_their_annotations_real(path: Path) -> None:
    """Dagster reads annotations of assets at definition; postponed ones are a definition error."""
    assert "from __future__ import annotations" not in path.read_text(encoding="utf-8")


def lines_with(pattern: re.Pattern[str], files: Iterable[Path] = OURS) -> list[str]:
    """Return the places where ``pattern`` stands in files of text, this one left out."""
    found = []
    for path in files:
        if path == Path(__file__):
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{name(path)}:{number}" for number, line in enumerate(lines, start=1) if pattern.search(line)]
    return found


@pytest.mark.parametrize("pattern", [REGISTRIES, MACHINE_PATHS], ids=["package registry", "place of one machine"])
def test_nothing_names_a_package_registry_or_a_place_of_one_machine(pattern: re.Pattern[str]) -> None:
    assert lines_with(pattern) == []


def test_nothing_names_a_temporary_place() -> None:
    assert lines_with(TEMPORARY_PATHS, [path for path in OURS if name(path) not in TELL_TEMPORARY_PATHS]) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        pytest.param(REGISTRIES, "see https://" + "py" + "pi.org/simple", id="a registry"),
        pytest.param(MACHINE_PATHS, "data lies in /" + "work/shared", id="a folder of the machine it was made on"),
        pytest.param(TEMPORARY_PATHS, "kept in /" + "tmp/x", id="a temporary folder"),
    ],
)
def test_what_is_looked_for_is_found(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)


def test_every_kind_of_file_of_ours_is_looked_at() -> None:
    looked_at = {path.suffix or path.name for path in OURS}
    assert {".md", ".json", ".jsonl", ".tsv", ".sh", ".toml", "Makefile"} <= looked_at


def test_constraints_name_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []


def test_every_dependency_carries_a_reason() -> None:
    """A line in the dependency lists of pyproject.toml has a comment, or is the twin of the line above that has one."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    declared = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    bare = []
    previous_family = ""
    for item in declared:
        line = next(line for line in text.splitlines() if f'"{item}"' in line)
        family = re.split(r"[-<>=;\s]", item)[0]
        if "#" not in line.split(f'"{item}"')[1] and family != previous_family:
            bare.append(item)
        previous_family = family
    # plain tools of developers explain themselves; everything a user gets does not
    developer_tools = {"pytest>=8", "ruff>=0.9", "mypy>=1.13"}
    assert set(bare) - developer_tools == set()
