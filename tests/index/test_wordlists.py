"""Inverted lists in memory: the same numbers as FTS5, and nothing said where its rules differ from ours."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from recall_runtime.index import image, lanes, wordlists
from recall_runtime.index.image import IndexImage
from recall_runtime.index.lanes import Scope
from recall_runtime.index.sync import sync
from recall_runtime.index.terms import TermScores
from recall_runtime.storage.connection import open_reader, open_writer, write_transaction
from recall_runtime.vocabulary import Corpus
from tests.support.index_agents import agent_over, write_files

NOTES = {
    "MEMORY.md": "# Memory\n\n- The mill of Ada grinds grain. <!-- importance: 9 -->\n",
    "memory/2026-03-01.md": "# Mill\n\n- The mill grinds at night, grain by grain.\n- Keep s3://keep-11206 safe.\n",
    "memory/2026-03-02.md": "- The mill.\n- Grüße aus der Mühle, 漏水 in der Mühle.\n- Мельница мелет зерно.\n",
    "memory/long.md": "".join(
        f"- The mill grinds field {number} and {' '.join(['grain'] * number)}.\n" for number in range(150)
    ),
    "memory/signs.md": "- melting \U0001fae0 face\n- plain face\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    agent = agent_over(write_files(tmp_path / "ws", NOTES), tmp_path / "home", settings={"embedder": {"name": "none"}})
    sync(agent)
    return agent.folders.index_db


@pytest.fixture
def reader(path: Path) -> Iterator[apsw.Connection]:
    with contextlib.closing(open_reader(path, vectors=True)) as opened:
        yield opened


def loaded(reader: apsw.Connection) -> IndexImage:
    made = image.load(reader)
    assert made is not None
    return made


def test_every_term_is_scored_as_fts5_scores_it_or_left_to_it(reader: apsw.Connection) -> None:
    kept = loaded(reader)
    assert kept.words is not None
    read = TermScores(kept.columns.entry_ids, lanes.term_matches)
    vocabulary = [row[0] for row in reader.execute("SELECT term FROM entries_vocab")]
    ours = 0
    for term in {*vocabulary, *kept.words.numbers, "nowhere"}:
        known = kept.words.entry_scores(term)
        if known is not None:
            ours += 1
            places, scores = read.of(reader, str(term))
            assert known[0].tolist() == places.tolist()
            assert known[1].tolist() == scores.tolist()
            assert kept.words.frequency(str(term)) == lanes.document_frequency(reader, str(term))
    assert ours > 180


def test_documents_are_scored_as_fts5_scores_them(reader: apsw.Connection) -> None:
    kept = loaded(reader)
    assert kept.words is not None
    sources = sorted(kept.sources)
    for term in ("mill", "grain", "keep", "nowhere"):
        known = kept.words.document_scores(term)
        assert known is not None
        found = {sources[place]: -score for place, score in zip(known[0].tolist(), known[1].tolist(), strict=True)}
        assert found == dict(lanes.term_documents(reader, term))


def test_terms_that_fts5_cuts_otherwise_are_left_to_it(path: Path, reader: apsw.Connection) -> None:
    (entry_id,) = next(iter(reader.execute("SELECT rowid FROM entries_fts WHERE entries_fts MATCH 'ada'")))
    with contextlib.closing(open_writer(path)) as writer, write_transaction(writer):
        writer.execute("DELETE FROM entries_fts WHERE rowid = ?", (entry_id,))
        words = "ze\u200bro mill mi\u200bll"  # the invisible sign ends a word for FTS5, not for us
        writer.execute("INSERT INTO entries_fts(rowid, body, context) VALUES (?, ?, '')", (entry_id, words))
    kept = loaded(reader)
    assert kept.words is not None
    for term in ("ze", "ro", "ze\u200bro", "mi", "ll"):
        assert kept.words.frequency(term) is None
        assert kept.words.entry_scores(term) is None
        assert kept.document_frequency(reader, term) == lanes.document_frequency(reader, term)
    assert kept.words.frequency("mill") == lanes.document_frequency(reader, "mill")
    for asked in (["ze"], ["ro", "mill"], ["grain", "mi"]):
        expected = lanes.keyword_scores(reader, asked, Scope(Corpus.ALL), 500)
        assert kept.keyword_scores(reader, asked, Scope(Corpus.ALL), 500) == expected


@pytest.mark.parametrize("term", ["nowhere", "0815"])
def test_nothing_holds_a_plain_word_that_is_in_no_list(reader: apsw.Connection, term: str) -> None:
    kept = loaded(reader)
    assert kept.words is not None
    assert kept.words.frequency(term) == 0


@pytest.mark.parametrize("term", ["Mill", "no-where", "nirgendwö"])
def test_fts5_is_asked_about_an_unknown_word_that_it_may_cut_or_fold(reader: apsw.Connection, term: str) -> None:
    kept = loaded(reader)
    assert kept.words is not None
    assert kept.words.frequency(term) is None
    assert kept.document_frequency(reader, term) == lanes.document_frequency(reader, term)


def test_there_are_no_lists_where_the_full_text_holds_other_rows(path: Path, reader: apsw.Connection) -> None:
    kept = loaded(reader)
    with contextlib.closing(open_writer(path)) as writer, write_transaction(writer):
        writer.execute("INSERT INTO entries_fts(rowid, body, context) VALUES (999999, 'mill', '')")
    assert wordlists.load(reader, kept.columns, kept.columns.source_ids) is None


def test_documents_are_left_to_fts5_where_they_are_not_their_entries(path: Path, reader: apsw.Connection) -> None:
    (source_id,) = next(iter(reader.execute("SELECT source_id FROM sources WHERE path = 'memory/signs.md'")))
    with contextlib.closing(open_writer(path)) as writer, write_transaction(writer):
        writer.execute("DELETE FROM documents_fts WHERE rowid = ?", (source_id,))
        writer.execute("INSERT INTO documents_fts(rowid, body) VALUES (?, 'something else')", (source_id,))
    kept = loaded(reader)
    assert kept.words is not None
    assert kept.words.documents is None
    assert kept.words.entry_scores("mill") is not None


def test_words_of_more_than_127_are_counted(reader: apsw.Connection) -> None:
    kept = loaded(reader)
    assert kept.words is not None
    assert kept.words.entries.lengths.max() > 127


def test_the_lists_are_put_aside_when_words_change(path: Path, reader: apsw.Connection, tmp_path: Path) -> None:
    before = loaded(reader)
    agent = agent_over(
        write_files(tmp_path / "ws", {"memory/new.md": "- A mill more.\n"}),
        tmp_path / "home",
        settings={"embedder": {"name": "none"}},
    )
    sync(agent)
    after = image.refreshed(before, reader)
    assert after is not None
    assert after.words is None
    assert after.document_frequency(reader, "mill") == before.document_frequency(reader, "mill") + 1 > 1
