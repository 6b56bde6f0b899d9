"""The arithmetic of ranking: pure functions, no database.

Belongs here: shares of the lanes, recency, importance, project, the tiers of exact file names, relevance, MMR.
Does not belong here: where the numbers come from (``index.lanes``), putting them together (``index.fusion``), the
original rule (``index.openclaw_mode``).
"""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.vocabulary import OriginClass, Tier

T = TypeVar("T")

REPEATS_QUESTION = 0.5
_TIER_FACTORS = {Tier.CURATED: 1.2, Tier.IMPORTS: 0.9, Tier.REVIEW: 0.7}
UNTRUSTED = 0.6
PROJECT_MATCH = 1.15
PROJECT_FOREIGN = 0.9


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """Shares of the lanes on the common scale. Measured: docs/decisions.md."""

    vector: float = 0.6
    keyword: float = 0.4
    document: float = 0.2
    talk: float = 0.1  # of the mean of the best cosines of a document: is it about this at all
    neighbours: tuple[float, ...] = (0.4, 0.2)  # weight of the next and the second next entry of a talk; its own is 1
    specific: float = 1.0  # of the score of the question's names, identifiers and values alone, added to that of all
    recency_floor: float = 0.97  # what is left of a score however old its source is


def weights_for(embedder: Embedder | None) -> FusionWeights:
    """Return the measured shares for ``embedder``: static word vectors know less about meaning than a model does."""
    if embedder is not None and embedder.identity.startswith("static:"):
        return FusionWeights(vector=0.3, keyword=0.7)
    return FusionWeights()


def repeats_question(body: frozenset[str], terms: frozenset[str]) -> bool:
    """Return whether a text only repeats words of the question: that answers nothing."""
    return bool(terms and body and body <= terms)


def tier_factor(tier: Tier) -> float:
    """Return how much a tier is believed: what was curated before what was only noted, our own reports last."""
    return _TIER_FACTORS.get(tier, 1.0)


def trust_factor(origin: OriginClass) -> float:
    """Return how far an untrusted text is put back: a trusted one of comparable relevance comes first."""
    return UNTRUSTED if origin is OriginClass.UNTRUSTED else 1.0


def decay(age: float, half_life_days: float) -> float:
    """Return exp(-ln 2 / half-life x age); 1 for age 0 or less, and without a half-life (openclaw-algorithms 10)."""
    if not math.isfinite(age) or half_life_days <= 0 or age <= 0:
        return 1.0
    return math.exp(-math.log(2) / half_life_days * age)


def importance_factor(importance: float | None) -> float:
    """Return 0.75 + 0.05 x importance, which is limited to 1..10; 1 when there is none (openclaw-algorithms 11)."""
    if importance is None:
        return 1.0
    return 0.75 + 0.05 * min(10, max(1, math.floor(importance)))


def project_factor(project_key: str | None, active: Sequence[str]) -> float:
    """Return 1.15 when all keys of the entry are active, 0.9 when not, 1 without keys or active projects (16.3)."""
    if not project_key or not active:
        return 1.0
    keys = {key.strip() for key in project_key.split(";") if key.strip()}
    return PROJECT_MATCH if keys <= set(active) else PROJECT_FOREIGN


def path_tier(query: str, path: str) -> int:
    """Return how exactly ``query`` names ``path``: 3 the whole path, 2 its last part, 1 that without ending, else 0."""
    return names_of(path).get(name_form(query), 0)


def names_of(path: str) -> dict[str, int]:
    """Return what names ``path`` exactly enough, each with its tier (openclaw-algorithms 7.5)."""
    whole = name_form(path)
    last = PurePosixPath(whole)
    names = {last.stem: 1, last.name: 2, whole: 3}
    return {name: tier for name, tier in names.items() if name not in ("", ".")}


def name_form(text: str) -> str:
    """Return ``text`` as paths are compared: forward slashes, no leading ``./``, composed and lower case."""
    text = text.strip().replace("\\", "/")
    while text.startswith("./"):
        text = text[2:]
    return unicodedata.normalize("NFC", text).lower()


def coverage(terms: Mapping[str, float], total: float, body: frozenset[str]) -> float:
    """Return the share of the question's weight that ``body`` holds, 0..1; 0 without terms.

    ``total`` is the sum of the weights of all ``terms``.
    """
    return sum(terms[term] for term in sorted(terms.keys() & body)) / total if total else 0.0


def relevance(covered: float, meaning: float | None) -> float:
    """Return how well an entry answers a question, 0..1, comparable between questions and embedders.

    The better of the two lanes counts seven tenths, the other three: a paraphrase shares few words, an identifier
    shares no meaning. Without vectors the words alone decide.
    """
    if meaning is None:
        return covered
    return 0.7 * max(covered, meaning) + 0.3 * min(covered, meaning)


def relevances(covered: NDArray[np.float64], meaning: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return :func:`relevance` for each pair of ``covered`` and ``meaning``."""
    return 0.7 * np.maximum(covered, meaning) + 0.3 * np.minimum(covered, meaning)


def mmr(ranked: Sequence[tuple[T, float]], words: Callable[[T], frozenset[str]], trade: float, limit: int) -> list[T]:
    """Return up to ``limit`` items, each the best by trade x score - (1 - trade) x similarity to those taken.

    Similarity is the Jaccard index of the items' words. Only the order changes, no score.
    """
    left = list(ranked)
    taken: list[T] = []
    bags = {id(item): words(item) for item, _ in ranked}
    while left and len(taken) < limit:
        best = max(
            left,
            key=lambda pair: (
                trade * pair[1]
                - (1 - trade) * max((_jaccard(bags[id(pair[0])], bags[id(other)]) for other in taken), default=0.0)
            ),
        )
        left.remove(best)
        taken.append(best[0])
    return taken


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    union = len(one | other)
    return len(one & other) / union if union else 0.0
