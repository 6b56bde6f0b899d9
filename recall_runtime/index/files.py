"""Finding the memory files of a workspace.

Belongs here: which files are read, links, loops, names that are backups, one file reached by two names.
Does not belong here: reading them (``index.rows``), the classes of their lines (``recall_runtime.provenance``).

The rule for links: a link inside ``memory/`` is followed only to a file or folder inside the workspace; the curated
files at the root are followed wherever they lead, because their owner keeps them there on purpose. What isn't
followed is named in the problems.
"""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from recall_runtime.paths import (
    DREAMS_FILE,
    MACHINE_FOLDER,
    MEMORY_FILE,
    NOTES_FOLDER,
    USER_FILE,
    PathKind,
    kind_of,
)

_MEMORY_NAMES = (MEMORY_FILE, "memory.md")
_DREAMS_NAMES = (DREAMS_FILE, "dreams.md")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """One file to index: its workspace-relative name, where it really lies, and what a stat says."""

    path: str
    real: str
    kind: PathKind
    mtime_ns: int
    size: int


@dataclass(slots=True)
class Discovery:
    """The files of a workspace, and what was not followed or not readable, by path."""

    files: list[FoundFile] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)


def find_files(workspace: Path) -> Discovery:
    """Return every memory file of ``workspace`` in a stable order. Never raises for a single bad file."""
    found = Discovery()
    root = Path(os.path.realpath(workspace))
    seen: set[tuple[int, int]] = set()
    for names in (_MEMORY_NAMES, (USER_FILE,), _DREAMS_NAMES):
        present = [path for name in names if os.path.lexists(path := root / name)]
        for path in present[:1]:
            _take(found, seen, root, path.name, os.path.realpath(path), path.stat, follow_outside=True)
    _walk(found, seen, root, NOTES_FOLDER, os.path.realpath(root / NOTES_FOLDER), {str(root)})
    return found


def _walk(
    found: Discovery, seen: set[tuple[int, int]], root: Path, folder: str, real: str, ancestors: set[str]
) -> None:
    """Take the files below ``folder``, which really lies at ``real``. Only links are resolved: nothing else moves."""
    if real in ancestors:
        found.problems[folder] = "folder loop"
        return
    if not _inside(root, real):
        found.problems[folder] = "link leaves the workspace"
        return
    try:
        with os.scandir(root / folder) as listing:
            entries = sorted(listing, key=lambda item: (item.is_symlink(), item.name))
    except FileNotFoundError:
        return
    except OSError as error:
        found.problems[folder] = f"unreadable folder ({error.strerror})"
        return
    for item in entries:  # plain names first, so that a link to a file already taken is the second name, not the first
        path = f"{folder}/{item.name}"
        try:
            is_folder = item.is_dir()
        except OSError as error:
            found.problems[path] = f"unreadable ({error.strerror})"
            continue
        lies_at = os.path.realpath(item.path) if item.is_symlink() else f"{real}{os.sep}{item.name}"
        if is_folder:
            if f"{path}/".startswith(MACHINE_FOLDER + "/"):
                continue
            _walk(found, seen, root, path, lies_at, ancestors | {real})
        else:
            _take(found, seen, root, path, lies_at, item.stat, follow_outside=False)


def _take(
    found: Discovery,
    seen: set[tuple[int, int]],
    root: Path,
    path: str,
    real: str,
    stat_of: Callable[[], os.stat_result],
    *,
    follow_outside: bool,
) -> None:
    kind = kind_of(path)
    if kind is PathKind.OTHER or not path.lower().endswith(".md") or path.rpartition("/")[2].startswith("."):
        found.ignored["not a note"] = found.ignored.get("not a note", 0) + 1
        return
    try:
        path.encode("utf-8")
        status = stat_of()
    except UnicodeEncodeError:
        found.problems[path.encode("utf-8", "replace").decode()] = "file name is not UTF-8"
        return
    except FileNotFoundError:
        if not follow_outside:
            found.problems[path] = "link to nothing"
        return
    except OSError as error:
        found.problems[path] = "link loop" if error.errno == errno.ELOOP else f"unreadable ({error.strerror})"
        return
    if not stat.S_ISREG(status.st_mode):
        found.problems[path] = "not a regular file"  # reading a pipe would wait for ever
        return
    if not follow_outside and not _inside(root, real):
        found.problems[path] = "link leaves the workspace"
        return
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        found.ignored["second name"] = found.ignored.get("second name", 0) + 1
        return
    seen.add(identity)
    found.files.append(FoundFile(path, real, kind, status.st_mtime_ns, status.st_size))


def _inside(root: Path, real: str) -> bool:
    return real == str(root) or real.startswith(str(root) + os.sep)
