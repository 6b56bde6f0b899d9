"""Composing a curated file: bytes in, bytes out, every untouched byte kept.

Belongs here: the shape of promoted entries, removing lines, appending a section, the file's own line ends.
Does not belong here: which entries come or go, reading and writing files, the grammar of markers and annotations.

Entry format (openclaw-algorithms 25.2 and 26.4), without the score bracket, because numbers belong in the ledger::

    <!-- openclaw-memory-lineage:<key> -->
    <!-- openclaw-memory-promotion:<entry key> -->
    - <text> Source: <path>#L<a>-L<b> <!-- trigger: a, b, c --> <!-- importance: N --> <!-- project: key -->
"""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recall_runtime.notes.annotations import MAX_TRIGGERS, clean_phrase, render_annotations
from recall_runtime.notes.conditions import conditions_of, split_marks
from recall_runtime.notes.markers import (
    CONSOLIDATED_HEADING,
    GENERATED_SECTION,
    GLOBAL_HEADING,
    MEMORY_TITLE,
    PROJECT_HEADING,
    PROMOTED_HEADING,
    lineage_marker,
    promotion_key,
    promotion_marker,
)
from recall_runtime.records import Anchor, Annotations
from recall_runtime.text.lines import read_lines

_BOM = b"\xef\xbb\xbf"
_CHARS_PER_TOKEN = 4
_SENTENCE_END = re.compile(r"[.!?] |[。！？]")
_SENTENCE_FROM = 0.55
_WORD_FROM = 0.65
_BULLET = re.compile(r"^[-*+] +")
_GENERATED_HEADING = re.compile(
    rf"## {GENERATED_SECTION.pattern}\s*|### {GLOBAL_HEADING}\s*|### {re.escape(PROJECT_HEADING)}\S.*"
)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|$)")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """One entry to write: its key, its line, and what stands above and around it."""

    entry_key: str
    line: str
    project_key: str | None = None
    lineage_key: str | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """Marker lines and the entry line, top to bottom."""
        above = (lineage_marker(self.lineage_key),) if self.lineage_key else ()
        return (*above, promotion_marker(self.entry_key), self.line)


def section_heading(day: dt.date, *, consolidated: bool) -> str:
    """Return the heading of the entries of one night."""
    return f"## {CONSOLIDATED_HEADING if consolidated else PROMOTED_HEADING} ({day.isoformat()})"


def entry_line(text: str, source: Anchor | None, annotations: Annotations) -> str:
    """Return one entry as it stands in the file. ``text`` must be one line without comment signs."""
    citation = f"Source: {source}" if source else ""
    return " ".join(part for part in (f"- {text}", citation, render_annotations(annotations)) if part)


def importance_of(score: float) -> int:
    """Return the importance of a promoted entry, 3 to 10: half-up rounding of ten times the score (25.2)."""
    return min(10, max(3, math.floor(10 * score + 0.5)))


def triggers_of(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the first three concept tags as trigger phrases (25.2)."""
    phrases = (clean_phrase(tag) for tag in tags)
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase))[:MAX_TRIGGERS]


def cap_snippet(text: str, max_tokens: int) -> str:
    """Return ``text`` without one leading bullet, cut to ``4 * max_tokens`` characters (25.3); 0 means no limit.

    The cut is after the last sentence that ends at 55 % of the limit or later, else at the last blank at 65 % or
    later, else hard, never inside a combined character. What was cut ends in ``...``. A condition is never cut off
    (``notes.conditions``): its mark stays behind the cut, and a text that would lose one in its prose is left whole.
    """
    text = _BULLET.sub("", text, count=1)
    limit = _CHARS_PER_TOKEN * max_tokens
    if max_tokens == 0 or len(text) <= limit:
        return text
    bare, marks = split_marks(text)
    cut = _cut(bare, limit) + marks
    return cut if conditions_of(cut) == conditions_of(text) else text


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    window = text[:limit]
    ends = [match.start() + 1 for match in _SENTENCE_END.finditer(window)]
    if ends and ends[-1] >= _SENTENCE_FROM * limit:
        return window[: ends[-1]] + "..."
    space = window.rfind(" ")
    if space >= _WORD_FROM * limit:
        return window[:space].rstrip() + "..."
    while limit > 1 and (unicodedata.combining(text[limit]) or "\u200d" in text[limit - 1 : limit + 1]):
        limit -= 1
    return text[:limit] + "..."


def remove_lines(content: bytes, ranges: Iterable[tuple[int, int]]) -> bytes:
    """Return ``content`` without the 1-based line ranges (both ends included).

    A generated heading that has nothing left below it but blank lines goes too; nothing else does.
    """
    lines = _keep_lines(content)
    gone = {number for start, end in ranges for number in range(start, min(end, len(lines)) + 1)}
    if not gone:
        return content
    for number in sorted(gone):
        _mark_empty_headings(lines, gone, number)
    kept = b"".join(line for number, line in enumerate(lines, start=1) if number not in gone)
    lost_mark = content.startswith(_BOM) and not kept.startswith(_BOM)
    return _BOM + kept if lost_mark else kept


