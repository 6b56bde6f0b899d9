"""What a later line of the same note has made out of date.

Belongs here: copies of a table that a later copy replaces, values that a later line corrects by naming both.
Does not belong here: struck text (``statements``), claims of other notes (``memory_assets.consolidation``).

Conservative on purpose: a table counts as a copy only below the same heading with the same head, and a value is dead
only when a line names it as the wrong one beside the right one. A line never retires a more trusted one.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from recall_runtime.notes.identity import normalise, pattern
from recall_runtime.notes.line_shapes import split_cells
from recall_runtime.notes.note_records import Block, BlockKind
from recall_runtime.vocabulary import OriginClass, worst_origin

_IN_PARENTHESES = re.compile(r"[(（][^)）]*[)）]")
_LONGEST = 200  # characters of a line that one value stands for
_SEVERAL = re.compile(r"[.!?][ \n]|[。！？].")
_NUMBER = r"(?<!\d)(\d{4,})(?!\d)"
# Values of four digits and more, so that a date, a clock or a count is never meant.
_OLD_THEN_NEW = re.compile(
    rf"\b(?:not|no longer|nicht|nicht mehr|no|не)\s+{_NUMBER},?\s*(?:but|sondern|sino|а)\s+{_NUMBER}"
    rf"|(?:不是|不再是)\s*{_NUMBER}\s*[,，]?\s*而?是\s*{_NUMBER}"
    rf"|{_NUMBER}\s*(?:ではなく|じゃなくて)\s*{_NUMBER}",
    re.IGNORECASE,
)

Trust = Callable[[Block], OriginClass | None]


@dataclass(slots=True)
class _Table:
    """The rows of one table by the masked form of their first cell: positions in the note."""

    rows: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def outdated(blocks: Sequence[Block], trust: Trust) -> frozenset[int]:
    """Return the positions in ``blocks`` of what a later block has replaced.

    Args:
        blocks: The blocks of one note, in order.
        trust: Class of a block; ``None`` when it may not replace anything.
    """
    pairs = [*_replaced_rows(blocks), *_corrected(blocks)]
    return frozenset(older for older, newer in pairs if _may_retire(trust, blocks[newer], blocks[older]))


def _may_retire(trust: Trust, newer: Block, older: Block) -> bool:
    mine = trust(newer)
    theirs = trust(older)
    return mine is not None and (theirs is None or worst_origin((mine, theirs)) is theirs)


def _replaced_rows(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield (older, newer) rows of copies of one table."""
    for copies in _tables(blocks).values():
        latest: dict[str, int] = {}
        for table in reversed(copies):
            for key, positions in table.rows.items():
                if len(positions) == 1 and key in latest:
                    yield positions[0], latest[key]
            for key, positions in table.rows.items():
                if len(positions) == 1:
                    latest.setdefault(key, positions[0])


def _tables(blocks: Sequence[Block]) -> dict[tuple[str, ...], list[_Table]]:
    """Return the tables of a note by heading (without what stands in parentheses) and head."""
    found: dict[tuple[str, ...], list[_Table]] = defaultdict(list)
    current: _Table | None = None
    for position, block in enumerate(blocks):
        if block.kind is BlockKind.TABLE_RULE:
            if "|" in block.text and any(sign.isalnum() for sign in block.text):
                heading = tuple(normalise(_IN_PARENTHESES.sub("", title)) for title in block.heading_path)
                current = _Table()
                found[(*heading, normalise(block.text))].append(current)
        elif block.kind is BlockKind.TABLE_ROW and current is not None:
            cells = split_cells(block.text)
            key = pattern(next((cell for cell in cells if cell.strip()), ""))
            if block.refusal is None and sum(sign.isalpha() for sign in key) > 1:
                current.rows[key].append(position)
        else:
            current = None
    return {key: tables for key, tables in found.items() if len(tables) > 1}


def _corrected(blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield (older, newer) where a line says that one value is wrong and names the right one."""
    corrections: list[tuple[int, str, str]] = []
    for position, block in enumerate(blocks):
        if block.refusal is None:
            for match in _OLD_THEN_NEW.finditer(block.text):
                wrong, right = (group for group in match.groups() if group)
                corrections.append((position, wrong, right))
    if not corrections:
        return
    holding: dict[str, list[int]] = defaultdict(list)
    for position, block in enumerate(blocks):
        if block.refusal is None and len(block.text) <= _LONGEST and not _SEVERAL.search(block.text):
            for value in set(re.findall(_NUMBER, block.text)):
                holding[value].append(position)
    for newer, wrong, right in corrections:
        for older in holding.get(wrong, ()):
            if older < newer and older not in holding.get(right, ()):
                yield older, newer
