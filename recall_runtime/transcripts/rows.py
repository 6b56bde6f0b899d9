"""A transcript file as rows, in one pass and with bounded memory.

Belongs here: lines, byte offsets, JSON, faults, the hash of what was read.
Does not belong here: the meaning of rows.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAX_LINE_BYTES = 8 * 1024 * 1024
_SKIP_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of the file: line number (1-based) and byte range with its line end."""

    value: dict[str, Any]
    line: int
    start: int
    end: int


class RowReader:
    """Reads the rows of one file once.

    After the iteration ``read_to`` is the number of bytes taken in, ``prefix_hash`` their SHA-256, ``faults`` the
    counts of lines that are no rows, and ``prefix_matches`` whether the first ``expected_at`` bytes hash to
    ``expected_hash``. A last line without line end that does not parse is not taken in: it waits.
    """

    def __init__(self, path: Path, *, expected_at: int = 0, expected_hash: str = "") -> None:
        self._path = path
        self._expected_at = expected_at
        self._expected_hash = expected_hash
        self._digest = hashlib.sha256()
        self.faults: Counter[str] = Counter()
        self.read_to = 0
        self.prefix_matches = False

    @property
    def prefix_hash(self) -> str:
        """SHA-256 of the bytes before ``read_to``."""
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order.

        Raises:
            OSError: the file can't be opened or read.
        """
        with self._path.open("rb") as stream:
            number = 0
            while line := stream.readline(MAX_LINE_BYTES):
                number += 1
                start = self.read_to
                if not line.endswith(b"\n") and len(line) == MAX_LINE_BYTES:
                    self._take(line)
                    self._skip_line(stream)
                    self.faults["line_too_long"] += 1
                    continue
                value = self._parse(line.removeprefix(_BOM) if number == 1 else line)
                if value is None and not line.endswith(b"\n") and line.strip():
                    self.faults["unfinished_last_line"] += 1
                    return
                self._take(line)
                if isinstance(value, dict):
                    yield Row(value, number, start, self.read_to)
                elif line.strip():
                    self.faults["unreadable_lines" if value is None else "not_an_object"] += 1

    def _parse(self, line: bytes) -> Any:
        """Return the JSON value of a line; ``None`` when it is none (a lone ``null`` is no row either)."""
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return None

    def _take(self, line: bytes) -> None:
        self._digest.update(line)
        self.read_to += len(line)
        if self.read_to == self._expected_at:
            self.prefix_matches = self._digest.hexdigest() == self._expected_hash

    def _skip_line(self, stream: BinaryIO) -> None:
        while piece := stream.readline(_SKIP_BYTES):
            self._take(piece)
            if piece.endswith(b"\n"):
                return
