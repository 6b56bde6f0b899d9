"""Reading a window of a memory file.

Belongs here: ``get``, which paths may be read, the bounds of a window.
Does not belong here: transcripts (``sessions_history`` reads them), search.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from recall_runtime.agent import Agent
from recall_runtime.errors import RefusedError, SourceError
from recall_runtime.index.cutting import safe_cut
from recall_runtime.paths import SESSIONS_PREFIX, PathKind, kind_of, normalise
from recall_runtime.storage.atomic import read_regular

DEFAULT_LINES = 120
MAX_CHARACTERS = 12_000
_READABLE = frozenset(
    {
        PathKind.MEMORY,
        PathKind.USER,
        PathKind.DREAMS,
        PathKind.DAILY_NOTE,
        PathKind.TOPIC_NOTE,
        PathKind.REPORT,
        PathKind.IMPORT,
    }
)
_ROOT_FILES = frozenset({PathKind.MEMORY, PathKind.USER, PathKind.DREAMS})


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a file. ``next_line`` says where to go on, ``None`` at the end of the file.

    ``cut`` marks that the last line was too long to be shown whole; going on starts behind it.
    """

    path: str
    start_line: int
    end_line: int
    total_lines: int
    text: str
    next_line: int | None
    cut: bool = False


def memory_file(agent: Agent, path: str) -> Path:
    """Return where the memory file ``path`` lies.

    Raises:
        RefusedError: the path is no memory file, or leads out of the workspace.
    """
    asked = normalise(path.strip())
    parts = asked.split("/")
    kind = kind_of(asked)
    if asked.startswith(SESSIONS_PREFIX + "/"):
        raise RefusedError(f"{path!r} is a transcript, not a file", "Read it with `sessions_history`.")
    if kind not in _READABLE or ".." in parts or "" in parts or "\x00" in asked or asked.startswith("/"):
        raise RefusedError(
            f"{path!r} is no memory file", "Give MEMORY.md, USER.md, DREAMS.md or a Markdown file below memory/."
        )
    file = agent.workspace / asked
    root = os.path.realpath(agent.workspace)
    if kind not in _ROOT_FILES and not os.path.realpath(file).startswith(root + os.sep):
        raise RefusedError(f"{path!r} leads out of the workspace", "Give a file that lies in the workspace.")
    return file


def source_exists(agent: Agent, path: str) -> bool:
    """Return whether the source of a hit is still on disk. Transcripts are looked up in their folders by name."""
    if kind_of(path) is PathKind.TRANSCRIPT:
        return True  # their files may be archived under another name; the next sync decides
    return os.path.exists(f"{agent.workspace}/{path}")  # noqa: PTH110 - a Path takes three times as long, for every hit


def get(agent: Agent, path: str, from_line: int = 1, lines: int | None = None) -> Window:
    """Return ``lines`` lines of the memory file ``path`` from ``from_line`` on (120 by default, 12,000 characters).

    Raises:
        RefusedError: the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    file = memory_file(agent, path)
    try:
        data = read_regular(file)
    except FileNotFoundError as error:
        raise SourceError(f"{path} does not exist", "Look the path up with `search`.") from error
    except OSError as error:
        raise SourceError(f"{path} can't be read ({error.strerror})", "Give this user read access.") from error
    all_lines = data.decode("utf-8-sig", errors="replace").split("\n")
    if all_lines[-1] == "":
        all_lines.pop()
    start = max(1, from_line)
    wanted = all_lines[start - 1 : start - 1 + max(1, lines or DEFAULT_LINES)]
    shown: list[str] = []
    room, cut = MAX_CHARACTERS, False
    for line in (line.removesuffix("\r") for line in wanted):
        if len(line) + 1 > room:
            if not shown:
                shown.append(line[: safe_cut(line, room)])
                cut = True
            break
        shown.append(line)
        room -= len(line) + 1
    end = start + len(shown) - 1
    return Window(
        path=normalise(path.strip()),
        start_line=start,
        end_line=end,
        total_lines=len(all_lines),
        text="\n".join(shown),
        next_line=end + 1 if end < len(all_lines) and shown else None,
        cut=cut,
    )
