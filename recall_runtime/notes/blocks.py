"""A note as blocks: which lines belong together, what they are, and which can never hold a statement.

Belongs here: the line structure of Markdown notes and session dumps.
Does not belong here: sentences (``statements``), what a sentence is worth (``hygiene``), trust (``provenance``).

Every line that is not blank belongs to exactly one block, in order; nothing is swallowed. An opener (fence, comment,
front matter, managed block, conflict) owns further lines only when its end is there, with one exception: a fence
without end reaches to the next turn of a dump, to a heading below a blank line, or to the end of the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from recall_runtime.notes.annotations import parse_annotations, strip_annotations
from recall_runtime.notes.line_shapes import (
    ATX,
    BOLD_LABEL,
    CONFLICT_BASE,
    CONFLICT_END,
    CONFLICT_MIDDLE,
    CONFLICT_START,
    FRONT_END,
    FRONT_RULE,
    LIST_ITEM,
    MAX_FRONT_MATTER_LINES,
    MIN_WRAPPED,
    QUOTE,
    RULE,
    SETEXT,
    TAB,
    clean,
    ends_statement,
    is_front_matter,
    is_table_rule,
    is_well_formed,
    split_cells,
    unlisted,
    width,
)
from recall_runtime.notes.markers import (
    DUMP_FIELD,
    DUMP_SUMMARY,
    DUMP_TITLE,
    ENVELOPE_TITLE,
    INJECTED_TAGS,
    TURN,
    TURN_TIME,
    Fence,
    marker_content,
)
from recall_runtime.notes.note_records import (
    NO_ANNOTATIONS,
    REFUSALS,
    Block,
    BlockKind,
    Note,
    SessionDumpHeader,
    Speaker,
)
from recall_runtime.notes.survey import Survey, next_of, survey, turn_lines
from recall_runtime.paths import PathKind, kind_of
from recall_runtime.text.lines import REPLACEMENT, LineReading, SourceLine, read_lines, without_controls
from recall_runtime.text.redaction import KEY_START
from recall_runtime.vocabulary import Refusal

_SENDER = re.compile(r'"(?:sender_id|id)":\s*"([^"\n]{1,200})"')
_OPENING_TAGS = frozenset(f"<{name}>" for name in INJECTED_TAGS)


def read_note(data: bytes, *, path: str = "") -> Note:
    """Read the bytes of a note. Never raises; linear in ``len(data)``.

    Args:
        data: the file.
        path: workspace-relative path; decides whether triggers and importance are read (curated files only).
    """
    reading = read_lines(data)
    if reading.undecodable:
        return Note(reading, (), {"undecodable": 1})
    texts = [line.text for line in reading.lines]
    curated = kind_of(path) in (PathKind.MEMORY, PathKind.USER)
    return _Reader(reading, curated, texts, survey(texts)).read()


@dataclass(slots=True)
class _Item:
    """An open list item: columns of its sign and of its text."""

    indent: int
    content: int
    text: str


@dataclass(slots=True)
class _Reader:
    """One pass over the lines of a note. ``at`` is the 0-based index of the next line."""

    reading: LineReading
    curated: bool
    texts: list[str]
    ahead: Survey
    at: int = 0
    blocks: list[Block] = field(default_factory=list)
    problems: dict[str, int] = field(default_factory=dict)
    headings: list[tuple[int, str]] = field(default_factory=list)
    titles: tuple[str, ...] = ()
    items: list[_Item] = field(default_factory=list)
    after_blank: bool = True
    dump: SessionDumpHeader | None = None
    speaker: Speaker | None = None
    sender: str | None = None
    thought: bool = False
    never_closed: dict[str, tuple[int, int]] = field(default_factory=dict)
    conflict_end: int = -1

    def read(self) -> Note:
        if self.ahead.stray:
            self.problems["stray_markers"] = len(self.ahead.stray)
        if self.ahead.conflicts:
            self.problems["conflicts"] = len(self.ahead.conflicts)
        self._front_matter()
        self._dump_header()
        if self.dump:
            self.ahead.turns = turn_lines(self.texts)
        while self.at < len(self.texts):
            self._line()
        if self.reading.faults:
            self.problems["undecodable_lines"] = len(self.reading.faulty_lines)
        return Note(self.reading, tuple(self.blocks), self.problems, bool(self.ahead.conflicts), self.dump)

    # -- the top of the file ---------------------------------------------------------------------------------

    def _front_matter(self) -> None:
        if not self.texts or not FRONT_RULE.fullmatch(self.texts[0]):
            return
        for number in range(1, min(len(self.texts), MAX_FRONT_MATTER_LINES)):
            if FRONT_END.fullmatch(self.texts[number]):
                inside = self.texts[1:number]
                if is_front_matter(inside):
                    self._add(BlockKind.FRONT_MATTER, 0, number)
                    self.at = number + 1
                    if not is_well_formed(inside):
                        self.problems["broken_front_matter"] = 1
                return

    def _dump_header(self) -> None:
        start = self.at
        while start < len(self.texts) and not self.texts[start].strip():
            start += 1
        title = DUMP_TITLE.fullmatch(self.texts[start]) if start < len(self.texts) else None
        if title is None:
            return
        fields: dict[str, str] = {}
        number = start + 1
        while number < len(self.texts) and number < start + 8:
            text = self.texts[number]
            found = DUMP_FIELD.fullmatch(text)
            if found:
                fields[found[1]] = found[2]
            elif text.strip():
                break
            number += 1
        if not fields:
            return
        last = max(n for n in range(start, number) if self.texts[n].strip())
        for n in range(start, last + 1):
            if self.texts[n].strip():
                self._add(BlockKind.SESSION_HEADER, n, n)
        self.dump = SessionDumpHeader(
            fields.get("Session Key"), fields.get("Session ID"), fields.get("Source"), title[1]
        )
        self.at = last + 1

    # -- one line --------------------------------------------------------------------------------------------

    def _line(self) -> None:
        text = self.texts[self.at]
        if not text.strip():
            self.at += 1
            self.after_blank = True
            self.thought = False
            return
        if not self._structure(text):
            self._plain(text)
        self.after_blank = False

    def _structure(self, text: str) -> bool:
        """Try everything that is no prose, in the order of what encloses what."""
        return (
            self._conflict(text)
            or self._managed_block()
            or self._turn(text)
            or self._fence(text)
            or self._comment(text)
            or self._heading(text)
            or self._rule(text)
            or self._envelope(text)
            or self._injected(text)
            or self._key_block(text)
            or self._details(text)
            or self._list_item(text)
            or self._indented_code(text)
            or self._table(text)
            or self._quote(text)
        )

    def _conflict(self, text: str) -> bool:
        if self.at in self.ahead.conflicts:
            self.conflict_end = self.ahead.conflicts[self.at]
        elif self.at > self.conflict_end:
            return False
        is_mark = (
            CONFLICT_START.fullmatch(text)
            or CONFLICT_BASE.fullmatch(text)
            or CONFLICT_MIDDLE.fullmatch(text)
            or CONFLICT_END.fullmatch(text)
        )
        if not is_mark:
            return False
        self.items.clear()
        self._single(BlockKind.CONFLICT_MARK)
        return True

    def _managed_block(self) -> bool:
        if self.at in self.ahead.managed:
            end = self.ahead.managed[self.at]
            self._add(BlockKind.MANAGED, self.at, end)
            self.at = end + 1
            self.items.clear()
            return True
        if self.at in self.ahead.stray:
            self._single(BlockKind.COMMENT)
            return True
        return False

    def _turn(self, text: str) -> bool:
        match = TURN.match(text) if self.dump else None
        if match is None:
            return False
        self.items.clear()
        self.speaker = "user" if match[1] == "user" else "assistant"
        self.sender, self.thought = None, False
        rest = text[match.end() :]
        if self._envelope(rest):
            return True
        if self.speaker == "assistant" and rest.strip() in ("thought", "thinking", "<think>", "<thinking>"):
            self.thought = True
        stamp = TURN_TIME.match(rest)
        rest = rest[stamp.end() :] if stamp else rest
        if "<details>" in rest and self._details(rest):
            return True
        self._paragraph(rest)
        return True

    def _fence(self, text: str) -> bool:
        fence = Fence()
        if not fence.covers(text):
            return False
        start = self.at
        end = self._fence_end(fence, start)
        self._add(BlockKind.CODE, start, end)
        self.at = end + 1
        if not text[:1].isspace():
            self.items.clear()
        return True

    def _fence_end(self, fence: Fence, start: int) -> int:
        """Return the last line of the fence that opens at ``start``; an unclosed one ends where prose must resume."""
        limit = next_of(self.ahead.turns, start) or len(self.texts)
        if not self._is_known_unclosed(fence, limit):
            for number in range(start + 1, limit):
                fence.covers(self.texts[number])
                if not fence.open:
                    return number
            self.never_closed[fence.sign] = (limit, fence.length)
        self.problems["unclosed_fences"] = self.problems.get("unclosed_fences", 0) + 1
        resume = next_of(self.ahead.resumes, start)
        return min(limit, resume or limit) - 1

    def _is_known_unclosed(self, fence: Fence, limit: int) -> bool:
        """Whether a shorter fence of the same sign already reached ``limit`` unclosed: looking again is no use."""
        known = self.never_closed.get(fence.sign)
        return known is not None and known[0] == limit and known[1] <= fence.length

    def _comment(self, text: str) -> bool:
        stripped = text.lstrip()
        if not stripped.startswith("<!--") or len(text) - len(stripped) > 3:
            return False
        closed = stripped.find("-->", 4)
        if closed >= 0:
            if marker_content(text) is None and strip_annotations(text).strip():
                return False
            self._single(BlockKind.COMMENT)
            return True
        end = next_of(self.ahead.comment_ends, self.at)
        if end is None or "<!--" in self.texts[end].partition("-->")[0] or self._comment_is_cut(end):
            self.problems["unclosed_comments"] = self.problems.get("unclosed_comments", 0) + 1
            self._single(BlockKind.COMMENT)
            return True
        self._add(BlockKind.COMMENT, self.at, end)
        self.at = end + 1
        return True

    def _comment_is_cut(self, end: int) -> bool:
        """Whether another opener or a turn comes before the end, so that the end belongs to something else."""
        return self.ahead.turn_between(self.at, end) or any("<!--" in text for text in self.texts[self.at + 1 : end])

    def _heading(self, text: str) -> bool:
        match = ATX.fullmatch(text) if "#" in text[:10] else None
        if match is None:
            return False
        self.items.clear()
        title = strip_annotations(match[2] or "").strip()
        self._set_heading(len(match[1]), title)
        is_header = self.dump is not None and DUMP_SUMMARY.fullmatch(text) is not None
        self._single(BlockKind.SESSION_HEADER if is_header else BlockKind.HEADING, title)
        return True

    def _set_heading(self, level: int, title: str) -> None:
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        self.headings.append((level, title))
        self.titles = tuple(heading for _, heading in self.headings)  # shared by all blocks below

    def _rule(self, text: str) -> bool:
        if not RULE.fullmatch(text):
            return False
        self.items.clear()
        self._single(BlockKind.RULE)
        return True

    def _envelope(self, text: str) -> bool:
        if not ENVELOPE_TITLE.fullmatch(text):
            return False
        start = self.at
        end = start
        if start + 1 < len(self.texts):
            fence = Fence()
            if fence.covers(self.texts[start + 1]):
                end = self._fence_end(fence, start + 1)
                found = _SENDER.search("\n".join(self.texts[start + 2 : end]))
                if found and not self.texts[start].lstrip().startswith("Replied"):
                    self.sender = found[1]
        self._add(BlockKind.ENVELOPE, start, end)
        self.at = end + 1
        return True

    def _injected(self, text: str) -> bool:
        """A block our recall lanes put in: from its opening tag to its closing tag, both alone on their lines."""
        tag = text.strip()
        for name in INJECTED_TAGS:
            if tag == f"<{name}>":
                end = next_of(self.ahead.tag_ends[name], self.at)
                if end is None or self.ahead.turn_between(self.at, end):
                    return False
                self._add(BlockKind.ENVELOPE, self.at, end)
                self.at = end + 1
                return True
        return False

    def _key_block(self, text: str) -> bool:
        if "-----BEGIN" not in text or not KEY_START.search(text):
            return False
        end = next_of(self.ahead.key_ends, self.at - 1)
        blank = next_of(self.ahead.blanks, self.at)
        if end is None or (blank is not None and blank < end):
            return False
        self._add(BlockKind.PARAGRAPH, self.at, end, refusal=Refusal.SECRET_ONLY)
        self.at = end + 1
        return True

    def _details(self, text: str) -> bool:
        if "<details>" not in text or "</details>" in text:
            return False
        end = next_of(self.ahead.details_ends, self.at)
        if end is None or self.ahead.turn_between(self.at, end):
            return False
        self._add(BlockKind.CODE, self.at, end)
        self.at = end + 1
        return True

    def _list_item(self, text: str) -> bool:
        match = LIST_ITEM.fullmatch(text)
        if match is None:
            return False
        indent = width(match[1])
        while self.items and self.items[-1].indent >= indent:
            self.items.pop()
        if indent >= TAB and not self.items and self.after_blank:
            return False
        ancestors = tuple(item.text for item in self.items)
        depth = len(self.items)
        content = match[3] or ""
        if content.startswith("|") and self.at + 1 < len(self.texts) and is_table_rule(self.texts[self.at + 1]):
            self._single(BlockKind.TABLE_RULE, content.strip())
            return True
        start = self.at
        item = _Item(indent, indent + len(match[2]) + 1, "")
        self.items.append(item)
        self.at += 1
        lines = [content, *self._continuation(content)] if content.strip() else [content]
        item.text = clean(lines[0])
        refusal = None if content.strip() else Refusal.EMPTY
        self._add(BlockKind.BULLET, start, self.at - 1, lines, refusal=refusal, depth=depth, ancestors=ancestors)
        return True

    def _continuation(self, first: str) -> Iterator[str]:
        """Yield the lines that continue a list item: directly below it, and no structure of their own.

        A line that is not indented continues only a line that was long enough to be wrapped and ended no statement.
        """
        previous = first
        while self.at < len(self.texts):
            text = self.texts[self.at]
            if not text.strip() or self._starts_something(text):
                return
            if not text[:1].isspace() and (len(previous) < MIN_WRAPPED or ends_statement(previous)):
                return
            yield text.strip()
            previous = text
            self.at += 1

    def _starts_something(self, text: str) -> bool:
        stripped = text.lstrip()
        if self.at in self.ahead.managed or self.at in self.ahead.stray or self.at in self.ahead.conflicts:
            return True
        if self.at <= self.conflict_end and (
            CONFLICT_MIDDLE.fullmatch(text) or text.startswith((">>>>>>>", "|||||||"))
        ):
            return True
        if stripped.startswith(("#", ">", "|", "```", "~~~", "<!--", "-----BEGIN", "<details>")):
            return not stripped.startswith("#") or ATX.fullmatch(text) is not None
        if self.dump and TURN.match(text):
            return True
        return bool(
            LIST_ITEM.fullmatch(text)
            or RULE.fullmatch(text)
            or ENVELOPE_TITLE.fullmatch(text)
            or (stripped.startswith("<") and stripped.rstrip() in _OPENING_TAGS)
        )

    def _indented_code(self, text: str) -> bool:
        if width(text[: len(text) - len(text.lstrip())]) < TAB or not self.after_blank:
            return False
        if self.items:
            return False
        start = self.at
        end = start
        number = start
        while number < len(self.texts):
            line = self.texts[number]
            if line.strip() and width(line[: len(line) - len(line.lstrip())]) < TAB:
                break
            end = number if line.strip() else end
            number += 1
        self._add(BlockKind.CODE, start, end)
        self.at = end + 1
        return True

    def _table(self, text: str) -> bool:
        if "|" not in text:
            return False
        has_rule_below = self.at + 1 < len(self.texts) and is_table_rule(self.texts[self.at + 1])
        if not text.lstrip().startswith("|") and not (has_rule_below and len(split_cells(text)) > 1):
            return False
        self._table_line(text, is_header=has_rule_below)
        while self.at < len(self.texts):
            line = self.texts[self.at]
            if "|" not in line or not (line.lstrip().startswith("|") or has_rule_below):
                break
            if self._starts_something(line) and not line.lstrip().startswith("|"):
                break
            below = self.at + 1 < len(self.texts) and is_table_rule(self.texts[self.at + 1])
            self._table_line(line, is_header=below)
        return True

    def _table_line(self, text: str, *, is_header: bool) -> None:
        if is_table_rule(text):
            self._single(BlockKind.TABLE_RULE)
        elif is_header:
            self._single(BlockKind.TABLE_RULE, text.strip())
        else:
            self._single(BlockKind.TABLE_ROW, text.strip())

    def _quote(self, text: str) -> bool:
        match = QUOTE.fullmatch(text)
        if match is None:
            return False
        start = self.at
        lines = [unlisted(match[2])]
        self.at += 1
        while self.at < len(self.texts):
            more = QUOTE.fullmatch(self.texts[self.at])
            if more is None or ends_statement(lines[-1]) or LIST_ITEM.fullmatch(more[2]) or not more[2].strip():
                break
            lines.append(more[2])
            self.at += 1
        refusal = None if any(line.strip() for line in lines) else Refusal.EMPTY
        self._add(BlockKind.QUOTE, start, self.at - 1, lines, refusal=refusal)
        return True

    def _plain(self, text: str) -> None:
        setext = self.at + 1 < len(self.texts) and SETEXT.fullmatch(self.texts[self.at + 1])
        if setext and (self.at + 1) > self.conflict_end:
            title = strip_annotations(text).strip()
            self.items.clear()
            self._set_heading(1, title)
            self._add(BlockKind.HEADING, self.at, self.at + 1, [title])
            self.at += 2
            return
        indent = width(text[: len(text) - len(text.lstrip())])
        while self.items and self.items[-1].indent >= indent:
            self.items.pop()
        self._paragraph(text)

    def _paragraph(self, first: str) -> None:
        """A paragraph ends where a line ends a statement, so that each line of a log is a block of its own."""
        start = self.at
        lines = [first.strip()]
        self.at += 1
        while self.at < len(self.texts):
            text = self.texts[self.at]
            if not text.strip() or self._starts_something(text) or ends_statement(lines[-1]):
                break
            if BOLD_LABEL.match(text) or (self.at + 1 < len(self.texts) and SETEXT.fullmatch(self.texts[self.at + 1])):
                break
            lines.append(text.strip())
            self.at += 1
        inside = tuple(item.text for item in self.items)
        refusal = Refusal.CONTROL_TOKEN if self.thought else None
        self._add(BlockKind.PARAGRAPH, start, self.at - 1, lines, refusal=refusal, depth=len(inside), ancestors=inside)

    # -- writing blocks --------------------------------------------------------------------------------------

    def _single(self, kind: BlockKind, text: str | None = None) -> None:
        self._add(kind, self.at, self.at, None if text is None else [text])
        self.at += 1

    def _add(
        self,
        kind: BlockKind,
        start: int,
        end: int,
        lines: Sequence[str] | None = None,
        *,
        refusal: Refusal | None = None,
        depth: int = 0,
        ancestors: tuple[str, ...] = (),
    ) -> None:
        raw = self.texts[start : end + 1]
        refusal = refusal or REFUSALS.get(kind)
        plain = refusal is None or kind in (BlockKind.HEADING, BlockKind.TABLE_RULE, BlockKind.PARAGRAPH)
        source = raw if lines is None else lines
        text = without_controls("\n".join(clean(line) if plain else line for line in source).strip("\n"))
        if start <= self.conflict_end:
            refusal = Refusal.CONFLICT
        self.blocks.append(
            Block(
                kind=kind,
                start_line=start + 1,
                end_line=end + 1,
                text=text,
                heading_path=self._path(kind),
                annotations=parse_annotations(raw, curated=self.curated)
                if plain and "<!--" in "".join(raw)
                else NO_ANNOTATIONS,
                refusal=refusal,
                speaker=self.speaker if self.dump else None,
                sender=self.sender if self.dump else None,
                depth=depth,
                ancestors=ancestors,
            )
        )

    def _path(self, kind: BlockKind) -> tuple[str, ...]:
        return self.titles[:-1] if kind is BlockKind.HEADING else self.titles


def source_bytes(data: bytes, reading: LineReading, start_line: int, end_line: int) -> bytes:
    """Return the exact bytes of the lines, line ends included."""
    first: SourceLine = reading.lines[start_line - 1]
    return data[first.start : reading.lines[end_line - 1].end]


def holds_fault(text: str) -> bool:
    """Return whether ``text`` holds the sign that stands for bytes we could not decode."""
    return REPLACEMENT in text


__all__ = [
    "Block",
    "BlockKind",
    "Note",
    "SessionDumpHeader",
    "holds_fault",
    "read_note",
    "source_bytes",
    "split_cells",
]
