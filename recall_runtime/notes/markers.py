"""Every marker we read and write, in one place: the strings of OpenClaw and of our own recall lanes.

Belongs here: marker constants and patterns, reading and replacing managed blocks.
Does not belong here: what stands inside a block (``memory_assets.review``), blocks of a note (``blocks``).

A marker counts only when it stands alone on its line, outside code. A managed block is a start marker and the next
marker after it, when that is its own end marker; anything else is a stray marker and owns no other line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.text.patterns import lazily

PROMOTED_HEADING = "Promoted From Short-Term Memory"
CONSOLIDATED_HEADING = "Consolidated Memory"
GLOBAL_HEADING = "Global"
PROJECT_HEADING = "Project: "
MEMORY_TITLE = "# Long-Term Memory"
DIARY_TITLE = "# Dream Diary"
CONSOLIDATION_HISTORY_HEADING = "## Memory Consolidation History"

PROMOTION_PREFIX = "openclaw-memory-promotion:"
LINEAGE_PREFIX = "openclaw-memory-lineage:"
ENTRY_KEY_PREFIX = "memory:claim:"  # of the entry of a claim, whoever wrote it: a request and a sweep meet by it

# What our recall lanes put into a turn (openclaw-algorithms 33). The tags stand alone on their lines.
ACTIVE_MEMORY_TAG = "active_memory_plugin"
STANDING_INTENTS_TAG = "standing_intents"
RELEVANT_MEMORIES_TAG = "relevant-memories"
INJECTED_TAGS = (ACTIVE_MEMORY_TAG, STANDING_INTENTS_TAG, RELEVANT_MEMORIES_TAG)
INTERNAL_CONTEXT_START = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
INTERNAL_CONTEXT_END = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
EXTERNAL_CONTENT = lazily(r"<<<(END_)?EXTERNAL_UNTRUSTED_CONTENT\b[^>\n]{0,200}>>>")

# What a session dump or a message carries that is not the speaker's own words.
ENVELOPE_TITLE = lazily(r"[A-Z][\w ,'/()-]{2,60} \((?:untrusted|untrusted metadata)[^()\n]{0,60}\):[ \t]*")
TURN = lazily(r"(user|assistant):(?:[ \t]+|$)")
TURN_TIME = lazily(
    r"\[(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: [A-Z][A-Za-z0-9+:-]{1,9})?\][ \t]*"
)
DUMP_TITLE = lazily(r"# Session: (\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?)(?: (UTC))?[ \t]*")
DUMP_FIELD = lazily(r"- \*\*(Session Key|Session ID|Source)\*\*: *(.*?)[ \t]*")
DUMP_SUMMARY = lazily(r"## Conversation Summary[ \t]*")

CONTROL_TOKENS = ("NO_REPLY", "HEARTBEAT_OK", "ANNOUNCE_SKIP", "REPLY_SKIP")

_MARKER_LINE = lazily(r" {0,3}<!--[ \t]*(.*?)[ \t]*-->[ \t]*")
_MANAGED = lazily(r"openclaw:dreaming:(light|rem|deep|diary):(start|end)")
_FENCE = lazily(r"[ \t]*(`{3,}|~{3,})([^\n]*)")
_HEADING = lazily(r" {0,3}#{1,6}(?:[ \t]|$)")
GENERATED_SECTION = lazily(rf"(?:{PROMOTED_HEADING}|{CONSOLIDATED_HEADING}) \((\d{{4}}-\d{{2}}-\d{{2}})\)")


class ManagedBlock(StrEnum):
    """The blocks a sweep writes into notes and the diary."""

    LIGHT = "light"
    REM = "rem"
    DEEP = "deep"
    DIARY = "diary"


BLOCK_HEADINGS = {
    ManagedBlock.LIGHT: "## Light Sleep",
    ManagedBlock.REM: "## REM Sleep",
    ManagedBlock.DEEP: "## Deep Sleep",
    ManagedBlock.DIARY: None,  # the diary stands below the title of its file
}


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A managed block: lines of its markers, both included."""

    name: ManagedBlock
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class ManagedBlocks:
    """Well-formed blocks of a file and the lines of markers that pair with nothing."""

    spans: tuple[BlockSpan, ...]
    stray_lines: tuple[int, ...]


def start_marker(name: ManagedBlock) -> str:
    """Return the line that opens the block."""
    return f"<!-- openclaw:dreaming:{name}:start -->"


def end_marker(name: ManagedBlock) -> str:
    """Return the line that closes the block."""
    return f"<!-- openclaw:dreaming:{name}:end -->"


def entry_key_of(claim_id: str) -> str:
    """Return the key of the entry that states a claim."""
    return ENTRY_KEY_PREFIX + claim_id


def promotion_marker(entry_key: str) -> str:
    """Return the line above a promoted entry."""
    return f"<!-- {PROMOTION_PREFIX}{_inside_comment(entry_key)} -->"


def lineage_marker(lineage_key: str) -> str:
    """Return the line above the promotion marker of an entry with a lineage."""
    return f"<!-- {LINEAGE_PREFIX}{_inside_comment(lineage_key)} -->"


def marker_content(line: str) -> str | None:
    """Return what stands inside a comment that is alone on its line, else ``None``."""
    match = _MARKER_LINE.fullmatch(line)
    if match is None or "-->" in match[1] or "<!--" in match[1]:
        return None
    return match[1]


def promotion_key(line: str) -> str | None:
    """Return the entry key of a promotion marker line, else ``None``."""
    return _prefixed(line, PROMOTION_PREFIX)


