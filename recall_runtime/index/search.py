"""Answering a question from the index.

Belongs here: the order of a search: lanes, candidates, scores, results, and why an answer is empty.
Does not belong here: queries (``index.lanes``), columns (``index.candidates``), scores (``index.fusion``), texts and
hits (``index.results``), who may ask (``recall_runtime.recall``), recording the answer (``signals.recalls``).

Any text is a question: it never raises and never runs as syntax. A lane that can't answer says so in the answer.
"""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import apsw
import numpy as np

from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError, EmbedderError, StoreError
from recall_runtime.index import fusion, lanes, openclaw_mode, ranking, results, store
from recall_runtime.index.candidates import NOBODY, Candidates, Floats, Integers, StoredColumns
from recall_runtime.index.embedders.protocol import Embedder, plain
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.hits import Lane, LaneState, SearchAnswer, SearchHit
from recall_runtime.index.lanes import Meaning, Scope
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.index.vectors import Matrix
from recall_runtime.storage.connection import open_reader
from recall_runtime.storage.schema import Database, check_version
from recall_runtime.text.words import index_text, query_terms
from recall_runtime.vocabulary import Corpus

__all__ = ["SearchAnswer", "SearchHit", "index_revision", "search"]

MAX_QUERY = 4_000  # characters of a question that are looked up; a longer message is cut, so time is bounded
POOL = 150  # candidates of each lane

Configured = Literal["configured"]


def search(
    agent: Agent,
    query: str,
    *,
    max_results: int | None = None,
    min_score: float | None = None,
    corpus: Corpus = Corpus.MEMORY,
    active_projects: Sequence[str] = (),
    include_untrusted: bool = True,
    include_superseded: bool = False,
    sessions: frozenset[str] | None = None,
    connection: apsw.Connection | None = None,
    embedder: Embedder | Configured | None = "configured",
    matrix: Matrix | None = None,
    weights: FusionWeights | None = None,
) -> SearchAnswer:
    """Answer ``query`` from the index of ``agent``.

    Args:
        agent: Whose memory is searched.
        query: Any text.
        max_results: At most so many hits; default from the settings.
        min_score: Hits below this relevance are left out (mode ``openclaw``: below this score); default from the
            settings.
        corpus: Memory files, transcripts, or both.
        active_projects: Keys of the projects at hand, for the project factor.
        include_untrusted: Whether untrusted text may be found; it is framed then.
        include_superseded: Whether retired entries may be found; they are marked by their status.
        sessions: Keys of the sessions whose transcripts may be shown; ``None`` means all.
        connection: An open reader of the index to use; else one is opened for this call.
        embedder: The embedder to use; ``None`` means keyword lane only.
        matrix: All vectors in memory, when the caller keeps them.
        weights: Shares of the lanes, for measurements.
    """
    settings = agent.settings.search
    text = plain(query)[:MAX_QUERY]
    scope = Scope(corpus, include_untrusted, include_superseded, sessions)
    resolved, missing = _embedder(agent, embedder)
    try:
        with _reader(agent, connection) as reader:
            finder = _Finder(agent, reader, scope, text, resolved, matrix, weights or ranking.weights_for(resolved))
            answer = finder.answer(
                max_results if max_results is not None else settings.max_results,
                min_score if min_score is not None else settings.min_score,
                tuple(active_projects),
            )
    except StoreError as error:
        failed = Lane(LaneState.FAILED, str(error))
        return SearchAnswer((), {"keyword": failed, "vector": failed}, str(error))
    return replace(answer, lanes={**answer.lanes, "vector": missing}) if missing else answer


def _embedder(agent: Agent, given: Embedder | Configured | None) -> tuple[Embedder | None, Lane | None]:
    if given != "configured":
        return given, None
    try:
        return resolve(agent.settings.embedder), None
    except EmbedderError as error:
        return None, Lane(LaneState.FAILED, str(error))


@contextlib.contextmanager
def _reader(agent: Agent, connection: apsw.Connection | None) -> Iterator[apsw.Connection]:
    if connection is not None:
        yield connection
        return
    opened = open_reader(agent.folders.index_db, vectors=True)
    try:
        check_version(opened, Database.INDEX)
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def _one_state(reader: apsw.Connection) -> Iterator[None]:
    """Hold one read transaction, so that all queries of a search see one state of the index."""
    if reader.in_transaction:
        yield
        return
    reader.execute("BEGIN")
    try:
        yield
    finally:
        with contextlib.suppress(apsw.Error):  # a damaged lane is reported by its own query
            reader.execute("ROLLBACK")


