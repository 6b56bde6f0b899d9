"""From ranked candidates to hits: what their texts say about their score, which of them are shown.

Belongs here: reading texts and whole rows of the best candidates, relevance, noise, building hits, variety.
Does not belong here: scores from the lanes (``index.fusion``), queries of the lanes (``index.lanes``).
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw
import numpy as np

from recall_runtime.agent import Agent
from recall_runtime.index import ranking, times
from recall_runtime.index.candidates import Candidates, Flags, Floats, Integers
from recall_runtime.index.cutting import snippet_of
from recall_runtime.index.embedders.protocol import Calibration
from recall_runtime.index.hits import SearchHit
from recall_runtime.index.reading import source_exists
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

SNIPPET = 700
WINDOW = 32  # candidates whose texts are read at a time
WEAK_MEANING = 0.15  # below this calibrated cosine an entry that shares no word is no answer
VARIETY_POOL = 4  # times the number of results are looked at for variety

_ENTRY_COLUMNS = (
    "e.entry_id, s.path, s.tier, s.day, e.start_line, e.end_line, e.text, e.heading_path, e.triggers, e.importance,"
    " e.project_key, e.status, e.origin_class, e.session_kind, e.observed_at, e.session_id, e.supersedes_key,"
    " e.message_id"
)
_TIER = {member.value: member for member in Tier}
_ORIGIN = {member.value: member for member in OriginClass}
_STATUS = {member.value: member for member in EntryStatus}
_KIND = {member.value: member for member in SessionKind}


@dataclass(frozen=True, slots=True)
class Ranked:
    """An entry with its final score and relevance, and what each lane says of it (NaN: nothing)."""

    entry_id: int
    score: float
    relevance: float
    keyword: float
    cosine: float


@dataclass(frozen=True, slots=True)
class Question:
    """What a text is compared with.

    ``words`` are all words of the question, ``weights`` how telling each looked-up term is, ``calibration`` the scale
    of the cosines or ``None`` without vectors, ``asks_when`` whether it asks when something is or was.
    """

    words: frozenset[str]
    weights: Mapping[str, float]
    calibration: Calibration | None
    asks_when: bool = False
    total: float = field(init=False)

    def __post_init__(self) -> None:
        """Add the weights up once."""
        object.__setattr__(self, "total", sum(self.weights.values()))

    def relevance(self, body: frozenset[str], cosine: float) -> float:
        """Return how well a text with these words and this cosine (NaN: none) answers, 0..1."""
        covered = ranking.coverage(self.weights, self.total, body)
        meaning = None if self.calibration is None else self.calibration.scaled(cosine)
        return ranking.relevance(covered, meaning)

    def relevances(self, bodies: Sequence[frozenset[str]], cosines: Floats) -> list[float]:
        """Return :meth:`relevance` of each text."""
        covered = np.array([ranking.coverage(self.weights, self.total, body) for body in bodies])
        if self.calibration is not None:
            covered = ranking.relevances(covered, self.calibration.all_scaled(cosines))
        found: list[float] = covered.tolist()
        return found


def in_final_order(
    connection: apsw.Connection,
    question: Question,
    candidates: Candidates,
    scores: Floats,
    exact: Integers,
    keyword: Floats,
    cosine: Floats,
    min_score: float,
) -> Iterator[Ranked]:
    """Yield candidates in their final order, reading texts a window at a time.

    What a text says (does it only repeat the question, does it say when) may still change its score; each window is put
    in order again.

    Args:
        connection: A reader of the index.
        question: What is asked.
        candidates: The candidates; the arrays that follow have one position for each of them.
        scores: Scores by what the lanes found.
        exact: How exactly the question names the file (``ranking.path_tier``).
        keyword: Scores of the keyword lane scaled to 0..1, NaN where it did not find the entry.
        cosine: Cosines, NaN without one.
        min_score: Less relevant ones are left out.
    """
    order = np.lexsort((candidates.start_lines, candidates.paths, -scores, -exact))
    meaningless = _meaningless(question.calibration, keyword, cosine)
    for start in range(0, len(order), WINDOW):
        window = order[start : start + WINDOW]
        entry_ids = candidates.entry_ids[window].tolist()
        texts = bodies_of(connection, entry_ids)
        bodies = [frozenset(texts[entry_id].split()) for entry_id in entry_ids]
        relevances = question.relevances(bodies, cosine[window])
        columns = (scores, exact, meaningless, candidates.paths, candidates.start_lines)
        found: list[tuple[int, float, int, int, int]] = []
        for at, (score, tier, empty, path, line) in enumerate(
            zip(*(each[window].tolist() for each in columns), strict=True)
        ):
            if not tier and (relevances[at] < min_score or empty):
                continue
            if ranking.repeats_question(bodies[at], question.words):
                score *= ranking.REPEATS_QUESTION
            elif question.asks_when and times.says_when(bodies[at]):
                score *= times.SAYS_WHEN
            found.append((-tier, -score, path, line, at))
        for _, negative, _, _, at in sorted(found):  # those equal in all else stay in their order
            place = window[at]
            yield Ranked(entry_ids[at], -negative, relevances[at], float(keyword[place]), float(cosine[place]))


def _meaningless(calibration: Calibration | None, keyword: Floats, cosine: Floats) -> Flags:
    """Return who shares neither a word nor meaning: the nearest of a crowd of strangers is no answer."""
    if calibration is None:
        return np.zeros(len(keyword), dtype=bool)
    least = calibration.unrelated + WEAK_MEANING * max(0.0, calibration.paraphrase - calibration.unrelated)
    near = cosine >= least if calibration.paraphrase > calibration.unrelated else np.zeros(len(cosine), dtype=bool)
    return np.isnan(keyword) & ~near


def bodies_of(connection: apsw.Connection, entry_ids: Sequence[int]) -> dict[int, str]:
    """Return the indexed words of ``entry_ids``, joined by blanks."""
    rows = connection.execute(
        "SELECT f.rowid, f.body FROM json_each(?) w JOIN entries_fts f ON f.rowid = w.value", (json.dumps(entry_ids),)
    )
    bodies: dict[int, str] = dict(rows)
    return bodies


def entries_of(connection: apsw.Connection, entry_ids: Sequence[int]) -> dict[int, IndexEntry]:
    """Return the whole rows of ``entry_ids``."""
    rows = connection.execute(
        f"SELECT {_ENTRY_COLUMNS} FROM json_each(?) w JOIN entries e ON e.entry_id = w.value"  # noqa: S608 - ours
        " JOIN sources s ON s.source_id = e.source_id",
        (json.dumps(entry_ids),),
    )
    return {values[0]: _entry(values) for values in rows}


def hits_of(
    connection: apsw.Connection, ranked: Iterable[Ranked], terms: frozenset[str], batch: int
) -> Iterator[SearchHit]:
    """Yield ``ranked`` as hits, reading ``batch`` rows at a time."""
    waiting = iter(ranked)
    while some := list(itertools.islice(waiting, batch)):
        entries = entries_of(connection, [item.entry_id for item in some])
        yield from (hit_of(entries[item.entry_id], item, terms) for item in some)


def hit_of(entry: IndexEntry, item: Ranked, terms: frozenset[str]) -> SearchHit:
    """Return the hit that shows ``entry``; ``terms`` place its snippet."""
    return SearchHit(
        entry=entry,
        score=item.score,
        relevance=item.relevance,
        keyword_score=None if np.isnan(item.keyword) else item.keyword,
        vector_score=None if np.isnan(item.cosine) else item.cosine,
        snippet=snippet_of(entry.text, SNIPPET, terms),
        framed=entry.provenance.origin_class is OriginClass.UNTRUSTED,
    )


def live(agent: Agent, hits: Iterable[SearchHit], gone: set[str]) -> Iterator[SearchHit]:
    """Yield the hits whose file is still there; the others' paths go into ``gone``, the next sync removes them."""
    there: dict[str, bool] = {}
    for hit in hits:
        path = hit.entry.path
        if path not in there:
            there[path] = source_exists(agent, path)
        if there[path]:
            yield hit
        else:
            gone.add(path)


def varied(hits: Iterable[SearchHit], trade: float, limit: int) -> tuple[SearchHit, ...]:
    """Return ``limit`` hits chosen for score and variety (MMR)."""
    pool = list(itertools.islice(hits, limit * VARIETY_POOL))
    return tuple(ranking.mmr([(hit, hit.score) for hit in pool], _snippet_words, trade, limit))


def _snippet_words(hit: SearchHit) -> frozenset[str]:
    return frozenset(hit.snippet.lower().split())


def _entry(values: Sequence[Any]) -> IndexEntry:
    (entry_id, path, tier, day, start, end, text, headings, triggers, importance, project, status, origin, kind,
     observed, session_id, supersedes, message_id) = values  # fmt: skip
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
        provenance=Provenance(_ORIGIN[origin], _KIND[kind], observed, session_id, supersedes),
        message_id=message_id,
    )
