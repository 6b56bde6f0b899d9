"""Components, boost, gates, order and limit of the deep phase against worked values and a reference in Python."""

import datetime as dt
import random
from dataclasses import replace

import pytest

from memory_assets.gates.loading import Candidate, Signal
from memory_assets.gates.scoring import GateRow, score_groups, sql_text
from memory_assets.warehouse.connection import open_memory
from recall_runtime.clock import MS_PER_DAY, parse_instant
from recall_runtime.config import DeepSettings, Weights
from recall_runtime.vocabulary import CandidateStatus, Gate, OriginClass, SessionKind, SignalKind
from tests.gates import reference

NOW = parse_instant("2026-04-10T03:00:00Z")
TODAY = dt.date(2026, 4, 10)
DEFAULTS = DeepSettings()


def candidate(group_id: int = 0, **changes: object) -> Candidate:
    plain = Candidate(
        group_id=group_id,
        claim_id=f"{group_id:012x}",
        root_id=f"{group_id:012x}",
        path="memory/2026-04-01.md",
        live=True,
        origin_class=OriginClass.AGENT,
        session_kind=SessionKind.INTERACTIVE,
        status=CandidateStatus.WAITING,
        tags=0,
        members=(f"{group_id:012x}",),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # names and types are those of the record


def recalls(
    count: int,
    queries: int,
    days: list[int],
    avg: float,
    *,
    group_id: int = 0,
    kind: SignalKind = SignalKind.RECALL,
    age_days: float = 0.0,
) -> list[Signal]:
    """``count`` signals over ``queries`` contexts; ``days`` are offsets back from today, ``age_days`` of the newest.

    Contexts and days are spread so that no two signals fall together.
    """
    made: list[Signal] = []
    used: set[tuple[str, int]] = set()
    for number in range(count):
        context, day = number % queries, days[number % len(days)]
        while (f"q{context}", day) in used:
            day = days[(days.index(day) + 1) % len(days)]
            if (f"q{context}", day) in used:
                context = (context + 1) % queries
        used.add((f"q{context}", day))
        iso = (TODAY - dt.timedelta(days=day)).isoformat()
        made.append(Signal(group_id, kind, f"q{context}", iso, avg, NOW - round(age_days * MS_PER_DAY)))
    return made


def one(candidate_: Candidate, signals: list[Signal], settings: DeepSettings = DEFAULTS) -> GateRow:
    (row,) = score_groups([candidate_], signals, settings=settings, now_ms=NOW)
    return row


@pytest.fixture(scope="module")
def macros():
    with open_memory() as connection:
        connection.execute(sql_text("macros.sql"))
        yield lambda expression: float(connection.sql(f"SELECT {expression}").fetchall()[0][0])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("frequency_of(1)", 0.289065),
        ("frequency_of(2)", 0.458157),
        ("frequency_of(3)", 0.578130),
        ("frequency_of(5)", 0.747222),
        ("frequency_of(10)", 1.0),
        ("frequency_of(40)", 1.0),
        ("recency_of(1, 14)", 0.951695),
        ("recency_of(7, 14)", 0.707107),
        ("recency_of(14, 14)", 0.5),
        ("recency_of(28, 14)", 0.25),
        ("recency_of(30, 14)", 0.226431),
        ("spread_of(0, 0)", 0.0),
        ("spread_of(1, 0)", 0.2),
        ("spread_of(2, 1)", 0.301158),
        ("spread_of(2, 7)", 0.686872),
        ("spread_of(3, 2)", 0.504005),
        ("spread_of(5, 4)", 0.807143),
        ("spread_of(5, 8)", 1.0),
    ],
)
def test_component_values_of_24_4(macros, expression, value):
    assert macros(expression) == pytest.approx(value, abs=5e-7)


@pytest.mark.parametrize(
    ("light", "rem", "light_age", "rem_age", "value"),
    [
        (1, 0, 0, 0, 0.021372),
        (0, 1, 0, 0, 0.032059),
        (1, 1, 0, 0, 0.053431),
        (3, 3, 0, 0, 0.106862),
        (6, 6, 0, 0, 0.15),
        (3, 3, 14, 14, 0.053431),
        (3, 3, 0, 28, 0.058774),
        (3, 3, "NULL", "NULL", 0.0),
    ],
)
def test_phase_boost_values_of_23(macros, light, rem, light_age, rem_age, value):
    assert macros(f"phase_boost_of({light}, {light_age}, {rem}, {rem_age})") == pytest.approx(value, abs=5e-7)


