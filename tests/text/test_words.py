"""Words: index and question agree in every script."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.lines import read_lines
from recall_runtime.text.words import index_text, query_terms, words

CASES = Path(__file__).parent.parent / "cases"


def _lines(case: str, note: str) -> dict[int, set[str]]:
    reading = read_lines((CASES / case / "memory" / note).read_bytes())
    return {line.number: set(index_text(line.text).split(" ")) for line in reading.lines}


def _queries(case: str, *keys: str) -> list[dict[str, object]]:
    listed = json.loads((CASES / case / "queries.json").read_text(encoding="utf-8"))
    return [query for key in keys for query in listed[key]]


@pytest.mark.parametrize("query", _queries("05-cjk-note", "must_hit", "should_hit"), ids=lambda query: str(query["q"]))
def test_each_question_without_blanks_shares_a_term_with_its_line(query: dict[str, object]) -> None:
    assert set(query_terms(str(query["q"]))) & _lines("05-cjk-note", "2026-03-03.md")[int(str(query["line"]))]


@pytest.mark.parametrize("query", _queries("05-cjk-note", "must_not_hit_any_line"), ids=lambda query: str(query["q"]))
def test_absent_words_share_no_term_with_any_line(query: dict[str, object]) -> None:
    for terms in _lines("05-cjk-note", "2026-03-03.md").values():
        assert not set(query_terms(str(query["q"]))) & terms


@pytest.mark.parametrize("query", _queries("21-fts-queries", "must_hit"), ids=lambda query: repr(query["q"]))
def test_each_question_with_syntax_shares_a_term_with_its_line(query: dict[str, object]) -> None:
    assert set(query_terms(str(query["q"]))) & _lines("21-fts-queries", "2026-03-16.md")[int(str(query["line"]))]


@pytest.mark.parametrize("query", _queries("21-fts-queries", "must_not_raise"), ids=lambda query: repr(query)[:30])
def test_no_question_raises(query: str) -> None:
    assert all(term and not any(sign.isspace() for sign in term) for term in query_terms(query))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("s3://keep-11206", {"s3://keep-11206", "keep", "11206"}, id="address whole and in parts"),
        pytest.param("ff_66723", {"ff_66723", "66723"}, id="identifier with underscore"),
        pytest.param("CVE-2024-1", {"cve-2024-1", "cve"}, id="identifier with hyphens"),
        pytest.param("memory/2026-01-01.md", {"memory/2026-01-01.md", "2026", "md"}, id="file name"),
        pytest.param("Zero\u200bwidth soft\u00adhyphen", {"zerowidth", "softhyphen"}, id="invisible signs join"),
        pytest.param("Ｔｈｅ Ｃａｆé", {"the", "cafe"}, id="width and accents fold"),
        pytest.param("예약을", {"예약을", "예약"}, id="Korean particle"),
        pytest.param("הפגישה", {"הפגישה", "פגישה"}, id="Hebrew prefix letter"),
        pytest.param("المستودع", {"المستودع", "مستودع"}, id="Arabic article"),
        pytest.param("漏水", {"漏", "水", "漏水"}, id="Han signs and pairs"),
        pytest.param("Z\u0337a\u0337l\u0337g\u0337o\u0337", {"zalgo"}, id="stray combining marks"),
    ],
)
def test_words_of_every_kind_are_findable(text: str, expected: set[str]) -> None:
    assert expected <= set(words(text))


@pytest.mark.parametrize(
    ("question", "note"),
    [
        pytest.param("backups", "backup", id="English plural"),
        pytest.param("deploying", "deployed", id="English verb"),
        pytest.param("серверы", "сервер", id="Russian plural"),
        pytest.param("don’t", "don't", id="apostrophes"),
    ],
)
def test_forms_of_a_word_meet(question: str, note: str) -> None:
    assert set(query_terms(question)) & set(index_text(note).split(" "))


def test_stop_words_leave_a_question_unless_it_has_no_others() -> None:
    assert query_terms("what was the solution for the bug") == ["solut", "bug"]
    assert query_terms("what is it") == ["what", "is", "it"]


def test_a_word_of_any_length_is_bounded() -> None:
    assert max(map(len, words("Ab3" * 20_000))) <= 64


@given(st.text(max_size=200))
def test_index_text_holds_no_syntax(text: str) -> None:
    found = index_text(text)
    assert not set(found) & set('"*^(){}[],;\n\x00')
    assert "  " not in found


@given(st.text(max_size=200))
def test_index_and_question_agree(text: str) -> None:
    assert set(query_terms(text)) <= set(index_text(text).split(" "))


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("family dinner", 3),
        ("مفتاح", 5),
        ("פגישה", 6),
        ("דנה", 7),
        ("zerowidth", 9),
        ("أين مفتاح المستودع؟", 5),
        ("מתי הפגישה?", 6),
    ],
)
def test_questions_in_every_direction_of_writing(question: str, line: int) -> None:
    lines = (CASES / "10-emoji-rtl/MEMORY.md").read_text(encoding="utf-8").split("\n")
    assert set(query_terms(question)) & set(index_text(lines[line - 1]).split(" "))


@pytest.mark.parametrize(
    ("question", "note"),
    [("buy", "bought"), ("Where did she go", "she went"), ("child", "children"), ("who will speak", "Anna spoke")],
)
def test_an_irregular_form_is_found_by_its_base_form(question: str, note: str) -> None:
    assert set(query_terms(question)) & set(index_text(note).split())


@pytest.mark.parametrize(
    ("one", "other"), [("led", "lead"), ("bit", "bite"), ("told", "tell"), ("wound", "wind"), ("lives", "life")]
)
def test_a_form_that_is_more_often_another_word_stands_for_itself(one: str, other: str) -> None:
    assert index_text(one) != index_text(other)
