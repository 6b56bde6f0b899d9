"""``MEMORY.md`` and ``USER.md`` as entries: who wrote them, what they say, what may be done to them.

Belongs here: reading the curated files and all generations of promoted lines; sections and their ownership.
Does not belong here: changing the files (``recall_runtime.curated``), the rules of directives (``user_model``).

An entry is a top-level list item with everything it owns, a table row, or a paragraph. Nothing is lost: the lines of
``reading`` give the file back byte for byte, and whatever is no entry is left alone by every writer.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from recall_runtime.notes.blocks import Block, BlockKind, Note, read_note, split_cells
from recall_runtime.notes.conditions import split_marks
from recall_runtime.notes.markers import (
    GENERATED_SECTION,
    GLOBAL_HEADING,
    PROJECT_HEADING,
    lineage_key,
    marker_content,
    promotion_key,
)
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from recall_runtime.records import Anchor, Annotations
from recall_runtime.text.lines import LineReading
from recall_runtime.vocabulary import EntryStatus, Refusal


@dataclass(frozen=True, slots=True)
class CuratedEntry:
    """One entry of a curated file.

    ``first_line`` is the first of the marks above the entry, ``start_line`` the entry's own first line; both 1-based,
    ``end_line`` included. ``raw`` is the exact source of the entry without its last line end; bytes that are no UTF-8
    are kept as surrogate escapes. ``text`` has no carriers, score bracket, Source tail or doubled list sign.
    """

    first_line: int
    start_line: int
    end_line: int
    kind: BlockKind
    raw: str
    text: str
    heading_path: tuple[str, ...] = ()
    annotations: Annotations = field(default_factory=Annotations)
    status: EntryStatus = EntryStatus.ACTIVE
    observed: dt.date | None = None
    entry_keys: tuple[str, ...] = ()  # of the promotion marks directly above, in order
    lineage_key: str | None = None
    source: Anchor | None = None
    generated: bool = False  # the whole shape is the product's own
    conflicted: bool = False  # stands inside an unresolved merge
    damage: str | None = None  # what is wrong with its metadata; nobody but the owner removes such an entry

    @property
    def entry_key(self) -> str | None:
        """The key of the mark nearest above the entry, or ``None`` when it has no mark."""
        return self.entry_keys[-1] if self.entry_keys else None


@dataclass(frozen=True, slots=True)
class CuratedSection:
    """A heading with everything up to the next heading of its own or a higher level; lines included.

    ``generated``: the heading is one of ours and every line below it is blank, a mark, our entry or our sub-heading.
    """

    title: str
    level: int
    start_line: int
    end_line: int
    generated: bool
    day: str | None  # of a section of ours


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A curated file as read. ``problems`` counts faults by kind."""

    reading: LineReading
    entries: tuple[CuratedEntry, ...]
    sections: tuple[CuratedSection, ...]
    problems: dict[str, int]
    conflicted: bool

    @property
    def newline(self) -> str:
        """Line end of the file."""
        return self.reading.newline

    @property
    def bom(self) -> bool:
        """Whether a byte order mark leads."""
        return self.reading.bom


