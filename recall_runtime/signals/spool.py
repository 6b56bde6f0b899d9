"""Recall events that wait in a file while the database is busy.

Belongs here: appending whole lines, handing them over once, keeping the damaged ones aside.
Does not belong here: what an event says and the database (``signals.recalls``).

A drain first gives the file another name. A writer that had opened it by then would write into a file that is about to
be removed, so opening, writing and renaming happen under one lock, which is held for a moment only.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from recall_runtime.storage.locks import exclusive

SPOOL_FILE = "recalls.jsonl"
_WAIT_SECONDS = 2.0


def append(folder: Path, events: Sequence[Mapping[str, Any]]) -> None:
    """Append ``events``, one line each.

    Raises:
        OSError: the spool can't be written.
        StoreLockedError: another process holds the spool for too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events).encode("utf-8")
    with _held(folder), open(folder / SPOOL_FILE, "ab", buffering=0, opener=_private) as stream:
        if stream.tell() and not _ends_whole(folder / SPOOL_FILE):  # somebody was killed in the middle of a line
            lines = b"\n" + lines
        while lines:
            lines = lines[stream.write(lines) :]


def taken(folder: Path) -> Path | None:
    """Return the file of the lines that are now the caller's, or ``None`` when there are none. One caller at a time.

    The file of a caller that was killed comes first.

    Raises:
        StoreLockedError: another process holds the spool for too long.
    """
    file = _draining(folder)
    if not file.exists():
        if not (folder / SPOOL_FILE).exists():
            return None
        with _held(folder):
            (folder / SPOOL_FILE).replace(file)
    return file


def lines_of(file: Path) -> list[str]:
    """Return the lines of a taken file. Only a line feed ends one: a text may hold any other separator."""
    return [line for line in file.read_text(encoding="utf-8", errors="replace").split("\n") if line.strip()]


def finish(folder: Path, damaged: Iterable[str]) -> None:
    """Remove the taken file; keep the ``damaged`` lines of it."""
    kept = [f"{line}\n" for line in damaged]
    if kept:
        with _draining(folder).with_suffix(".damaged").open("a", encoding="utf-8") as stream:
            stream.writelines(kept)
    _draining(folder).unlink()


def _draining(folder: Path) -> Path:
    return (folder / SPOOL_FILE).with_suffix(".draining")


def _held(folder: Path) -> AbstractContextManager[None]:
    return exclusive(folder / "append.lock", what="Writing to the spool", wait_seconds=_WAIT_SECONDS)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
