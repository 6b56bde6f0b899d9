"""House rules that no linter knows."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("recall_runtime", "memory_assets", "sensors", "resources")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SUFFIXES = {".py", ".sql", ".toml", ".yaml", ".txt", ".md", ""}
OURS = sorted(
    path
    for folder in (*PACKAGES, "tests", "benchmarks", "scripts", "examples", "docs", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file()
    and path.suffix in {".py", ".sql", ".toml", ".yaml", ".txt", ".md", ""}
    and "cases" not in path.parts
)
# written in pieces, so that the rule does not break itself
REGISTRIES = re.compile(
    "|".join((r"py" + r"pi\.(org|python)", "python" + "hosted", "index-url", "npm" + "js")), re.IGNORECASE
)
MACHINE_PATHS = re.compile(r"(?<![\w.~])/(work|root)/")


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


def test_nothing_names_a_package_registry_or_a_place_of_one_machine() -> None:
    found = []
    for path in OURS:
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name(path)}:{number}"
            for number, line in enumerate(text.splitlines(), start=1)
            if REGISTRIES.search(line) or MACHINE_PATHS.search(line)
        ]
    assert found == []


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