_SCORE_TAIL = re.compile(
    r"\s*\[score=[\d.]+(?: signals=\d+)? recalls=\d+ avg=[\d.]+ source=(\S{1,400}?):(\d{1,9})-(\d{1,9})\]\s*$"
)
_SOURCE_TAIL = re.compile(r"\s*(?<!\S)Source: (\S(?:[^\n#]{0,398}\S)?)#L(\d{1,9})(?:-L(\d{1,9}))?\s*$")
_FIELD = re.compile(r"\s*(observed|status)\s*:\s*(.*?)\s*", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_KEY_WORD = re.compile(r"[^\W\d_]{3,}")
_VALUE = re.compile(r"(?<!\d)\d{3,}(?!\d)")
_LEVEL = re.compile(r" {0,3}(#{1,6})")
_NO_ENTRY = frozenset(
    {Refusal.EMPTY, Refusal.FENCED_CODE, Refusal.COMMENT, Refusal.FRONT_MATTER, Refusal.MANAGED_BLOCK}
)


@dataclass(slots=True)
class _Marks:
    """Marks met above an entry that is still to come."""

    first_line: int = 0
    last_line: int = 0
    keys: list[str] = field(default_factory=list)
    lineage: str | None = None
    metadata: dict[str, str] | None = None


def parse_curated(data: bytes, *, user_file: bool = False) -> CuratedFile:
    """Read a curated file. Never raises; linear in ``len(data)``.

    Args:
        data: bytes of the file.
        user_file: whether it is ``USER.md``, whose entries ignore project scope.
    """
    note = read_note(data, path=USER_FILE if user_file else MEMORY_FILE)
    problems = dict(note.problems)
    entries = _entries(data, note, problems, user_file=user_file)
    retired = frozenset() if user_file else _replaced_by_lineage(entries)
    entries = tuple(
        replace(entry, status=EntryStatus.SUPERSEDED) if position in retired else entry
        for position, entry in enumerate(entries)
    )
    return CuratedFile(
        reading=note.reading,
        entries=entries,
        sections=_sections(note, entries),
        problems=problems,
        conflicted=note.conflicted,
    )


def _replaced_by_lineage(entries: Sequence[CuratedEntry]) -> frozenset[int]:
    """Return the positions of hand-written entries that a later entry with a lineage key has replaced.

    Only a key of two words and more speaks for itself (``house:boiler-code``): all of them stand in the headings and
    text of the older entry, two of them in its text, and both entries name numbers, none in common. The line stays.
    """
    by_word: dict[str, list[int]] = {}
    for position, entry in enumerate(entries):
        if not (entry.lineage_key or entry.entry_keys):
            for word in _words(entry.text):
                by_word.setdefault(word, []).append(position)
    found: set[int] = set()
    for successor in entries:
        key, values = _words(successor.lineage_key or ""), frozenset(_VALUE.findall(successor.text))
        if len(key) < 2 or "|" in (successor.lineage_key or "") or not values:
            continue
        holding = Counter(position for word in key for position in by_word.get(word, ()))
        for position in (position for position, count in holding.items() if count > 1):
            entry = entries[position]
            older = frozenset(_VALUE.findall(entry.text))
            spoken = _words(" ".join((*entry.heading_path, entry.text)))
            if entry.start_line < successor.start_line and key <= spoken and older and not older & values:
                found.add(position)
    return frozenset(found)


def _words(text: str) -> frozenset[str]:
    return frozenset(_KEY_WORD.findall(text.casefold()))


def _entries(data: bytes, note: Note, problems: dict[str, int], *, user_file: bool) -> tuple[CuratedEntry, ...]:
    entries: list[CuratedEntry] = []
    marks = _Marks()
    group: list[Block] = []
    group_marks = _Marks()

    def finish() -> None:
        if group:
            entries.append(_entry(data, note.reading, group, group_marks, problems, user_file=user_file))
            group.clear()

    for block in note.blocks:
        if group and _is_owned(block, group, note.reading):
            group.append(block)
            continue
        finish()
        if block.kind is BlockKind.COMMENT and _take_mark(block, note.reading, marks):
            continue
        if _is_entry(block):
            group.append(block)
            group_marks = _usable(marks, block)
        marks = _Marks()
    finish()
    return tuple(entries)


def _is_owned(block: Block, group: Sequence[Block], reading: LineReading) -> bool:
    """Whether the block belongs to the list item the group began with."""
    if group[0].kind is not BlockKind.BULLET:
        return False
    if block.kind in (BlockKind.BULLET, BlockKind.PARAGRAPH):
        return block.depth > 0
    indented = reading.lines[block.start_line - 1].text[:1].isspace()
    return indented and block.kind in (BlockKind.CODE, BlockKind.QUOTE, BlockKind.TABLE_ROW, BlockKind.TABLE_RULE)


def _is_entry(block: Block) -> bool:
    if block.kind not in (BlockKind.BULLET, BlockKind.PARAGRAPH, BlockKind.QUOTE, BlockKind.TABLE_ROW):
        return False
    return block.refusal not in _NO_ENTRY and any(sign.isalnum() or ord(sign) > 0x2000 for sign in block.text)


def _take_mark(block: Block, reading: LineReading, marks: _Marks) -> bool:
    line = reading.lines[block.start_line - 1].text
    if block.start_line != block.end_line:
        return False
    key, lineage, metadata = promotion_key(line), lineage_key(line), _metadata(line)
    if key is None and lineage is None and metadata is None:
        return False
    if metadata is None and marks.last_line and marks.last_line != block.start_line - 1:
        # Promotion and lineage marks stand directly above each other and above their entry.
        marks.keys.clear()
        marks.lineage, marks.metadata, marks.first_line = None, None, 0
    if metadata is not None and marks.metadata is not None:
        marks.first_line = 0
    if key is not None:
        marks.keys.append(key)
    marks.lineage = lineage or marks.lineage
    marks.metadata = metadata if metadata is not None else marks.metadata
    marks.first_line = marks.first_line or block.start_line
    marks.last_line = block.start_line
    return True


def _usable(marks: _Marks, block: Block) -> _Marks:
    """Return the marks that belong to ``block``: metadata may stand above blank lines, other marks may not."""
    if not marks.last_line or block.kind is not BlockKind.BULLET:
        return _Marks()
    if marks.metadata is None and marks.last_line != block.start_line - 1:
        return _Marks()
    return marks


def _metadata(line: str) -> dict[str, str] | None:
    content = marker_content(line)
    if content is None:
        return None
    fields: dict[str, str] = {}
    for part in content.split("|"):
        match = _FIELD.fullmatch(part)
        if match is None:
            return None
        fields[match[1].lower()] = match[2]
    return fields


def _entry(
    data: bytes,
    reading: LineReading,
    group: Sequence[Block],
    marks: _Marks,
    problems: dict[str, int],
    *,
    user_file: bool,
) -> CuratedEntry:
    head = group[0]
    end_line = max(block.end_line for block in group)
    first, last = reading.lines[head.start_line - 1], reading.lines[end_line - 1]
    raw = data[first.start : last.end].decode("utf-8", errors="surrogateescape").removesuffix("\n").removesuffix("\r")
    if head.start_line == 1:
        raw = raw.removeprefix("\ufeff")
    text, source, tail = _own_text(head)
    children = [
        f"{'  ' * (block.depth - 1)}- {block.text}"
        for block in group[1:]
        if block.kind is BlockKind.BULLET and block.text
    ]
    others = [block.text for block in group[1:] if block.kind is not BlockKind.BULLET]
    entry = CuratedEntry(
        first_line=marks.first_line or head.start_line,
        start_line=head.start_line,
        end_line=end_line,
        kind=head.kind,
        raw=raw,
        text="\n".join([text, *children, *others]),
        heading_path=head.heading_path,
        annotations=_annotations([block.annotations for block in group], user_file=user_file),
        entry_keys=tuple(marks.keys),
        lineage_key=marks.lineage,
        source=source,
        generated=bool(marks.keys)
        and tail
        and len(group) == 1
        and raw.startswith("- ")
        and head.start_line == end_line,
        conflicted=head.refusal is Refusal.CONFLICT,
    )
    return _with_metadata(entry, marks.metadata or {}, problems)


def _own_text(block: Block) -> tuple[str, Anchor | None, bool]:
    """Return the text without its tail, the source the tail names, and whether there was a tail."""
    if block.kind is BlockKind.TABLE_ROW:
        cells = [cell for cell in split_cells(block.text) if cell]
        return (f"{cells[0]}: {'; '.join(cells[1:])}" if len(cells) > 1 else "".join(cells)), None, False
    text, marks = split_marks(block.text)  # a condition may stand behind the tail
    match = _SCORE_TAIL.search(text[-1_200:]) or _SOURCE_TAIL.search(text[-1_200:])
    if match is None:
        return block.text, None, False
    text = text[: len(text) - len(match[0])].rstrip() + marks
    if text.startswith("- "):
        text = text[2:].lstrip()
    start = int(match[2])
    return text, Anchor(match[1], start, int(match[3] or start)), True


def _annotations(parts: Sequence[Annotations], *, user_file: bool) -> Annotations:
    triggers = dict.fromkeys(phrase for part in parts for phrase in part.triggers)
    keys = dict.fromkeys(part.project_key for part in parts if part.project_key)
    importances = [part.importance for part in parts if part.importance is not None]
    return Annotations(
        triggers=tuple(triggers),
        importance=max(importances, default=None),
        project_key=None if user_file or not keys else "; ".join(keys),
    )


def _with_metadata(entry: CuratedEntry, metadata: dict[str, str], problems: dict[str, int]) -> CuratedEntry:
    damage: list[str] = []
    observed = None
    if "observed" in metadata:
        observed = _last_date(metadata["observed"])
        if observed is None:
            damage.append(f"observed {metadata['observed']!r} is no date")
    status = EntryStatus.ACTIVE
    if "status" in metadata:
        word = metadata["status"].lower()
        status = EntryStatus.ACTIVE if word == EntryStatus.ACTIVE else EntryStatus.SUPERSEDED
        if word not in (EntryStatus.ACTIVE, EntryStatus.SUPERSEDED):
            damage.append(f"status {metadata['status']!r} is neither active nor superseded")
    if damage:
        problems["damaged_metadata"] = problems.get("damaged_metadata", 0) + 1
    return replace(entry, observed=observed, status=status, damage="; ".join(damage) or None)


def _last_date(text: str) -> dt.date | None:
    """Return the date, or the last date of a range; ``None`` when one of the dates does not exist."""
    found: dt.date | None = None
    for written in _DATE.findall(text):
        try:
            found = dt.date.fromisoformat(written)
        except ValueError:
            return None
    return found


def _sections(note: Note, entries: Sequence[CuratedEntry]) -> tuple[CuratedSection, ...]:
    headings: list[tuple[int, int, str]] = []
    for block in note.blocks:
        if block.kind is BlockKind.HEADING:
            match = _LEVEL.match(note.reading.lines[block.start_line - 1].text)
            headings.append((block.start_line, len(match[1]) if match else 1, block.text))
    ends = _section_ends([(line, level) for line, level, _ in headings], len(note.reading.lines))
    foreign = _foreign_lines(note, entries)
    sections: list[CuratedSection] = []
    position = 0
    for (line, level, title), end in zip(headings, ends, strict=True):
        while position < len(foreign) and foreign[position] <= line:
            position += 1
        ours = GENERATED_SECTION.fullmatch(title) if level == 2 else None
        generated = ours is not None and not (position < len(foreign) and foreign[position] <= end)
        sections.append(CuratedSection(title, level, line, end, generated, ours[1] if ours else None))
    return tuple(sections)


def _section_ends(headings: Sequence[tuple[int, int]], last_line: int) -> list[int]:
    ends = [last_line] * len(headings)
    open_sections: list[int] = []
    for position, (line, level) in enumerate(headings):
        while open_sections and headings[open_sections[-1]][1] >= level:
            ends[open_sections.pop()] = line - 1
        open_sections.append(position)
    return ends


def _foreign_lines(note: Note, entries: Sequence[CuratedEntry]) -> list[int]:
    """Return the first lines of blocks that we did not write into a section of ours, in order."""
    own = {line for entry in entries if entry.generated for line in range(entry.first_line, entry.end_line + 1)}
    foreign: list[int] = []
    for block in note.blocks:
        if block.start_line in own:
            continue
        sub = block.kind is BlockKind.HEADING and (
            block.text == GLOBAL_HEADING or block.text.startswith(PROJECT_HEADING)
        )
        if not (sub and note.reading.lines[block.start_line - 1].text.startswith("### ")):
            foreign.append(block.start_line)
    return foreign
