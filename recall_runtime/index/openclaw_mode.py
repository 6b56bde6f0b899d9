"""The original ranking rule as a visible switch: ``search.mode = "openclaw"`` (openclaw-algorithms 7 to 12).

Belongs here: its keyword query, its scales, its fusion and selection, over our entries.
Does not belong here: improvements. Known weak spots stay, so the difference can be measured.
"""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.clock import MS_PER_DAY
from recall_runtime.index import ranking
from recall_runtime.index.lanes import Scope
from recall_runtime.paths import PathKind, kind_of, note_day
from recall_runtime.text.words import index_text, stop_words

VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
LANE_MAX = 200
CANDIDATE_MULTIPLIER = 4
MAX_EXPANSION = 6
_PLAIN_DAY = re.compile(r"memory/(\d{4}-\d{2}-\d{2})\.md")
_TOKEN = re.compile(r"\w+")
_TELLING = frozenset({"discussed"})  # in our list of stop words, not in the original's
_VAGUE = frozenset({"thing", "things", "stuff", "something", "anything", "yesterday", "today", "recently", "earlier"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the rule needs of one found entry. Scores are 0 where a lane did not find it."""

    key: int
    path: str
    start_line: int
    text: str
    vector: float = 0.0
    text_score: float = 0.0
    exact_tier: int = 0
    day: str | None = None
    observed_at: int = 0
    importance: float | None = None
    project_key: str | None = None


def lane_limit(max_results: int) -> int:
    """Return how many candidates each lane gives: four times the results, at most 200."""
    return min(LANE_MAX, max(1, max_results * CANDIDATE_MULTIPLIER))


def query_tokens(query: str) -> list[str]:
    """Return the runs of letters, digits and underscores (7.1)."""
    return _TOKEN.findall(query)


def bm25_score(rank: float) -> float:
    """Return the score of an FTS5 rank, which is negative for a match (7.2)."""
    if not math.isfinite(rank):
        return 1 / 1000
    return -rank / (1 - rank) if rank < 0 else 1 / (1 + rank)


def keywords(query: str) -> list[str]:
    """Return the words worth a look-up of their own, in order (12): no stop words, numbers, or short ASCII words."""
    kept: dict[str, None] = {}
    for token in query_tokens(query.lower()):
        if (
            (token in stop_words() and token not in _TELLING)
            or token in _VAGUE
            or token.isdigit()
            or (token.isascii() and len(token) < 3)
        ):
            continue
        kept[token] = None
    return list(kept)


def ranking_score(query: str, path: str, text: str, score: float) -> float:
    """Return the lexical score used for ranking: BM25 plus overlap, density, path and length (7.3)."""
    asked = list(dict.fromkeys(token.lower() for token in query_tokens(query)))
    held = {token.lower() for token in query_tokens(text)}
    shared = sum(token in held for token in asked)
    in_path = sum(token in path.lower() for token in asked)
    return min(
        1.0,
        score
        + 0.45 * shared / max(len(asked), 1)
        + 0.20 * shared / max(len(held), 1)
        + 0.18 * in_path
        + min(len(text) / 160, 0.18),
    )


def keyword_lane(connection: apsw.Connection, query: str, scope: Scope, limit: int) -> dict[int, float]:
    """Return the text score of entries that hold every token; a thin pool is widened by one OR query (7.1, 7.4)."""
    tokens = query_tokens(query)[:64]
    if not tokens:
        return {}
    found = _matching(connection, tokens, " AND ", scope, limit)
    more = [word for word in keywords(query) if word != query.strip().lower()][:MAX_EXPANSION]
    strict = {unicodedata.normalize("NFC", token).lower() for token in tokens}
    if len(found) >= limit or (found and set(more) == strict):
        return found
    widened = _matching(connection, [*tokens, *(word for word in more if word not in strict)], " OR ", scope, limit)
    return {key: max(found.get(key, 0.0), widened.get(key, 0.0)) for key in {*found, *widened}}


def _matching(
    connection: apsw.Connection, tokens: Sequence[str], join: str, scope: Scope, limit: int
) -> dict[int, float]:
    words = [word for token in tokens for word in index_text(token).split()[:1]]
    if not words:
        return {}
    where, values = scope.where()
    rows = connection.execute(
        "SELECT f.rowid, bm25(entries_fts, 1.0, 0.0) AS rank FROM entries_fts f"  # noqa: S608 - our own parts
        " JOIN entries e ON e.entry_id = f.rowid JOIN sources s ON s.source_id = e.source_id"
        f" WHERE entries_fts MATCH ? AND {where} ORDER BY rank LIMIT ?",
        ("body : (" + join.join(f'"{word}"' for word in words) + ")", *values, limit),
    )
    return {entry_id: bm25_score(rank) for entry_id, rank in rows}


def age_days(candidate: Candidate, now_ms: int) -> float | None:
    """Return the age by the original rule (10): plain dated notes by name, other notes evergreen, else by time."""
    match = _PLAIN_DAY.fullmatch(candidate.path)
    if match and note_day(candidate.path):
        start = dt.datetime.fromisoformat(match[1]).replace(tzinfo=dt.UTC).timestamp() * 1000
        return max(0.0, (now_ms - start) / MS_PER_DAY)
    if kind_of(candidate.path) is PathKind.TRANSCRIPT:
        return max(0.0, (now_ms - candidate.observed_at) / MS_PER_DAY)
    return None


def content_score(vector: float, keyword: float) -> float:
    """Return the weighted sum of the lanes (9, step 4)."""
    return VECTOR_WEIGHT * vector + TEXT_WEIGHT * keyword


def rank(
    found: Sequence[Candidate],
    *,
    query: str,
    now_ms: int,
    half_life_days: float,
    active: Sequence[str],
    with_vectors: bool,
) -> list[tuple[Candidate, float]]:
    """Return the candidates in order with their public score (9): exact names first, then by score, path, line."""
    scored = []
    for item in found:
        keyword = ranking_score(query, item.path, item.text, item.text_score) if item.text_score > 0 else 0.0
        content = content_score(item.vector, keyword) if with_vectors else keyword
        if item.exact_tier:
            content = (1 + min(1.0, max(0.0, content))) / 2
        age = age_days(item, now_ms)
        project = ranking.project_factor(item.project_key, active)
        score = content * (1.0 if age is None else ranking.decay(age, half_life_days))
        score *= ranking.importance_factor(item.importance) * project
        scored.append((item, score, project if item.exact_tier else score))
    scored.sort(key=lambda entry: (-entry[0].exact_tier, -entry[1], entry[0].path, entry[0].start_line))
    return [(item, public) for item, _, public in scored]


def select(
    ranked: Sequence[tuple[Candidate, float]], max_results: int, min_score: float, *, with_vectors: bool
) -> list[tuple[Candidate, float]]:
    """Return what is shown (9, step 10): hits of the minimum score, spare room for keyword hits below it."""
    strict = [pair for pair in ranked if pair[1] >= min_score]
    if len(strict) >= max_results:
        return strict[:max_results]
    if not with_vectors:
        return (strict or list(ranked))[:max_results]
    if not strict:
        return [pair for pair in ranked if pair[0].text_score > 0][:max_results]
    spare = [pair for pair in ranked if pair[1] < min_score and pair[0].text_score > 0 and not pair[0].vector]
    return (strict + spare)[:max_results]