def append_entries(content: bytes | None, heading: str, entries: Sequence[NewEntry]) -> bytes:
    """Return ``content`` with ``entries`` in the section ``heading``, which is reused when it is already there.

    Entries are grouped by project, with sub-headings only when there is more than one group. The file's own line
    end is used, a last line without one gets it, and an empty file gets the title first.
    """
    if not entries:
        return content or b""
    base = content or b""
    reading = read_lines(base)
    newline = reading.newline.encode("ascii")
    if not base.removeprefix(_BOM).strip():
        base = (_BOM if base.startswith(_BOM) else b"") + MEMORY_TITLE.encode("utf-8") + newline
    elif not base.endswith(b"\n"):
        base += newline
    lines = _keep_lines(base)
    section = _find_section(lines, heading)
    groups = _grouped(entries)
    if section is None:
        return _new_section(base, lines, newline, heading, groups)
    return _extend_section(lines, newline, section, groups)


def _is_generated_heading(text: str) -> bool:
    """Return whether a line is a heading that only a sweep writes."""
    return _GENERATED_HEADING.fullmatch(text) is not None


def _keep_lines(content: bytes) -> list[bytes]:
    """Split at LF alone, line ends kept: other separators are text."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _text(line: bytes) -> str:
    return line.removeprefix(_BOM).decode("utf-8", errors="replace").rstrip("\r\n")


def _level(line: bytes) -> int:
    match = _HEADING.match(_text(line))
    return len(match[1]) if match else 0


def _mark_empty_headings(lines: list[bytes], gone: set[int], removed: int) -> None:
    """Add to ``gone`` the generated headings above ``removed`` that have become empty, with one blank line each."""
    number = removed - 1
    while number >= 1 and (number in gone or not _text(lines[number - 1]).strip()):
        number -= 1
    if number < 1 or not _is_generated_heading(_text(lines[number - 1])):
        return
    following = removed + 1
    while following <= len(lines) and (following in gone or not _text(lines[following - 1]).strip()):
        following += 1
    if following <= len(lines) and not 0 < _level(lines[following - 1]) <= _level(lines[number - 1]):
        return
    gone.update(range(number, following))
    _mark_empty_headings(lines, gone, number)


def _grouped(entries: Sequence[NewEntry]) -> list[tuple[str | None, list[NewEntry]]]:
    groups: dict[str | None, list[NewEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.project_key, []).append(entry)
    return sorted(groups.items(), key=lambda group: (group[0] is not None, group[0] or ""))


def _sub_heading(project_key: str | None) -> str:
    return "### " + (GLOBAL_HEADING if project_key is None else PROJECT_HEADING + project_key)


def _encode(texts: Iterable[str], newline: bytes) -> bytes:
    return b"".join(text.encode("utf-8") + newline for text in texts)


def _new_section(
    base: bytes, lines: list[bytes], newline: bytes, heading: str, groups: list[tuple[str | None, list[NewEntry]]]
) -> bytes:
    texts: list[str] = [] if not _text(lines[-1]).strip() else [""]
    texts += [heading, ""]
    for number, (project_key, members) in enumerate(groups):
        if len(groups) > 1:
            texts += ([""] if number else []) + [_sub_heading(project_key), ""]
        texts += [line for entry in members for line in entry.lines]
    return base + _encode(texts, newline)


def _find_section(lines: list[bytes], heading: str) -> tuple[int, int] | None:
    """Return the 0-based range [heading, next heading of its level) of the last section called ``heading``."""
    start = next((index for index in range(len(lines) - 1, -1, -1) if _text(lines[index]).rstrip() == heading), None)
    if start is None:
        return None
    level = _level(lines[start])
    end = next((i for i in range(start + 1, len(lines)) if 0 < _level(lines[i]) <= level), len(lines))
    return start, end


def _extend_section(
    lines: list[bytes], newline: bytes, section: tuple[int, int], groups: list[tuple[str | None, list[NewEntry]]]
) -> bytes:
    start, end = section
    has_groups = any(
        _level(lines[index]) == 3 and _is_generated_heading(_text(lines[index])) for index in range(start, end)
    )
    for project_key, members in groups:
        texts = [line for entry in members for line in entry.lines]
        at = _place_in(lines, start, end, _sub_heading(project_key)) if has_groups else None
        if at is None and not has_groups and len(groups) == 1:
            at = _after_last_entry(lines, start, end)
        elif at is None:
            at = _after_last_entry(lines, start, end)
            texts = ["", _sub_heading(project_key), "", *texts]
        lines[at:at] = [text.encode("utf-8") + newline for text in texts]
        end += len(texts)
    return b"".join(lines)


def _place_in(lines: list[bytes], start: int, end: int, sub_heading: str) -> int | None:
    found = next((index for index in range(start, end) if _text(lines[index]).rstrip() == sub_heading), None)
    if found is None:
        return None
    stop = next((index for index in range(found + 1, end) if _level(lines[index])), end)
    return _after_last_entry(lines, found, stop)


def _after_last_entry(lines: list[bytes], start: int, end: int) -> int:
    """Return where the next entry goes: below the last line that stands directly under a promotion marker."""
    last = start
    for index in range(start + 1, end):
        if promotion_key(_text(lines[index - 1])) and _text(lines[index]).startswith("- "):
            last = index
    if last == start:
        return start + 2 if start + 1 < end and not _text(lines[start + 1]).strip() else start + 1
    while last + 1 < end and _text(lines[last + 1])[:1] in (" ", "\t") and _text(lines[last + 1]).strip():
        last += 1
    return last + 1
