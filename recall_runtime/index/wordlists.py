"""The inverted lists of a whole index in memory: which entry holds which word, and BM25 as FTS5 reckons it.

Belongs here: reading the lists, the scores of one term.
Does not belong here: adding terms up (``index.terms``), who may be found (``index.image``).

The words are those FTS5 stores, cut at blanks. FTS5 cuts by rules of its own, so every list is held against its
vocabulary and all lengths are its own; a term about which they differ is left to FTS5. Lists are right for one state of
the words. They take about 8 bytes for each word of each entry, and a word itself about 100.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recall_runtime.index.candidates import NOBODY, Candidates, Floats, Integers, found_at
from recall_runtime.index.lanes import BODY_WEIGHT, CONTEXT_WEIGHT

K1 = 1.2  # both are fixed in FTS5
B = 0.75
_LEAST_IDF = 1e-6

Scored = tuple[Integers, Floats]  # positions in order, BM25 of each (higher is better)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of one full-text table.

    ``first`` says where the list of each term begins, and the end of all. ``places`` are positions of rows, in order
    within a list, ``counts`` how often the term stands there, each column by its weight. ``lengths`` are the words of
    each row, ``rows`` and ``words`` those of the whole table, as FTS5 counts them.
    """

    first: Integers
    places: NDArray[np.int32]
    counts: NDArray[np.float32]
    lengths: Floats
    rows: int
    words: int

    def scores(self, number: int) -> Scored:
        """Return who holds the term with this number, scored for it alone."""
        part = slice(int(self.first[number]), int(self.first[number + 1]))
        places, count = self.places[part].astype(np.int64), self.counts[part].astype(np.float64)
        idf = math.log((self.rows - len(places) + 0.5) / (len(places) + 0.5))
        length = 1 - B + B * self.lengths[places] / (self.words / self.rows)
        return places, (idf if idf > 0 else _LEAST_IDF) * ((count * (K1 + 1.0)) / (count + K1 * length))


@dataclass(frozen=True, slots=True)
class WordLists:
    """The lists of entries, and of documents where they are the sum of their entries.

    ``frequencies`` says how many entries hold the term with a number, -1 where FTS5 must be asked about it.
    """

    numbers: dict[str, int]
    frequencies: Integers
    entries: Lists
    documents: Lists | None

    def frequency(self, term: str) -> int | None:
        """Return how many entries hold ``term``, or ``None`` when FTS5 must be asked."""
        number = self.numbers.get(term)
        if number is None:
            whole = term.isascii() and term.isalnum() and term == term.lower()  # FTS5 neither cuts nor folds it
            return 0 if whole else None
        return int(self.frequencies[number]) if self.frequencies[number] >= 0 else None

    def entry_scores(self, term: str) -> Scored | None:
        """Return the entries that hold ``term``, scored for it alone, or ``None`` when FTS5 must be asked."""
        return self._scores(self.entries, term)

    def document_scores(self, term: str) -> Scored | None:
        """Return the documents that hold ``term``, scored for it alone, or ``None`` when FTS5 must be asked."""
        return self._scores(self.documents, term)

    def _scores(self, lists: Lists | None, term: str) -> Scored | None:
        frequency = self.frequency(term)
        if lists is None or frequency is None:
            return None
        return lists.scores(self.numbers[term]) if frequency else (np.zeros(0, dtype=np.int64), np.zeros(0))


def load(connection: apsw.Connection, columns: Candidates, source_ids: Integers) -> WordLists | None:
    """Return the lists of all entries, or ``None`` when the full text does not fit them.

    Args:
        connection: A reader that sees the state of ``columns``.
        columns: All entries of the index.
        source_ids: All sources, in order; positions of documents refer to it.
    """
    numbers, body, context = _Numbers(), _Column(), _Column()
    ids = array("q")
    for entry_id, *texts in connection.execute("SELECT id, c0, c1 FROM entries_fts_content ORDER BY id"):
        ids.append(entry_id)
        for column, text in zip((body, context), texts, strict=True):
            column.add(text.split(), numbers)
    sizes = _sizes(connection, "entries_fts", columns.entry_ids)
    places = found_at(columns.entry_ids, np.frombuffer(ids, dtype=np.int64))
    if not len(columns) or len(ids) != len(columns) or NOBODY in places or sizes is None:
        return None
    entries, instances = _entry_lists(body, context, places, sizes, len(numbers), _totals(connection, "entries_fts"))
    frequencies = _agreed(connection, numbers, np.diff(entries.first), instances)
    documents = _document_lists(connection, body, places, columns, source_ids, sizes, len(entries.first) - 1)
    return WordLists(dict(numbers), frequencies, entries, documents)


