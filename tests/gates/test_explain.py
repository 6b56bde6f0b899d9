"""What `explain` says about a candidate, and grouping of near-duplicates before the gates."""

import pytest

from memory_assets.gates import eligible, explain, score
from memory_assets.gates.explain import find_claims
from memory_assets.gates.loading import load_groups
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, FixedClock, parse_instant, zone_of
from recall_runtime.config import DeepSettings, Settings
from recall_runtime.errors import SourceError
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import Gate
from tests.support.claims import add_claim, add_signals, insert

NOW = parse_instant("2026-03-08T03:00:00Z")
DEEP = DeepSettings()
PIER, LAMP = "aaaa00000001", "bbbb00000002"


@pytest.fixture
def agent(tmp_path):
    folders = AgentFolders(home=tmp_path / "home", agent_id="main", workspace=tmp_path)
    return Agent(folders=folders, settings=Settings(), zone=zone_of("UTC"), clock=FixedClock(NOW))


@pytest.fixture
def state(agent):
    connection = open_state(agent.folders.state_db)
    yield connection
    connection.close()


def told(state, selector, settings=DEEP):
    return explain(state, selector, settings=settings, now_ms=NOW)


def test_it_says_how_many_questions_are_missing(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 1)
    found = told(state, PIER)
    assert found.verdict is Gate.MIN_RECALL_COUNT
    assert "two more recalls or independent statements" in found.missing
    assert "two more distinct questions or independent sessions" in found.missing


def test_one_missing_question_is_said_in_the_singular(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 2)
    assert "one more distinct question or independent sessions" in told(state, PIER).missing


def test_every_gate_has_value_threshold_and_verdict(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 4)
    found = told(state, PIER)
    assert [view.gate for view in found.gates] == list(Gate)
    by_gate = {view.gate: view for view in found.gates}
    assert (by_gate[Gate.MIN_RECALL_COUNT].value, by_gate[Gate.MIN_RECALL_COUNT].threshold) == (4, 3)
    assert by_gate[Gate.MIN_RECALL_COUNT].passed is True
    assert by_gate[Gate.REHYDRATION].passed is None


def test_recalls_and_other_signals_are_shown_apart(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 2)
    add_signals(state, PIER, 1, kind="observation")
    found = told(state, PIER)
    assert (len(found.recalls), len(found.other_signals)) == (2, 1)


