"""Which files changed since the last tick: pure arithmetic on stat results.

Belongs here: the cursor, the difference, the signature of a batch.
Does not belong here: listing folders and Dagster (``sensors.notes``, ``sensors.transcripts``).

A cursor is one text column, so it holds a short mark per file and no more than ``MOST_REMEMBERED`` files; of the
others it holds the newest time. A run key holds the signature of the batch: a file that changes again makes another
key, and a cursor that was reset makes the same keys again, which is harmless because every run is idempotent.
"""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_REMEMBERED = 2_000
SETTLED_NS = 2_000_000_000  # a file younger than two seconds may still be being written
_NEVER = -(2**63)


@dataclass(frozen=True, slots=True, order=True)
class FileStamp:
    """What a stat says about one file."""

    path: str
    mtime_ns: int
    size: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """What the sensor has seen: a mark per path hash, and the time up to which unremembered files count as seen."""

    marks: dict[str, str] = field(default_factory=dict)
    forgotten_to_ns: int = _NEVER

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever seen."""
        return not self.marks and self.forgotten_to_ns == _NEVER

    def dumps(self) -> str:
        """Return the cursor as text."""
        return json.dumps({"marks": self.marks, "forgotten_to_ns": self.forgotten_to_ns}, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str | None) -> "Cursor":
        """Return the cursor in ``text``; one that can't be read is a new one, and what it knew is looked at again."""
        try:
            value = json.loads(text or "{}")
            marks = {str(path): str(mark) for path, mark in value.get("marks", {}).items()}
            return cls(marks, int(value.get("forgotten_to_ns", _NEVER)))
        except (ValueError, AttributeError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class Changes:
    """The files to work on now, the cursor after that, and what was left for a later tick."""

    batch: tuple[FileStamp, ...]
    cursor: Cursor
    unsettled: int = 0
    left: int = 0

    @property
    def signature(self) -> str:
        """Hash of what changed: paths, times and sizes."""
        return signature_of(self.batch)


def signature_of(stamps: Iterable[FileStamp]) -> str:
    """Return 16 hex digits that stand for this content of these files."""
    text = json.dumps(sorted((stamp.path, stamp.mtime_ns, stamp.size) for stamp in stamps))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def changes_since(
    cursor: Cursor,
    present: Iterable[FileStamp],
    *,
    now_ns: int,
    cap: int,
    settled_ns: int = SETTLED_NS,
    most_remembered: int = MOST_REMEMBERED,
) -> Changes:
    """Return what changed since ``cursor``, oldest change first and at most ``cap`` files.

    Args:
        cursor: What was seen.
        present: All files there are.
        now_ns: The present, nanoseconds UTC.
        cap: Most files in a batch; the rest stays unseen and comes with a later tick. Files of one and the same time
            are never parted, because the cursor tells forgotten files by their time alone.
        settled_ns: A file changed more recently than that waits, and so does one that was written after the clock was
            read. A time farther in the future is taken for settled: a clock that was set back must not hide a file
            for ever.
        most_remembered: Files the cursor holds a mark for.
    """
    files = list(present)
    changed = [stamp for stamp in files if not _is_seen(cursor, stamp)]
    settled = [stamp for stamp in changed if abs(now_ns - stamp.mtime_ns) >= settled_ns]
    settled.sort(key=lambda stamp: (stamp.mtime_ns, stamp.path))
    end = min(cap, len(settled))
    while 0 < end < len(settled) and settled[end].mtime_ns == settled[end - 1].mtime_ns:
        end += 1
    batch = tuple(settled[:end])
    return Changes(
        batch=batch,
        cursor=_advanced(cursor, files, batch, most_remembered),
        unsettled=len(changed) - len(settled),
        left=len(settled) - len(batch),
    )


def _is_seen(cursor: Cursor, stamp: FileStamp) -> bool:
    mark = cursor.marks.get(_path_mark(stamp.path))
    return stamp.mtime_ns <= cursor.forgotten_to_ns if mark is None else mark == _content_mark(stamp)


def _advanced(cursor: Cursor, files: list[FileStamp], batch: tuple[FileStamp, ...], most: int) -> Cursor:
    """Return the cursor after ``batch``. Files that are gone are dropped, the oldest beyond ``most`` forgotten.

    A file that waits keeps its old mark, and nothing as new as a waiting file is forgotten: either would make its
    change count as seen.
    """
    marks, times = {}, {}
    done = set(batch)
    oldest_waiting: float = math.inf
    for stamp in files:
        path = _path_mark(stamp.path)
        if stamp in done:
            marks[path] = _content_mark(stamp)
        elif path in cursor.marks:
            marks[path] = cursor.marks[path]
        times[path] = stamp.mtime_ns
        if stamp not in done and not _is_seen(cursor, stamp):
            oldest_waiting = min(oldest_waiting, stamp.mtime_ns)
    newest_first = sorted(marks, key=lambda path: (times[path], path), reverse=True)
    forgotten = {path for path in newest_first[most:] if times[path] < oldest_waiting}
    horizon = max((times[path] for path in forgotten), default=cursor.forgotten_to_ns)
    kept = {path: mark for path, mark in marks.items() if path not in forgotten}
    return Cursor(kept, max(cursor.forgotten_to_ns, horizon))


def _path_mark(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _content_mark(stamp: FileStamp) -> str:
    return hashlib.sha256(f"{stamp.mtime_ns}:{stamp.size}".encode()).hexdigest()[:10]
