"""The two lanes of a search: words (FTS5) and meaning (vectors), each with its state.

Belongs here: the queries, what a lane reports about itself.
Does not belong here: putting the lanes together (``index.ranking``, ``index.search``).

User text never becomes syntax: the terms come from ``text.words``, each is quoted, all are joined by OR.
"""

import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from recall_runtime.errors import EmbedderError
from recall_runtime.index import store, vectors
from recall_runtime.index.embedders.protocol import Calibration, Embedder, Vector
from recall_runtime.index.hits import Lane, LaneState
from recall_runtime.notes.identity import common_words
from recall_runtime.text.words import stem
from recall_runtime.vocabulary import Corpus, EntryStatus, OriginClass, Tier

BODY_WEIGHT = 1.0
CONTEXT_WEIGHT = 0.5
MAX_TERMS = 64
MATRIX_LIMIT = 50_000  # up to here reading all vectors and scanning them is faster than KNN with later look-ups

_TIERS = {
    Corpus.MEMORY: frozenset({Tier.CURATED, Tier.EPISODIC, Tier.REVIEW, Tier.IMPORTS}),
    Corpus.SESSIONS: frozenset({Tier.SESSIONS}),
    Corpus.ALL: frozenset(Tier),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be found at all. Applied inside both lanes."""

    corpus: Corpus = Corpus.MEMORY
    include_untrusted: bool = True
    include_superseded: bool = False
    sessions: frozenset[str] | None = None  # keys of the sessions whose transcripts may be shown; None: all

    @property
    def tiers(self) -> frozenset[Tier]:
        """The tiers of the corpus."""
        return _TIERS[self.corpus]

    @property
    def origin_classes(self) -> frozenset[OriginClass]:
        """The classes that may be found."""
        return frozenset(OriginClass) if self.include_untrusted else frozenset(OriginClass) - {OriginClass.UNTRUSTED}

    def where(self) -> tuple[str, list[Any]]:
        """Return the SQL condition on ``e`` (entries) and ``s`` (sources), and its values."""
        parts, values = ["1"], list[Any]()
        if self.tiers != frozenset(Tier):
            parts.append(f"s.tier IN ({', '.join('?' * len(self.tiers))})")
            values += sorted(tier.value for tier in self.tiers)
        if not self.include_untrusted:
            parts.append("e.origin_class <> ?")
            values.append(OriginClass.UNTRUSTED.value)
        if not self.include_superseded:
            parts.append("e.status = ?")
            values.append(EntryStatus.ACTIVE.value)
        if self.sessions is not None:
            parts.append("(s.tier <> ? OR s.session_key IN (SELECT value FROM json_each(?)))")
            values += [Tier.SESSIONS.value, json.dumps(sorted(self.sessions))]
        return " AND ".join(parts), values


def match_any(terms: Sequence[str]) -> str:
    """Return the FTS5 expression that matches any of ``terms``, each quoted."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms[:MAX_TERMS])


def keyword_scores(connection: apsw.Connection, terms: Sequence[str], scope: Scope, limit: int) -> dict[int, float]:
    """Return the BM25 score (higher is better) of the ``limit`` best entries for any of ``terms``."""
    if not terms:
        return {}
    where, values = scope.where()
    rows = connection.execute(
        "SELECT f.rowid, bm25(entries_fts, ?, ?) AS rank FROM entries_fts f"  # noqa: S608 - our own parts
        " JOIN entries e ON e.entry_id = f.rowid JOIN sources s ON s.source_id = e.source_id"
        f" WHERE entries_fts MATCH ? AND {where} ORDER BY rank LIMIT ?",
        (BODY_WEIGHT, CONTEXT_WEIGHT, match_any(terms), *values, limit),
    )
    return {entry_id: -rank for entry_id, rank in rows}


@functools.lru_cache(maxsize=1)
def _common_terms() -> frozenset[str]:
    return frozenset(stem(word) for word in common_words())


def specific_terms(terms: Sequence[str]) -> list[str]:
    """Return those of ``terms`` that name something: identifiers, values, and words that are no common ones."""
    return [term for term in terms if term not in _common_terms() and (len(term) > 2 or not term.isalpha())]


def document_scores(connection: apsw.Connection, terms: Sequence[str], source_ids: Iterable[int]) -> dict[int, float]:
    """Return the BM25 score of the whole documents ``source_ids`` for any of ``terms``; unmatched ones are left out."""
    wanted = set(source_ids)
    if not terms or not wanted:
        return {}
    rows = connection.execute(
        "SELECT rowid, bm25(documents_fts) FROM documents_fts WHERE documents_fts MATCH ?", (match_any(terms),)
    )
    return {source_id: -rank for source_id, rank in rows if source_id in wanted}


def term_weights(connection: apsw.Connection, terms: Sequence[str]) -> dict[str, float]:
    """Return how telling each term is: its inverse document frequency over all entries, never below a small floor."""
    total = next(iter(connection.execute("SELECT count(*) FROM entries")))[0]
    weights: dict[str, float] = {}
    for term in terms[:MAX_TERMS]:
        found = list(connection.execute("SELECT doc FROM entries_vocab WHERE term = ?", (term,)))
        count = found[0][0] if found else 0
        weights[term] = max(0.1, math.log((total - count + 0.5) / (count + 0.5)))
    return weights


def path_hits(connection: apsw.Connection, query: str, scope: Scope, limit: int = 200) -> list[tuple[int, int, str]]:
    """Return (source id, first entry id, path) of sources whose name holds the words of a short ``query``."""
    words = [word for word in "".join(sign if sign.isalnum() else " " for sign in query).split() if word]
    if not words or len(query) > 300:
        return []
    where, values = scope.where()
    rows = connection.execute(
        "SELECT s.source_id, min(e.entry_id), s.path"  # noqa: S608 - our own parts
        " FROM paths_fts p JOIN sources s ON s.source_id = p.rowid"
        " JOIN entries e ON e.source_id = s.source_id"
        f" WHERE paths_fts MATCH ? AND {where} GROUP BY s.source_id LIMIT ?",
        (" ".join('"' + word + '"' for word in words), *values, limit),
    )
    return [(source_id, entry_id, path) for source_id, entry_id, path in rows]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the vector lane needs of one question: its vector, the vectors it is compared with, the calibration."""

    query: Vector
    calibration: Calibration
    matrix: vectors.Matrix | None


def prepare_meaning(
    connection: apsw.Connection, embedder: Embedder | None, query: str, matrix: vectors.Matrix | None
) -> tuple[Meaning | None, Lane]:
    """Return what the vector lane needs, or ``None`` and why not."""
    if embedder is None:
        return None, Lane(LaneState.OFF, "no embedder is configured: answers come from the keyword lane alone")
    built_with = store.get_meta(connection, "embedder")
    if built_with != embedder.identity:
        why = f"the index has vectors of {built_with}" if built_with else "the index has no vectors yet"
        return None, Lane(LaneState.DEGRADED, f"{why}; run `dreamline index`")
    try:
        vector = embedder.embed_query(query)
    except EmbedderError as error:
        return None, Lane(LaneState.FAILED, str(error))
    missing = next(iter(connection.execute("SELECT count(*) FROM entries WHERE embedded = 0")))[0]
    calibration = stored_calibration(connection) or embedder.calibration or Calibration(0.0, 1.0)
    if matrix is None and vectors.counts(connection)["live"] <= MATRIX_LIMIT:
        matrix = vectors.load_matrix(connection)
    lane = Lane(LaneState.OK)
    if missing:
        lane = Lane(LaneState.DEGRADED, f"{missing} entries have no vector yet; run `dreamline index`")
    elif not vectors.has_extension(connection):
        lane = Lane(LaneState.DEGRADED, "sqlite-vec can't be loaded: vectors are scanned, same answers, slower")
    return Meaning(vector, calibration, matrix), lane


def stored_calibration(connection: apsw.Connection) -> Calibration | None:
    """Return the calibration measured at sync for an embedder that has none of its own."""
    text = store.get_meta(connection, "calibration")
    return Calibration(*json.loads(text)) if text else None


def vector_scores(connection: apsw.Connection, meaning: Meaning, scope: Scope, limit: int) -> dict[int, float]:
    """Return the cosine of the ``limit`` nearest entries."""
    wanted = vectors.VectorFilter(scope.tiers, scope.origin_classes, scope.include_superseded)
    found = vectors.nearest(connection, meaning.query, limit, wanted, meaning.matrix)
    return {item.entry_id: item.cosine for item in found}


def cosines_of(connection: apsw.Connection, meaning: Meaning, entry_ids: Sequence[int]) -> dict[int, float]:
    """Return the cosine of each of ``entry_ids`` that has a vector."""
    found = vectors.fetch(connection, entry_ids, meaning.matrix)
    return {entry_id: float(vector @ meaning.query) for entry_id, vector in found.items()}
