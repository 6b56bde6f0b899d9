"""The deep ranking in plain Python, written from openclaw-algorithms 23 and 24, to check the SQL against."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_assets.gates.loading import Candidate, Signal
from recall_runtime.clock import MS_PER_DAY
from recall_runtime.config import DeepSettings
from recall_runtime.vocabulary import Gate, SignalKind


@dataclass(frozen=True)
class Verdict:
    """What the reference says about one candidate."""

    claim_id: str
    signal_count: int
    unique_queries: int
    components: tuple[float, ...]
    boost: float
    raw: float
    gate: Gate | None


def clamp(value: float) -> float:
    """Return ``value`` held within 0..1."""
    return min(1.0, max(0.0, value))


def frequency(signals: int) -> float:
    """24.2 frequency."""
    return min(1.0, math.log(1 + signals) / math.log(11))


def recency(age: float, half_life: float) -> float:
    """24.2 recency."""
    return math.exp(-math.log(2) * age / half_life)


def spread(days: int, span: int) -> float:
    """24.2 C(recall days)."""
    if days == 0:
        return 0.0
    if days == 1:
        return 0.2
    return 0.55 * min(1.0, math.log(days) / math.log(5)) + 0.45 * min(1.0, span / 7)


def boost(light: int, light_age: float | None, rem: int, rem_age: float | None) -> float:
    """23 phase boost."""

    def part(weight: float, hits: int, age: float | None) -> float:
        fade = 0.0 if age is None else math.exp(-math.log(2) * age / 14)
        return weight * min(1.0, math.log(1 + hits) / math.log(7)) * fade

    return clamp(part(0.06, light, light_age) + part(0.09, rem, rem_age))


def judge(
    candidates: Sequence[Candidate], signals: Iterable[Signal], settings: DeepSettings, now_ms: int
) -> dict[str, Verdict]:
    """Return the verdict on each candidate, by claim id."""
    once: dict[int, dict[tuple[bool, str, str], list[Signal]]] = {c.group_id: {} for c in candidates}
    for signal in signals:
        key = (signal.kind is SignalKind.RECALL, signal.context, signal.day)
        once[signal.group_id].setdefault(key, []).append(signal)
    judged = [(c, _judge(c, once[c.group_id], settings, now_ms)) for c in candidates]
    passed = [(c, v) for c, v in judged if v.gate is None]
    recalls = {c.group_id: sum(key[0] for key in once[c.group_id]) for c in candidates}
    passed.sort(key=lambda cv: (-clamp(cv[1].raw), -recalls[cv[0].group_id], cv[0].path, cv[0].claim_id))
    over = {c.claim_id for c, _ in passed[settings.limit :]}
    return {c.claim_id: Verdict(**{**v.__dict__, "gate": Gate.LIMIT}) if c.claim_id in over else v for c, v in judged}


def _age(now_ms: int, at: int | None) -> float | None:
    return None if at is None else max(0, now_ms - at) / MS_PER_DAY


def _judge(
    candidate: Candidate, once: dict[tuple[bool, str, str], list[Signal]], settings: DeepSettings, now_ms: int
) -> Verdict:
    import datetime as dt

    count = len(once)
    contexts = {context for _, context, _ in once}
    days = sorted({dt.date.fromisoformat(day) for _, _, day in once})
    span = (days[-1] - days[0]).days if days else 0
    total = sum(max(s.score for s in group) for group in once.values())
    grounded = sum(all(s.kind is SignalKind.GROUNDED for s in group) for group in once.values())
    last = max((s.observed_at for group in once.values() for s in group), default=now_ms)
    age = max(0, now_ms - last) / MS_PER_DAY
    components = (
        clamp(total / max(1, count)),
        frequency(count),
        min(1.0, len(contexts) / 5),
        recency(age, settings.recency_half_life_days),
        max(spread(len(days), span), min(1.0, grounded / 3)),
        min(1.0, candidate.tags / 6),
    )
    weights = settings.weights
    order = (
        weights.relevance,
        weights.frequency,
        weights.diversity,
        weights.recency,
        weights.consolidation,
        weights.conceptual,
    )
    lift = boost(
        candidate.light_hits,
        _age(now_ms, candidate.last_light_at),
        candidate.rem_hits,
        _age(now_ms, candidate.last_rem_at),
    )
    raw = sum(w * c for w, c in zip(order, components, strict=True)) + lift
    checks = (
        (Gate.SOURCE, candidate.live and candidate.status != "withdrawn"),
        (Gate.ORIGIN, candidate.origin_class in ("owner", "agent")),
        (Gate.SESSION_KIND, candidate.session_kind == "interactive"),
        (Gate.CONTAMINATED, candidate.status != "refused"),
        (Gate.ALREADY_PROMOTED, candidate.status != "promoted"),
        (Gate.SUPERSEDED, candidate.status != "superseded"),
        (Gate.MIN_RECALL_COUNT, count >= max(1, settings.min_recall_count)),
        (Gate.MIN_UNIQUE_QUERIES, len(contexts) >= settings.min_unique_queries),
        (Gate.MAX_AGE_DAYS, age <= settings.max_age_days),
        (Gate.MIN_SCORE, raw >= settings.min_score),
    )
    gate = next((gate for gate, ok in checks if not ok), None)
    return Verdict(candidate.claim_id, count, len(contexts), components, lift, raw, gate)
