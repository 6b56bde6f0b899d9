"""Answering a question from the index.

Belongs here: the order of a search: lanes, candidates, ranking, what is left out, why an answer is empty.
Does not belong here: queries (``index.lanes``), arithmetic (``index.ranking``), who may ask
(``recall_runtime.recall``), recording the answer (``signals.recalls``).

Any text is a question: it never raises and never runs as syntax. A lane that can't answer says so in the answer.
"""

import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError, EmbedderError, StoreError
from recall_runtime.index import lanes, openclaw_mode, ranking, store
from recall_runtime.index.cutting import snippet_of
from recall_runtime.index.embedders.protocol import Embedder, plain
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.lanes import Lane, LaneState, Meaning, Scope
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.index.reading import source_exists
from recall_runtime.index.vectors import Matrix
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.storage.connection import open_reader
from recall_runtime.storage.schema import Database, check_version
from recall_runtime.text.words import index_text, query_terms
from recall_runtime.vocabulary import Corpus, EntryStatus, OriginClass, SessionKind, Tier

MAX_QUERY = 4_000  # characters of a question that are looked up; a longer message is cut, so time is bounded
SNIPPET = 700
POOL = 150  # candidates of each lane
WINDOW = 32  # candidates whose texts are read at a time
WEAK_MEANING = 0.15  # below this calibrated cosine an entry that shares no word is no answer

Configured = Literal["configured"]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One answer.

    ``score`` orders the hits of one answer (it may exceed 1 in mode ``openclaw``). ``relevance`` is 0..1 and
    comparable between questions and embedders; it is what a recall is recorded with. ``keyword_score`` and
    ``vector_score`` are the lanes' own (scaled BM25, cosine), ``None`` when the lane did not find the entry.
    ``framed`` marks untrusted text: whoever shows it must say so.
    """

    entry: IndexEntry
    score: float
    relevance: float
    keyword_score: float | None
    vector_score: float | None
    snippet: str
    framed: bool

    @property
    def citation(self) -> str:
        """``path#Lx-Ly``."""
        return f"{self.entry.path}#L{self.entry.start_line}-L{self.entry.end_line}"


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits, the state of each lane, and why there is nothing where there is nothing."""

    hits: tuple[SearchHit, ...]
    lanes: Mapping[str, Lane]
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A candidate with what ranking needs; its text is read only when it is near the top."""

    entry_id: int
    source_id: int
    ordinal: int
    path: str
    start_line: int
    tier: Tier
    day: str | None
    block: str
    recalled: bool
    in_conversation: bool
    origin_class: OriginClass
    status: EntryStatus
    importance: int | None
    project_key: str | None
    observed_at: int
    session_key: str | None


