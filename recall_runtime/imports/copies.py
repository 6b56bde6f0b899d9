"""Copies of the memory files of Codex, Claude Code and Hermes under ``memory/imports/<tool>/``.

Belongs here: which files count as memory (openclaw-facts 20), conflicts, replacement with a verified backup, the
report.
Does not belong here: transcripts and raw memories of those tools; they are never imported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from recall_runtime.agent import Agent
from recall_runtime.clock import format_instant
from recall_runtime.errors import DreamlineError, SourceError, WorkspaceError
from recall_runtime.paths import IMPORTS_FOLDER
from recall_runtime.storage.atomic import content_hash, read_bytes, replace_file

_MAX_BYTES = 16 * 1024 * 1024


class ImportTool(StrEnum):
    """Tools whose memory can be copied; the value names the folder below ``memory/imports/``."""

    CODEX = "codex"
    CLAUDE_CODE = "claude-code"
    HERMES = "hermes"


class ImportStatus(StrEnum):
    """What happened, or in a preview would happen, to one file."""

    COPIED = "copied"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"  # the copy differs and was not replaced
    REPLACED = "replaced"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One line of the report: names and a reason, never content. ``backup``: where the replaced copy lies."""

    source: Path
    path: str
    status: ImportStatus
    reason: str = ""
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The report of one import, file by file."""

    tool: ImportTool
    files: tuple[ImportedFile, ...]

    def count(self, status: ImportStatus) -> int:
        """Return how many files have ``status``."""
        return sum(file.status is status for file in self.files)


def import_memory(
    agent: Agent,
    tool: ImportTool,
    source: Path,
    *,
    replace: bool = False,
    dry_run: bool = False,
    now_ms: int | None = None,
) -> ImportReport:
    """Copy the memory files of ``tool`` from ``source`` into the workspace, byte for byte.

    ``source`` is the tool's home, or the folder with the files. A copy that differs from its source is a conflict and
    is kept, unless ``replace`` is given: then it is backed up first, and the backup is read back and compared.

    Args:
        agent: Whose workspace gets the copies.
        tool: Whose memory it is.
        source: Folder of the tool; never written to.
        replace: Replace copies that differ.
        dry_run: Only say what would happen.
        now_ms: The instant that names the backup folder; the agent's clock when ``None``.

    Raises:
        SourceError: ``source`` is no folder, or holds no memory of this tool.
    """
    source = source.expanduser()
    if not source.is_dir():
        raise SourceError(f"{source} is no folder", f"Give the folder where {tool.value} keeps its memory.")
    candidates = list(_candidates(tool, source))
    if not candidates:
        raise SourceError(f"{source} holds no memory of {tool.value}", f"Expected {_EXPECTED[tool]}.")
    stamp = format_instant(agent.clock.now_ms() if now_ms is None else now_ms).replace(":", "-")
    backups = agent.folders.agent_home / "backups" / "imports" / stamp
    files = []
    for file, relative in candidates:
        path = f"{IMPORTS_FOLDER}/{tool.value}/{relative}"
        try:
            files.append(_copy(agent, file, path, backups, replace=replace, dry_run=dry_run))
        except DreamlineError as error:
            files.append(ImportedFile(file, path, ImportStatus.FAILED, error.problem))
        except OSError as error:
            files.append(ImportedFile(file, path, ImportStatus.FAILED, error.strerror or "can't be read"))
    return ImportReport(tool, tuple(files))


_EXPECTED = {
    ImportTool.CODEX: "MEMORY.md or memory_summary.md in its folder memories",
    ImportTool.CLAUDE_CODE: "Markdown files in projects/*/memory",
    ImportTool.HERMES: "MEMORY.md or USER.md in its folder memories",
}
_NAMED = {
    ImportTool.CODEX: ("MEMORY.md", "memory_summary.md"),
    ImportTool.HERMES: ("MEMORY.md", "USER.md"),
}


def _candidates(tool: ImportTool, source: Path) -> Iterator[tuple[Path, str]]:
    """Yield (file, path below the tool's import folder)."""
    if tool is ImportTool.CLAUDE_CODE:
        yield from _claude_files(source)
        return
    folder = source / "memories" if (source / "memories").is_dir() else source
    for name in _NAMED[tool]:
        if (folder / name).is_file():
            yield folder / name, name


def _claude_files(source: Path) -> Iterator[tuple[Path, str]]:
    projects = source / "projects" if (source / "projects").is_dir() else source
    folders = [(entry / "memory", entry.name) for entry in sorted(projects.iterdir()) if (entry / "memory").is_dir()]
    if not folders and source.name == "memory":
        folders = [(source, source.parent.name)]
    elif not folders:
        folders = [(source, "")]  # a folder named by the setting autoMemoryDirectory
    for folder, project in folders:
        for file in sorted(folder.rglob("*.md")):
            if file.is_file():
                relative = file.relative_to(folder).as_posix()
                yield file, f"{project}/{relative}" if project else relative


def _copy(agent: Agent, file: Path, path: str, backups: Path, *, replace: bool, dry_run: bool) -> ImportedFile:
    if file.is_symlink():
        return ImportedFile(file, path, ImportStatus.REFUSED, "a link, which may lead anywhere")
    if file.stat().st_size > _MAX_BYTES:
        return ImportedFile(file, path, ImportStatus.REFUSED, f"larger than {_MAX_BYTES} bytes")
    content = file.read_bytes()
    target = agent.workspace / path
    if not target.parent.resolve().is_relative_to(agent.workspace.resolve()) or target.is_symlink():
        return ImportedFile(file, path, ImportStatus.REFUSED, "the target leads out of the imports folder")
    present = read_bytes(target)
    if present == content:
        return ImportedFile(file, path, ImportStatus.UNCHANGED)
    if present is None:
        if not dry_run:
            replace_file(target, content, expected_hash=None)
        return ImportedFile(file, path, ImportStatus.COPIED)
    if not replace:
        return ImportedFile(file, path, ImportStatus.CONFLICT, "the copy in the workspace differs")
    if dry_run:
        return ImportedFile(file, path, ImportStatus.REPLACED)
    backup = backups / path
    replace_file(backup, present, expected_hash=None)
    if read_bytes(backup) != present:
        raise WorkspaceError(f"The backup {backup} is not what was written", "Check the disk; nothing was replaced.")
    replace_file(target, content, expected_hash=content_hash(present))
    return ImportedFile(file, path, ImportStatus.REPLACED, backup=backup)
