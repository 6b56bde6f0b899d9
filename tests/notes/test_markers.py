"""Markers and managed blocks: what pairs, what is stray, and replacing one block."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.markers import (
    ManagedBlock,
    block_body,
    end_marker,
    lineage_key,
    lineage_marker,
    managed_blocks,
    promotion_key,
    promotion_marker,
    replace_block,
    start_marker,
)

CASES = Path(__file__).parent.parent / "cases"
DAMAGED = sorted((CASES / "18-damaged-diary").glob("*.md"))


def _own_markers(data: bytes) -> bytes:
    """Return a case with its neutral markers replaced by ours."""
    return data.replace(b"<!-- dreaming:", b"<!-- openclaw:dreaming:")


@pytest.mark.parametrize("path", DAMAGED, ids=lambda path: path.stem)
def test_a_damaged_diary_gets_one_block_and_loses_no_line(path: Path) -> None:
    before = _own_markers(path.read_bytes())
    once = replace_block(before, ManagedBlock.DIARY, "first")
    twice = replace_block(once, ManagedBlock.DIARY, "first\n\n---\n\nsecond")
    lines = twice.decode().split("\n")
    spans = [span for span in managed_blocks(lines).spans if span.name is ManagedBlock.DIARY]
    assert len(spans) == 1
    assert block_body(twice, ManagedBlock.DIARY) == "first\n\n---\n\nsecond\n"
    remarks = [line for line in before.decode().split("\n") if "My own remark" in line]
    assert [line for line in lines if "My own remark" in line] == remarks


@pytest.mark.parametrize("path", [path for path in DAMAGED if path.stem != "two-starts"], ids=lambda path: path.stem)
def test_a_file_without_a_whole_block_stays_a_prefix(path: Path) -> None:
    before = _own_markers(path.read_bytes())
    assert replace_block(before, ManagedBlock.DIARY, "first").startswith(before)


def test_a_marker_in_code_quotes_or_inside_a_line_is_text() -> None:
    lines = ["```", start_marker(ManagedBlock.LIGHT), "```", f"> {start_marker(ManagedBlock.LIGHT)}"]
    lines += [f"see `{start_marker(ManagedBlock.LIGHT)}`", f"- x {end_marker(ManagedBlock.LIGHT)}"]
    assert managed_blocks(lines).spans == ()
    assert managed_blocks(lines).stray_lines == ()


def test_a_fence_without_end_hides_no_marker() -> None:
    lines = ["```sh", "", start_marker(ManagedBlock.REM), "x", end_marker(ManagedBlock.REM)]
    assert [(span.start_line, span.end_line) for span in managed_blocks(lines).spans] == [(3, 5)]


@pytest.mark.parametrize(
    ("lines", "spans", "stray"),
    [
        pytest.param(["LS", "x", "LE"], [(1, 3)], [], id="a pair"),
        pytest.param(["LS", "x", "LS", "y", "LE"], [(3, 5)], [1], id="the nearest start pairs"),
        pytest.param(["LS", "x", "RS", "y", "RE", "LE"], [(3, 5)], [1, 6], id="another block between breaks the pair"),
        pytest.param(["LE", "x", "LS"], [], [1, 3], id="end before start"),
        pytest.param(["LS", "x"], [], [1], id="no end"),
    ],
)
def test_which_markers_pair(lines: list[str], spans: list[tuple[int, int]], stray: list[int]) -> None:
    names = {"L": ManagedBlock.LIGHT, "R": ManagedBlock.REM}
    written = [
        (start_marker if line[1] == "S" else end_marker)(names[line[0]]) if line[0] in names else line for line in lines
    ]
    found = managed_blocks(written)
    assert [(span.start_line, span.end_line) for span in found.spans] == spans
    assert list(found.stray_lines) == stray


@given(st.binary(max_size=120), st.binary(max_size=120), st.booleans())
def test_replacing_a_block_keeps_every_other_byte(before: bytes, after: bytes, crlf: bool) -> None:
    newline = b"\r\n" if crlf else b"\n"
    head = b"# D" + newline + before.replace(b"`", b"").replace(b"~", b"") + newline
    start, end = start_marker(ManagedBlock.DEEP).encode(), end_marker(ManagedBlock.DEEP).encode()
    data = head + start + newline + b"old" + newline + end + newline + after
    changed = replace_block(data, ManagedBlock.DEEP, "new\nbody")
    assert changed.startswith(head + start + newline)
    assert changed.endswith(end + newline + after)
    assert block_body(changed, ManagedBlock.DEEP) == "new\nbody\n"


@given(st.text(max_size=60))
def test_a_key_can_not_leave_its_comment(key: str) -> None:
    for written in (promotion_marker(key), lineage_marker(key)):
        assert written.count("-->") == 1
        assert "\n" not in written


def test_markers_are_read_as_written() -> None:
    assert promotion_key(promotion_marker("memory:memory/2026-01-01.md:4:4")) == "memory:memory/2026-01-01.md:4:4"
    assert lineage_key(lineage_marker("house:boiler-code")) == "house:boiler-code"
    assert promotion_key("text <!-- openclaw-memory-promotion:x -->") is None