SCENARIOS = [
    ("5 recalls, one day, today", recalls(5, 5, [0], 0.8), {"tags": 6}, 0.799333, None),
    ("the same, 14 days old", recalls(5, 5, [14], 0.8, age_days=14), {"tags": 6}, 0.724333, Gate.MIN_SCORE),
    ("5 spread days", recalls(5, 5, [0, 2, 4, 6, 8], 0.9), {"tags": 6}, 0.909333, None),
    ("grounded 3", recalls(3, 3, [0], 0.9, kind=SignalKind.GROUNDED), {"tags": 4}, 0.788751, None),
    ("20 recalls, 3 days old", recalls(20, 8, [3, 7, 12], 0.7, age_days=3), {"tags": 8}, 0.871839, None),
    (
        "every component full, clamped from 1.15",
        recalls(10, 5, [0, 2, 4, 6, 8], 1.0),
        {"tags": 6, "light_hits": 6, "rem_hits": 6, "last_light_at": NOW, "last_rem_at": NOW},
        1.0,
        None,
    ),
]


@pytest.mark.parametrize(
    ("signals", "changes", "value", "gate"),
    [scenario[1:] for scenario in SCENARIOS],
    ids=[scenario[0] for scenario in SCENARIOS],
)
def test_scenario_scores_of_24_5(signals, changes, value, gate):
    row = one(candidate(**changes), signals)
    assert row.score == pytest.approx(value, abs=5e-7)
    assert row.failed_gate is gate


def test_three_recalls_by_two_queries_on_one_day_score_as_in_24_5_once_days_may_repeat():
    """One question asked twice a day counts once a day, so the scenario needs a second day's weight."""
    signals = recalls(2, 2, [0], 0.9)
    again = Signal(0, SignalKind.RECALL, "q0", (TODAY - dt.timedelta(days=1)).isoformat(), 0.9, NOW)
    row = one(candidate(tags=3), [*signals, again])
    two_days, one_day = reference.spread(2, 1), reference.spread(1, 0)
    assert row.score == pytest.approx(0.668751 + 0.10 * (two_days - one_day), abs=5e-7)
    assert row.failed_gate is Gate.MIN_UNIQUE_QUERIES


@pytest.mark.parametrize(
    ("avg", "tags", "hits", "value", "promoted"),
    [
        (0.58, 4, 3, 0.750014, True),
        (0.60, 4, 3, 0.756014, True),
        (0.62, 3, 3, 0.752014, True),
        (0.2, 0, 0, 0.489152, False),
        (0.3, 0, 0, 0.519152, False),
        (0.4, 0, 0, 0.549152, False),
    ],
)
def test_calibration_set_of_24_6(avg, tags, hits, value, promoted):
    at = NOW if hits else None
    row = one(
        candidate(tags=tags, light_hits=hits, rem_hits=hits, last_light_at=at, last_rem_at=at),
        recalls(3, 3, [2, 1, 0], avg),
    )
    assert row.score == pytest.approx(value, abs=5e-7)
    assert row.passed is promoted


@pytest.mark.parametrize(("avg", "tags", "value"), [(0.8, 2, 0.529376), (0.9, 3, 0.569376), (0.99, 4, 0.606376)])
def test_one_signal_of_24_6_never_passes(avg, tags, value):
    row = one(candidate(tags=tags), recalls(1, 1, [0], avg))
    assert row.score == pytest.approx(value, abs=5e-7)
    assert row.failed_gate is Gate.MIN_RECALL_COUNT


@pytest.mark.parametrize(("min_score", "passed"), [(0.54, True), (0.540001, False)])
def test_the_score_threshold_is_inclusive(min_score, passed):
    """10 signals, average 0, 5 questions, no tags (24.6); consolidation is weighed 0 to stand for "no days"."""
    settings = DeepSettings(min_score=min_score, weights=Weights(consolidation=0.0))
    row = one(candidate(), recalls(10, 5, [0, 1], 0.0), settings)
    assert row.passed is passed
    assert row.raw_score == 0.54


STRONG = recalls(10, 5, [0, 2, 4, 6, 8], 1.0)


