"""Composition of curated files: worked values and bytes."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.curated.compose import (
    NewEntry,
    append_entries,
    cap_snippet,
    entry_line,
    importance_of,
    remove_lines,
    section_heading,
    triggers_of,
)
from recall_runtime.records import Anchor, Annotations

DAY = dt.date(2026, 3, 20)
HEADING = section_heading(DAY, consolidated=False)
BOM = b"\xef\xbb\xbf"
ENTRY = NewEntry("memory:claim:aaaaaaaaaaaa", "- The ram is called Otto. Source: memory/2026-03-18.md#L3-L3")


@pytest.mark.parametrize(
    ("score", "importance"),
    [(0.75, 8), (0.749, 7), (0.65, 7), (0.20, 3), (0.85, 9), (0.99, 10), (0.0, 3), (1.0, 10)],
)
def test_importance_follows_the_worked_values(score: float, importance: int) -> None:
    """openclaw-algorithms 25.2: half-up, between 3 and 10."""
    assert importance_of(score) == importance


def worked_text() -> str:
    """A text of 106 characters whose first sentence ends at 47."""
    first = "The crane stands on the south quay since Monday"[:46] + "."
    return first + " " + "w" * (106 - len(first) - 1)


@pytest.mark.parametrize("tokens", [13, 15, 20])
def test_a_long_snippet_ends_with_its_first_sentence(tokens: int) -> None:
    """Worked value of 25.3: sentence of 47 characters plus three dots."""
    text = worked_text()
    assert (len(text), text.index(".")) == (106, 46)
    assert cap_snippet(text, tokens) == text[:47] + "..."
    assert len(cap_snippet(text, tokens)) == 50


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        (worked_text(), 100, worked_text()),  # fits
        ("x" * 100, 10, "x" * 40 + "..."),  # no blank: hard cut
        ("x" * 100, 0, "x" * 100),  # 0 means no limit
        ("- one leading bullet goes", 160, "one leading bullet goes"),
        ("word " * 20, 10, ("word " * 8).rstrip() + "..."),  # last blank at 65 % or later
        ("ab cd" + "e" * 60, 10, "ab cd" + "e" * 35 + "..."),  # blank too early: hard cut
        (
            "中文句子很长很长很长很长很长很长很长很长很长很长很长很长很长。" + "后" * 40,
            10,
            "中文句子很长很长很长很长很长很长很长很长很长很长很长很长很长。...",
        ),
    ],
    ids=["fits", "hard", "unlimited", "bullet", "blank", "early-blank", "cjk-sentence"],
)
def test_snippet_cap_of_25_3(text: str, tokens: int, cut: str) -> None:
    """Every way of cutting."""
    assert cap_snippet(text, tokens) == cut


def test_a_cut_never_splits_a_combined_character() -> None:
    """A family emoji at the limit is left out whole rather than broken."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    cut = cap_snippet("x" * 38 + family + "y" * 50, 10)
    assert cut.removesuffix("...") in ("x" * 38, "x" * 38 + family)


def test_triggers_are_three_clean_phrases() -> None:
    """Separators and comment signs become blanks, doubles go, 64 code points (25.2)."""
    assert triggers_of(["a,b;c", "<!-- x -->", "a b c", "z" * 80, "late"]) == ("a b c", "x", "z" * 64)


def test_an_entry_line_has_source_then_annotations_and_no_score() -> None:
    """The format of 26.1, without the score bracket."""
    line = entry_line(
        "The ram is called Otto.",
        Anchor("memory/2026-03-18.md", 3, 3),
        Annotations(("ram", "otto"), 8, "github.com/example/farm"),
    )
    assert line == (
        "- The ram is called Otto. Source: memory/2026-03-18.md#L3-L3"
        " <!-- trigger: ram, otto --> <!-- importance: 8 --> <!-- project: github.com/example/farm -->"
    )


def test_a_missing_file_starts_with_the_title() -> None:
    """25.2: an empty file gets its title first."""
    assert append_entries(None, HEADING, [ENTRY]).decode() == (
        "# Long-Term Memory\n\n## Promoted From Short-Term Memory (2026-03-20)\n\n"
        "<!-- openclaw-memory-promotion:memory:claim:aaaaaaaaaaaa -->\n" + ENTRY.line + "\n"
    )


def test_a_crlf_file_without_final_line_end_keeps_its_bytes_and_its_style() -> None:
    """Case 01: old bytes are a prefix, the entry stands alone, every line ends CRLF."""
    old = b"# Long-term memory\r\n\r\n- The staging server answers on port 8443."
    new = append_entries(old, HEADING, [ENTRY])
    assert new.startswith(old + b"\r\n")
    assert new.count(b"\n") == new.count(b"\r\n")
    assert new.endswith(ENTRY.line.encode() + b"\r\n")


