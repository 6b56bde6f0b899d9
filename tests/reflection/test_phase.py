"""Marks of the REM phase on the state database."""

import pytest

from memory_assets.reflection import reflect
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, FixedClock, parse_instant, zone_of
from recall_runtime.config import Settings
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.schema import open_state
from tests.support.claims import add_claim, add_signals, insert

NOW = parse_instant("2026-03-05T03:00:00Z")


@pytest.fixture
def agent(tmp_path):
    folders = AgentFolders(home=tmp_path / "home", agent_id="main", workspace=tmp_path)
    return Agent(folders=folders, settings=Settings(), zone=zone_of("UTC"), clock=FixedClock(NOW))


@pytest.fixture
def state(agent):
    connection = open_state(agent.folders.state_db)
    yield connection
    connection.close()


def stage(state, claim_id, text, *, at=NOW, signals=3, **values):
    add_claim(state, claim_id, text, concept_tags="harbour; ferry", **values)
    add_signals(state, claim_id, signals)
    insert(state, "phase_signals", claim_id=claim_id, light_hits=1, last_light_at=at)


def marks(state):
    return state.execute(
        "SELECT claim_id, rem_hits, last_rem_at, last_rem_considered_at FROM phase_signals ORDER BY claim_id"
    ).fetchall()


def test_all_pending_traces_are_considered_and_only_truths_gain_a_hit(agent, state):
    stage(state, "a" * 12, "Ferries leave from pier 4", signals=3)
    stage(state, "b" * 12, "Lamp oil is in the shed", signals=0)
    found = reflect(agent, now_ms=NOW, state=state)
    assert [truth.claim_id for truth in found.truths] == ["a" * 12]
    assert marks(state) == [("a" * 12, 1, NOW, NOW), ("b" * 12, 0, None, NOW)]


def test_a_second_phase_over_the_same_input_changes_no_mark(agent, state):
    stage(state, "a" * 12, "Ferries leave from pier 4")
    first = reflect(agent, now_ms=NOW, state=state)
    before = marks(state)
    again = reflect(agent, now_ms=NOW + MS_PER_DAY, state=state)
    assert marks(state) == before
    assert (first.reinforced, again.reinforced) == (True, False)
    assert again.truths == first.truths


def test_a_light_hit_after_rem_makes_the_trace_pending_again(agent, state):
    stage(state, "a" * 12, "Ferries leave from pier 4")
    reflect(agent, now_ms=NOW, state=state)
    state.execute("UPDATE phase_signals SET last_light_at = ?", (NOW + MS_PER_DAY,))
    assert reflect(agent, now_ms=NOW + MS_PER_DAY, state=state).reinforced
    assert marks(state)[0][1] == 2


def test_hits_are_capped(agent, state):
    stage(state, "a" * 12, "Ferries leave from pier 4")
    state.execute("UPDATE phase_signals SET rem_hits = 9999")
    reflect(agent, now_ms=NOW, state=state)
    assert marks(state)[0][1] == 9999


@pytest.mark.parametrize(
    "values",
    [
        {"origin_class": "untrusted"},
        {"origin_class": "system"},
        {"session_kind": "cron"},
        {"status": "withdrawn"},
        {"status": "refused"},
    ],
    ids=str,
)
def test_what_may_not_be_promoted_is_neither_theme_nor_truth(agent, state, values):
    stage(state, "a" * 12, "Ferries leave from pier 4", **values)
    found = reflect(agent, now_ms=NOW, state=state)
    assert (found.traces, found.themes, found.truths) == (0, (), ())


def test_a_promoted_claim_may_carry_a_theme_but_is_no_truth(agent, state):
    stage(state, "a" * 12, "Ferries leave from pier 4", status="promoted")
    found = reflect(agent, now_ms=NOW, state=state)
    assert [theme.tag for theme in found.themes] == ["ferry", "harbour"]
    assert found.truths == ()


def test_the_phase_of_the_same_instant_finds_the_same_again_also_after_a_promotion(agent, state):
    """As after a crash: the review of the sweep that is run again shows what the first run found."""
    stage(state, "a" * 12, "Ferries leave from pier 4")
    first = reflect(agent, now_ms=NOW, state=state)
    before = marks(state)
    state.execute("UPDATE claims SET status = 'promoted', promoted_at = ?", (NOW,))
    assert reflect(agent, now_ms=NOW, state=state) == first
    assert marks(state) == before
