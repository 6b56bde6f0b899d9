"""Bytes to lines: the one place that decides what a line is and what can be decoded.

Belongs here: splitting at LF and CRLF, byte ranges, byte order mark, newline style, UTF-8 faults, control signs.
Does not belong here: Markdown (``recall_runtime.notes.blocks``).

Only LF (and CRLF) ends a line. NUL, FF, VT, NEL, LS, PS, FS and a lone CR are text. A file is UTF-8; a file that
can't be (UTF-16, binary) is refused as a whole, a single bad line is not.
"""

import re
from dataclasses import dataclass

REPLACEMENT = "\ufffd"
_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SAMPLE_BYTES = 65_536
_DAMAGE = re.compile("[\x00-\x08\x0e-\x1a\ufffd]")
_MAX_DAMAGE = 0.3
# Everything a terminal or a browser could obey or take for a line end; tab and LF are left.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line: 1-based number, text without line end and byte order mark, byte range with both."""

    number: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ByteFault:
    """The first byte of a line that is no UTF-8: line number and byte offset in the file."""

    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class LineReading:
    """A file as lines. The byte ranges of ``lines`` follow each other and cover the file."""

    lines: tuple[SourceLine, ...]
    bom: bool = False
    newline: str = "\n"  # line end most lines have: "\n" or "\r\n"
    faults: tuple[ByteFault, ...] = ()
    undecodable: bool = False  # no text file; ``lines`` is empty, the file is reported once

    @property
    def faulty_lines(self) -> frozenset[int]:
        """Numbers of the lines that hold bytes we could not decode."""
        return frozenset(fault.line for fault in self.faults)


def read_lines(data: bytes) -> LineReading:
    """Split the bytes of a file into lines. Never raises; linear in ``len(data)``.

    Bad bytes become U+FFFD in ``text`` and one fault a line. A file that starts with a UTF-16 mark, or of whose
    first 64 KiB more than 30 % are control signs or bad bytes, is undecodable.
    """
    if _is_binary(data):
        return LineReading(lines=(), faults=(ByteFault(1, 0),), undecodable=True)
    bom = data.startswith(_BOM)
    lines: list[SourceLine] = []
    faults: list[ByteFault] = []
    crlf = 0
    start = 0
    pieces = data.split(b"\n")
    last = len(pieces) - 1
    for number, piece in enumerate(pieces, start=1):
        end = start + len(piece) + (number <= last)
        if end == start:
            break
        content_start = start + len(_BOM) if bom and number == 1 else start
        content = piece[len(_BOM) :] if bom and number == 1 else piece
        if number <= last and content.endswith(b"\r"):
            content = content[:-1]
            crlf += 1
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            text = content.decode("utf-8", errors="replace")
            faults.append(ByteFault(number, content_start + error.start))
        lines.append(SourceLine(number, text, start, end))
        start = end
    newline = "\r\n" if crlf * 2 > last and crlf else "\n"
    return LineReading(lines=tuple(lines), bom=bom, newline=newline, faults=tuple(faults))


def without_controls(text: str) -> str:
    """Return ``text`` as it may be stored: control signs other than tab and LF are blanks, one for one."""
    return _CONTROLS.sub(" ", text)


def printable(line: str) -> str:
    """Return ``line`` with bytes that are no UTF-8 as replacement signs, for records and prompts."""
    return line.encode("utf-8", errors="replace").decode("utf-8")


def _is_binary(data: bytes) -> bool:
    if data.startswith(_UTF16_MARKS):
        return True
    sample = data[:_SAMPLE_BYTES].decode("utf-8", errors="replace")
    return len(_DAMAGE.findall(sample)) > _MAX_DAMAGE * len(sample)
