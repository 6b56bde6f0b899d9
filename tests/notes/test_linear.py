"""Work grows with the size of the input, not faster: calls are counted, not seconds."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.statements import statements_of

HARD = [
    *("```x\n\n## h\n", "```\n", "<!-- a\n", "<!-- a --> ", "`", "` ``", "- - - ", "(", '"', "~~a ", "~~a~~ ", "|a|\n"),
    *("<details>\n", "-----BEGIN PRIVATE KEY-----\n", "<<<<<<< \n", "=======\n", "<active_memory_plugin>\n", "- x\n  "),
    *("Sender (untrusted):\n```\n", "A fact. ", "except a. ", "wrong. ", "# a\n", "---\n", "> a\n", "a\n", "端口。"),
    *(
        "<!-- openclaw:dreaming:light:start -->\n",
        "<!-- openclaw-memory-promotion:a -->\n- a Source: b#L1\n",
        "x: 1 | ",
    ),
]


def _calls(work: Callable[[], object]) -> int:
    """Return how many Python and C functions ``work`` calls."""
    count = 0

    def count_call(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _read_all(text: str) -> None:
    for block in read_note(text.encode(), path="memory/2026-01-01.md").blocks:
        statements_of(block.text, block=block.kind, start_line=block.start_line, end_line=block.end_line)


@pytest.mark.parametrize("piece", HARD, ids=repr)
def test_twice_the_note_is_about_twice_the_work(piece: str) -> None:
    text = piece * 150
    _read_all(text)
    once, twice = _calls(lambda: _read_all(text)), _calls(lambda: _read_all(text * 2))
    assert twice <= 2.3 * once + 500


@pytest.mark.parametrize("piece", HARD, ids=repr)
def test_twice_the_curated_file_is_about_twice_the_work(piece: str) -> None:
    text = piece * 150
    once, twice = _calls(lambda: parse_curated(text.encode())), _calls(lambda: parse_curated((text * 2).encode()))
    assert twice <= 2.3 * once + 500