_CANDIDATE_COLUMNS = (
    "e.entry_id, e.source_id, e.ordinal, s.path, e.start_line, s.tier, s.day, e.block, e.recalled, e.role,"
    " e.origin_class, e.status, e.importance, e.project_key, e.observed_at, s.session_key"
)
_ENTRY_COLUMNS = (
    "e.entry_id, s.path, s.tier, s.day, e.start_line, e.end_line, e.text, e.heading_path, e.triggers, e.importance,"
    " e.project_key, e.status, e.origin_class, e.session_kind, e.observed_at, e.session_id, e.supersedes_key,"
    " e.message_id, f.body"
)
_TIER = {member.value: member for member in Tier}
_ORIGIN = {member.value: member for member in OriginClass}
_STATUS = {member.value: member for member in EntryStatus}


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
        self._tiers, self._origin_classes = scope.tiers, scope.origin_classes
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

    def _document_scores(self, rows: Mapping[int, _Candidate]) -> dict[int, float]:
        try:
            return lanes.document_scores(self._reader, self._terms, {row.source_id for row in rows.values()})
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            return {}

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
        keyword, near = self._keyword_scores(), self._vector_scores()
        exact = self._exact_paths()
        rows = self._candidates([*keyword, *near, *exact])
        cosines = self._cosines(rows, near)
        documents = self._document_scores(rows)
        fused = ranking.fuse(
            keyword,
            self._with_neighbours(rows, cosines),
            {key: documents.get(row.source_id, 0.0) for key, row in rows.items()},
            list(rows),
            self._weights,
        )
        scores = {key: fused[key] * self._factor(row, active) for key, row in rows.items()}
        order = sorted(rows, key=lambda key: (-exact.get(key, 0), -scores[key], rows[key].path, rows[key].start_line))
        return self._select(self._ranked(order, rows, scores, exact, keyword, cosines, min_score), max_results)

    def _ranked(
        self,
        order: Sequence[int],
        rows: Mapping[int, _Candidate],
        scores: Mapping[int, float],
        exact: Mapping[int, int],
        keyword: Mapping[int, float],
        cosines: Mapping[int, float],
        min_score: float,
    ) -> Iterator[SearchHit]:
        """Yield hits in their final order, reading texts a window at a time.

        What a text says (does it only repeat the question) may still lower it; each window is put in order again.
        """
        term_weights, scaled = self._term_weights(), ranking.unit_scale(keyword)
        terms = frozenset(index_text(self._text).split())
        for start in range(0, len(order), WINDOW):
            window: list[tuple[int, float, SearchHit]] = []
            texts = self._entries(order[start : start + WINDOW])
            for key in order[start : start + WINDOW]:
                entry, words = texts[key]
                relevance = self._relevance(words, term_weights, cosines.get(key))
                if key not in exact and (relevance < min_score or self._is_noise(key, keyword, cosines)):
                    continue
                score = scores[key] * ranking.substance_factor(rows[key].block, rows[key].recalled, words, terms)
                hit = self._hit(entry, score, relevance, scaled.get(key), cosines.get(key))
                window.append((exact.get(key, 0), score, hit))
            window.sort(key=lambda item: (-item[0], -item[1], item[2].entry.path, item[2].entry.start_line))
            yield from (hit for _, _, hit in window)

    def _is_noise(self, key: int, keyword: Mapping[int, float], cosines: Mapping[int, float]) -> bool:
        """Whether an entry shares neither a word nor meaning: the nearest of a crowd of strangers is no answer."""
        if key in keyword or self._meaning is None:
            return False
        return self._meaning.calibration.scaled(cosines.get(key, -1.0)) < WEAK_MEANING

    def _relevance(self, words: frozenset[str], term_weights: Mapping[str, float], cosine: float | None) -> float:
        covered = ranking.coverage(term_weights, words)
        if self._meaning is None:
            return ranking.relevance(covered, None)
        return ranking.relevance(covered, self._meaning.calibration.scaled(cosine if cosine is not None else -1.0))

    def _factor(self, row: _Candidate, active: tuple[str, ...]) -> float:
        settings, floor = self._agent.settings.search, self._weights.recency_floor
        age = ranking.age_of(row.path, row.day, row.observed_at, self._now_ms, self._agent.zone)
        fresh = 1.0 if age is None else floor + (1 - floor) * ranking.decay(age, settings.half_life_days)
        return (
            fresh
            * ranking.tier_factor(row.tier)
            * ranking.importance_factor(row.importance)
            * ranking.project_factor(row.project_key, active)
        )

    def _exact_paths(self) -> dict[int, int]:
        """Return the first entry of each source whose file name the question is, with how exactly."""
        try:
            found = lanes.path_hits(self._reader, self._text, self._scope)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.DEGRADED, f"file names can't be read ({error})")
            return {}
        tiers = {entry_id: ranking.path_tier(self._text, path) for _, entry_id, path in found}
        return {entry_id: tier for entry_id, tier in tiers.items() if tier}

    def _candidates(self, entry_ids: Iterable[int]) -> dict[int, _Candidate]:
        rows = self._reader.execute(
            f"SELECT {_CANDIDATE_COLUMNS} FROM json_each(?) w JOIN entries e ON e.entry_id = w.value"  # noqa: S608 - ours
            " JOIN sources s ON s.source_id = e.source_id",
            (json.dumps(list(dict.fromkeys(entry_ids))),),
        )
        found = (_candidate(values) for values in rows)
        return {row.entry_id: row for row in found if self._visible(row)}

    def _visible(self, row: _Candidate) -> bool:
        """Check again in Python what SQL and KNN filtered, and what only Python can."""
        scope = self._scope
        if row.project_key == ranking.INVALID_PROJECT:
            return False
        if row.tier not in self._tiers or row.origin_class not in self._origin_classes:
            return False
        if row.status is EntryStatus.SUPERSEDED and not scope.include_superseded:
            return False
        return not (row.tier is Tier.SESSIONS and scope.sessions is not None and row.session_key not in scope.sessions)

    def _entries(self, entry_ids: Sequence[int]) -> dict[int, tuple[IndexEntry, frozenset[str]]]:
        rows = self._reader.execute(
            f"SELECT {_ENTRY_COLUMNS} FROM json_each(?) w JOIN entries e ON e.entry_id = w.value"  # noqa: S608 - ours
            " JOIN sources s ON s.source_id = e.source_id JOIN entries_fts f ON f.rowid = e.entry_id",
            (json.dumps(list(entry_ids)),),
        )
        return {values[0]: (_entry(values), frozenset(values[-1].split())) for values in rows}

    def _cosines(self, rows: Mapping[int, _Candidate], near: Mapping[int, float]) -> dict[int, float]:
        if self._meaning is None:
            return {}
        missing = [key for key in rows if key not in near]
        return {**near, **lanes.cosines_of(self._reader, self._meaning, missing)}

    def _with_neighbours(self, rows: Mapping[int, _Candidate], cosines: Mapping[int, float]) -> dict[int, float]:
        """Return the cosines with a share of those of the lines before and after, which belong to the same matter."""
        if self._meaning is None or not self._weights.neighbour:
            return {key: cosines[key] for key in rows if key in cosines}
        places = {(row.source_id, row.ordinal): key for key, row in rows.items()}
        wanted = {
            (row.source_id, row.ordinal + step)
            for row in rows.values()
            if row.in_conversation
            for step in (-1, 1)
            if (row.source_id, row.ordinal + step) not in places
        }
        others = self._entries_at(wanted)
        known = {**cosines, **lanes.cosines_of(self._reader, self._meaning, list(others.values()))}
        places.update(others)
        share = self._weights.neighbour
        out = {}
        for key, row in rows.items():
            if key not in cosines:
                continue
            if not row.in_conversation:
                out[key] = cosines[key] * (1 + 2 * share)  # as if both neighbours were like it
                continue
            beside = [places.get((row.source_id, row.ordinal + step)) for step in (-1, 1)]
            out[key] = cosines[key] + share * sum(known.get(other, 0.0) for other in beside if other is not None)
        return out

    def _entries_at(self, places: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
        if not places:
            return {}
        rows = self._reader.execute(
            "SELECT e.source_id, e.ordinal, e.entry_id FROM json_each(?) w JOIN entries e"
            " ON e.source_id = w.value ->> 0 AND e.ordinal = w.value ->> 1",
            (json.dumps(sorted(places)),),
        )
        return {(source_id, ordinal): entry_id for source_id, ordinal, entry_id in rows}

    def _hit(
        self, entry: IndexEntry, score: float, relevance: float, keyword: float | None, cosine: float | None
    ) -> SearchHit:
        return SearchHit(
            entry=entry,
            score=score,
            relevance=relevance,
            keyword_score=keyword,
            vector_score=cosine,
            snippet=snippet_of(entry.text, SNIPPET, self._term_set),
            framed=entry.provenance.origin_class is OriginClass.UNTRUSTED,
        )

    def _select(self, ranked: Iterable[SearchHit], limit: int) -> tuple[SearchHit, ...]:
        settings = self._agent.settings.search
        live = self._live(ranked)
        if settings.mmr and self._meaning is not None:
            pool = list(itertools.islice(live, limit * 4))
            return tuple(ranking.mmr([(hit, hit.score) for hit in pool], _snippet_words, settings.mmr_lambda, limit))
        return tuple(itertools.islice(live, limit))

    def _live(self, hits: Iterable[SearchHit]) -> Iterator[SearchHit]:
        """Yield the hits whose file is still there; the next sync removes the others."""
        there: dict[str, bool] = {}
        for hit in hits:
            path = hit.entry.path
            if path not in there:
                there[path] = source_exists(self._agent, path)
            if there[path]:
                yield hit

    def _openclaw_hits(self, max_results: int, min_score: float, active: tuple[str, ...]) -> tuple[SearchHit, ...]:
        exact = self._exact_paths()
        limit = openclaw_mode.lane_limit(max_results)
        try:
            keyword = openclaw_mode.keyword_lane(self._reader, self._text, self._scope, limit)
        except apsw.Error as error:
            self._keyword_lane = Lane(LaneState.FAILED, f"full text can't be read ({error})")
            keyword = {}
        near = dict(list(self._vector_scores().items())[:limit])
        rows = self._candidates([*keyword, *near, *exact])
        texts = self._entries(list(rows))
        found = [
            openclaw_mode.Candidate(
                key=key,
                path=row.path,
                start_line=row.start_line,
                text=texts[key][0].text,
                vector=near.get(key, 0.0),
                text_score=keyword.get(key, 0.0),
                exact_tier=exact.get(key, 0),
                day=row.day,
                observed_at=row.observed_at,
                importance=row.importance,
                project_key=row.project_key,
            )
            for key, row in rows.items()
        ]
        with_vectors = self._meaning is not None
        ranked = openclaw_mode.rank(
            found,
            query=self._text,
            now_ms=self._now_ms,
            half_life_days=self._agent.settings.search.half_life_days,
            active=active,
            with_vectors=with_vectors,
        )
        term_weights = self._term_weights()
        hits = (
            self._hit(
                texts[item.key][0],
                score,
                self._relevance(texts[item.key][1], term_weights, near.get(item.key)),
                item.text_score or None,
                near.get(item.key),
            )
            for item, score in openclaw_mode.select(ranked, max_results, min_score, with_vectors=with_vectors)
        )
        return tuple(self._live(hits))

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


def _snippet_words(hit: SearchHit) -> frozenset[str]:
    return frozenset(hit.snippet.lower().split())


def _candidate(values: Sequence[Any]) -> _Candidate:
    (entry_id, source_id, ordinal, path, start, tier, day, block, recalled, role, origin, status, importance, project,
     observed, session_key) = values  # fmt: skip
    return _Candidate(
        entry_id, source_id, ordinal, path, start, _TIER[tier], day, block, bool(recalled), role is not None,
        _ORIGIN[origin], _STATUS[status], importance, project, observed, session_key,
    )  # fmt: skip


def _entry(values: Sequence[Any]) -> IndexEntry:
    (entry_id, path, tier, day, start, end, text, headings, triggers, importance, project, status, origin, kind,
     observed, session_id, supersedes, message_id, _) = values  # fmt: skip
    return IndexEntry(
        entry_id=entry_id,
        path=path,
        tier=_TIER[tier],
        start_line=start,
        end_line=end,
        text=text,
        heading_path=tuple(json.loads(headings)) if headings else (),
        day=day,
        annotations=Annotations(tuple(triggers.split("; ")) if triggers else (), importance, project),
        status=_STATUS[status],
        provenance=Provenance(_ORIGIN[origin], SessionKind(kind), observed, session_id, supersedes),
        message_id=message_id,
    )


def index_revision(connection: apsw.Connection) -> int:
    """Return the revision of the index; it grows with every change a search could see."""
    return int(store.get_meta(connection, "revision") or 0)