def lineage_key(line: str) -> str | None:
    """Return the lineage key of a lineage marker line, else ``None``."""
    return _prefixed(line, LINEAGE_PREFIX)


def managed_marker(line: str) -> tuple[ManagedBlock, bool] | None:
    """Return the block a marker line names and whether it opens it, else ``None``."""
    content = marker_content(line)
    match = _MANAGED.fullmatch(content) if content else None
    return (ManagedBlock(match[1]), match[2] == "start") if match else None


def managed_blocks(lines: Sequence[str]) -> ManagedBlocks:
    """Return the managed blocks of a file given as lines without line ends; linear in the number of lines.

    A start marker whose next marker is not its own end is stray: the lines after it stay what they are.
    """
    markers = list(_markers(lines))
    spans: list[BlockSpan] = []
    stray: list[int] = []
    position = 0
    while position < len(markers):
        number, name, opens = markers[position]
        following = markers[position + 1] if position + 1 < len(markers) else None
        if opens and following and following[1] == name and not following[2]:
            spans.append(BlockSpan(name, number, following[0]))
            position += 2
            continue
        stray.append(number)
        position += 1
    return ManagedBlocks(tuple(spans), tuple(stray))


def block_body(data: bytes, name: ManagedBlock) -> str | None:
    """Return what stands inside the first well-formed block ``name`` of a file, LF line ends, else ``None``."""
    parts, lines = _split(data)
    for span in managed_blocks(lines).spans:
        if span.name == name:
            body = b"".join(parts[span.start_line : span.end_line - 1])
            return body.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return None


def replace_block(data: bytes, name: ManagedBlock, body: str) -> bytes:
    """Return the file with the body of block ``name`` replaced; every byte outside the block stays.

    The first well-formed block is taken; without one a new block is appended after a blank line, below its heading.
    Stray markers are left where they are and are never paired with ours. The file's own line end is used.
    """
    parts, lines = _split(data)
    newline = b"\r\n" if sum(part.endswith(b"\r\n") for part in parts) * 2 > len(parts) else b"\n"
    inside = _encode(body, newline)
    for span in managed_blocks(lines).spans:
        if span.name == name:
            return b"".join(parts[: span.start_line]) + inside + b"".join(parts[span.end_line - 1 :])
    heading = BLOCK_HEADINGS[name]
    block = _encode(f"{heading}\n" if heading else "", newline) + _encode(start_marker(name), newline)
    block += inside + _encode(end_marker(name), newline)
    if not data.strip():
        return data + block
    gap = b"" if data.endswith(b"\n") else newline
    return data + gap + newline + block


def _encode(text: str, newline: bytes) -> bytes:
    if not text:
        return b""
    text = text.replace("\r\n", "\n").removesuffix("\n") + "\n"
    return text.encode("utf-8", errors="replace").replace(b"\n", newline)


def _split(data: bytes) -> tuple[list[bytes], list[str]]:
    parts = re.findall(rb"[^\n]*\n|[^\n]+", data)
    lines = [part.decode("utf-8", errors="replace").removesuffix("\n").removesuffix("\r") for part in parts]
    if lines:
        lines[0] = lines[0].removeprefix("\ufeff")
    return parts, lines


def _markers(lines: Sequence[str]) -> Iterator[tuple[int, ManagedBlock, bool]]:
    """Yield line number, name and side of each marker outside closed fences; a fence without end hides nothing."""
    inside = closed_fences(lines)
    for number, line in enumerate(lines, start=1):
        if "openclaw:dreaming" in line and number not in inside and (marker := managed_marker(line)):
            yield number, *marker


def closed_fences(lines: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the lines that stand inside a code fence that is closed, its marks included."""
    inside: set[int] = set()
    unclosed: dict[str, int] = {}
    number = 0
    while number < len(lines):
        fence = Fence()
        opened = fence.covers(lines[number])
        number += 1
        if not opened or unclosed.get(fence.sign, fence.length + 1) <= fence.length:
            continue
        for end in range(number, len(lines)):
            fence.covers(lines[end])
            if not fence.open:
                inside.update(range(number, end + 2))
                number = end + 1
                break
        else:
            unclosed[fence.sign] = fence.length
    return frozenset(inside)


def _prefixed(line: str, prefix: str) -> str | None:
    content = marker_content(line) if prefix in line else None
    if not content or not content.startswith(prefix):
        return None
    return content[len(prefix) :].strip() or None


def _inside_comment(text: str) -> str:
    """Return ``text`` so that it can neither close a comment nor leave its line."""
    return re.sub(r"--+>?|<!|[\r\n\x00]", " ", text).strip()


class Fence:
    """Whether lines, fed in order, stand inside a code fence (CommonMark: same sign, at least as long, no info)."""

    __slots__ = ("length", "open", "sign")

    def __init__(self) -> None:
        self.open = False
        self.sign = ""  # of the fence opened last
        self.length = 0

    def covers(self, line: str) -> bool:
        """Take the next line; return whether it belongs to a fence, its marks included."""
        match = _FENCE.match(line) if ("```" in line or "~~~" in line) else None
        if self.open:
            if match and match[1][0] == self.sign and len(match[1]) >= self.length and not match[2].strip():
                self.open = False
            return True
        if match and not (match[1][0] == "`" and "`" in match[2]):
            self.open, self.sign, self.length = True, match[1][0], len(match[1])
            return True
        return False
