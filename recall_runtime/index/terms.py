"""What FTS5 says of single terms, kept in memory, for a process that answers many questions.

Belongs here: the scores a term gives to entries and documents, their sum over the terms of a question.
Does not belong here: reckoning them (``index.wordlists``), queries (``index.lanes``), who may be found
(``index.image``), when scores are out of date: a ``TermScores`` is right for one state of the words in the index.

BM25 is a sum over the terms of a question, and FTS5 adds them up in their order. So the scores of a term alone, kept
when it was first asked for, give the same numbers as the whole question, to the last bit.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import apsw
import numpy as np

from recall_runtime.index import lanes
from recall_runtime.index.candidates import NOBODY, Floats, Integers, found_at
from recall_runtime.index.wordlists import Scored

MOST_SCORES = 2_000_000  # of all kept terms together; 16 bytes each

Read = Callable[[apsw.Connection, str], Sequence[tuple[int, float]]]


class TermScores:
    """Scores of the terms asked for so far; those not asked for longest are forgotten first. Any thread may ask.

    Args:
        rows: The ids of the rows of the full-text table, in order; positions refer to it.
        read: Returns (id, FTS5 rank) of every row that holds a term, in the order of ids.
        lists: Returns what of a term is in memory already, or ``None`` to have it read.
    """

    def __init__(self, rows: Integers, read: Read, lists: Callable[[str], Scored | None] = lambda _: None) -> None:
        self._rows, self._read, self._lists = rows, read, lists
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Scored] = OrderedDict()
        self._count = 0

    def of(self, connection: apsw.Connection, term: str) -> Scored:
        """Return who holds ``term``: positions in order, and the BM25 score (higher is better) of each for it alone."""
        with self._lock:
            known = self._known.get(term)
            if known is not None:
                self._known.move_to_end(term)
                return known
        return self._keep(term, self._lists(term) or self._scored(connection, term))

    def total(self, connection: apsw.Connection, terms: Sequence[str]) -> Floats:
        """Return the BM25 score of every row for any of ``terms``; 0 for a row that holds none of them."""
        total = np.zeros(len(self._rows))
        for term in terms[: lanes.MAX_TERMS]:
            places, scores = self.of(connection, term)
            total[places] += scores
        return total

    def _scored(self, connection: apsw.Connection, term: str) -> Scored:
        found = self._read(connection, term)
        ids = np.fromiter((row[0] for row in found), dtype=np.int64, count=len(found))
        ranks = np.fromiter((row[1] for row in found), dtype=np.float64, count=len(found))
        places = found_at(self._rows, ids)
        known = places != NOBODY
        return places[known], -ranks[known]

    def _keep(self, term: str, fresh: Scored) -> Scored:
        with self._lock:
            if term not in self._known:
                self._known[term] = fresh
                self._count += len(fresh[0])
            while self._count > MOST_SCORES:
                self._count -= len(self._known.popitem(last=False)[1][0])
        return fresh


def best(scores: Floats, allowed: Integers, limit: int) -> Integers:
    """Return up to ``limit`` of the positions ``allowed`` by score, best first; of equal ones the first comes first."""
    values = scores[allowed]
    if limit < len(values):
        least = np.partition(values, len(values) - limit)[len(values) - limit]
        enough = values >= least
        allowed, values = allowed[enough], values[enough]
    order: Integers = allowed[np.argsort(-values, kind="stable")]
    return order[:limit]
