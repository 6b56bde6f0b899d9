"""What reading a note gives: blocks, the header of a session dump, the note.

Belongs here: the records and the closed set of block kinds.
Does not belong here: reading (``blocks``).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from recall_runtime.records import Annotations
from recall_runtime.text.lines import LineReading
from recall_runtime.vocabulary import Refusal

NO_ANNOTATIONS = Annotations()
Speaker = Literal["user", "assistant"]


class BlockKind(StrEnum):
    """What a block is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    BULLET = "bullet"
    QUOTE = "quote"
    TABLE_ROW = "table_row"
    TABLE_RULE = "table_rule"
    RULE = "rule"
    CODE = "code"
    COMMENT = "comment"
    FRONT_MATTER = "front_matter"
    MANAGED = "managed"
    SESSION_HEADER = "session_header"
    ENVELOPE = "envelope"
    CONFLICT_MARK = "conflict_mark"


# Blocks that can never hold a candidate, and why.
REFUSALS = {
    BlockKind.HEADING: Refusal.HEADING,
    BlockKind.TABLE_RULE: Refusal.TABLE_RULE,
    BlockKind.RULE: Refusal.RULE_LINE,
    BlockKind.CODE: Refusal.FENCED_CODE,
    BlockKind.COMMENT: Refusal.COMMENT,
    BlockKind.FRONT_MATTER: Refusal.FRONT_MATTER,
    BlockKind.MANAGED: Refusal.MANAGED_BLOCK,
    BlockKind.SESSION_HEADER: Refusal.SESSION_HEADER,
    BlockKind.ENVELOPE: Refusal.ENVELOPE,
    BlockKind.CONFLICT_MARK: Refusal.CONFLICT,
}


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive lines that are read together.

    ``text`` has no list sign, quote sign, task box or annotation carriers; its lines are joined by LF.
    ``refusal`` is set when nothing in the block may become a candidate; the text stays searchable all the same.
    """

    kind: BlockKind
    start_line: int
    end_line: int
    text: str
    heading_path: tuple[str, ...] = ()
    annotations: Annotations = NO_ANNOTATIONS
    refusal: Refusal | None = None
    speaker: Speaker | None = None
    sender: str | None = None  # id the envelope above the turn names; may only ever lower trust
    depth: int = 0  # of a list item: number of list items around it
    ancestors: tuple[str, ...] = ()  # texts of the list items around it, outermost first


@dataclass(frozen=True, slots=True)
class SessionDumpHeader:
    """Header of a note that OpenClaw's session hook wrote; names the transcript to look up, grants nothing."""

    session_key: str | None
    session_id: str | None
    source: str | None
    started: str | None  # as written, UTC


@dataclass(frozen=True, slots=True)
class Note:
    """A note as read. ``problems`` counts faults by kind; ``conflicted`` means an unresolved merge."""

    reading: LineReading
    blocks: tuple[Block, ...]
    problems: dict[str, int]
    conflicted: bool = False
    dump: SessionDumpHeader | None = None
