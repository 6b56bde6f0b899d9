"""``DREAMS.md``: the deep block, the consolidation history and the diary, around whatever the owner wrote.

Belongs here: putting the three parts into the bytes of the file. Pure.
Does not belong here: wording (``review.render``), writing (``review.write``).

Every line outside our blocks and entries stays byte for byte; stray markers stay where they are. Showing a sweep
twice changes nothing: its instant heads its history entry and its diary entry names it. The diary holds at most
``DIARY_BYTES``; its oldest entries then move to ``memory/dreaming/diary/archive.md``.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from memory_assets.review.records import SweepReport
from memory_assets.review.render import deep_body, fingerprint, history_entry
from recall_runtime.clock import format_instant
from recall_runtime.notes.markers import (
    CONSOLIDATION_HISTORY_HEADING,
    DIARY_TITLE,
    ManagedBlock,
    block_body,
    closed_fences,
    end_marker,
    managed_blocks,
    replace_block,
    start_marker,
)
from recall_runtime.text.lines import read_lines

DIARY_BYTES = 200_000
ARCHIVE = "memory/dreaming/diary/archive.md"
_REPORT_MARK = re.compile(r"<!-- dreamline:report ([0-9a-f]{16}) (\S+) -->")
_DATE_LINE = re.compile(r"\*[^*\n]{4,80}\*\s*")
_SAME = "- Same result as the sweep of {first}."


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """One diary entry: the line that dates it and its text."""

    dated: str
    text: str
    author: str


def sweep_mark(report: SweepReport) -> str:
    """Return the comment that tells a diary entry of ``report``."""
    return f"<!-- dreamline:sweep {re.sub(r'[^A-Za-z0-9._:-]', '_', report.sweep_id)[:80]} -->"


def is_shown(data: bytes, report: SweepReport) -> bool:
    """Return whether the file already holds the diary entry of this sweep."""
    return sweep_mark(report).encode() in data


def repeats(data: bytes, report: SweepReport) -> str | None:
    """Return the instant of the last shown sweep when this report says nothing else, else ``None``."""
    match = _REPORT_MARK.search(block_body(data, ManagedBlock.DEEP) or "")
    return match[2] if match and match[1] == fingerprint(report) else None


def with_report(data: bytes, report: SweepReport, entry: DiaryEntry | None) -> bytes:
    """Return the bytes of ``DREAMS.md`` with this sweep shown. ``entry`` is the diary entry, if one is due."""
    first = repeats(data, report)
    if first == format_instant(report.at):
        return data
    if first is not None:
        body = (block_body(data, ManagedBlock.DEEP) or "").rstrip("\n")
        line = _SAME.format(first=first)
        return data if line in body else replace_block(data, ManagedBlock.DEEP, f"{body}\n{line}")
    if not data.strip():
        data += f"{DIARY_TITLE}\n".encode()
    if entry is not None and not is_shown(data, report):
        data = _with_diary(data, report, entry)
    mark = f"<!-- dreamline:report {fingerprint(report)} {format_instant(report.at)} -->"
    data = replace_block(data, ManagedBlock.DEEP, f"{deep_body(report)}\n{mark}")
    return _with_history(data, report) if report.lines else data


def last_entries(data: bytes, number: int = 3, characters: int = 360) -> tuple[str, ...]:
    """Return the start of the last diary entries, newest last, as context for the next one."""
    body = block_body(data, ManagedBlock.DIARY) or ""
    return tuple(entry.strip()[:characters] for entry in _entries(body)[-number:])


def rotated(data: bytes, limit: int = DIARY_BYTES) -> tuple[bytes, bytes]:
    """Return the file with a diary of at most half of ``limit`` bytes when it was larger, and the bytes taken out."""
    span = next((s for s in managed_blocks(_texts(data)).spans if s.name is ManagedBlock.DIARY), None)
    if span is None:
        return data, b""
    lines = read_lines(data).lines
    start, end = lines[span.start_line - 1].end, lines[span.end_line - 1].start
    inside = data[start:end]
    if len(inside) <= limit:
        return data, b""
    entries = _entries(inside.decode("utf-8", errors="surrogateescape"))
    moved = 0
    while moved < len(entries) - 1 and sum(len(_bytes(entry)) for entry in entries[moved:]) > limit // 2:
        moved += 1
    taken = b"".join(_bytes(entry) for entry in entries[:moved])
    return data[:start] + inside[len(taken) :] + data[end:], taken


def _with_diary(data: bytes, report: SweepReport, entry: DiaryEntry) -> bytes:
    text = f"---\n\n*{entry.dated}*\n\n{entry.text}\n\n_{entry.author}_ {sweep_mark(report)}\n\n"
    reading = read_lines(data)
    encoded = text.replace("\n", reading.newline).encode("utf-8", errors="replace")
    spans = managed_blocks(_texts(data)).spans
    span = next((span for span in spans if span.name is ManagedBlock.DIARY), None)
    if span is not None:
        place = reading.lines[span.end_line - 1].start
        return data[:place] + encoded + data[place:]
    newline = reading.newline.encode()
    block = (
        start_marker(ManagedBlock.DIARY).encode()
        + newline
        + encoded
        + end_marker(ManagedBlock.DIARY).encode()
        + newline
    )
    gap = b"" if not data or data.endswith(b"\n") else newline
    return data + gap + newline + block


def _with_history(data: bytes, report: SweepReport) -> bytes:
    """Put the entry of this sweep first in its section; the rest of the section stays as it is."""
    entry = history_entry(report)
    reading = read_lines(data)
    texts = [line.text for line in reading.lines]
    fenced = closed_fences(texts)
    heading = next(
        (
            number
            for number, text in enumerate(texts, start=1)
            if text.rstrip() == CONSOLIDATION_HISTORY_HEADING and number not in fenced
        ),
        None,
    )
    if any(text.rstrip() == entry.split("\n", 1)[0] for text in texts):
        return data
    newline = reading.newline
    if heading is None:
        gap = "" if not data or data.endswith(b"\n") else "\n"
        section = f"{gap}\n{CONSOLIDATION_HISTORY_HEADING}\n\n{entry}\n"
        return data + section.replace("\n", newline).encode("utf-8", errors="replace")
    line = reading.lines[heading - 1]
    gap = "" if data[line.start : line.end].endswith(b"\n") else "\n"
    added = f"{gap}\n{entry}\n".replace("\n", newline).encode("utf-8", errors="replace")
    return data[: line.end] + added + data[line.end :]


def _entries(body: str) -> list[str]:
    """Split a diary body at the rules that stand above a date line; other rules are prose. Joined it is the body."""
    lines = body.splitlines(keepends=True)
    starts: list[int] = []
    for number, line in enumerate(lines):
        following = next((text for text in lines[number + 1 : number + 4] if text.strip()), "")
        if line.strip() == "---" and _DATE_LINE.fullmatch(following.strip()):
            starts.append(number)
    if not starts:
        return [body] if body else []
    return ["".join(lines[first:last]) for first, last in pairwise([0, *starts[1:], len(lines)])]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogateescape")


def _texts(data: bytes) -> list[str]:
    return [line.text for line in read_lines(data).lines]
