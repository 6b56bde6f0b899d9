"""Answering a question from the index.

Belongs here: the order of a search: lanes, candidates, scores, results, and why an answer is empty.
Does not belong here: queries (``index.lanes``), columns (``index.candidates``), scores (``index.fusion``), texts and
hits (``index.results``), who may ask (``recall_runtime.recall``), recording the answer (``signals.recalls``).

Any text is a question: it never raises and never runs as syntax. A lane that can't answer says so in the answer.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import apsw
import numpy as np

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.errors import DreamlineError, EmbedderError, StoreError
from recall_runtime.index import fusion, lanes, ranking, results, subjects, times
from recall_runtime.index.access import Access, ImageIndex, StoredIndex
from recall_runtime.index.candidates import NOBODY, Candidates, Floats, Integers, found_at
from recall_runtime.index.embedders.protocol import Embedder, plain
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.hits import Lane, LaneState, SearchAnswer, SearchHit
from recall_runtime.index.image import IndexImage
from recall_runtime.index.lanes import Meaning, Scope
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.index.subjects import Subject
from recall_runtime.notes.conditions import is_over
from recall_runtime.storage.binding import read_own_index
from recall_runtime.storage.connection import one_state
from recall_runtime.text.words import index_text, query_terms
from recall_runtime.vocabulary import Corpus

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
    injectable: bool = False,
    sessions: frozenset[str] | None = None,
    connection: apsw.Connection | None = None,
    embedder: Embedder | Configured | None = "configured",
    image: Callable[[apsw.Connection], IndexImage | None] | None = None,
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
        injectable: Only what may be shown without being asked for: text of the owner and the agent that holds today,
            none of our own reports. The best of it are looked for, however much else is better.
        sessions: Keys of the sessions whose transcripts may be shown; ``None`` means all.
        connection: An open reader of the index to use; else one is opened for this call.
        embedder: The embedder to use; ``None`` means keyword lane only.
        image: Gives the image of the index for the state that the reader sees, when the caller keeps one.
        weights: Shares of the lanes, for measurements.
    """
    settings = agent.settings.search
    text = plain(query)[:MAX_QUERY]
    scope = Scope(corpus, include_untrusted, include_superseded, sessions, injectable)
    resolved, missing = _embedder(agent, embedder)
    try:
        with _reader(agent, connection) as reader, one_state(reader):
            kept = image(reader) if image else None
            index = ImageIndex(kept, reader) if kept else StoredIndex(reader)
            finder = _Finder(agent, reader, scope, text, resolved, index, weights or ranking.weights_for(resolved))
            answer = finder.answer(
                max_results if max_results is not None else settings.max_results,
                min_score if min_score is not None else settings.min_score,
                tuple(active_projects),
            )
    except StoreError as error:
        failed = Lane(LaneState.FAILED, str(error))
        return SearchAnswer((), {"keyword": failed, "vector": failed}, str(error))
    answer = replace(answer, lanes={**answer.lanes, "vector": missing}) if missing else answer
    return replace(answer, error=_error_of(agent, answer.lanes["vector"]))


def _error_of(agent: Agent, lane: Lane) -> str | None:
    """Return the error that a failed embedder is when the settings name it; the default one only degrades."""
    if not lane.embedder_failed or not agent.settings.embedder.is_named:
        return None
    return f"{lane.reason} What is found comes from words alone."


def _embedder(agent: Agent, given: Embedder | Configured | None) -> tuple[Embedder | None, Lane | None]:
    if given != "configured":
        return given, None
    try:
        return resolve(agent.settings.embedder), None
    except EmbedderError as error:
        return None, Lane(LaneState.FAILED, str(error), embedder_failed=True)


@contextlib.contextmanager
def _reader(agent: Agent, connection: apsw.Connection | None) -> Iterator[apsw.Connection]:
    if connection is not None:
        yield connection
        return
    with contextlib.closing(read_own_index(agent.folders, vectors=True)) as opened:
        yield opened


