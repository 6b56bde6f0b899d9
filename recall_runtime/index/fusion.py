"""From what the lanes found to one score a candidate: pure functions over arrays, no database.

Belongs here: the common scale of the lanes, neighbours, documents, what lifts or lowers a score.
Does not belong here: where the numbers come from (``index.lanes``), single factors (``index.ranking``), what a text
says about its own score (``index.results``).

Every array has one position a candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recall_runtime.index import ranking
from recall_runtime.index.candidates import Candidates, Floats, Integers
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.vocabulary import OriginClass, Tier

BEST = 5  # cosines of a document that say what it is about


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each candidate; NaN where a lane says nothing of it.

    ``keyword`` is BM25 (higher is better), ``cosine`` the candidate's own, ``beside`` those of the entries so many
    steps behind it in a talk (negative: before it), ``document`` the BM25 score of the whole document (0 when it holds
    no term).
    """

    keyword: Floats
    cosine: Floats
    beside: Mapping[int, Floats]
    document: Floats


def fused(candidates: Candidates, evidence: Evidence, weights: FusionWeights) -> Floats:
    """Return one score 0..1 a candidate.

    Each lane is scaled within the result set first: raw BM25 through x/(1+x) saturates, and cosines of different
    embedders lie on different levels. A lane without any value has no share.
    """
    total, score = 0.0, np.zeros(len(candidates))
    meaning = with_neighbours(evidence, weights.neighbours)
    for weight, values in (
        (weights.keyword, _zero_for_nothing(evidence.keyword)),
        (weights.vector, meaning),
        (weights.document, evidence.document),
        (weights.talk, best_of_document(candidates.source_ids, meaning)),
    ):
        scaled = unit_scale_of_known(values)
        if not np.isnan(scaled).all():
            total += weight
            score += weight * known_or_0(scaled)
    return score / total if total else score


def unit_scale(values: Floats) -> Floats:
    """Return ``values`` mapped to 0..1 within the set (min-max); equal values give 1."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return np.ones(len(values)) if high - low < 1e-12 else (values - low) / (high - low)


def known_or_0(values: Floats) -> Floats:
    """Return 0 in place of NaN; several times as fast as ``nan_to_num``, which looks for infinities too."""
    filled: Floats = np.where(np.isnan(values), 0.0, values)
    return filled


def unit_scale_of_known(values: Floats) -> Floats:
    """Return the unit scale of the values that are known; NaN stays."""
    known = ~np.isnan(values)
    scaled = np.full(len(values), np.nan)
    scaled[known] = unit_scale(values[known])
    return scaled


def with_neighbours(evidence: Evidence, shares: Sequence[float]) -> Floats:
    """Return the weighted mean of each cosine and those of the lines around it in a talk: they are one matter.

    ``shares`` are the weights of the next and the second next line on both sides. A mean, not a sum, so that the first
    and the last line of a talk lose nothing.
    """
    total, weight = evidence.cosine.copy(), np.ones(len(evidence.cosine))
    for step, values in evidence.beside.items():
        share = shares[abs(step) - 1]
        total += share * known_or_0(values)
        weight += share * ~np.isnan(values)
    return total / weight


def best_of_document(source_ids: Integers, meaning: Floats) -> Floats:
    """Return for each candidate the mean of the ``BEST`` highest values among those of its document."""
    out = np.full(len(meaning), np.nan)
    order = np.lexsort((-meaning, source_ids))
    order = order[~np.isnan(meaning[order])]
    if not order.size:
        return out
    sources = source_ids[order]
    first = np.flatnonzero(np.diff(sources, prepend=sources[0] - 1))
    place = np.arange(order.size) - np.repeat(first, np.diff(first, append=order.size))
    chosen = np.where(place < BEST, meaning[order], 0.0)
    means = np.add.reduceat(chosen, first) / np.minimum(np.diff(first, append=order.size), BEST)
    out[order] = np.repeat(means, np.diff(first, append=order.size))
    return out


def factors(candidates: Candidates, ages: Floats, active: Sequence[str], half_life: float, floor: float) -> Floats:
    """Return what the score is multiplied with: substance x trust x recency x tier x importance x project.

    ``ages`` in days, NaN for evergreen entries; recency is ``floor`` for the oldest and 1 for fresh ones.
    """
    fresh = floor + (1 - floor) * np.exp(-np.log(2) / half_life * known_or_0(ages))
    tiers = np.array([ranking.tier_factor(tier) for tier in Tier])[candidates.tiers]
    importance = 0.75 + 0.05 * np.clip(np.floor(candidates.importances), 1, 10)  # openclaw-algorithms 11
    projects = np.array([ranking.project_factor(text, active) for text in candidates.project_texts])
    trust = np.array([ranking.trust_factor(origin) for origin in OriginClass])[candidates.origins]
    lifted = candidates.substance * trust * fresh * tiers
    out: Floats = lifted * np.where(np.isnan(importance), 1.0, importance) * projects[candidates.projects]
    return out


def _zero_for_nothing(values: Floats) -> Floats:
    """Return 0 where a lane that found something did not find the candidate; nothing for a lane that found nothing."""
    return values if np.isnan(values).all() else known_or_0(values)
