"""The two lanes of a search: words (FTS5) and meaning (vectors), each with its state.

Belongs here: the queries, what a lane reports about itself.
Does not belong here: asking an image in memory (``index.image``), putting the lanes together (``index.fusion``).

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
from recall_runtime.storage.connection import query
from recall_runtime.text.words import stem
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, Corpus, EntryStatus, OriginClass, Tier

BODY_WEIGHT = 1.0
CONTEXT_WEIGHT = 0.5
MAX_TERMS = 64

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
    injectable: bool = False  # only what may be shown unasked: the owner's and the agent's text, none of our reports

    @property
    def tiers(self) -> frozenset[Tier]:
        """The tiers that may be found."""
        return _TIERS[self.corpus] - {Tier.REVIEW} if self.injectable else _TIERS[self.corpus]

    @property
    def origin_classes(self) -> frozenset[OriginClass]:
        """The classes that may be found."""
        if self.injectable:
            return ELIGIBLE_ORIGINS
        return frozenset(OriginClass) if self.include_untrusted else frozenset(OriginClass) - {OriginClass.UNTRUSTED}

    def where(self) -> tuple[str, list[Any]]:
        """Return the SQL condition on ``e`` (entries) and ``s`` (sources), and its values."""
        parts, values = ["1"], list[Any]()
        if self.tiers != frozenset(Tier):
            parts.append(f"s.tier IN ({', '.join('?' * len(self.tiers))})")
            values += sorted(tier.value for tier in self.tiers)
        if self.origin_classes != frozenset(OriginClass):
            parts.append(f"e.origin_class IN ({', '.join('?' * len(self.origin_classes))})")
            values += sorted(origin.value for origin in self.origin_classes)
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


def term_matches(connection: apsw.Connection, term: str) -> Sequence[tuple[int, float]]:
    """Return (entry, FTS5 rank) of all entries of the whole index that hold ``term``, in the order of their ids."""
    return query(
        connection,
        "SELECT rowid, bm25(entries_fts, ?, ?) FROM entries_fts WHERE entries_fts MATCH ? ORDER BY rowid",
        (BODY_WEIGHT, CONTEXT_WEIGHT, match_any((term,))),
    )


def term_documents(connection: apsw.Connection, term: str) -> Sequence[tuple[int, float]]:
    """Return (source, FTS5 rank) of all documents that hold ``term``, in the order of their ids."""
    return query(
        connection,
        "SELECT rowid, bm25(documents_fts) FROM documents_fts WHERE documents_fts MATCH ? ORDER BY rowid",
        (match_any((term,)),),
    )


def holding(connection: apsw.Connection, *groups: Sequence[str]) -> list[int]:
    """Return the entries of the whole index that hold a term of each group, in the order of their ids."""
    match = " AND ".join(f"({match_any(terms)})" for terms in groups)
    rows = query(connection, "SELECT rowid FROM entries_fts WHERE entries_fts MATCH ? ORDER BY rowid", (match,))
    return [row[0] for row in rows]


def session_entries(connection: apsw.Connection, sessions: frozenset[str]) -> tuple[int, ...]:
    """Return the entries of the transcripts of ``sessions``, ascending."""
    rows = query(
        connection,
        "SELECT e.entry_id FROM sources s JOIN entries e ON e.source_id = s.source_id"
        " WHERE s.tier = ? AND s.session_key IN (SELECT value FROM json_each(?)) ORDER BY e.entry_id",
        (Tier.SESSIONS.value, json.dumps(sorted(sessions))),
    )
    return tuple([row[0] for row in rows])


def project_keys(connection: apsw.Connection) -> list[str]:
    """Return the project keys that trusted entries carry."""
    trusted = sorted(ELIGIBLE_ORIGINS)
    rows = query(
        connection,
        "SELECT DISTINCT project_key FROM entries WHERE project_key IS NOT NULL AND origin_class IN (?, ?)",
        tuple(origin.value for origin in trusted),
    )
    return [row[0] for row in rows]


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
    rows = query(
        connection,
        "SELECT rowid, bm25(documents_fts) FROM documents_fts WHERE documents_fts MATCH ?",
        (match_any(terms),),
    )
    return {source_id: -rank for source_id, rank in rows if source_id in wanted}


def entry_count(connection: apsw.Connection) -> int:
    """Return how many entries the index holds."""
    return int(next(iter(connection.execute("SELECT count(*) FROM entries")))[0])


def document_frequency(connection: apsw.Connection, term: str) -> int:
    """Return how many entries hold ``term``."""
    found = query(connection, "SELECT doc FROM entries_vocab WHERE term = ?", (term,))
    return int(found[0][0]) if found else 0


def term_weight(frequency: int, entries: int) -> float:
    """Return how telling a term is: its inverse document frequency over all entries, never below a small floor."""
    return max(0.1, math.log((entries - frequency + 0.5) / (frequency + 0.5)))


def path_hits(connection: apsw.Connection, question: str, scope: Scope, limit: int = 200) -> list[tuple[int, int, str]]:
    """Return (source id, first entry id, path) of sources whose name holds the words of a short ``question``."""
    words = [word for word in "".join(sign if sign.isalnum() else " " for sign in question).split() if word]
    if not words or len(question) > 300:
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
class VectorFacts:
    """What the index says of its vectors: whose they are, their scale, how many entries still have none."""

    embedder: str | None
    calibration: Calibration | None
    missing: int
    extension: bool


def vector_facts(connection: apsw.Connection) -> VectorFacts:
    """Read what the index says of its vectors."""
    stored = store.get_meta(connection, "calibration")  # measured at sync for an embedder that has none of its own
    return VectorFacts(
        embedder=store.get_meta(connection, "embedder"),
        calibration=Calibration(*json.loads(stored)) if stored else None,
        missing=int(next(iter(connection.execute("SELECT count(*) FROM entries WHERE embedded = 0")))[0]),
        extension=vectors.has_extension(connection),
    )


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the vector lane needs of one question: its vector and the calibration of its embedder."""

    query: Vector
    calibration: Calibration


def prepare_meaning(embedder: Embedder | None, question: str, facts: VectorFacts) -> tuple[Meaning | None, Lane]:
    """Return what the vector lane needs, or ``None`` and why not."""
    if embedder is None:
        return None, Lane(LaneState.OFF, "no embedder is configured: answers come from the keyword lane alone")
    if facts.embedder != embedder.identity:
        why = f"the index has vectors of {facts.embedder}" if facts.embedder else "the index has no vectors yet"
        return None, Lane(LaneState.DEGRADED, f"{why}; run `dreamline index`")
    try:
        vector = embedder.embed_query(question)
    except EmbedderError as error:
        return None, Lane(LaneState.FAILED, str(error), embedder_failed=True)
    lane = Lane(LaneState.OK)
    if facts.missing:
        lane = Lane(LaneState.DEGRADED, f"{facts.missing} entries have no vector yet; run `dreamline index`")
    elif not facts.extension:
        lane = Lane(LaneState.DEGRADED, "sqlite-vec can't be loaded: vectors are scanned, same answers, slower")
    return Meaning(vector, facts.calibration or embedder.calibration or Calibration(0.0, 1.0)), lane
