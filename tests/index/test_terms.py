"""Scores of single terms in memory: the same numbers as FTS5 gives for the whole question."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from recall_runtime.index import image, lanes, terms
from recall_runtime.index.lanes import Scope
from recall_runtime.index.sync import sync
from recall_runtime.index.terms import TermScores, best
from recall_runtime.storage.connection import open_reader
from recall_runtime.vocabulary import Corpus
from tests.support.index_agents import agent_over, write_files

NOTES = {
    f"memory/2026-03-{day:02d}.md": f"# Day {day}\n\n"
    + "".join(
        f"- The mill number {line % 7} grinds grain of field {line * day % 11} for s3://keep-{day}.\n"
        for line in range(9)
    )
    for day in range(1, 20)
}
QUESTIONS = (
    ["mill"],
    ["mill", "grain", "field"],
    ["grain", "mill", "field"],
    ["number", "7", "s3://keep-7", "keep"],
    ["nothing", "holds", "these"],
    ["mill", "nothing"],
)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[apsw.Connection]:
    agent = agent_over(write_files(tmp_path / "ws", NOTES), tmp_path / "home", settings={"embedder": {"name": "none"}})
    sync(agent)
    with contextlib.closing(open_reader(agent.folders.index_db, vectors=True)) as opened:
        yield opened


@pytest.mark.parametrize("asked", QUESTIONS, ids=" ".join)
def test_the_sum_over_the_terms_is_what_fts5_gives_for_the_question(reader: apsw.Connection, asked: list[str]) -> None:
    kept = image.load(reader)
    assert kept is not None
    scope = Scope(Corpus.ALL)
    for limit in (5, 40, 1_000):  # many lines score the same, so the limit falls among equals
        expected = lanes.keyword_scores(reader, asked, scope, limit)
        assert list(kept.keyword_scores(reader, asked, scope, limit).items()) == list(expected.items())


@pytest.mark.parametrize("asked", QUESTIONS, ids=" ".join)
def test_documents_score_as_fts5_scores_them(reader: apsw.Connection, asked: list[str]) -> None:
    kept = image.load(reader)
    assert kept is not None
    found = kept.of(kept.columns.entry_ids.tolist(), Scope(Corpus.ALL))
    expected = lanes.document_scores(reader, asked, found.source_ids.tolist())
    assert kept.document_scores(reader, asked, found).tolist() == [
        expected.get(source_id, 0.0) for source_id in found.source_ids.tolist()
    ]


def test_entries_that_hold_a_term_of_each_group_are_those_of_fts5(reader: apsw.Connection) -> None:
    kept = image.load(reader)
    assert kept is not None
    groups = ["number", "nothing"], ["7", "keep"]
    assert kept.holding(reader, *groups).tolist() == lanes.holding(reader, *groups) != []


def test_a_term_is_read_once(reader: apsw.Connection) -> None:
    read: list[str] = []

    def counting(_: apsw.Connection, term: str) -> list[tuple[int, float]]:
        read.append(term)
        return [(4, -1.5)]

    known = TermScores(np.array([2, 4]), counting)
    assert known.total(reader, ["a", "b", "a"]).tolist() == [0.0, 4.5]
    assert read == ["a", "b"]


def test_the_terms_not_asked_for_longest_are_forgotten_first(reader: apsw.Connection) -> None:
    read: list[str] = []
    everybody = [(entry_id, -1.0) for entry_id in range(terms.MOST_SCORES // 2)]

    def counting(_: apsw.Connection, term: str) -> list[tuple[int, float]]:
        read.append(term)
        return everybody

    known = TermScores(np.arange(len(everybody)), counting)
    for term in ("a", "b", "a", "c", "a", "b"):
        known.of(reader, term)
    assert read == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (2, [3, 0]),
        (3, [3, 0, 4]),  # the first of the equal ones
        (9, [3, 0, 4, 1]),
    ],
)
def test_the_best_stand_in_order_and_equal_ones_by_place(limit: int, expected: list[int]) -> None:
    scores = np.array([0.7, 0.1, 9.0, 0.8, 0.7])
    assert best(scores, np.array([0, 1, 3, 4]), limit).tolist() == expected