def test_a_byte_order_mark_stays_single_and_first() -> None:
    """Case 02: exactly one mark after any rewrite, also when its line goes."""
    old = BOM + b"- first\n- second\n"
    assert append_entries(old, HEADING, [ENTRY]).count(BOM) == 1
    assert remove_lines(old, [(1, 1)]) == BOM + b"- second\n"
    assert append_entries(BOM, HEADING, [ENTRY]).startswith(BOM + b"# Long-Term Memory\n")


def test_sub_headings_come_only_with_more_than_one_group() -> None:
    """25.2: groups sorted by project, global first."""
    other = NewEntry("k2", "- two", "github.com/b/b")
    third = NewEntry("k3", "- three", "github.com/a/a")
    one = append_entries(b"# M\n", HEADING, [other]).decode()
    assert "###" not in one
    many = append_entries(b"# M\n", HEADING, [other, ENTRY, third]).decode().splitlines()
    assert [line for line in many if line.startswith("###")] == [
        "### Global", "### Project: github.com/a/a", "### Project: github.com/b/b"
    ]  # fmt: skip


def test_a_section_of_the_same_day_is_reused() -> None:
    """A second sweep on one day extends the section, also when something stands below it."""
    once = append_entries(b"# M\n", HEADING, [ENTRY]) + b"\n## By hand\n\n- mine\n"
    twice = append_entries(once, HEADING, [NewEntry("k2", "- two")]).decode()
    assert twice.count(HEADING) == 1
    assert twice.index("- two") < twice.index("## By hand")
    assert twice.index(ENTRY.line) < twice.index("- two")


def test_a_reused_section_keeps_a_childs_place() -> None:
    """A line a person indented below the last entry stays below that entry."""
    once = append_entries(b"# M\n", HEADING, [ENTRY]) + b"  - my remark\n"
    twice = append_entries(once, HEADING, [NewEntry("k2", "- two")]).decode().splitlines()
    assert twice.index("  - my remark") == twice.index(ENTRY.line) + 1


def test_a_new_group_in_a_reused_section_gets_its_own_sub_heading() -> None:
    """Groups of the same day meet under one section heading."""
    once = append_entries(b"# M\n", HEADING, [ENTRY, NewEntry("k2", "- two", "github.com/a/a")])
    twice = append_entries(
        once, HEADING, [NewEntry("k3", "- three", "github.com/a/a"), NewEntry("k4", "- four", "p/q")]
    )
    lines = twice.decode().splitlines()
    assert lines.count("### Project: github.com/a/a") == 1
    assert lines.index("- two") + 2 == lines.index("- three")
    assert lines.index("### Project: p/q") < lines.index("- four")


def test_an_emptied_generated_section_loses_its_headings_and_nothing_else() -> None:
    """Removing the only entries of a night removes what the sweep wrote around them."""
    base = b"# M\n\n- mine\n"
    night = append_entries(base, HEADING, [ENTRY, NewEntry("k2", "- two", "p/q")]) + b"\n## Mine\n- x\n"
    lines = night.decode().splitlines()
    spans = [(lines.index(line), lines.index(line) + 1) for line in (ENTRY.line, "- two")]
    assert remove_lines(night, spans) == base + b"\n## Mine\n- x\n"


def test_a_generated_heading_with_hand_written_text_stays() -> None:
    """Case 17: what a person typed below a generated heading keeps its heading."""
    night = append_entries(b"# M\n", HEADING, [ENTRY]) + b"\nTyped by hand.\n"
    lines = night.decode().splitlines()
    at = lines.index(ENTRY.line)
    assert remove_lines(night, [(at, at + 1)]).decode().endswith(HEADING + "\n\n\nTyped by hand.\n")


LINES = st.lists(
    st.sampled_from([b"# T", b"- a", b"", b"text \x0c\x85", b"## Mine", b"- b  ", b"\xff\xfe"]), max_size=12
)


@given(lines=LINES, newline=st.sampled_from([b"\n", b"\r\n"]), final=st.booleans(), marked=st.booleans())
def test_appending_keeps_every_byte_in_order(lines: list[bytes], newline: bytes, final: bool, marked: bool) -> None:
    """Old bytes are a prefix of the new ones, whatever the file holds."""
    old = (BOM if marked else b"") + newline.join(lines) + (newline if final else b"")
    new = append_entries(old, HEADING, [ENTRY])
    assert new.startswith(old if old.removeprefix(BOM).strip() else old[:3] if marked else b"")
    assert new.count(ENTRY.line.encode()) == 1
    assert append_entries(new, HEADING, [NewEntry("k2", "- two")]).count(HEADING.encode()) == 1


@given(lines=LINES, gone=st.integers(1, 12))
def test_removing_lines_keeps_the_others_in_order(lines: list[bytes], gone: int) -> None:
    """Nothing but the named line goes when no generated heading is near."""
    old = b"".join(line + b"\n" for line in lines)
    kept = [line for number, line in enumerate(lines, start=1) if number != gone]
    assert remove_lines(old, [(gone, gone)]) == b"".join(line + b"\n" for line in kept)