class _Finder:
    """One search over one reader."""

    def __init__(
        self,
        agent: Agent,
        reader: apsw.Connection,
        scope: Scope,
        text: str,
        embedder: Embedder | None,
        matrix: Matrix | None,
        weights: FusionWeights,
    ) -> None:
        self._agent, self._reader, self._scope, self._text = agent, reader, scope, text
        self._embedder, self._matrix, self._weights = embedder, matrix, weights
        self._terms = query_terms(text)[: lanes.MAX_TERMS]
        self._term_set = frozenset(self._terms)
        self._columns = StoredColumns(reader)
        self._now_ms = agent.clock.now_ms()
        self._keyword_lane = Lane(LaneState.OK)
        self._vector_lane = Lane(LaneState.OK)
        self._meaning: Meaning | None = None

    def answer(self, max_results: int, min_score: float, active: tuple[str, ...]) -> SearchAnswer:
        """Run both lanes and rank what they find."""
        with _one_state(self._reader):
            self._prepare_meaning()
            if self._agent.settings.search.mode == "openclaw":
                hits = self._openclaw_hits(max_results, min_score, active)
            else:
                hits = self._hits(max_results, min_score, active)
            states = {"keyword": self._keyword_lane, "vector": self._vector_lane}
            return SearchAnswer(hits, states, None if hits else self._why_nothing(min_score))

    def _prepare_meaning(self) -> None:
        if not self._text.strip():
            self._vector_lane = Lane(LaneState.OFF, "the question is empty")
            return
        try:
            self._meaning, self._vector_lane = lanes.prepare_meaning(
                self._reader, self._embedder, self._text, self._matrix
            )
        except (apsw.Error, DreamlineError, ValueError) as error:
            self._vector_lane = Lane(LaneState.FAILED, f"vectors can't be read ({error})")

    def _keyword_scores(self) -> dict[int, float]:
        try:
            found = lanes.keyword_scores(self._reader, self._terms, self._scope, POOL)
            telling = lanes.specific_terms(self._terms)
            if not telling or len(telling) == len(self._terms) or not self._weights.specific:
                return found
            named = lanes.keyword_scores(self._reader, telling, self._scope, POOL)
            share = self._weights.specific
            return {key: found.get(key, named.get(key, 0.0)) + share * named.get(key, 0.0) for key in {*found, *named}}
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return {}

    def _document_scores(self, found: Candidates) -> Floats:
        sources = found.source_ids.tolist()
        try:
            scores = lanes.document_scores(self._reader, self._terms, set(sources))
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            scores = {}
        return np.array([scores.get(source_id, 0.0) for source_id in sources])

    def _term_weights(self) -> dict[str, float]:
        try:
            return lanes.term_weights(self._reader, self._terms)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return dict.fromkeys(self._terms, 1.0)

    def _vector_scores(self) -> dict[int, float]:
        if self._meaning is None:
            return {}
        try:
            return lanes.vector_scores(self._reader, self._meaning, self._scope, POOL)
        except (apsw.Error, ValueError) as error:
            self._vector_lane = Lane(LaneState.FAILED, f"vectors can't be read ({error})")
            self._meaning = None
            return {}

    def _hits(self, max_results: int, min_score: float, active: tuple[str, ...]) -> tuple[SearchHit, ...]:
        keyword, near, exact = self._keyword_scores(), self._vector_scores(), self._exact_paths()
        found = self._candidates({*keyword, *near, *exact})
        evidence = self._evidence(found, keyword, near)
        settings = self._agent.settings.search
        ages = found.ages(self._now_ms, self._agent.zone)
        scores = fusion.fused(found, evidence, self._weights) * fusion.factors(
            found, ages, active, settings.half_life_days, self._weights.recency_floor
        )
        ranked = results.in_final_order(
            self._reader,
            self._question(),
            found,
            scores,
            _looked_up(exact, found.entry_ids, 0).astype(np.int64),
            fusion.unit_scale_of_known(evidence.keyword),
            evidence.cosine,
            min_score,
        )
        return self._select(results.hits_of(self._reader, ranked, self._term_set, max_results), max_results)

    def _evidence(self, found: Candidates, keyword: Mapping[int, float], near: Mapping[int, float]) -> fusion.Evidence:
        nothing = np.full(len(found), np.nan)
        before = after = nothing
        cosine = self._cosines(found.entry_ids, near)
        if self._meaning is not None and self._weights.neighbour:
            before, after = (self._cosines_beside(found, step, near) for step in (-1, 1))
        return fusion.Evidence(
            keyword=_looked_up(keyword, found.entry_ids, np.nan),
            cosine=cosine,
            before=before,
            after=after,
            document=self._document_scores(found),
        )

    def _cosines(self, entry_ids: Integers, near: Mapping[int, float]) -> Floats:
        if self._meaning is None:
            return np.full(len(entry_ids), np.nan)
        asked = [entry_id for entry_id in entry_ids.tolist() if entry_id not in near and entry_id != NOBODY]
        known = {**near, **lanes.cosines_of(self._reader, self._meaning, asked)}
        return _looked_up(known, entry_ids, np.nan)

    def _cosines_beside(self, found: Candidates, step: int, near: Mapping[int, float]) -> Floats:
        out = np.full(len(found), np.nan)
        talks = np.flatnonzero(found.in_conversation)
        if talks.size:
            out[talks] = self._cosines(self._columns.beside(found.take(talks), step), near)
        return out

    def _question(self) -> results.Question:
        calibration = self._meaning.calibration if self._meaning else None
        return results.Question(frozenset(index_text(self._text).split()), self._term_weights(), calibration)

    def _exact_paths(self) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        try:
            found = lanes.path_hits(self._reader, self._text, self._scope)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.DEGRADED, f"file names can't be read ({error})")
            return {}
        tiers = {entry_id: ranking.path_tier(self._text, path) for _, entry_id, path in found}
        return {entry_id: tier for entry_id, tier in tiers.items() if tier}

    def _candidates(self, entry_ids: set[int]) -> Candidates:
        found = self._columns.of(entry_ids)
        return found.take(found.visible(self._scope))

    def _select(self, hits: Iterator[SearchHit], limit: int) -> tuple[SearchHit, ...]:
        settings = self._agent.settings.search
        alive = results.live(self._agent, hits)
        if settings.mmr and self._meaning is not None:
            return results.varied(alive, settings.mmr_lambda, limit)
        return tuple(itertools.islice(alive, limit))

    def _openclaw_hits(self, max_results: int, min_score: float, active: tuple[str, ...]) -> tuple[SearchHit, ...]:
        exact = self._exact_paths()
        limit = openclaw_mode.lane_limit(max_results)
        try:
            keyword = openclaw_mode.keyword_lane(self._reader, self._text, self._scope, limit)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            keyword = {}
        near = dict(list(self._vector_scores().items())[:limit])
        found = self._candidates({*keyword, *near, *exact})
        ids = found.entry_ids.tolist()
        entries, bodies = results.entries_of(self._reader, ids), results.bodies_of(self._reader, ids)
        rated = [
            openclaw_mode.Candidate(
                key=key,
                path=entry.path,
                start_line=entry.start_line,
                text=entry.text,
                vector=near.get(key, 0.0),
                text_score=keyword.get(key, 0.0),
                exact_tier=exact.get(key, 0),
                day=entry.day,
                observed_at=entry.provenance.observed_at,
                importance=entry.annotations.importance,
                project_key=entry.annotations.project_key,
            )
            for key, entry in entries.items()
        ]
        with_vectors = self._meaning is not None
        ranked = openclaw_mode.rank(
            rated,
            query=self._text,
            now_ms=self._now_ms,
            half_life_days=self._agent.settings.search.half_life_days,
            active=active,
            with_vectors=with_vectors,
        )
        question = self._question()
        chosen = (
            results.Ranked(
                item.key,
                score,
                question.relevance(frozenset(bodies[item.key].split()), near.get(item.key, np.nan)),
                item.text_score or np.nan,
                near.get(item.key, np.nan),
            )
            for item, score in openclaw_mode.select(ranked, max_results, min_score, with_vectors=with_vectors)
        )
        hits = (results.hit_of(entries[item.entry_id], item, self._term_set) for item in chosen)
        return tuple(results.live(self._agent, hits))

    def _why_nothing(self, min_score: float) -> str:
        if not self._text.strip():
            return "The question is empty."
        if self._keyword_lane.state is LaneState.FAILED:
            return f"The keyword lane failed: {self._keyword_lane.reason}."
        if not list(self._reader.execute("SELECT 1 FROM entries LIMIT 1")):
            return "The index is empty; run `dreamline index`."
        if not self._terms and self._meaning is None:
            return "The question holds no word to look up."
        held = f" or none reaches the minimum score {min_score:g}" if min_score > 0 else ""
        if self._vector_lane.state is LaneState.OK:
            return f"Nothing in this corpus shares a word or the meaning of the question{held}."
        return f"No entry in this corpus holds a word of the question{held}; vector lane {self._vector_lane.state}."


def _looked_up(values: Mapping[int, float], entry_ids: Integers, default: float) -> Floats:
    return np.array([values.get(entry_id, default) for entry_id in entry_ids.tolist()], dtype=np.float64)


def index_revision(connection: apsw.Connection) -> int:
    """Return the revision of the index; it grows with every change a search could see."""
    return int(store.get_meta(connection, "revision") or 0)
