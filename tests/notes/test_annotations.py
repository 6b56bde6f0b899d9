"""The entry grammar: every shape of case 03, the upstream example, and writing."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.annotations import (
    parse_annotations,
    render_annotations,
    strip_annotations,
)
from recall_runtime.notes.curated import parse_curated
from recall_runtime.records import INVALID_PROJECT, Annotations

CASE = Path(__file__).parent.parent / "cases/03-annotation-comments"
EXPECTED = json.loads((CASE / "expected.json").read_text(encoding="utf-8"))
ENTRIES = {entry.start_line: entry for entry in parse_curated((CASE / "MEMORY.md").read_bytes()).entries}


@pytest.mark.parametrize("wanted", EXPECTED["must"], ids=lambda wanted: f"line {wanted['line']}")
def test_each_shape_of_case_03_is_read_as_stated(wanted: dict[str, object]) -> None:
    entry = ENTRIES[int(str(wanted["line"]))]
    assert entry.annotations.triggers == tuple(wanted["triggers"] or ())  # type: ignore[arg-type] # JSON lists
    assert entry.annotations.importance == wanted["importance"]
    if wanted["text"] is not None:
        assert entry.text == wanted["text"]
    assert str(wanted.get("text_contains", "")) in entry.text
    assert entry.text.startswith(str(wanted.get("text_starts", "")))
    projects = wanted.get("projects")
    if isinstance(projects, list):
        assert entry.annotations.project_key == "; ".join(projects)
    elif projects:
        assert entry.annotations.project_key == INVALID_PROJECT


@pytest.mark.parametrize(
    ("line", "triggers"),
    [
        pytest.param(17, ("Wide Space", "CASE"), id="the keyword has no case, inner blanks fold"),
        pytest.param(18, ("中继设置", "内网安全", "端口"), id="full-width separators part phrases"),
        pytest.param(22, (), id="a comment with text behind it gives no trigger"),
    ],
)
def test_the_open_choices_of_case_03(line: int, triggers: tuple[str, ...]) -> None:
    assert ENTRIES[line].annotations.triggers == triggers


def test_no_comment_syntax_of_a_carrier_is_in_any_text() -> None:
    texts = [entry.text for line, entry in ENTRIES.items() if line != 15]
    assert not [text for text in texts if "<!--" in text]


def test_the_upstream_example() -> None:
    lines = [
        "- One <!-- trigger: alpha, beta; alpha --> <!-- importance: 03 -->",
        "  two <!-- trigger: ignored --> more text",
        "  three <!-- importance: 11 --> <!-- importance: 8 --> <!-- importance: 2.5 -->",
        "  four <!-- trigger: gamma --> <!-- project: GitHub.com/Owner/Repo -->",
    ]
    assert parse_annotations(lines, curated=True) == Annotations(("alpha", "beta", "gamma"), 8, "github.com/Owner/Repo")


@pytest.mark.parametrize(
    ("comment", "key"),
    [
        ("<!-- project: a/b -->", "a/b"),
        ("<!-- project: Host/B; path:/x/Y -->", "host/B; path:/x/Y"),
        ("<!-- project: -->", INVALID_PROJECT),
        ("<!-- project: a/b; -->", INVALID_PROJECT),
        ("<!-- project: a<b -->", INVALID_PROJECT),
        ("<!-- project: a/b", INVALID_PROJECT),
        ("text", None),
    ],
)
def test_a_project_that_is_not_whole_fails_closed(comment: str, key: str | None) -> None:
    assert parse_annotations([f"- Fact. {comment}"], curated=False).project_key == key


def test_a_note_can_not_give_itself_triggers_or_importance() -> None:
    lines = ["- Fact. <!-- trigger: a --> <!-- importance: 9 -->"]
    assert parse_annotations(lines, curated=False) == Annotations()


_PHRASE = st.text(alphabet="abcXYZ äß漢🚀'.-", min_size=1, max_size=20).map(lambda text: " ".join(text.split()))


@given(
    st.lists(_PHRASE.filter(lambda text: text and "--" not in text), max_size=3, unique_by=str.casefold),
    st.one_of(st.none(), st.integers(1, 10)),
    st.sampled_from([None, "github.com/a/B", "path:/x; host/y"]),
)
def test_what_is_written_is_read_back(phrases: list[str], importance: int | None, key: str | None) -> None:
    written = Annotations(tuple(phrases), importance, key)
    line = f"- Fact. {render_annotations(written)}"
    assert parse_annotations([line], curated=True) == written
    assert strip_annotations(line) == "- Fact."


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_lines_can_be_read(lines: list[str]) -> None:
    parse_annotations(lines, curated=True)
    for line in lines:
        assert len(strip_annotations(line)) <= len(line)


_HOSTILE = st.text(alphabet="ab,;<>!-\n\r\u0000，", max_size=30)


@given(_HOSTILE)
def test_a_phrase_can_not_close_its_comment(phrase: str) -> None:
    comment = render_annotations(Annotations((phrase,)))
    assert comment.count("-->") <= 1
    assert "\n" not in comment
    assert len(parse_annotations([f"- Fact. {comment}"], curated=True).triggers) <= 1
