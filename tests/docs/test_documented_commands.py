"""Everything documented is executed: console blocks, SQL blocks, generated parts, links, the example itself."""

import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.example import ROOT, copy_example, dreamline

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    """Return the bodies of all fenced blocks of ``language`` on ``page``."""
    return [body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def steps(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (command, lines of output the page shows) of one console block."""
    command, shown = "", list[str]()
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif line.strip() and line.strip() != "...":
            shown.append(line.strip())
    if command:
        yield command, shown


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below ``folder`` by its path there."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def dreamt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example after its sweep."""
    place = copy_example(tmp_path_factory.mktemp("dreamt"))
    for command in (
        ("--workspace", "workspace", "init", "--sessions", "sessions", "--timezone", "Europe/Oslo"),
        ("import", "openclaw", "workspace"),
        ("index",),
        ("dream",),
    ):
        done = dreamline(*command, cwd=place)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    return place


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "console")], ids=lambda page: page.name)
def test_every_console_block_of_a_page_works_in_order(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """README and operators start from nothing; the other pages from an example that has dreamt."""
    starts_from_nothing = " init " in "".join(blocks(page, "console"))
    place = copy_example(tmp_path) if starts_from_nothing else request.getfixturevalue("dreamt")
    for block in blocks(page, "console"):
        for command, shown in steps(block):
            program, *arguments = shlex.split(command)
            assert program == "dreamline", f"{page.name}: only dreamline commands are run, not {command!r}"
            done = dreamline(*arguments, cwd=place)
            assert done.returncode == 0, f"{command}: {done.stderr}"
            printed = " ".join(done.stdout.split())
            for line in shown:
                assert " ".join(line.split()) in printed, f"{command} no longer prints {line!r}"


@pytest.mark.slow
@pytest.mark.parametrize("sql", blocks(ROOT / "docs" / "analysts.md", "sql"))
def test_every_query_for_analysts_runs_on_a_published_snapshot(sql: str, dreamt: Path) -> None:
    done = dreamline("query", sql, cwd=dreamt)
    assert done.returncode == 0, done.stderr


def test_generated_parts_of_the_documentation_are_current() -> None:
    """`make docs` rewrites them."""
    code = (
        "import sys; sys.path[:0] = ['.', 'scripts']; import generated_docs\n"
        "print(*(path.name for path, text in generated_docs.pages().items()"
        " if not path.exists() or path.read_text(encoding='utf-8') != text))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def messages() -> list[str]:
    """Return the fixed parts of the messages in the table of errors and cures."""
    text = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    table = text.split("## Errors and cures")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    parts = (
        part.strip() for cell in cells for message in re.findall(r"`([^`]+)`", cell) for part in message.split("…")
    )
    return [re.sub(r" N\b|,.*", "", part) for part in parts if part]


@pytest.mark.parametrize("message", messages())
def test_every_message_with_a_cure_is_one_the_code_says(message: str) -> None:
    modules = (path for folder in ("recall_runtime", "memory_assets") for path in (ROOT / folder).rglob("*.py"))
    assert any(message in path.read_text(encoding="utf-8") for path in modules)


def contracts() -> Iterator[tuple[str, list[str]]]:
    """Yield (dotted name below a package, argument names) of every function in the contracts of the architecture."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("## Contracts between rooms")[1].split("\n## ")[0]
    for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE):
        module = ""
        for name, arguments in re.findall(r"`([\w.]+)\(([^`]*)\)`", row):
            module = name.rpartition(".")[0] or module
            yield f"{module}.{name.rpartition('.')[2]}", re.findall(r"\w+", arguments)


CONTRACTS = list(contracts())


@pytest.mark.parametrize(("name", "arguments"), CONTRACTS, ids=[name for name, _ in CONTRACTS])
def test_every_function_of_the_contracts_exists_with_its_arguments(name: str, arguments: list[str]) -> None:
    package = "" if name.startswith("memory_assets.") else "recall_runtime."
    found = pkgutil.resolve_name(package + name)
    assert [one for one in arguments if one not in inspect.signature(found).parameters] == []


def test_the_committed_example_is_what_its_story_gives(tmp_path: Path) -> None:
    """`make example` rewrites it."""
    subprocess.run([sys.executable, ROOT / "examples" / "make_example.py", "--out", tmp_path], check=True)
    for folder in ("workspace", "sessions"):
        assert contents(tmp_path / folder) == contents(ROOT / "examples" / folder)


def test_the_example_is_small() -> None:
    size = sum(path.stat().st_size for path in (ROOT / "examples").rglob("*") if path.is_file())
    assert size < 600_000