class _Numbers(dict[str, int]):
    """Numbers of words; a new word gets the next one."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(frozen=True, slots=True)
class _Column:
    """The words of one column, row after row, and how many each row has."""

    codes: "array[int]" = field(default_factory=lambda: array("i"))
    sizes: "array[int]" = field(default_factory=lambda: array("i"))

    def add(self, words: Sequence[str], numbers: _Numbers) -> None:
        """Add the words of the next row."""
        self.codes.extend(map(numbers.__getitem__, words))
        self.sizes.append(len(words))

    def counted(self, places: Integers, width: int) -> tuple[Integers, Integers]:
        """Return each (term, place) as term x ``width`` + place, in order, and how often it is there."""
        codes = np.frombuffer(self.codes, dtype=np.int32).astype(np.int64)
        rows = np.repeat(places, np.frombuffer(self.sizes, dtype=np.int32))
        return np.unique(codes * width + rows, return_counts=True)


def _entry_lists(
    body: _Column, context: _Column, places: Integers, sizes: Integers, terms: int, totals: tuple[int, int]
) -> tuple[Lists, Integers]:
    """Return the lists of entries, and how often each term stands in all of them."""
    width = len(places)
    (in_body, body_counts), (in_context, context_counts) = body.counted(places, width), context.counted(places, width)
    keys, at = np.unique(np.concatenate((in_body, in_context)), return_inverse=True)
    counts = np.bincount(at, np.concatenate((BODY_WEIGHT * body_counts, CONTEXT_WEIGHT * context_counts)))
    both = np.bincount(at, np.concatenate((body_counts, context_counts)))
    lists = _lists(keys, counts, width, terms, sizes.sum(axis=1), totals)
    return lists, np.add.reduceat(both, lists.first[:-1]).astype(np.int64) if terms else np.zeros(0, dtype=np.int64)


def _document_lists(
    connection: apsw.Connection,
    body: _Column,
    places: Integers,
    columns: Candidates,
    source_ids: Integers,
    sizes: Integers,
    terms: int,
) -> Lists | None:
    """Return the lists of documents, or ``None`` when they are not as long as their entries together."""
    owners = np.searchsorted(source_ids, columns.source_ids)
    lengths = _sizes(connection, "documents_fts", source_ids)
    together = np.bincount(owners, sizes[:, 0], minlength=len(source_ids))
    if lengths is None or not np.array_equal(lengths[:, 0], together):
        return None
    keys, counts = body.counted(owners[places], len(source_ids))
    return _lists(keys, counts, len(source_ids), terms, together, _totals(connection, "documents_fts"))


def _lists(
    keys: Integers, counts: NDArray[Any], width: int, terms: int, lengths: Integers, totals: tuple[int, int]
) -> Lists:
    return Lists(
        first=np.searchsorted(keys, np.arange(terms + 1) * width),
        places=(keys % width).astype(np.int32),
        counts=counts.astype(np.float32),
        lengths=lengths.astype(np.float64),
        rows=totals[0],
        words=totals[1],
    )


def _agreed(connection: apsw.Connection, numbers: _Numbers, rows: Integers, instances: Integers) -> Integers:
    """Return how many entries hold each term, -1 where the vocabulary of FTS5 says something else."""
    known = len(rows)
    agreed = dict[int, int]()
    for term, in_rows, in_all in connection.execute("SELECT term, doc, cnt FROM entries_vocab"):
        number = numbers[term]  # one that FTS5 alone has gets a number, and stays without a frequency
        if number < known and (in_rows, in_all) == (rows[number], instances[number]):
            agreed[number] = in_rows
    out = np.full(len(numbers), -1, dtype=np.int64)
    out[list(agreed)] = list(agreed.values())
    return out


def _sizes(connection: apsw.Connection, table: str, ids: Integers) -> Integers | None:
    """Return the words of each column of the rows ``ids``, 0 for a row that isn't there; ``None`` with rows beyond."""
    rows = connection.execute(f"SELECT id, sz FROM {table}_docsize").fetchall()  # noqa: S608 - ours
    places = found_at(ids, np.array([row[0] for row in rows], dtype=np.int64))
    if NOBODY in places:
        return None
    sizes = [_varints(row[1]) for row in rows]  # type: ignore[arg-type]  # a blob
    out = np.zeros((len(ids), len(sizes[0]) if sizes else 1), dtype=np.int64)
    out[places] = sizes
    return out


def _totals(connection: apsw.Connection, table: str) -> tuple[int, int]:
    """Return how many rows and words a full-text table holds."""
    ((block,),) = connection.execute(f"SELECT block FROM {table}_data WHERE id = 1").fetchall()  # noqa: S608 - ours
    rows, *words = _varints(block)  # type: ignore[arg-type]  # a blob
    return rows, sum(words)


def _varints(blob: bytes) -> list[int]:
    """Return the numbers in ``blob``: seven bits a byte, the highest first, the last byte of each below 128."""
    found, value = [], 0
    for byte in blob:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            found.append(value)
            value = 0
    return found
