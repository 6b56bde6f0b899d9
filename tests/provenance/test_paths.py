"""The class of a file by its place."""

import runpy
import sys
from pathlib import Path

import pytest

from recall_runtime.provenance.paths import classify_path
from recall_runtime.vocabulary import OriginClass

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(
    ("path", "origin", "curated"),
    [
        pytest.param("MEMORY.md", OriginClass.AGENT, True, id="curated root"),
        pytest.param("memory.md", OriginClass.AGENT, True, id="curated root, older name"),
        pytest.param("USER.md", OriginClass.AGENT, True, id="user model"),
        pytest.param("memory/2026-03-04.md", OriginClass.AGENT, False, id="daily note"),
        pytest.param("memory/deep/topic.md", OriginClass.AGENT, False, id="topic note"),
        pytest.param("DREAMS.md", OriginClass.SYSTEM, False, id="diary"),
        pytest.param("memory/dreaming/deep/2026-04-01.md", OriginClass.SYSTEM, False, id="report"),
        pytest.param("memory/.dreams/session-corpus/2026-04-01.txt", OriginClass.SYSTEM, False, id="machine file"),
        pytest.param("memory/imports/codex/MEMORY.md", OriginClass.UNTRUSTED, False, id="import"),
        pytest.param("AGENTS.md", OriginClass.UNTRUSTED, False, id="no memory"),
        pytest.param("../MEMORY.md", OriginClass.UNTRUSTED, False, id="outside"),
        pytest.param("memory/../../x.md", OriginClass.UNTRUSTED, False, id="outside by dots"),
    ],
)
def test_class_follows_the_place(tmp_path: Path, path: str, origin: OriginClass, *, curated: bool) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    if not path.startswith("..") and ".." not in path:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("x")
    found = classify_path(workspace, path)
    assert (found.origin_class, found.curated_root) == (origin, curated)


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "out")])
    runpy.run_path(str(CASES / "13-symlinks" / "build.py"), run_name="__main__")
    return tmp_path / "out" / "workspace"


@pytest.mark.parametrize(
    ("path", "origin", "escapes"),
    [
        pytest.param("MEMORY.md", OriginClass.AGENT, False, id="a curated file may live in a vault"),
        pytest.param("USER.md", OriginClass.AGENT, False, id="a dangling curated file is absent, no error"),
        pytest.param("memory/2026-03-10.md", OriginClass.AGENT, False, id="plain note"),
        pytest.param("memory/loop/2026-03-10.md", OriginClass.AGENT, False, id="loop inside the workspace"),
        pytest.param("memory/2026-03-11.md", OriginClass.UNTRUSTED, True, id="link to itself"),
        pytest.param("memory/2026-03-12.md", OriginClass.UNTRUSTED, True, id="link out of the workspace"),
        pytest.param("memory/2026-03-09.md", OriginClass.UNTRUSTED, True, id="link into the vault"),
        pytest.param("memory/none.md", OriginClass.UNTRUSTED, True, id="missing note"),
    ],
)
def test_links_that_leave_the_workspace_are_untrusted(
    linked: Path, path: str, origin: OriginClass, *, escapes: bool
) -> None:
    found = classify_path(linked, path)
    assert (found.origin_class, found.escapes) == (origin, escapes)


def test_every_name_that_notes_really_have_gets_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 24: dated, odd and backup names; a report is the system's, what is no note is untrusted."""
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "ws")])
    names = runpy.run_path(str(CASES / "24-daily-file-names" / "build.py"), run_name="__main__")["NAMES"]
    found = {number: classify_path(tmp_path / "ws", name).origin_class for number, name in enumerate(names, start=1)}
    assert {number for number, origin in found.items() if origin is OriginClass.SYSTEM} == {17}
    assert {number for number, origin in found.items() if origin is OriginClass.UNTRUSTED} == {13, 14, 15, 16}


def test_a_link_has_the_worse_class_of_its_two_names(tmp_path: Path) -> None:
    (tmp_path / "memory/imports/codex").mkdir(parents=True)
    (tmp_path / "memory/imports/codex/MEMORY.md").write_text("x")
    (tmp_path / "memory/fine.md").symlink_to("imports/codex/MEMORY.md")
    assert classify_path(tmp_path, "memory/fine.md").origin_class is OriginClass.UNTRUSTED
