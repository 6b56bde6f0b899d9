"""Blocks of a note: what lines belong together and what is refused by structure."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.blocks import Block, BlockKind, Note, read_note, source_bytes, split_cells
from recall_runtime.vocabulary import Refusal

CASES = Path(__file__).parent.parent / "cases"


def _read(text: str, path: str = "memory/2026-01-01.md") -> Note:
    return read_note(text.encode(), path=path)


def _at(note: Note, line: int) -> Block:
    return next(block for block in note.blocks if block.start_line <= line <= block.end_line)


def _fit(note: Note) -> list[str]:
    return [block.text for block in note.blocks if block.refusal is None]


def test_only_the_three_facts_of_case_04_are_fit_and_all_is_searchable() -> None:
    data = (CASES / "04-code-fences/memory/2026-03-02.md").read_bytes()
    expected = json.loads((CASES / "04-code-fences/expected.json").read_text(encoding="utf-8"))
    note = read_note(data, path="memory/2026-03-02.md")
    assert [(b.start_line, b.text) for b in note.blocks if b.refusal is None] == [
        (fact["line"], fact["text"]) for fact in expected["facts"]
    ]
    everything = "\n".join(block.text for block in note.blocks)
    for needle in expected["never_a_candidate_nor_an_annotation"]:
        assert needle in everything
    assert _at(note, 8).kind is BlockKind.CODE


def test_front_matter_of_case_02_is_read_broken_or_not() -> None:
    case = CASES / "02-bom-front-matter"
    memory = read_note((case / "MEMORY.md").read_bytes(), path="MEMORY.md")
    assert memory.blocks[0].kind is BlockKind.FRONT_MATTER
    assert memory.reading.bom
    user = read_note((case / "USER.md").read_bytes(), path="USER.md")
    assert user.blocks[0].refusal is Refusal.FRONT_MATTER
    assert user.problems == {"broken_front_matter": 1}
    note = read_note((case / "memory/2026-03-01.md").read_bytes(), path="memory/2026-03-01.md")
    assert note.blocks[0].kind is BlockKind.RULE
    assert any("hallway shelf" in text for text in _fit(note))


def test_nothing_between_the_marks_of_case_17_is_a_source() -> None:
    data = (CASES / "17-managed-blocks/memory/2026-03-13.md").read_bytes()
    note = read_note(data.replace(b"<!-- dreaming:", b"<!-- openclaw:dreaming:"), path="memory/2026-03-13.md")
    assert (_at(note, 10).start_line, _at(note, 10).end_line, _at(note, 10).kind) == (6, 16, BlockKind.MANAGED)
    assert [b.start_line for b in note.blocks if b.refusal is None] == [3, 18, 22, 24]
    assert note.problems == {"stray_markers": 1}


def test_list_items_own_their_lines_and_know_their_parents() -> None:
    note = read_note((CASES / "08-nested-bullets/MEMORY.md").read_bytes(), path="MEMORY.md")
    assert _at(note, 5).ancestors == ("Trip to the lake", "Boat hire opens at eight.")
    assert _at(note, 8).text == "Guest wifi\nname is on the router"
    assert _at(note, 9).depth == 1
    assert _at(note, 12).start_line == 11
    assert _at(note, 13).text == "Unfinished task: book the ferry."
    assert {_at(note, line).refusal for line in (15, 16)} == {Refusal.EMPTY}
    assert _at(note, 17).kind is BlockKind.PARAGRAPH


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("# A\n", ["heading"], id="heading"),
        pytest.param("#hash\n", ["paragraph"], id="no blank after the sign"),
        pytest.param("A\n===\n", ["heading"], id="underlined heading"),
        pytest.param("A fact.\n---\n", ["paragraph", "rule"], id="dashes below text are a rule"),
        pytest.param("* * *\n", ["rule"], id="rule with blanks"),
        pytest.param("> quoted\n> on\n", ["quote"], id="quote"),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |\n", ["table_rule", "table_rule", "table_row"], id="table"),
        pytest.param(
            "a | b\n--|--\nc | d\n", ["table_rule", "table_rule", "table_row"], id="table without outer pipes"
        ),
        pytest.param("    code\n", ["code"], id="indented code"),
        pytest.param("- a\n\n  more\n", ["bullet", "paragraph"], id="loose list item"),
        pytest.param("<!-- a -->\n", ["comment"], id="comment"),
        pytest.param("<!-- a\nb\n-->\n", ["comment"], id="comment over lines"),
        pytest.param("<!-- a\n\n# B\n", ["comment", "heading"], id="comment without end costs its own line"),
        pytest.param("<!-- a\n<!-- b -->\n", ["comment", "comment"], id="an opener before the end is a new comment"),
        pytest.param("text <!-- open\nmore\n-->\n", ["paragraph"], id="an opener inside a line is text"),
        pytest.param("One.\nTwo.\n", ["paragraph", "paragraph"], id="a line that ends a statement ends its block"),
        pytest.param("One wraps\nhere.\n", ["paragraph"], id="a wrapped sentence is one block"),
        pytest.param("HEARTBEAT_OK\nA fact.\n", ["paragraph", "paragraph"], id="a token ends its block"),
        pytest.param("- (withdrawn)\nA fact.\n", ["bullet", "paragraph"], id="text below a short bullet is its own"),
        pytest.param(f"- {'long ' * 12}\nwraps.\n", ["bullet"], id="a long bullet may wrap without indent"),
        pytest.param("- Done.\nA fact.\n", ["bullet", "paragraph"], id="text below a finished bullet is its own"),
        pytest.param("```\na\n\n## B\n\nC.\n", ["code", "heading", "paragraph"], id="prose resumes after a lost fence"),
    ],
)
def test_the_kind_of_each_block(text: str, kinds: list[str]) -> None:
    assert [block.kind.value for block in _read(text).blocks] == kinds


def test_a_turn_ends_an_open_fence_in_a_dump() -> None:
    head = "# Session: 2026-03-04 07:12:31 UTC\n\n- **Session Key**: k\n\n"
    note = _read(head + "user: see\n```\ncode\nassistant: The port is 5432.\n")
    assert note.dump is not None
    assert note.dump.session_key == "k"
    assert note.blocks[-1].speaker == "assistant"
    assert note.blocks[-1].refusal is None


def test_the_header_of_a_dump_must_lead_the_file() -> None:
    assert _read("A.\n\n# Session: 2026-03-04 07:12:31 UTC\n\n- **Session Key**: k\n").dump is None


def test_an_injected_block_is_scaffolding() -> None:
    note = _read("Hello.\n<relevant-memories>\nThe port is 5432.\n</relevant-memories>\nThe port is 5433.\n")
    assert _at(note, 3).refusal is Refusal.ENVELOPE
    assert _at(note, 5).refusal is None


def test_conflict_marks_count_only_as_a_set() -> None:
    assert not _read("A\n=======\n\ntext\n").conflicted
    assert not _read("<<<<<<< HEAD\na\n=======\n").conflicted
    note = _read("<<<<<<< HEAD\n- a fact here\n=======\n- b fact here\n>>>>>>> x\n- c fact here\n")
    assert note.conflicted
    assert _fit(note) == ["c fact here"]


def test_a_key_block_is_one_refused_block() -> None:
    note = _read("-----BEGIN EXAMPLE PRIVATE KEY-----\nAAAA.\nBBBB\n-----END EXAMPLE PRIVATE KEY-----\nA fact.\n")
    assert (note.blocks[0].end_line, note.blocks[0].refusal) == (4, Refusal.SECRET_ONLY)


def test_annotations_of_a_note_are_its_project_only() -> None:
    line = "- Fact. <!-- trigger: a --> <!-- importance: 9 --> <!-- project: a/b -->\n"
    assert _read(line).blocks[0].annotations.project_key == "a/b"
    assert _read(line).blocks[0].annotations.importance is None
    assert _read(line, "MEMORY.md").blocks[0].annotations.importance == 9


def test_trailing_attributes_are_no_text() -> None:
    assert _read("- [P] Sync {uid:P-1, prio:high}\n").blocks[0].text == "[P] Sync"
    assert _read("- keep {this}\n").blocks[0].text == "keep {this}"


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("| a | b |", ["a", "b"]),
        ("| 64205 | 只在内网开放 \\| 不对外 |", ["64205", "只在内网开放 | 不对外"]),
        ("| `a|b` | 64206 |", ["`a|b`", "64206"]),
        ("a | b", ["a", "b"]),
        ("||", [""]),
    ],
)
def test_cells_split_on_free_pipes(row: str, cells: list[str]) -> None:
    assert split_cells(row) == cells


def test_a_note_that_is_no_text_is_one_problem() -> None:
    note = read_note((CASES / "12-invalid-utf8/memory/2026-03-07-utf16.md").read_bytes())
    assert (note.blocks, note.problems) == ((), {"undecodable": 1})


def test_a_fact_after_a_huge_line_is_found() -> None:
    note = read_note((CASES / "09-huge-line/memory/2026-03-05.md").read_bytes(), path="memory/2026-03-05.md")
    assert "QX-7741-B" in "".join(block.text for block in note.blocks)
    assert "attic fan" in note.blocks[-1].text


PIECES = st.sampled_from(
    [
        *(
            "# H\n",
            "## Conversation Summary\n",
            "- a\n",
            "  - b\n",
            "\t- c\n",
            "1. d\n",
            "> q\n",
            "```\n",
            "~~~~ x\n",
            "\n",
        ),
        *(
            "<!-- ",
            "-->",
            "<!-- openclaw:dreaming:light:start -->\n",
            "<!-- openclaw:dreaming:light:end -->\n",
            "---\n",
        ),
        *(
            "| a | b |\n",
            "|---|---|\n",
            "user: hi\n",
            "assistant: thought\n",
            "<<<<<<< a\n",
            "=======\n",
            ">>>>>>> b\n",
        ),
        *(
            "# Session: 2026-03-04 07:12:31 UTC\n- **Session Key**: k\n",
            "Sender (untrusted metadata):\n",
            "text. ",
            "key: v\n",
        ),
        *(
            "<details>\n",
            "</details>\n",
            "-----BEGIN PRIVATE KEY-----\n",
            "-----END PRIVATE KEY-----\n",
            "    x\n",
            "===\n",
            "\r\n",
        ),
    ]
)
ANY_NOTE = st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=25).map(lambda parts: "".join(parts).encode()))


@given(ANY_NOTE)
def test_every_line_belongs_to_one_block_in_order(data: bytes) -> None:
    note = read_note(data, path="memory/2026-01-01.md")
    covered = [line for block in note.blocks for line in range(block.start_line, block.end_line + 1)]
    assert covered == sorted(set(covered))
    filled = {line.number for line in note.reading.lines if line.text.strip()}
    assert filled <= set(covered)


@given(ANY_NOTE)
def test_the_anchor_of_a_block_reads_back_its_bytes(data: bytes) -> None:
    note = read_note(data, path="memory/2026-01-01.md")
    for block in note.blocks:
        source = source_bytes(data, note.reading, block.start_line, block.end_line)
        assert source in data
        lines = source.decode("utf-8", errors="replace").split("\n")
        assert len(lines) - (not lines[-1]) == block.end_line - block.start_line + 1
