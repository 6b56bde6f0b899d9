"""Copies of other tools' memory."""

from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.errors import SourceError
from recall_runtime.imports.copies import ImportReport, ImportStatus, ImportTool, import_memory
from recall_runtime.paths import PathKind, kind_of
from tests.support.sessions import agent_at


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return agent_at(tmp_path / "agent")


def put(path: Path, text: str = "- fact\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def claude_home(root: Path) -> Path:
    project = root / "projects" / "-home-a-ferry"
    put(project / "memory" / "MEMORY.md", "- [Tests](tests.md)\n")
    put(project / "memory" / "tests.md")
    put(project / "memory" / "deep" / "more.md")
    put(project / "memory" / "raw.json")
    put(project / "5b0c.jsonl", "never")
    return root


def codex_home(root: Path) -> Path:
    for name in ("MEMORY.md", "memory_summary.md", "raw_memories.md"):
        put(root / "memories" / name)
    put(root / "memories" / "rollout_summaries" / "x.md")
    put(root / "sessions" / "rollout.jsonl", "never")
    return root


def hermes_home(root: Path) -> Path:
    put(root / "memories" / "MEMORY.md", "one\n§\ntwo")
    put(root / "memories" / "USER.md")
    put(root / "memories" / "OTHER.md")
    return root


def statuses(report: ImportReport) -> dict[str, str]:
    return {file.path: file.status.value for file in report.files}


@pytest.mark.parametrize(
    ("tool", "build", "below", "expected"),
    [
        (ImportTool.CODEX, codex_home, "", ["codex/MEMORY.md", "codex/memory_summary.md"]),
        (ImportTool.CODEX, codex_home, "memories", ["codex/MEMORY.md", "codex/memory_summary.md"]),
        (ImportTool.HERMES, hermes_home, "", ["hermes/MEMORY.md", "hermes/USER.md"]),
        (
            ImportTool.CLAUDE_CODE,
            claude_home,
            "",
            [f"claude-code/-home-a-ferry/{name}" for name in ("MEMORY.md", "deep/more.md", "tests.md")],
        ),
        (
            ImportTool.CLAUDE_CODE,
            claude_home,
            "projects/-home-a-ferry/memory",
            [f"claude-code/-home-a-ferry/{name}" for name in ("MEMORY.md", "deep/more.md", "tests.md")],
        ),
    ],
    ids=["codex home", "codex memories", "hermes home", "claude home", "claude memory folder"],
)
def test_only_the_named_memory_files_are_copied(
    agent: Agent, tmp_path: Path, tool: ImportTool, build: object, below: str, expected: list[str]
) -> None:
    source = build(tmp_path / "tool") / below  # type: ignore[operator]  # one of the builders above
    report = import_memory(agent, tool, source)
    paths = [f"memory/imports/{path}" for path in expected]
    assert statuses(report) == dict.fromkeys(paths, "copied")
    copied = [p.relative_to(agent.workspace).as_posix() for p in sorted((agent.workspace).rglob("*")) if p.is_file()]
    assert copied == sorted(paths)
    assert {kind_of(path) for path in paths} == {PathKind.IMPORT}


def test_an_auto_memory_directory_is_taken_as_it_is(agent: Agent, tmp_path: Path) -> None:
    put(tmp_path / "auto" / "fact.md")
    report = import_memory(agent, ImportTool.CLAUDE_CODE, tmp_path / "auto")
    assert statuses(report) == {"memory/imports/claude-code/fact.md": "copied"}


def test_sources_stay_as_they_are_and_copies_are_exact(agent: Agent, tmp_path: Path) -> None:
    source = put(tmp_path / "h" / "MEMORY.md")
    source.write_bytes(b"\xef\xbb\xbfone\r\n\xff")
    import_memory(agent, ImportTool.HERMES, tmp_path / "h")
    assert source.read_bytes() == b"\xef\xbb\xbfone\r\n\xff"
    assert (agent.workspace / "memory/imports/hermes/MEMORY.md").read_bytes() == source.read_bytes()


def test_a_second_import_changes_nothing(agent: Agent, tmp_path: Path) -> None:
    source = hermes_home(tmp_path / "h")
    import_memory(agent, ImportTool.HERMES, source)
    report = import_memory(agent, ImportTool.HERMES, source)
    assert report.count(ImportStatus.UNCHANGED) == 2


def test_a_changed_copy_is_a_conflict_and_is_kept(agent: Agent, tmp_path: Path) -> None:
    source = hermes_home(tmp_path / "h")
    import_memory(agent, ImportTool.HERMES, source)
    copy = agent.workspace / "memory/imports/hermes/MEMORY.md"
    copy.write_text("mine\n")
    report = import_memory(agent, ImportTool.HERMES, source)
    assert statuses(report)["memory/imports/hermes/MEMORY.md"] == "conflict"
    assert copy.read_text() == "mine\n"


def test_replace_keeps_a_backup_of_what_it_replaces(agent: Agent, tmp_path: Path) -> None:
    source = hermes_home(tmp_path / "h")
    import_memory(agent, ImportTool.HERMES, source)
    copy = agent.workspace / "memory/imports/hermes/MEMORY.md"
    copy.write_text("mine\n")
    report = import_memory(agent, ImportTool.HERMES, source, replace=True)
    replaced = next(file for file in report.files if file.status is ImportStatus.REPLACED)
    assert replaced.backup is not None
    assert replaced.backup.read_text() == "mine\n"
    assert copy.read_bytes() == (source / "memories/MEMORY.md").read_bytes()


def test_a_preview_writes_nothing(agent: Agent, tmp_path: Path) -> None:
    source = hermes_home(tmp_path / "h")
    report = import_memory(agent, ImportTool.HERMES, source, dry_run=True)
    assert report.count(ImportStatus.COPIED) == 2
    assert not (agent.workspace / "memory/imports").exists()


def test_links_are_refused_and_the_rest_is_copied(agent: Agent, tmp_path: Path) -> None:
    source = hermes_home(tmp_path / "h")
    secret = put(tmp_path / "secret.md")
    (source / "memories" / "USER.md").unlink()
    (source / "memories" / "USER.md").symlink_to(secret)
    report = import_memory(agent, ImportTool.HERMES, source)
    assert [file.status.value for file in report.files] == ["copied", "refused"]


@pytest.mark.parametrize("tool", list(ImportTool))
def test_a_folder_without_memory_is_an_error_that_says_what_is_expected(
    agent: Agent, tmp_path: Path, tool: ImportTool
) -> None:
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(SourceError):
            import_memory(agent, tool, source)
