"""The subject of a question, the shapes of the value it asks for, the order of statements about one matter."""

from typing import Any

import numpy as np
import pytest

from recall_runtime.index import subjects
from recall_runtime.index.candidates import NOBODY, Candidates, stacked
from recall_runtime.index.results import Ranked
from recall_runtime.index.subjects import Subject


def row(entry_id: int, shapes: str = "", **given: Any) -> tuple[Any, ...]:
    values = {"talk": 0, "origin": "agent", "observed_at": entry_id, "substance": 1.0} | given
    return (
        *(entry_id, 1, entry_id, entry_id, values["talk"], values["origin"], "active", None, None),
        *(values["observed_at"], "memory/a.md", "episodic", None, "daily_note", None, shapes, values["substance"]),
    )


def ranked(*entry_ids: int) -> list[Ranked]:
    return [Ranked(entry_id, 1 - place / 10, 0.5, 0.5, 0.5) for place, entry_id in enumerate(entry_ids)]


def everything(found: Candidates) -> Any:
    return np.ones(len(found), dtype=bool)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("github.com/example/ambervane", {"ambervan"}),
        ("github.com/example/ambervane.git", {"ambervan"}),
        ("github.com/a/lathe; github.com/a/chisel/", {"lath", "chisel"}),
        ("github.com/a/x", set()),
        (None, set()),
    ],
)
def test_a_project_is_named_by_the_last_part_of_its_key(key: str | None, names: set[str]) -> None:
    assert subjects.names_of([key]) == names


@pytest.mark.parametrize(
    "question",
    [
        "before the change, ambervane webhook path",
        "what was the port previously?",
        "Wie hiess er früher?",
        "之前的端口",
    ],
)
def test_a_question_for_the_past_is_told_by_its_wording(question: str) -> None:
    assert subjects.asks_for_the_past(question)
    assert len(subjects.without_the_past(question)) < len(question)


@pytest.mark.parametrize("question", ["ambervane port", "which port do we use before a release?", "how long ago"])
def test_other_questions_are_about_now(question: str) -> None:
    assert not subjects.asks_for_the_past(question)


def test_texts_on_the_attribute_vote_for_a_shape_by_their_score() -> None:
    shares = subjects.likely_shapes(np.array([4.0, 2.0]), ["=jobs.#", "=port_#"], ["ambervan"], lambda _: 1.0)
    assert list(shares) == ["=jobs.#", "=port_#"]
    assert shares["=jobs.#"] == 1
    assert 0 < shares["=port_#"] < 0.2


def test_a_common_shape_says_less() -> None:
    rarity = {"=#_s": 1.0, "=jobs.#": 3.0}
    shares = subjects.likely_shapes(np.array([1.0, 1.0]), ["=#_s", "=jobs.#"], [], rarity.__getitem__)
    assert next(iter(shares)) == "=jobs.#"


def test_a_shape_that_holds_the_subject_is_no_attribute_of_it() -> None:
    assert subjects.likely_shapes(np.array([1.0]), ["=ambervan_#"], ["ambervan"], lambda _: 1.0) == {}


def test_no_voter_no_shape() -> None:
    assert subjects.likely_shapes(np.array([]), [], ["ambervan"], lambda _: 1.0) == {}


def test_a_question_in_a_talk_votes_for_the_value_in_the_line_after_it() -> None:
    voters = stacked([row(1, talk=1), row(3, "=port_#"), row(5)])
    lines = stacked([row(2, "=jobs.#", talk=1), row(6, "=ff_#")])
    assert subjects.answers_of(voters, np.array([2, NOBODY, 6]), lines) == ["=jobs.#", "=port_#", ""]


def test_untrusted_texts_have_no_vote() -> None:
    voters = stacked([row(1, "=jobs.#", origin="untrusted"), row(2, talk=1)])
    lines = stacked([row(3, "=jobs.#", origin="untrusted", talk=1)])
    assert subjects.answers_of(voters, np.array([NOBODY, 3]), lines) == ["", ""]


def test_what_is_about_another_subject_is_put_back_and_a_likely_value_comes_forward() -> None:
    found = stacked([row(1), row(2), row(3, "=jobs.#")])
    subject = Subject(shapes={"=jobs.#": 1.0}, about=np.array([2, 3]))
    scores = subject.applied(found, np.array([0.5, 0.5, 0.5])).tolist()
    assert scores == pytest.approx([0.5 * subjects.FOREIGN, 0.5, 0.5 + subjects.SHAPE_SHARE])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(row(1, "=jobs.#", origin="untrusted"), id="a stranger's text"),
        pytest.param(row(1, "=jobs.#", substance=0.7), id="a routine line"),
    ],
)
def test_a_value_that_nobody_stated_does_not_come_forward(line: tuple[Any, ...]) -> None:
    subject = Subject(shapes={"=jobs.#": 1.0}, about=np.array([1]))
    assert subject.applied(stacked([line]), np.array([0.5])).tolist() == [0.5]


def test_a_question_without_a_known_subject_is_left_as_it_is() -> None:
    found = stacked([row(1), row(2, "=jobs.#")])
    assert Subject().applied(found, np.array([0.1, 0.2])).tolist() == [0.1, 0.2]
    assert [item.entry_id for item in Subject().in_time(iter(ranked(2, 1)), found)] == [2, 1]


def test_the_newest_statement_of_a_matter_takes_the_best_place_of_all_its_statements() -> None:
    found = stacked([row(1, "=jobs.#"), row(2, "=port_#"), row(3, "=jobs.#")])
    out = subjects.newest_first(ranked(1, 2, 3), found, everything(found))
    assert [item.entry_id for item in out] == [3, 2, 1]
    assert [item.score for item in out] == [1, 0.9, 0.8]


def test_a_question_for_the_past_gets_the_oldest_first() -> None:
    found = stacked([row(1, "=jobs.#"), row(3, "=jobs.#")])
    out = subjects.newest_first(ranked(3, 1), found, everything(found), oldest=True)
    assert [item.entry_id for item in out] == [1, 3]


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param(row(3, "=jobs.#", origin="untrusted"), id="an untrusted line must not displace a fact"),
        pytest.param(row(3, "=jobs.#", substance=0.7), id="a routine line is no statement"),
        pytest.param(row(3, "=jobs.# =port_#"), id="two values: nobody knows which matter it is"),
        pytest.param(row(3, "=ff_#"), id="another matter"),
        pytest.param(row(3), id="no value"),
    ],
)
def test_what_is_no_newer_statement_stays_where_it_is(newer: tuple[Any, ...]) -> None:
    found = stacked([row(1, "=jobs.#"), newer])
    assert [item.entry_id for item in subjects.newest_first(ranked(1, 3), found, everything(found))] == [1, 3]


def test_statements_about_another_subject_stay_where_they_are() -> None:
    found = stacked([row(1, "=jobs.#"), row(3, "=jobs.#")])
    about = np.array([True, False])
    assert [item.entry_id for item in subjects.newest_first(ranked(1, 3), found, about)] == [1, 3]