@pytest.mark.parametrize(
    ("changes", "gate"),
    [
        ({"live": False, "origin_class": OriginClass.UNTRUSTED}, Gate.SOURCE),
        ({"status": CandidateStatus.WITHDRAWN}, Gate.SOURCE),
        ({"origin_class": OriginClass.UNTRUSTED, "status": CandidateStatus.REFUSED}, Gate.ORIGIN),
        ({"origin_class": OriginClass.SYSTEM}, Gate.ORIGIN),
        ({"session_kind": SessionKind.CRON, "status": CandidateStatus.PROMOTED}, Gate.SESSION_KIND),
        ({"session_kind": SessionKind.UNKNOWN}, Gate.SESSION_KIND),
        ({"status": CandidateStatus.REFUSED}, Gate.CONTAMINATED),
        ({"status": CandidateStatus.PROMOTED}, Gate.ALREADY_PROMOTED),
        ({"status": CandidateStatus.SUPERSEDED}, Gate.SUPERSEDED),
    ],
)
def test_the_first_failing_gate_is_reported_whatever_the_score(changes, gate):
    assert one(candidate(**changes), STRONG).failed_gate is gate


@pytest.mark.parametrize(
    ("signals", "settings", "gate"),
    [
        ([], DeepSettings(min_recall_count=0), Gate.MIN_RECALL_COUNT),
        (recalls(2, 1, [0, 1], 1.0, age_days=40), DEFAULTS, Gate.MIN_RECALL_COUNT),
        (recalls(4, 2, [40, 41], 1.0, age_days=40), DEFAULTS, Gate.MIN_UNIQUE_QUERIES),
        (recalls(9, 5, [40, 41], 0.1, age_days=40), DEFAULTS, Gate.MAX_AGE_DAYS),
        (recalls(9, 5, [40, 41], 0.1, age_days=30), DEFAULTS, Gate.MIN_SCORE),
    ],
    ids=["no signal at all, even when none is asked for", "too few signals", "too few questions", "too old", "low"],
)
def test_numeric_gates_come_in_their_order(signals, settings, gate):
    assert one(candidate(), signals, settings).failed_gate is gate


def test_the_limit_keeps_the_best_and_says_so():
    candidates = [candidate(n, path=f"memory/2026-04-0{9 - n}.md") for n in range(4)]
    signals = [s for n in range(4) for s in recalls(10, 5, [0, 2, 4, 6, 8], 1.0 - (n == 3) * 0.1, group_id=n)]
    rows = score_groups(candidates, signals, settings=DeepSettings(limit=2), now_ms=NOW)
    assert [(row.claim_id[-1], row.failed_gate) for row in rows] == [
        ("2", None),  # equal scores: by path
        ("1", None),
        ("0", Gate.LIMIT),
        ("3", Gate.LIMIT),
    ]


def test_groups_of_different_slices_compete_for_the_same_places():
    """Groups are scored 250,000 numbers at a time; the limit is one for all of them."""
    groups = (0, 249_999, 250_000, 600_000)
    candidates = [candidate(n) for n in groups]
    signals = [s for at, n in enumerate(groups) for s in recalls(10, 5, [0, 2, 4], 0.9 + at / 100, group_id=n)]
    rows = score_groups(candidates, signals, settings=DeepSettings(limit=2), now_ms=NOW)
    assert [(int(row.claim_id, 16), row.place, row.failed_gate) for row in rows] == [
        (600_000, 1, None),
        (250_000, 2, None),
        (249_999, 3, Gate.LIMIT),
        (0, 4, Gate.LIMIT),
    ]


def test_a_limit_of_nought_pauses_promotion():
    assert one(candidate(), STRONG, DeepSettings(limit=0)).failed_gate is Gate.LIMIT


def test_untrusted_candidates_use_up_no_slot():
    """P38: ten untrusted lines with top scores, one trusted line ranked eleventh, limit ten."""
    candidates = [candidate(n, origin_class=OriginClass.UNTRUSTED) for n in range(10)] + [candidate(10)]
    signals = [s for n in range(10) for s in recalls(10, 5, [0, 2, 4, 6, 8], 1.0, group_id=n)]
    rows = score_groups(candidates, signals + recalls(5, 5, [0], 0.9, group_id=10), settings=DEFAULTS, now_ms=NOW)
    assert [row.claim_id for row in rows if row.passed] == [f"{10:012x}"]
    assert sum(row.failed_gate is Gate.ORIGIN for row in rows) == 10


def test_untrusted_is_held_back_with_every_threshold_at_its_lowest():
    lowest = DeepSettings(min_score=0, min_recall_count=0, min_unique_queries=0, max_age_days=10_000)
    assert one(candidate(origin_class=OriginClass.UNTRUSTED), STRONG, lowest).failed_gate is Gate.ORIGIN


