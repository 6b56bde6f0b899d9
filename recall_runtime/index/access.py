"""The two ways a search reaches the index: its tables, and an image of it in memory.

Belongs here: what a search asks of the index, from either place.
Does not belong here: the queries (``index.lanes``), keeping an image (``index.image``), what is made of the answers.

Up to ``image.EXACT_ENTRIES`` entries both give the same answers; above, the image chooses a shortlist by the signs of
the vectors and misses about 1 of 1,000 of the nearest (docs/decisions.md).
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

import apsw
import numpy as np

from recall_runtime.index import candidates, lanes, vectors
from recall_runtime.index.candidates import Candidates, Floats, Integers
from recall_runtime.index.embedders.protocol import Vector
from recall_runtime.index.image import IndexImage
from recall_runtime.index.lanes import Scope, VectorFacts
from recall_runtime.index.ranking import path_tier
from recall_runtime.index.subjects import names_of
from recall_runtime.index.vectors import Matrix, VectorFilter
from recall_runtime.vocabulary import Tier

MATRIX_LIMIT = 50_000  # up to here reading all vectors and scanning them is faster than KNN with later look-ups


class Access(Protocol):
    """What a search asks of the index. Entry ids that don't exist are no error."""

    @property
    def entries(self) -> int:
        """How many entries the index holds."""
        ...

    def facts(self) -> VectorFacts:
        """Return what the index says of its vectors."""
        ...

    def document_frequency(self, term: str) -> int:
        """Return how many entries hold ``term``."""
        ...

    def keyword_scores(self, terms: Sequence[str], scope: Scope, limit: int) -> dict[int, float]:
        """Return the BM25 score (higher is better) of the ``limit`` best entries for any of ``terms``."""
        ...

    def document_scores(self, terms: Sequence[str], found: Candidates) -> Floats:
        """Return the BM25 score of the whole document of each of ``found`` for any of ``terms``; 0 without any."""
        ...

    def named(self, question: str, scope: Scope) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        ...

    def nearest(self, query: Vector, k: int, scope: Scope) -> dict[int, float]:
        """Return the cosines of the ``k`` nearest entries, nearest first."""
        ...

    def cosines(self, query: Vector, entry_ids: Integers) -> Floats:
        """Return the cosine of each of ``entry_ids``, NaN for one without a vector."""
        ...

    def of(self, entry_ids: Iterable[int], scope: Scope) -> Candidates:
        """Return the columns of those of ``entry_ids`` that may be found in ``scope``, in the order of their ids."""
        ...

    def beside(self, found: Candidates, step: int) -> Integers:
        """Return the entries ``step`` behind each of ``found`` in its source; ``NOBODY`` where there is none."""
        ...

    def projects(self) -> frozenset[str]:
        """Return the terms by which questions name the known projects."""
        ...

    def holding(self, *groups: Sequence[str]) -> Integers:
        """Return the entries of the whole index that hold a term of each group, in the order of their ids."""
        ...


