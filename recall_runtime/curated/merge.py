"""Taking one write out of a file that was changed since: a three-way merge by lines, checked by whole entries.

Belongs here: bytes in, bytes out; when such a merge is safe.
Does not belong here: which writes there were, ledger and claims (``curated.history``), the steps of a write.

The write turned ``before`` into ``after``; the file is ``present`` now. What the write added goes, what it took away
comes back, everything else of ``present`` stays byte for byte. Nothing is merged unless every entry the write added
stands in ``present`` as the write left it, and the result holds exactly the entries it should.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from recall_runtime.notes.curated import CuratedEntry, parse_curated
from recall_runtime.text.lines import read_lines

_BOM = b"\xef\xbb\xbf"
_HEADING = re.compile(rb" {0,3}(#{1,6})(?:[ \t]|$)")

Entries = Counter[tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class Merged:
    """The file without the write; ``content`` ``None``: it did not exist before and nothing else is in it."""

    content: bytes | None


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines ``[i1, i2)`` of the older content became lines ``[j1, j2)`` of the newer one."""

    i1: int
    i2: int
    j1: int
    j2: int


def changed_entries(before: bytes | None, after: bytes | None, *, user_file: bool) -> tuple[Entries, Entries]:
    """Return the entries that only ``after`` has and those that only ``before`` has, each as its non-blank lines."""
    old, new = _entries(before, user_file=user_file), _entries(after, user_file=user_file)
    return new - old, old - new


def take_out(before: bytes | None, after: bytes | None, present: bytes | None, *, user_file: bool) -> Merged | None:
    """Return ``present`` without the write that turned ``before`` into ``after``.

    ``None`` when an entry or a line of that write was touched since. An entry counts as a whole, with the marks above
    it and the lines below it. A heading the write made stays while something else stands below it.
    """
    if present == after:
        return Merged(before)
    if present is None or after is None:
        return None
    added, restored = changed_entries(before, after, user_file=user_file)
    standing = _entries(present, user_file=user_file)
    if added - standing:
        return None
    merge = _Merge(before or b"", after, present, user_file=user_file)
    result = merge.result()
    if result is None or _entries(result, user_file=user_file) != standing - added + restored:
        return None
    return Merged(None if before is None and not result.removeprefix(_BOM).strip() else result)


class _Merge:
    """One merge in progress. Lines are compared without their line ends."""

    def __init__(self, before: bytes, after: bytes, present: bytes, *, user_file: bool) -> None:
        self._present_bytes = present
        self._before, self._after, self._present = _lines(before), _lines(after), _lines(present)
        self._hunks = list(_hunks(_keys(self._before), _keys(self._after)))
        self._where = _mapping(_keys(self._after), _keys(self._present))
        self._entries = parse_curated(present, user_file=user_file).entries

    def result(self) -> bytes | None:
        """Return the merged bytes, or ``None`` when a line of the write is gone or a place can't be told."""
        gone: set[int] = set()
        back: dict[int, list[bytes]] = {}
        for hunk in self._hunks:
            lines = range(hunk.j1, hunk.j2)
            if any(self._after[index].strip() and index not in self._where for index in lines):
                return None
            gone.update(self._where[index] for index in lines if index in self._where)
            if hunk.i1 < hunk.i2:
                place = self._place(hunk)
                if place is None:
                    return None
                back.setdefault(place, []).extend(self._before[hunk.i1 : hunk.i2])
        kept = self._needed_headings(gone)
        return self._joined(gone - kept, back, kept)

    def _place(self, hunk: _Hunk) -> int | None:
        """Return the present line before which the old lines of ``hunk`` come back."""
        mapped = [self._where[index] for index in range(hunk.j1, hunk.j2) if index in self._where]
        if mapped:
            return mapped[0]
        above = self._where.get(hunk.j1 - 1) if hunk.j1 else -1
        below = self._where.get(hunk.j1) if hunk.j1 < len(self._after) else len(self._present)
        if above is None or (below is not None and below == above + 1):
            return below
        return max([above + 1, *(entry.end_line for entry in self._entries if _covers(entry, above))])

    def _needed_headings(self, gone: set[int]) -> set[int]:
        """Return the headings among ``gone`` below which something stays, with the blank lines around them."""
        kept: set[int] = set()
        for index in sorted(gone, reverse=True):
            level = _level(self._present[index])
            if not level or not self._has_content(index, level, gone - kept):
                continue
            kept.add(index)
            for near, step in ((index - 1, -1), (index + 1, 1)):
                while near in gone and not self._present[near].strip():
                    kept.add(near)
                    near += step
        return kept

    def _has_content(self, heading: int, level: int, gone: set[int]) -> bool:
        for index in range(heading + 1, len(self._present)):
            line = self._present[index]
            if 0 < _level(line) <= level:
                return False
            if line.strip() and index not in gone:
                return True
        return False

    def _joined(self, gone: set[int], back: dict[int, list[bytes]], kept: set[int]) -> bytes:
        newline = read_lines(self._present_bytes).newline.encode("ascii")
        out: list[bytes] = []
        last_kept = False
        for index in range(len(self._present) + 1):
            out += back.get(index, [])
            if index == len(self._present) or index in gone:
                continue
            line = self._present[index]
            if last_kept and out and not line.strip() and not out[-1].strip() and index not in kept:
                continue  # the blank line below a heading that stays, once
            out.append(line)
            last_kept = index in kept
        ended = [line if line.endswith(b"\n") else line + newline for line in out[:-1]] + out[-1:]
        text = b"".join(ended)
        return _BOM + text if self._present_bytes.startswith(_BOM) and text else text


def _covers(entry: CuratedEntry, index: int) -> bool:
    return entry.first_line <= index + 1 <= entry.end_line


def _entries(content: bytes | None, *, user_file: bool) -> Entries:
    data = content or b""
    keys = _keys(_lines(data))
    return Counter(
        tuple(key for key in keys[entry.first_line - 1 : entry.end_line] if key.strip())
        for entry in parse_curated(data, user_file=user_file).entries
    )


def _lines(content: bytes) -> list[bytes]:
    """Split at LF alone, line ends kept, without a byte order mark."""
    lines = [line + b"\n" for line in content.removeprefix(_BOM).split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _keys(lines: Sequence[bytes]) -> list[bytes]:
    return [line.rstrip(b"\r\n") for line in lines]


def _level(line: bytes) -> int:
    match = _HEADING.match(line.rstrip(b"\r\n"))
    return len(match[1]) if match else 0


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[_Hunk]:
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Hunk(i1, i2, j1, j2)


def _mapping(old: Sequence[bytes], new: Sequence[bytes]) -> dict[int, int]:
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return {block.a + step: block.b + step for block in blocks for step in range(block.size)}