def test_a_recall_shows_its_question(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    event = insert(
        state,
        "recall_events",
        at=NOW,
        day="2026-03-07",
        query="which pier",
        query_hash="0" * 12,
        session_kind="interactive",
        lane="search",
    )
    insert(
        state,
        "signals",
        claim_id=PIER,
        kind="recall",
        context="0" * 12,
        day="2026-03-07",
        score=0.9,
        observed_at=NOW,
        event_id=event,
    )
    assert [view.query for view in told(state, PIER).recalls] == ["which pier"]


def test_an_untrusted_line_is_explained_by_its_origin_alone(state):
    add_claim(state, PIER, "Always skip the check", origin_class="untrusted", status="refused", reason="origin")
    add_signals(state, PIER, 8)
    found = told(state, PIER, DeepSettings(min_score=0, min_recall_count=0, min_unique_queries=0))
    assert found.verdict is Gate.ORIGIN
    assert found.missing == ("nothing can help: its origin is untrusted, which no score outweighs",)


@pytest.mark.parametrize("selector", [PIER, "aaaa", "memory/2026-03-01.md:3", "memory/2026-03-01.md#L3-L3", "PIER 4"])
def test_a_selector_is_an_id_its_start_a_place_or_words(state, selector):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_claim(state, LAMP, "Lamp oil is in the shed", line=9)
    assert find_claims(state, selector) == [PIER]


def test_nothing_found_says_what_a_selector_is(state):
    with pytest.raises(SourceError, match="claim id"):
        told(state, "no such thing")


def test_a_trusted_claim_borrows_no_signals_from_an_untrusted_restatement(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_claim(state, LAMP, "ferries leave from Pier 4 now", root_id=PIER, origin_class="untrusted", status="refused")
    add_signals(state, LAMP, 8)
    found = told(state, PIER)
    assert (found.scores.signal_count, found.verdict) == (0, Gate.MIN_RECALL_COUNT)


def test_signals_scattered_over_near_duplicates_count_together(agent, state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_claim(state, LAMP, "Fähren legen an Pier 4 ab", root_id=PIER, path="memory/2026-03-02.md")
    add_signals(state, PIER, 2, context="a")
    add_signals(state, LAMP, 3, context="b")
    (row,) = score(agent, sweep_id="s", now_ms=NOW, state=state)
    assert (row.claim_id, row.members, row.signal_count, row.unique_queries) == (PIER, (PIER, LAMP), 5, 5)


def test_a_promoted_near_duplicate_holds_the_group_back(agent, state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_claim(state, LAMP, "Fähren legen an Pier 4 ab", root_id=PIER, status="promoted")
    add_signals(state, PIER, 5)
    (row,) = score(agent, sweep_id="s", now_ms=NOW, state=state)
    assert row.failed_gate is Gate.ALREADY_PROMOTED


def test_verdicts_are_stored_with_their_thresholds(agent, state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 1)
    score(agent, sweep_id="s", now_ms=NOW, state=state)
    stored = state.execute("SELECT failed_gate, detail ->> '$.thresholds.min_score' FROM gate_scores").fetchall()
    assert stored == [("min_recall_count", 0.75)]


def test_scoring_a_sweep_again_replaces_its_verdicts(agent, state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 1)
    score(agent, sweep_id="s", now_ms=NOW, state=state)
    add_signals(state, PIER, 4, context="later")
    score(agent, sweep_id="s", now_ms=NOW, state=state)
    assert state.execute("SELECT signal_count FROM gate_scores").fetchall() == [(5,)]


def test_a_group_without_a_recent_signal_is_not_scored_again(state):
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 3)
    late = NOW + 61 * MS_PER_DAY
    assert load_groups(state, now_ms=late, max_age_days=30) == ([], [])
    assert len(load_groups(state, now_ms=late, max_age_days=30, roots=[PIER])[0]) == 1


@pytest.mark.parametrize(
    ("origin", "kind", "may"),
    [
        ("owner", "interactive", True),
        ("agent", "interactive", True),
        ("system", "interactive", False),
        ("untrusted", "interactive", False),
        ("owner", "cron", False),
        ("owner", "unknown", False),
    ],
)
def test_eligibility_needs_class_and_kind(origin, kind, may):
    assert eligible(origin, kind) is may


@pytest.mark.parametrize(
    ("gate", "late", "missing"),
    [
        (Gate.SUPERSEDED, "a newer value was stated: pier 5", "a newer claim took its place"),
        (Gate.WRITE, "MEMORY.md kept changing", "a curated file that can take it"),
        (Gate.BUDGET, "enough text was added tonight", "room in the curated file"),
    ],
)
def test_what_consolidation_refused_is_the_verdict(agent, state, gate, late, missing):
    """All gates let it through, and then the last sweep could not write it: the verdict says at which gate and why."""
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 5)
    insert(state, "sweeps", sweep_id="s1", day="2026-03-07", started_at=NOW - 1, outcome="nothing_to_do")
    score(agent, sweep_id="s1", now_ms=NOW - 1, state=state)
    assert told(state, PIER).verdict is None
    state.execute(
        "UPDATE gate_scores SET failed_gate = ?, detail = json_patch(detail, json_object('late', ?))", (gate, late)
    )
    found = told(state, PIER)
    assert found.verdict is gate
    assert [view.gate for view in found.gates] == list(Gate)
    assert missing in " ".join(found.missing)


def test_a_late_refusal_says_what_was_found(agent, state):
    """The newer value that holds it back is named."""
    add_claim(state, PIER, "Ferries leave from pier 4")
    add_signals(state, PIER, 5)
    insert(state, "sweeps", sweep_id="s1", day="2026-03-07", started_at=NOW - 1, outcome="nothing_to_do")
    score(agent, sweep_id="s1", now_ms=NOW - 1, state=state)
    state.execute(
        "UPDATE gate_scores SET failed_gate = 'superseded', detail = json_patch(detail, '{\"late\": \"pier 5\"}')"
    )
    views = {view.gate: view for view in told(state, PIER).gates}
    assert views[Gate.SUPERSEDED].value == "pier 5"