def test_one_question_that_showed_two_wordings_on_one_day_counts_once():
    row = one(candidate(), recalls(1, 1, [0], 0.7) + recalls(1, 1, [0], 0.9))
    assert (row.signal_count, row.relevance) == (1, 0.9)


def test_spaced_days_beat_the_same_count_on_one_day():
    spaced = one(candidate(), recalls(5, 5, [0, 2, 4, 6, 8], 0.8))
    assert spaced.score > one(candidate(), recalls(5, 5, [0], 0.8)).score


def random_case(seed: int) -> tuple[list[Candidate], list[Signal], DeepSettings]:
    rng = random.Random(seed)  # noqa: S311 - test data, no secret
    weights = [rng.random() for _ in range(6)]
    total = sum(weights)
    settings = DeepSettings(
        limit=rng.randint(0, 12),
        min_score=rng.choice([0.3, 0.5, 0.75]),
        min_recall_count=rng.randint(0, 4),
        min_unique_queries=rng.randint(0, 4),
        recency_half_life_days=rng.uniform(1, 60),
        max_age_days=rng.randint(1, 40),
        weights=Weights(*(w / total for w in weights)),
    )
    candidates = [
        candidate(
            n,
            path=f"memory/{rng.randint(1, 9)}.md",
            live=rng.random() < 0.95,
            origin_class=rng.choice([OriginClass.OWNER, OriginClass.AGENT, OriginClass.AGENT, OriginClass.UNTRUSTED]),
            session_kind=rng.choice([SessionKind.INTERACTIVE] * 5 + [SessionKind.CRON]),
            status=rng.choice([CandidateStatus.WAITING] * 9 + list(CandidateStatus)),
            tags=rng.randint(0, 8),
            light_hits=rng.randint(0, 9999),
            rem_hits=rng.randint(0, 8),
            last_light_at=rng.choice([None, NOW - rng.randint(-10, 40 * MS_PER_DAY)]),
            last_rem_at=rng.choice([None, NOW - rng.randint(0, 40 * MS_PER_DAY)]),
        )
        for n in range(60)
    ]
    signals = [
        Signal(
            group_id=rng.randrange(60),
            kind=rng.choice([SignalKind.RECALL] * 4 + [SignalKind.OBSERVATION, SignalKind.GROUNDED]),
            context=f"c{rng.randint(0, 7)}",
            day=(TODAY - dt.timedelta(days=rng.randint(0, 20))).isoformat(),
            score=rng.random(),
            observed_at=NOW - rng.randint(-MS_PER_DAY, 45 * MS_PER_DAY),
        )
        for _ in range(400)
    ]
    return candidates, signals, settings


@pytest.mark.parametrize("seed", range(25))
def test_sql_and_reference_agree_to_a_billionth(seed):
    candidates, signals, settings = random_case(seed)
    expected = reference.judge(candidates, signals, settings, NOW)
    rows = score_groups(candidates, signals, settings=settings, now_ms=NOW)
    assert len(rows) == len(candidates)
    for row in rows:
        wanted = expected[row.claim_id]
        components = (row.relevance, row.frequency, row.diversity, row.recency, row.consolidation, row.conceptual)
        assert components == pytest.approx(wanted.components, abs=1e-9)
        assert row.phase_boost == pytest.approx(wanted.boost, abs=1e-9)
        assert row.raw_score == pytest.approx(wanted.raw, abs=1e-9)
        assert row.score == pytest.approx(reference.clamp(wanted.raw), abs=1e-9)
        assert (row.signal_count, row.unique_queries) == (wanted.signal_count, wanted.unique_queries)
        assert row.failed_gate == wanted.gate


def test_an_analyst_can_ask_what_if_on_the_stored_scores():
    with open_memory() as connection:
        connection.execute(
            "CREATE TABLE gate_scores AS SELECT 's' AS sweep_id, 'a' AS claim_id, 9e-1 AS relevance, 5e-1 AS frequency,"
            " 6e-1 AS diversity, 1e0 AS recency, 2e-1 AS consolidation, 5e-1 AS conceptual, 0e0 AS phase_boost,"
            " 68e-2 AS score, 'min_score' AS failed_gate"
        )
        connection.execute(sql_text("macros.sql") + sql_text("what_if.sql"))
        now = connection.sql("SELECT score_now, verdict_now FROM what_if()").fetchall()[0]
        other = connection.sql("SELECT score_now, verdict_now FROM what_if(w_relevance := 0.5)").fetchall()[0]
    assert now == (pytest.approx(0.68), "min_score")
    assert other == (pytest.approx(0.86), "passed")
