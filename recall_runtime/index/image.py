"""The narrow columns and the vectors of a whole index in memory, for a process that answers many questions.

Belongs here: loading them, bringing them up to date, the neighbours and the nearest entries from memory.
Does not belong here: when a process keeps one (``recall.runtime``), the tables of vectors (``index.vectors``).

An image is right for one revision of the index. Entries never change and their numbers are never used again, so
bringing it up to date means adding entries and vectors and marking those that are gone. It takes 4 bytes a dimension,
about 150 bytes an entry, and its word lists (``index.wordlists``): 150 MB for 100,000 short entries of 256 dimensions.
Above ``MOST_ENTRIES`` none is kept.

Up to ``EXACT_ENTRIES`` all cosines are computed. Above, ``index.signs`` chooses ``SHORTLIST`` entries, and the exact
cosines put those in order (recall measured: docs/decisions.md).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import apsw
import numpy as np

from recall_runtime.index import candidates, lanes, ranking, store, vectors, wordlists
from recall_runtime.index.candidates import NOBODY, Candidates, Flags, Floats, Integers, found_at, places_of
from recall_runtime.index.embedders.protocol import Vector, Vectors
from recall_runtime.index.lanes import Scope, VectorFacts
from recall_runtime.index.signs import Signs, signs_of
from recall_runtime.index.subjects import names_of
from recall_runtime.index.terms import TermScores, best
from recall_runtime.index.wordlists import WordLists
from recall_runtime.storage.connection import one_state
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass

T = TypeVar("T")
MOST_ENTRIES = 300_000
EXACT_ENTRIES = 30_000
SHORTLIST = 8_000
MOST_ADDED = 500  # entries or vectors that are added at once; more is a reason to load the image anew
MOST_GONE = 0.25  # share of entries that are gone before it is loaded anew
_MOST_KEPT = 10_000  # scopes and terms whose derived values are kept

_Sources = dict[int, tuple[Any, ...]]  # source id: its first entry, then what its entries take from it
_SOURCES = (
    "SELECT s.source_id, (SELECT e.entry_id FROM entries e WHERE e.source_id = s.source_id ORDER BY e.ordinal LIMIT 1),"
    " s.path, s.tier, s.day, s.session_key FROM sources s"
)


@dataclass(frozen=True, slots=True)
class IndexImage:
    """One state of the index. Arrays have one position an entry, in the order of entry ids."""

    revision: int
    facts: VectorFacts
    columns: Candidates
    alive: Flags
    sources: _Sources
    vectors: Vectors  # zero for an entry without one
    embedded: Flags
    signs: Signs | None  # of a large index
    words: WordLists | None  # of the state that was loaded; once words changed, those asked for are read
    kept: dict[Any, Any]  # derived from the above when first needed

    def of(self, entry_ids: Iterable[int], scope: Scope) -> Candidates:
        """Return the columns of those of ``entry_ids`` that may be found in ``scope``, in the order of their ids."""
        places = found_at(self.columns.entry_ids, np.array(sorted(set(entry_ids)), dtype=np.int64))
        places = places[places != NOBODY]
        return self.columns.take(places[self._visible(scope)[places]])

    def only_visible(self, entry_ids: Integers, scope: Scope) -> Flags:
        """Return which of ``entry_ids`` may be found in ``scope``."""
        places = found_at(self.columns.entry_ids, entry_ids)
        return _flags_at(self._visible(scope), places)

    def beside(self, found: Candidates, step: int) -> Integers:
        """Return the entries ``step`` behind each of ``found`` in its source; ``NOBODY`` where there is none."""
        places, entry_ids = self._kept("places", self._by_place)
        at = found_at(places, places_of(found, step))
        beside: Integers = np.where(at == NOBODY, NOBODY, entry_ids[at]) if len(entry_ids) else at
        return beside

    def named(self, question: str, scope: Scope) -> dict[int, int]:
        """Return the first visible entry of each source whose file name the question is, with how exactly."""
        found: dict[int, int] = {}
        for path, tier in self._kept("names", self._names).get(ranking.name_form(question), {}).items():
            code = self.columns.path_texts.index(path)
            places = np.flatnonzero((self.columns.paths == code) & self._visible(scope))
            if places.size:
                found[int(self.columns.entry_ids[places[0]])] = tier
        return found

    def nearest(self, query: Vector, k: int, scope: Scope) -> dict[int, float]:
        """Return the cosines of the ``k`` nearest entries with a vector that ``scope`` allows, nearest first."""
        if not self.vectors.size or not np.isfinite(query).all() or not np.any(query):
            return {}
        allowed, count = self._with_vector(scope)
        if not count:
            return {}
        if self.signs is not None and count > SHORTLIST:
            places = self.signs.shortlist(query, allowed, SHORTLIST)
            cosines = vectors.dots(self.vectors[places], query)
        elif count * 8 < len(self.vectors):  # copying few rows is cheaper than scanning all of them
            places = np.flatnonzero(allowed)
            cosines = vectors.dots(self.vectors[places], query)
        else:
            places = np.arange(len(self.vectors))
            cosines = np.where(allowed, vectors.dots(self.vectors, query), -np.inf)
        best = np.argpartition(-cosines, min(k, len(cosines)) - 1)[:k]
        best = best[cosines[best] >= -2]
        best = best[np.lexsort((places[best], -np.round(cosines[best], 6)))]
        return dict(
            zip(self.columns.entry_ids[places[best]].tolist(), cosines[best].astype(np.float64).tolist(), strict=True)
        )

    def cosines(self, query: Vector, entry_ids: Integers) -> Floats:
        """Return the cosine of each of ``entry_ids``, NaN for one without a vector."""
        out = np.full(len(entry_ids), np.nan)
        places = found_at(self.columns.entry_ids, entry_ids)
        known = np.flatnonzero(_flags_at(self.embedded, places))
        out[known] = vectors.dots(self.vectors[places[known]], query)
        return out

    def keyword_scores(
        self, connection: apsw.Connection, terms: Sequence[str], scope: Scope, limit: int
    ) -> dict[int, float]:
        """Return the BM25 score (higher is better) of the ``limit`` best entries of ``scope`` for any of ``terms``."""
        scores = self._entry_terms.total(connection, terms)
        holding = np.flatnonzero(scores)
        places = best(scores, holding[self._visible(scope)[holding]], limit)
        return dict(zip(self.columns.entry_ids[places].tolist(), scores[places].tolist(), strict=True))

    def document_scores(self, connection: apsw.Connection, terms: Sequence[str], found: Candidates) -> Floats:
        """Return the BM25 score of the whole document of each of ``found`` for any of ``terms``; 0 without any."""
        sources = self._kept("sources", self._source_ids)
        return self._document_terms.total(connection, terms)[np.searchsorted(sources, found.source_ids)]

    def holding(self, connection: apsw.Connection, *groups: Sequence[str]) -> Integers:
        """Return the entries of the whole index that hold a term of each group, in the order of their ids."""
        each = [self._entry_terms.total(connection, terms) > 0 for terms in groups]
        return self.columns.entry_ids[np.logical_and.reduce(each)]

    def document_frequency(self, connection: apsw.Connection, term: str) -> int:
        """Return how many entries hold ``term``."""
        known = self.words.frequency(term) if self.words else None
        if known is not None:
            return known
        return self._kept(("term", term), lambda: lanes.document_frequency(connection, term))

    def projects(self) -> frozenset[str]:
        """Return the terms by which questions name the known projects."""
        return self._kept("projects", self._project_names)

    @property
    def entries(self) -> int:
        """How many entries the index holds."""
        return self._kept("entries", lambda: int(np.count_nonzero(self.alive)))

    @property
    def _entry_terms(self) -> TermScores:
        return self._kept("entry terms", self._make_entry_terms)

    def _make_entry_terms(self) -> TermScores:
        lists = self.words.entry_scores if self.words else _nothing_known
        return TermScores(self.columns.entry_ids, lanes.term_matches, lists)

    @property
    def _document_terms(self) -> TermScores:
        return self._kept("document terms", self._make_document_terms)

    def _make_document_terms(self) -> TermScores:
        lists = self.words.document_scores if self.words else _nothing_known
        return TermScores(self._kept("sources", self._source_ids), lanes.term_documents, lists)

    def _source_ids(self) -> Integers:
        return np.array(sorted(self.sources), dtype=np.int64)

    def _visible(self, scope: Scope) -> Flags:
        return self._kept(scope, lambda: self.columns.visible(scope) & self.alive)

    def _with_vector(self, scope: Scope) -> tuple[Flags, int]:
        def made() -> tuple[Flags, int]:
            allowed = self._visible(scope) & self.embedded
            return allowed, int(np.count_nonzero(allowed))

        return self._kept(("vectors", scope), made)

    def _by_place(self) -> tuple[Integers, Integers]:
        """Return the place of each living entry in order, and the entries in that order."""
        living = np.flatnonzero(self.alive)
        places = places_of(self.columns)[living]
        order = np.argsort(places)
        return places[order], self.columns.entry_ids[living[order]]

    def _project_names(self) -> frozenset[str]:
        eligible = np.array([origin in ELIGIBLE_ORIGINS for origin in OriginClass])[self.columns.origins]
        codes = np.unique(self.columns.projects[eligible & self.alive])
        return names_of(self.columns.project_texts[code] for code in codes.tolist())

    def _names(self) -> dict[str, dict[str, int]]:
        names: dict[str, dict[str, int]] = {}
        for path in self.columns.path_texts:
            for name, tier in ranking.names_of(path).items():
                names.setdefault(name, {})[path] = tier
        return names

    def _kept(self, key: Any, make: Callable[[], T]) -> T:
        known: T | None = self.kept.get(key)
        if known is not None:
            return known
        if len(self.kept) >= _MOST_KEPT:
            self.kept.clear()
        made = self.kept[key] = make()
        return made


def _nothing_known(_: str) -> None:
    return None


def _flags_at(flags: Flags, places: Integers) -> Flags:
    out: Flags = places != NOBODY
    out[out] = flags[places[out]]
    return out


def load(connection: apsw.Connection) -> IndexImage | None:
    """Return the image of the index as it is now, or ``None`` when it is too large for one."""
    with one_state(connection):
        if lanes.entry_count(connection) > MOST_ENTRIES:
            return None
        rows = connection.execute(f"{candidates.SELECT} FROM entries e {_JOIN} ORDER BY e.entry_id").fetchall()
        columns = candidates.stacked(rows)
        del rows
        sources = _sources(connection)
        stored = vectors.load_matrix(connection)
        places = found_at(columns.entry_ids, stored.entry_ids)
        filled, embedded = _room(len(columns), stored.vectors.shape[1]), np.zeros(len(columns), dtype=bool)
        filled[places] = stored.vectors
        embedded[places] = True
        return IndexImage(
            revision=store.revision(connection),
            facts=lanes.vector_facts(connection),
            columns=columns,
            alive=np.ones(len(columns), dtype=bool),
            sources=sources,
            vectors=filled,
            embedded=embedded,
            signs=signs_of(filled, embedded) if len(columns) > EXACT_ENTRIES and embedded.any() else None,
            words=wordlists.load(connection, columns, np.array(sorted(sources), dtype=np.int64)),
            kept={},
        )


_JOIN = "JOIN sources s ON s.source_id = e.source_id"


def refreshed(image: IndexImage, connection: apsw.Connection) -> IndexImage | None:
    """Return the image for the state that ``connection`` sees, or ``None`` when so much changed that it must be loaded.

    At most one caller at a time: additions share the room behind the arrays of ``image``.
    """
    revision = store.revision(connection)
    if revision == image.revision:
        return image
    facts = lanes.vector_facts(connection)
    if facts.embedder != image.facts.embedder or facts.calibration != image.facts.calibration:
        return None
    with_entries = _with_changed_sources(image, connection)
    fresh = with_entries and _with_new_vectors(with_entries, connection, facts.missing)
    return fresh and replace(fresh, revision=revision, facts=facts)


def _with_changed_sources(image: IndexImage, connection: apsw.Connection) -> IndexImage | None:
    now, columns = _sources(connection), image.columns
    last = int(columns.entry_ids[-1]) if len(columns) else 0
    grown = connection.execute("SELECT 1 FROM entries WHERE entry_id > ? LIMIT 1", (last,)).fetchall()
    if now == image.sources and not grown:
        return image
    gone: list[int] = []
    for source_id, known in image.sources.items():
        current = now.get(source_id)
        if current is None or current[0] != known[0]:
            gone.append(source_id)
        elif current != known:
            return None  # its old entries would take other values from it
    rows = connection.execute(
        f"{candidates.SELECT} FROM entries e {_JOIN} WHERE e.entry_id > ? ORDER BY e.entry_id LIMIT ?",
        (last, MOST_ADDED + 1),
    ).fetchall()
    alive = image.alive & ~np.isin(columns.source_ids, gone)
    if len(rows) > MOST_ADDED or np.count_nonzero(~alive) > MOST_GONE * len(alive):
        return None
    count = len(rows)
    return replace(
        image,
        columns=candidates.joined(columns, candidates.stacked(rows)) if rows else columns,
        alive=np.append(alive, np.ones(count, dtype=bool)),
        sources=now,
        vectors=_extended(image.vectors, count),
        embedded=np.append(image.embedded, np.zeros(count, dtype=bool)),
        signs=image.signs and image.signs.with_room(count),
        words=None,
        kept={},
    )


def _with_new_vectors(image: IndexImage, connection: apsw.Connection, missing: int) -> IndexImage | None:
    without = image.columns.entry_ids[image.alive & ~image.embedded]
    if len(without) <= missing:
        return image
    waiting = [row[0] for row in connection.execute("SELECT entry_id FROM entries WHERE embedded = 0")]
    wanted = np.setdiff1d(without, np.array(waiting, dtype=np.int64))
    if len(wanted) > MOST_ADDED:
        return None
    found = vectors.fetch(connection, wanted.tolist())
    if not found:
        return image
    stacked = np.array(list(found.values()), dtype=np.float32)
    if stacked.shape[1] != image.vectors.shape[1]:
        return None
    places = found_at(image.columns.entry_ids, np.array(list(found), dtype=np.int64))
    embedded = image.embedded.copy()
    embedded[places] = True
    image.vectors[places] = stacked  # nobody looks at these rows before they count as embedded
    return replace(image, embedded=embedded, signs=image.signs and image.signs.with_vectors(places, stacked), kept={})


def _sources(connection: apsw.Connection) -> _Sources:
    return {row[0]: row[1:] for row in connection.execute(_SOURCES)}


def _room(entries: int, dimensions: int) -> Vectors:
    """Return zeros for ``entries`` vectors, a part of an array that has room for more."""
    spare = max(2 * MOST_ADDED, entries // 16)
    return np.zeros((entries + spare, dimensions), dtype=np.float32)[:entries]


def _extended(known: Vectors, count: int) -> Vectors:
    whole = known.base
    if isinstance(whole, np.ndarray) and len(whole) >= len(known) + count:
        longer: Vectors = whole[: len(known) + count]
        return longer
    longer = _room(len(known) + count, known.shape[1])
    longer[: len(known)] = known
    return longer