class _Finder:
    """One search over one reader."""

    def __init__(
        self,
        agent: Agent,
        reader: apsw.Connection,
        scope: Scope,
        text: str,
        embedder: Embedder | None,
        index: Access,
        weights: FusionWeights,
    ) -> None:
        self._agent, self._reader, self._scope, self._text = agent, reader, scope, text
        self._embedder, self._index, self._weights = embedder, index, weights
        self._terms = query_terms(text)[: lanes.MAX_TERMS]
        self._term_set = frozenset(self._terms)
        self._frequencies: dict[str, int] = {}
        self._now_ms = agent.clock.now_ms()
        self._today = day_of(self._now_ms, agent.zone)
        self._keyword_lane = Lane(LaneState.OK)
        self._vector_lane = Lane(LaneState.OK)
        self._meaning: Meaning | None = None
        self._gone: set[str] = set()  # paths of hits whose file is no more

    def answer(self, max_results: int, min_score: float, active: tuple[str, ...]) -> SearchAnswer:
        """Run both lanes and rank what they find."""
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
            facts = self._index.facts()
            self._meaning, self._vector_lane = lanes.prepare_meaning(self._embedder, self._text, facts)
        except (apsw.Error, DreamlineError, ValueError) as error:
            self._vector_lane = Lane(LaneState.FAILED, f"vectors can't be read ({error})")

    def _keyword_scores(self) -> dict[int, float]:
        """Return BM25 for all terms; to it is added that of the terms which name something alone."""
        try:
            self._frequencies = {term: self._index.document_frequency(term) for term in self._terms}
            present = [term for term in self._terms if self._frequencies[term]]
            found = self._index.keyword_scores(present, self._scope, POOL)
            telling, share = lanes.specific_terms(present), self._weights.specific
            if not telling or len(telling) == len(present) or not share:
                return found
            named = self._index.keyword_scores(telling, self._scope, POOL)
            return {key: found.get(key, named.get(key, 0.0)) + share * named.get(key, 0.0) for key in {*found, *named}}
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return {}

    def _document_scores(self, found: Candidates) -> Floats:
        try:
            return self._index.document_scores(self._terms, found)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return np.zeros(len(found))

    def _term_weights(self) -> dict[str, float]:
        if not self._frequencies:
            return dict.fromkeys(self._terms, 1.0)
        entries = self._index.entries
        return {term: lanes.term_weight(count, entries) for term, count in self._frequencies.items()}

    def _vector_scores(self) -> dict[int, float]:
        if self._meaning is None:
            return {}
        try:
            return self._index.nearest(self._meaning.query, POOL, self._scope)
        except (apsw.Error, ValueError) as error:
            self._vector_lane = Lane(LaneState.FAILED, f"vectors can't be read ({error})")
            self._meaning = None
            return {}

    def _hits(self, max_results: int, min_score: float, active: tuple[str, ...]) -> tuple[SearchHit, ...]:
        keyword, near, exact = self._keyword_scores(), self._vector_scores(), self._exact_paths()
        subject = self._subject()
        found = self._index.of({*keyword, *near, *exact, *subject.valued}, self._scope)
        evidence = self._evidence(found, keyword)
        settings = self._agent.settings.search
        ages = found.ages(self._now_ms, self._agent.zone)
        fused = fusion.fused(found, evidence, self._weights) + self._nearness(found)
        scores = subject.applied(found, fused) * fusion.factors(
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
        hits = results.hits_of(self._reader, subject.in_time(ranked, found), self._term_set, max_results)
        return self._select(hits, max_results)

    def _nearness(self, found: Candidates) -> Floats:
        zone = self._agent.zone
        return times.nearness(found, times.periods(self._text, self._today), zone)

    def _subject(self) -> Subject:
        """Return the known projects that the question names, and what its other words say of the value asked for."""
        try:
            projects = self._index.projects()
            names = [term for term in self._terms if term in projects]
            if not names:
                return Subject()
            shapes = self._likely_shapes(names)
            return Subject(
                shapes=shapes,
                valued=self._valued(list(shapes)[: subjects.SHAPES], names),
                about=self._index.holding(names),
                past=subjects.asks_for_the_past(self._text),
            )
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return Subject()

    def _valued(self, shapes: Sequence[str], names: Sequence[str]) -> frozenset[int]:
        return frozenset(self._index.holding(shapes, names).tolist()) if shapes else frozenset()

    def _likely_shapes(self, names: Sequence[str]) -> dict[str, float]:
        """Return the shapes of values that the words of the question without its subject lead to."""
        wording = query_terms(subjects.without_the_past(self._text))
        attribute = [term for term in wording if term not in names and self._frequencies.get(term)]
        scored = self._index.keyword_scores(attribute, self._scope, subjects.VOTERS)
        voters = self._index.of(scored, self._scope)
        following = self._index.beside(voters, 1)
        lines = self._index.of(following.tolist(), self._scope)
        entries = self._index.entries
        return subjects.likely_shapes(
            _looked_up(scored, voters.entry_ids, 0.0),
            subjects.answers_of(voters, following, lines),
            names,
            lambda shape: lanes.term_weight(self._index.document_frequency(shape), entries),
        )

    def _evidence(self, found: Candidates, keyword: Mapping[int, float]) -> fusion.Evidence:
        talks = self._meaning is not None and bool(found.in_conversation.any())
        reach = len(self._weights.neighbours) if talks else 0
        steps = [step for step in range(-reach, reach + 1) if step]
        return fusion.Evidence(
            keyword=_looked_up(keyword, found.entry_ids, np.nan),
            cosine=self._cosines(found.entry_ids),
            beside={step: self._cosines_beside(found, step) for step in steps},
            document=self._document_scores(found),
        )

    def _cosines(self, entry_ids: Integers) -> Floats:
        if self._meaning is None:
            return np.full(len(entry_ids), np.nan)
        return self._index.cosines(self._meaning.query, entry_ids)

    def _cosines_beside(self, found: Candidates, step: int) -> Floats:
        out = np.full(len(found), np.nan)
        talks = np.flatnonzero(found.in_conversation)
        if talks.size:
            out[talks] = self._cosines(self._index.beside(found.take(talks), step))
        return out

    def _question(self) -> results.Question:
        calibration = self._meaning.calibration if self._meaning else None
        words = frozenset(index_text(self._text).split())
        return results.Question(words, self._term_weights(), calibration, times.asks_when(self._text))

    def _exact_paths(self) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        try:
            return self._index.named(self._text, self._scope)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.DEGRADED, f"file names can't be read ({error})")
            return {}

    def _select(self, hits: Iterator[SearchHit], limit: int) -> tuple[SearchHit, ...]:
        settings = self._agent.settings.search
        alive = results.live(self._agent, hits, self._gone)
        if self._scope.injectable:
            alive = (hit for hit in alive if not is_over(hit.entry.text, self._today))
        if settings.mmr and self._meaning is not None:
            return results.varied(alive, settings.mmr_lambda, limit)
        return tuple(itertools.islice(alive, limit))

    def _openclaw_hits(self, max_results: int, min_score: float, active: tuple[str, ...]) -> tuple[SearchHit, ...]:
        from recall_runtime.index import openclaw_mode

        exact = self._exact_paths()
        limit = openclaw_mode.lane_limit(max_results)
        if self._scope.injectable:  # what expired is known by its text only
            limit = max(limit, POOL)
        try:
            keyword = openclaw_mode.keyword_lane(self._reader, self._text, self._scope, limit)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            keyword = {}
        near = dict(list(self._vector_scores().items())[:limit])
        found = self._index.of({*keyword, *near, *exact}, self._scope)
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
            if not (self._scope.injectable and is_over(entry.text, self._today))
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
        return tuple(results.live(self._agent, hits, self._gone))

    def _why_nothing(self, min_score: float) -> str:
        if not self._text.strip():
            return "The question is empty."
        if self._keyword_lane.state is LaneState.FAILED:
            return f"The keyword lane failed: {self._keyword_lane.reason}."
        if not list(self._reader.execute("SELECT 1 FROM entries LIMIT 1")):
            return "The index is empty; run `dreamline index`."
        if not self._terms and self._meaning is None:
            return "The question holds no word to look up."
        if self._gone:
            return "What was found stands in files that are gone; run `dreamline index`."
        if self._is_hidden():
            return "Only entries that are retired or not to be shown here hold a word of the question."
        held = f" or none reaches the minimum score {min_score:g}" if min_score > 0 else ""
        if self._vector_lane.state is LaneState.OK:
            return f"Nothing that may be shown here shares a word or the meaning of the question{held}."
        return (
            f"Nothing that may be shown here holds a word of the question{held}; vector lane {self._vector_lane.state}."
        )

    def _is_hidden(self) -> bool:
        """Whether entries that the scope leaves out for what they are hold a word; sessions of others aren't asked."""
        wide = replace(self._scope, include_superseded=True, include_untrusted=True, injectable=False)
        if self._scope.injectable or wide == self._scope:  # lane 2 has no use for a reason
            return False
        return not self._keyword_found(self._scope) and self._keyword_found(wide)

    def _keyword_found(self, scope: Scope) -> bool:
        with contextlib.suppress(apsw.Error):
            return bool(self._index.keyword_scores(self._terms, scope, 1))
        return False


def _looked_up(values: Mapping[int, float], entry_ids: Integers, default: float) -> Floats:
    """Return the value of each of ``entry_ids``, which are in order."""
    out = np.full(len(entry_ids), default, dtype=np.float64)
    places = found_at(entry_ids, np.fromiter(values, dtype=np.int64, count=len(values)))
    known = places != NOBODY
    out[places[known]] = np.fromiter(values.values(), dtype=np.float64, count=len(values))[known]
    return out
