"""From what the lanes found to one score a candidate: pure functions over arrays, no database.

Belongs here: the common scale of the lanes, neighbours, documents, what lifts or lowers a score.
Does not belong here: where the numbers come from (``index.lanes``), single factors (``index.ranking``), what a text
says about its own score (``index.results``).

Every array has one position a candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recall_runtime.index import ranking
from recall_runtime.index.candidates import Candidates, Floats
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.vocabulary import Tier


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for each candidate; NaN where a lane says nothing of it.

    ``keyword`` is BM25 (higher is better), ``cosine`` the candidate's own, ``before`` and ``after`` those of the
    entries beside it in a talk, ``document`` the BM25 score of the whole document (0 when it holds no term).
    """

    keyword: Floats
    cosine: Floats
    before: Floats
    after: Floats
    document: Floats


def fused(candidates: Candidates, evidence: Evidence, weights: FusionWeights) -> Floats:
    """Return one score 0..1 a candidate.

    Each lane is scaled within the result set first: raw BM25 through x/(1+x) saturates, and cosines of different
    embedders lie on different levels (rivals.md 5). A lane without any value has no share.
    """
    total, score = 0.0, np.zeros(len(candidates))
    for weight, values in (
        (weights.keyword, _zero_for_nothing(evidence.keyword)),
        (weights.vector, with_neighbours(candidates, evidence, weights.neighbour)),
        (weights.document, evidence.document),
    ):
        scaled = unit_scale_of_known(values)
        if not np.isnan(scaled).all():
            total += weight
            score += weight * np.nan_to_num(scaled)
    return score / total if total else score


def unit_scale(values: Floats) -> Floats:
    """Return ``values`` mapped to 0..1 within the set (min-max); equal values give 1."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return np.ones(len(values)) if high - low < 1e-12 else (values - low) / (high - low)


def unit_scale_of_known(values: Floats) -> Floats:
    """Return the unit scale of the values that are known; NaN stays."""
    known = ~np.isnan(values)
    scaled = np.full(len(values), np.nan)
    scaled[known] = unit_scale(values[known])
    return scaled


def with_neighbours(candidates: Candidates, evidence: Evidence, share: float) -> Floats:
    """Return the cosines with a share of those of the lines before and after, which belong to the same matter.

    Outside of a talk it is as if both neighbours were like the entry itself.
    """
    beside = np.nan_to_num(evidence.before) + np.nan_to_num(evidence.after)
    shared: Floats = np.where(candidates.in_conversation, beside, 2 * evidence.cosine)
    return evidence.cosine + share * shared


def factors(candidates: Candidates, ages: Floats, active: Sequence[str], half_life: float, floor: float) -> Floats:
    """Return what the score is multiplied with: recency x tier x importance x project.

    ``ages`` in days, NaN for evergreen entries; recency is ``floor`` for the oldest and 1 for fresh ones.
    """
    fresh = floor + (1 - floor) * np.exp(-np.log(2) / half_life * np.nan_to_num(ages))
    tiers = np.array([ranking.tier_factor(tier) for tier in Tier])[candidates.tiers]
    importance = 0.75 + 0.05 * np.clip(np.floor(candidates.importances), 1, 10)  # openclaw-algorithms 11
    projects = np.array([ranking.project_factor(text, active) for text in candidates.project_texts])
    out: Floats = fresh * tiers * np.where(np.isnan(importance), 1.0, importance) * projects[candidates.projects]
    return out


def _zero_for_nothing(values: Floats) -> Floats:
    """Return 0 where a lane that found something did not find the candidate; nothing for a lane that found nothing."""
    return values if np.isnan(values).all() else np.nan_to_num(values)
