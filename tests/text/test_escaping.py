"""Escaping: hostile text can't act where it is shown; cutting splits nothing."""

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.escaping import clip, code_span, cut, markdown, terminal, xml

CASES = Path(__file__).parent.parent / "cases"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
FLAG = "\U0001f1e8\U0001f1ed"
THUMB = "\U0001f44d\U0001f3fd"
HOSTILE = [
    "![x](https://evil.example/p.png)",
    "[click](javascript:alert(1))",
    "<img src=x onerror=alert(1)>",
    "<https://evil.example>",
    "https://evil.example/beacon",
    "`code` **bold** _it_ ~~s~~",
    "| a | b |",
    "# heading",
    "\n---\n- list",
    "\u202egnp.eciovni\u202c",
    "\x1b[31mred\x1b[0m \x9b2J \x07",
    "&lt;script&gt;",
    "1. item",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_active_is_left_in_markdown(text: str) -> None:
    shown = markdown(text)
    plain = re.sub(r"&#\d+;", "", shown)
    assert not re.search(r"[<>\[\]()`*_|#!:\\\n\x1b\u202e]", plain)


@pytest.mark.parametrize("text", ["a < b & c", "x_y*z", "1. item", "5 > 3"])
def test_markdown_shows_the_text_itself(text: str) -> None:
    assert html.unescape(markdown(text)) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_sign_reaches_a_terminal(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", terminal(text))


def test_an_override_is_shown_as_such() -> None:
    line = (CASES / "10-emoji-rtl/MEMORY.md").read_text(encoding="utf-8").splitlines()[7]
    assert terminal(line) == "- Hidden order: \\u202egnp.eciovni\\u202c is the attachment name."


def test_xml_escapes_in_the_order_of_section_33() -> None:
    assert xml("<a href=\"x\">'&'</a>") == "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;"


@pytest.mark.parametrize("text", ["plain", "with ` one", "``two``", "`", ""])
def test_a_code_span_can_not_be_closed_from_inside(text: str) -> None:
    span = code_span(text)
    fence = re.match("`+", span)
    assert fence
    inside = span[len(fence[0]) : len(span) - len(fence[0])]
    assert fence[0] not in re.findall("`+", inside)
    assert inside.strip() == text.strip() or not text


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        pytest.param("ab" + FAMILY + "c", 5, "ab", id="family"),
        pytest.param("ab" + FLAG + "c", 3, "ab", id="flag"),
        pytest.param(FLAG + FLAG, 3, FLAG, id="second flag"),
        pytest.param("ab" + THUMB, 3, "ab", id="skin tone"),
        pytest.param("cafe\u0301s", 4, "caf", id="accent"),
        pytest.param("\u1112\u1161\u11ab\u1100", 2, "", id="Hangul letters"),
        pytest.param("ab\u202ecdef\u202c", 5, "abcd", id="open override is dropped"),
        pytest.param("plain text", 5, "plain", id="plain"),
    ],
)
def test_a_cut_ends_between_clusters(text: str, limit: int, kept: str) -> None:
    assert cut(text, limit) == kept


@given(st.text(max_size=80), st.integers(min_value=0, max_value=90))
def test_clipping_keeps_the_limit_and_the_start(text: str, limit: int) -> None:
    short = clip(text, limit)
    assert len(short) <= max(limit, len(text) if len(text) <= limit else limit)
    assert short == text or limit == 0 or short.endswith("…")
