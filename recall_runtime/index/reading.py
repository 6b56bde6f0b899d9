"""Reading a window of a memory file.

Belongs here: which paths may be read, the lines of a file, the bounds of a window.
Does not belong here: transcripts (``sessions_history`` reads them), search.
"""

import os
from collections.abc import Sequence
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
    """Lines of a file. ``next_line`` and ``next_character`` say where to go on; no line at the end of the file.

    ``cut`` marks that the last line was too long to be shown whole; going on starts inside it.
    """

    path: str
    start_line: int
    end_line: int
    total_lines: int
    text: str
    next_line: int | None
    next_character: int = 1
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


def read_file(agent: Agent, path: str) -> bytes:
    """Return the bytes of the memory file ``path``.

    Raises:
        RefusedError: the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    try:
        return read_regular(memory_file(agent, path))
    except FileNotFoundError as error:
        raise SourceError(f"{path} does not exist", "Look the path up with `search`.") from error
    except OSError as error:
        raise SourceError(f"{path} can't be read ({error.strerror})", "Give this user read access.") from error


def lines_of(data: bytes) -> list[str]:
    """Return the lines of a memory file without their ends."""
    lines = data.decode("utf-8-sig", errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def window_of(
    path: str, lines: Sequence[str], from_line: int = 1, count: int | None = None, from_character: int = 1
) -> Window:
    """Return ``count`` of ``lines`` (120 by default, 12,000 characters), from the place that a window before named."""
    start = max(1, from_line)
    wanted = list(lines[start - 1 : start - 1 + max(1, count or DEFAULT_LINES)])
    skipped = max(0, from_character - 1)
    if wanted:
        wanted[0] = wanted[0][skipped:]
    shown: list[str] = []
    room, cut = MAX_CHARACTERS, False
    for line in wanted:
        if len(line) + 1 > room:
            if not shown:
                shown.append(line[: safe_cut(line, room)])
                cut = True
            break
        shown.append(line)
        room -= len(line) + 1
    end = start + len(shown) - 1
    following = end if cut else end + 1
    return Window(
        path=path,
        start_line=start,
        end_line=end,
        total_lines=len(lines),
        text="\n".join(shown),
        next_line=following if following <= len(lines) and shown else None,
        next_character=skipped + len(shown[0]) + 1 if cut else 1,
        cut=cut,
    )


def get(agent: Agent, path: str, from_line: int = 1, lines: int | None = None, from_character: int = 1) -> Window:
    """Return lines of the memory file ``path`` as they stand there; see :func:`window_of`.

    Raises:
        RefusedError: the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    return window_of(normalise(path.strip()), lines_of(read_file(agent, path)), from_line, lines, from_character)
