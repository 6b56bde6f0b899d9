"""Shapes of single lines: what a line is by itself, without the lines around it.

Belongs here: patterns of Markdown lines, cells of a table row, cleaning of a line, front matter and conflict marks.
Does not belong here: which lines belong together (``blocks``), markers (``markers``).
"""

import re
from collections.abc import Sequence

from recall_runtime.notes.annotations import mask_code, strip_annotations
from recall_runtime.notes.markers import CONTROL_TOKENS
from recall_runtime.text.patterns import lazily

MAX_FRONT_MATTER_LINES = 200
MIN_WRAPPED = 50  # code points; a shorter line was ended by its writer, not wrapped by an editor
RULE = lazily(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
ATX = lazily(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
LIST_ITEM = lazily(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|[ \t]*)", re.DOTALL)
QUOTE = lazily(r" {0,3}((?:>[ \t]?)+)(.*)", re.DOTALL)
TASK = lazily(r"\[[ xX~/-]\][ \t]+")
TABLE_RULE = lazily(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
SETEXT = lazily(r" {0,3}=+[ \t]*")
CONFLICT_START = lazily(r"<{7}(?: .*)?")
CONFLICT_BASE = lazily(r"\|{7}(?: .*)?")
CONFLICT_MIDDLE = lazily(r"={7}")
CONFLICT_END = lazily(r">{7}(?: .*)?")
KEY_LINE = lazily(r"[\w][\w .-]{0,60}:(?:[ \t].*)?", re.DOTALL)
FRONT_RULE = lazily(r"---[ \t]*")
FRONT_END = lazily(r"(?:---|\.\.\.)[ \t]*")
ATTRIBUTES = lazily(r"[ \t]*\{[\w-]{1,40}:[^{}\n]{0,400}\}[ \t]*$")
BOLD_LABEL = lazily(r"\*\*[^*\n]{1,60}\*\*[ \t]*[:：]|\*\*[^*\n]{1,60}[:：]\*\*")
SENTENCE_END = lazily(r"[.!?…。！？：:][\"'”’」』）)*_`\]]*$")
TAB = 4


def split_cells(row: str) -> list[str]:
    """Return the trimmed cells of a table row; pipes that are escaped or inside code part nothing."""
    masked = mask_code(row)
    cells: list[str] = []
    start = 0
    for position, sign in enumerate(masked):
        if sign == "|" and not (position and masked[position - 1] == "\\"):
            cells.append(row[start:position])
            start = position + 1
    cells.append(row[start:])
    if cells and not cells[0].strip():
        cells.pop(0)
    if cells and not cells[-1].strip():
        cells.pop()
    return [cell.strip().replace("\\|", "|") for cell in cells]


def clean(line: str) -> str:
    """Return a line without comments, task box and trailing attributes, and without blanks round it."""
    line = strip_annotations(line).strip()
    box = TASK.match(line)
    if box:
        line = line[box.end() :]
    if line.endswith("}"):
        line = ATTRIBUTES.sub("", line)
    return line


def unlisted(text: str) -> str:
    """Return the text of a list item without its sign, other text as it is."""
    match = LIST_ITEM.fullmatch(text)
    return match[3] or "" if match else text


def width(blanks: str) -> int:
    """Return the columns that leading blanks take; a tab reaches the next multiple of four."""
    width = 0
    for sign in blanks:
        width = width + TAB - width % TAB if sign == "\t" else width + 1
    return width


def is_table_rule(text: str) -> bool:
    """Return whether the line parts the head of a table from its rows."""
    return "-" in text and "|" in text and TABLE_RULE.fullmatch(text) is not None


def ends_statement(line: str) -> bool:
    """Return whether the line ends a statement: a sentence end, a colon, or a control token."""
    plain = strip_annotations(line).rstrip()
    return SENTENCE_END.search(plain[-12:]) is not None or plain.endswith(CONTROL_TOKENS)


def is_front_matter(inside: Sequence[str]) -> bool:
    """Whether the lines between two rules are keys and their values, starting with a key."""
    filled = [text for text in inside if text.strip()]
    if not filled or not KEY_LINE.fullmatch(filled[0]):
        return False
    return all(KEY_LINE.fullmatch(text) or text[:1].isspace() or text.startswith(("- ", "# ")) for text in filled)


def is_well_formed(inside: Sequence[str]) -> bool:
    """Whether quotes and brackets of the top-level values close on their lines (enough to say: broken)."""
    for text in inside:
        value = text.partition(":")[2].strip() if not text[:1].isspace() else ""
        if value[:1] in "\"'" and value and (len(value) < 2 or value[-1] != value[0]):
            return False
        if value[:1] in "[{" and value and value[-1] not in "]}":
            return False
    return True


def conflicts(texts: Sequence[str]) -> dict[int, int]:
    """Return start and end index of each conflict whose marks are a matching set."""
    found: dict[int, int] = {}
    start = middle = -1
    for number, text in enumerate(texts):
        if text.startswith("<<<<<<<") and CONFLICT_START.fullmatch(text):
            start, middle = number, -1
        elif start >= 0 and middle < 0 and CONFLICT_MIDDLE.fullmatch(text):
            middle = number
        elif middle >= 0 and text.startswith(">>>>>>>") and CONFLICT_END.fullmatch(text):
            found[start] = number
            start = middle = -1
    return found
