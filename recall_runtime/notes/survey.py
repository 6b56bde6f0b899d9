"""Looking ahead in a note, once, so that reading stays one pass.

Belongs here: where comments, details, key blocks and injected blocks end, where turns and blank lines stand, which
conflicts and managed blocks are whole.
Does not belong here: what the lines become (``blocks``).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from recall_runtime.notes.line_shapes import ATX, conflicts
from recall_runtime.notes.markers import INJECTED_TAGS, TURN, managed_blocks
from recall_runtime.text.redaction import KEY_END


@dataclass(slots=True)
class Survey:
    """Ascending 0-based line indices of what an opener may look for; ``turns`` is filled for session dumps only."""

    comment_ends: list[int]
    details_ends: list[int]
    key_ends: list[int]
    blanks: list[int]
    resumes: list[int]  # headings below a blank line, where prose resumes after a fence without end
    tag_ends: dict[str, list[int]]
    conflicts: dict[int, int]  # start to end
    managed: dict[int, int]  # start to end
    stray: frozenset[int]
    turns: list[int] = field(default_factory=list)

    def turn_between(self, start: int, end: int) -> bool:
        """Whether a turn begins after ``start`` and before ``end``."""
        turn = next_of(self.turns, start)
        return turn is not None and turn < end


def survey(texts: Sequence[str]) -> Survey:
    """Return what the lines of a note hold for a look ahead; linear in their size."""
    blanks = [number for number, text in enumerate(texts) if not text.strip()]
    blocks = managed_blocks(texts)
    return Survey(
        comment_ends=[number for number, text in enumerate(texts) if "-->" in text],
        details_ends=[number for number, text in enumerate(texts) if "</details>" in text],
        key_ends=[number for number, text in enumerate(texts) if "-----END" in text and KEY_END.search(text)],
        blanks=blanks,
        resumes=[number + 1 for number in blanks if number + 1 < len(texts) and _resumes(texts[number + 1])],
        tag_ends={name: _alone(texts, f"</{name}>") for name in INJECTED_TAGS},
        conflicts=conflicts(texts),
        managed={span.start_line - 1: span.end_line - 1 for span in blocks.spans},
        stray=frozenset(number - 1 for number in blocks.stray_lines),
    )


def turn_lines(texts: Sequence[str]) -> list[int]:
    """Return the lines on which a turn of a session dump begins."""
    return [number for number, text in enumerate(texts) if TURN.match(text)]


def next_of(numbers: Sequence[int], after: int) -> int | None:
    """Return the first of the ascending ``numbers`` that is greater than ``after``."""
    position = bisect_right(numbers, after)
    return numbers[position] if position < len(numbers) else None


def _resumes(text: str) -> bool:
    return text.startswith("##") and ATX.fullmatch(text) is not None


def _alone(texts: Sequence[str], tag: str) -> list[int]:
    return [number for number, text in enumerate(texts) if tag in text and text.strip() == tag]