class StoredIndex:
    """The index as it lies in its tables, for a process that asks once.

    Args:
        connection: A reader of the index.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @cached_property
    def entries(self) -> int:
        """How many entries the index holds."""
        return lanes.entry_count(self._connection)

    def facts(self) -> VectorFacts:
        """Return what the index says of its vectors."""
        return lanes.vector_facts(self._connection)

    def document_frequency(self, term: str) -> int:
        """Return how many entries hold ``term``."""
        return lanes.document_frequency(self._connection, term)

    def keyword_scores(self, terms: Sequence[str], scope: Scope, limit: int) -> dict[int, float]:
        """Return the BM25 score (higher is better) of the ``limit`` best entries for any of ``terms``."""
        return lanes.keyword_scores(self._connection, terms, scope, limit)

    def document_scores(self, terms: Sequence[str], found: Candidates) -> Floats:
        """Return the BM25 score of the whole document of each of ``found`` for any of ``terms``; 0 without any."""
        sources = found.source_ids.tolist()
        scores = lanes.document_scores(self._connection, terms, sources)
        return np.array([scores.get(source_id, 0.0) for source_id in sources])

    def named(self, question: str, scope: Scope) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        found = lanes.path_hits(self._connection, question, scope)
        tiers = {entry_id: path_tier(question, path) for _, entry_id, path in found}
        return {entry_id: tier for entry_id, tier in tiers.items() if tier}

    def nearest(self, query: Vector, k: int, scope: Scope) -> dict[int, float]:
        """Return the cosines of the ``k`` nearest entries, nearest first."""
        readable = None
        if scope.sessions is not None and Tier.SESSIONS in scope.tiers:
            readable = lanes.session_entries(self._connection, scope.sessions)
        wanted = VectorFilter(scope.tiers, scope.origin_classes, scope.include_superseded, readable)
        found = vectors.nearest(self._connection, query, k, wanted, self._matrix)
        return {item.entry_id: item.cosine for item in found}

    def cosines(self, query: Vector, entry_ids: Integers) -> Floats:
        """Return the cosine of each of ``entry_ids``, NaN for one without a vector."""
        known = vectors.fetch(self._connection, entry_ids.tolist(), self._matrix)
        return np.array([known[key] @ query if key in known else np.nan for key in entry_ids.tolist()])

    def of(self, entry_ids: Iterable[int], scope: Scope) -> Candidates:
        """Return the columns of those of ``entry_ids`` that may be found in ``scope``, in the order of their ids."""
        found = candidates.read(self._connection, entry_ids)
        return found.take(found.visible(scope))

    def beside(self, found: Candidates, step: int) -> Integers:
        """Return the entries ``step`` behind each of ``found`` in its source; ``NOBODY`` where there is none."""
        return candidates.read_beside(self._connection, found, step)

    def projects(self) -> frozenset[str]:
        """Return the terms by which questions name the known projects."""
        return names_of(lanes.project_keys(self._connection))

    def holding(self, *groups: Sequence[str]) -> Integers:
        """Return the entries of the whole index that hold a term of each group, in the order of their ids."""
        return np.array(lanes.holding(self._connection, *groups), dtype=np.int64)

    @cached_property
    def _matrix(self) -> Matrix | None:
        if vectors.counts(self._connection)["live"] > MATRIX_LIMIT:
            return None
        return vectors.load_matrix(self._connection)


class ImageIndex:
    """The index by its image; only words that nobody asked for before are looked up in its tables.

    Args:
        image: The image for the state that ``connection`` sees.
        connection: A reader of the index.
    """

    def __init__(self, image: IndexImage, connection: apsw.Connection) -> None:
        self._image, self._connection = image, connection

    @property
    def entries(self) -> int:
        """How many entries the index holds."""
        return self._image.entries

    def facts(self) -> VectorFacts:
        """Return what the index says of its vectors."""
        return self._image.facts

    def document_frequency(self, term: str) -> int:
        """Return how many entries hold ``term``."""
        return self._image.document_frequency(self._connection, term)

    def keyword_scores(self, terms: Sequence[str], scope: Scope, limit: int) -> dict[int, float]:
        """Return the BM25 score (higher is better) of the ``limit`` best entries for any of ``terms``."""
        return self._image.keyword_scores(self._connection, terms, scope, limit)

    def document_scores(self, terms: Sequence[str], found: Candidates) -> Floats:
        """Return the BM25 score of the whole document of each of ``found`` for any of ``terms``; 0 without any."""
        return self._image.document_scores(self._connection, terms, found)

    def named(self, question: str, scope: Scope) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        return self._image.named(question, scope)

    def nearest(self, query: Vector, k: int, scope: Scope) -> dict[int, float]:
        """Return the cosines of the ``k`` nearest entries, nearest first."""
        return self._image.nearest(query, k, scope)

    def cosines(self, query: Vector, entry_ids: Integers) -> Floats:
        """Return the cosine of each of ``entry_ids``, NaN for one without a vector."""
        return self._image.cosines(query, entry_ids)

    def of(self, entry_ids: Iterable[int], scope: Scope) -> Candidates:
        """Return the columns of those of ``entry_ids`` that may be found in ``scope``, in the order of their ids."""
        return self._image.of(entry_ids, scope)

    def beside(self, found: Candidates, step: int) -> Integers:
        """Return the entries ``step`` behind each of ``found`` in its source; ``NOBODY`` where there is none."""
        return self._image.beside(found, step)

    def projects(self) -> frozenset[str]:
        """Return the terms by which questions name the known projects."""
        return self._image.projects()

    def holding(self, *groups: Sequence[str]) -> Integers:
        """Return the entries of the whole index that hold a term of each group, in the order of their ids."""
        return self._image.holding(self._connection, *groups)
