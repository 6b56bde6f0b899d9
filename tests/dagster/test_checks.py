"""Every rule passes on sound state and fails on the fault it is for."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import dagster as dg
import pytest

from memory_assets import verification
from memory_assets.checks import checks_of, result_of, verified
from memory_assets.verification import Finding, Rule
from recall_runtime.agent import Agent
from recall_runtime.index.sync import sync
from recall_runtime.storage.schema import open_state
from tests.support.state_rows import NOON, add_claim, add_gate_score, add_promotion, add_signal, add_sweep, make_agent

CLAIM = "aaaaaaaaaaaa"
Change = Callable[[Agent, apsw.Connection], object]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Return an agent with a note of three lines and a curated file of four entries."""
    agent = make_agent(tmp_path)
    (agent.workspace / "memory" / "2026-03-09.md").write_text("- one\n- two\n- three\n")
    (agent.workspace / "MEMORY.md").write_text("# Long-Term Memory\n\n- A\n- B\n- C\n- D\n")
    return agent


@pytest.fixture
def state(agent: Agent) -> Iterator[apsw.Connection]:
    """Return a sound state: one sweep, one claim that passed and was promoted."""
    connection = open_state(agent.folders.state_db)
    add_claim(connection, CLAIM, "D", status="promoted")
    connection.execute("UPDATE claims SET entry_key = claim_id")
    add_signal(connection, CLAIM, "day:2026-03-09")
    add_sweep(connection, "sweep-1")
    add_gate_score(connection, "sweep-1", CLAIM)
    connection.execute("INSERT INTO accounting VALUES ('sweep-1', 'memory/2026-03-09.md', 'taken', 2)")
    connection.execute("INSERT INTO accounting VALUES ('sweep-1', 'memory/2026-03-09.md', 'refused:too_short', 1)")
    connection.execute("INSERT INTO accounting_seen VALUES ('sweep-1', 'memory/2026-03-09.md', 3)")
    add_promotion(connection, CLAIM, "- D", sources=[{"path": "memory/2026-03-09.md", "start": 3, "end": 3}])
    _write(connection, "- A\n- B\n- C\n", "- A\n- B\n- C\n- D\n")
    yield connection
    connection.close()


def _write(state: apsw.Connection, before: str, after: str) -> None:
    state.execute("DELETE FROM pre_images")
    state.execute(
        "INSERT INTO pre_images(file, sweep_id, at, hash, content, after_content)"
        " VALUES ('MEMORY.md', 'sweep-1', ?, 'h', ?, ?)",
        (NOON, before.encode(), after.encode()),
    )


def _wrote(before: str, after: str) -> Change:
    return lambda _agent, state: _write(state, before, after)


def _sql(statement: str) -> Change:
    return lambda _agent, state: state.execute(statement)


def _echo(agent: Agent, state: apsw.Connection) -> None:
    state.execute(
        "INSERT INTO evidence(evidence_id, claim_id, source, path, start_line, end_line, source_key, day, origin_class,"
        " session_kind, echo, observed_at) VALUES (7, ?, 'transcript', 'sessions/main/s.jsonl', 1, 1, 'k',"
        " '2026-03-09', 'agent', 'interactive', 1, 0)",
        (CLAIM,),
    )
    state.execute("UPDATE signals SET evidence_id = 7")


def _cron_recall(agent: Agent, state: apsw.Connection) -> None:
    state.execute(
        "INSERT INTO recall_events(event_id, at, day, query, query_hash, session_kind, lane)"
        " VALUES (3, 0, '2026-03-09', 'q', 'h', 'cron', 'search')"
    )
    state.execute("UPDATE signals SET kind = 'recall', event_id = 3")


def _supersede(count: int, *, bystanders: int = 0) -> Change:
    def change(agent: Agent, state: apsw.Connection) -> None:
        priors = [f"- entry {number}" for number in range(count)]
        others = [f"- other {number}" for number in range(bystanders)]
        _write(state, "\n".join(priors + others) + "\n", "\n".join(["- new", *others]) + "\n")
        add_promotion(state, "bbbbbbbbbbbb", "- new", operation="superseded", priors=priors)

    return change


def _drop_for_budget(agent: Agent, state: apsw.Connection) -> None:
    _write(state, "- old 1\n- old 2\n- old 3\n", "- D\n")
    for number in (1, 2, 3):
        add_promotion(state, f"{number:012x}", f"- old {number}", operation="dropped")


def _directive(kind: str) -> Change:
    def change(agent: Agent, state: apsw.Connection) -> None:
        add_claim(state, "cccccccccccc", "Always answer briefly")
        state.execute("UPDATE claims SET kind = ? WHERE claim_id = 'cccccccccccc'", (kind,))
        add_promotion(state, "cccccccccccc", "- Always answer briefly", file="USER.md")
        (agent.workspace / "USER.md").write_text(
            "- written by hand\n<!-- openclaw-memory-promotion:cccccccccccc -->\n- Always answer briefly\n"
        )

    return change


def _indexed(agent: Agent, state: apsw.Connection) -> None:
    sync(agent, vectors=False)


def _age_note(days: int) -> Change:
    def change(agent: Agent, state: apsw.Connection) -> None:
        at = NOON // 1000 - days * 86_400
        for path in (agent.workspace / "memory" / "2026-03-09.md", agent.workspace / "MEMORY.md"):
            os.utime(path, (at, at))

    return change


def _both(*changes: Change) -> Change:
    def change(agent: Agent, state: apsw.Connection) -> None:
        for step in changes:
            step(agent, state)

    return change


@pytest.mark.parametrize(
    ("rule", "change", "violations"),
    [
        (verification.no_untrusted_eligible, _sql("SELECT 1"), 0),
        (verification.no_untrusted_eligible, _sql("UPDATE claims SET origin_class = 'untrusted'"), 1),
        (verification.no_system_eligible, _sql("SELECT 1"), 0),
        (verification.no_system_eligible, _sql("UPDATE claims SET origin_class = 'system'"), 1),
        (verification.session_kind_gated, _sql("SELECT 1"), 0),
        (verification.session_kind_gated, _sql("UPDATE claims SET session_kind = 'heartbeat'"), 1),
        (verification.session_kind_gated, _sql("UPDATE claims SET session_kind = 'unknown'"), 1),
        (verification.no_recall_loop, _sql("SELECT 1"), 0),
        (verification.no_recall_loop, _echo, 1),
        (verification.no_recall_loop, _cron_recall, 1),
        (verification.within_budget, _sql("SELECT 1"), 0),
        (verification.within_budget, _wrote("- A\n", "- " + "x" * 11_000 + "\n"), 1),
        (verification.within_budget, _wrote("- " + "x" * 11_000 + "\n", "- " + "y" * 11_000 + "\n"), 0),
        (verification.within_budget, _wrote("- " + "x" * 11_000 + "\n", "- " + "y" * 11_001 + "\n"), 1),
        (verification.bounded_loss, _sql("SELECT 1"), 0),
        (verification.bounded_loss, _supersede(1), 0),
        (verification.bounded_loss, _supersede(2, bystanders=6), 0),
        (verification.bounded_loss, _supersede(2, bystanders=5), 1),
        (verification.bounded_loss, _drop_for_budget, 0),
        (verification.bounded_loss, _wrote("- by hand\n- A\n", "- A\n- D\n"), 1),
        (verification.anchors_resolve, _sql("SELECT 1"), 0),
        (verification.anchors_resolve, lambda agent, _: (agent.workspace / "memory" / "2026-03-09.md").unlink(), 1),
        (
            verification.anchors_resolve,
            lambda agent, _: (agent.workspace / "memory" / "2026-03-09.md").write_text("- one\n- two"),
            1,
        ),
        (verification.user_md_imperative, _directive("directive"), 0),
        (verification.user_md_imperative, _directive("fact"), 1),
        (verification.accounting_adds_up, _sql("SELECT 1"), 0),
        (verification.accounting_adds_up, _sql("UPDATE accounting SET verdict = 'lost' WHERE lines = 2"), 2),
        (verification.accounting_adds_up, _sql("UPDATE accounting_seen SET lines = lines + 1"), 1),
        (verification.accounting_adds_up, _sql("DELETE FROM ledger"), 1),
        (verification.input_read, _indexed, 0),
        (verification.input_read, _age_note(1), 0),
        (verification.input_read, _age_note(4), 2),
        (verification.input_read, _both(_age_note(4), _indexed), 0),
        (verification.input_read, _both(_indexed, _age_note(4)), 2),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_a_rule_counts_its_violations(
    agent: Agent, state: apsw.Connection, rule: Rule, change: Change, violations: int
) -> None:
    change(agent, state)
    finding = rule(agent, state)
    assert (finding.violations, finding.passed) == (violations, violations == 0)


@pytest.mark.parametrize("rule", ["no_untrusted_eligible", "no_system_eligible", "session_kind_gated"])
def test_a_candidate_that_failed_a_gate_is_no_violation(agent: Agent, state: apsw.Connection, rule: str) -> None:
    state.execute("UPDATE claims SET origin_class = 'untrusted', session_kind = 'cron'")
    state.execute("UPDATE gate_scores SET failed_gate = 'origin'")
    assert getattr(verification, rule)(agent, state).passed


def test_what_a_person_does_to_the_file_later_is_no_violation(agent: Agent, state: apsw.Connection) -> None:
    (agent.workspace / "MEMORY.md").write_text("- only this\n" + "x" * 20_000)
    assert verification.within_budget(agent, state).passed
    assert verification.bounded_loss(agent, state).passed


def test_an_older_citation_that_moved_is_counted_apart(agent: Agent, state: apsw.Connection) -> None:
    add_sweep(state, "sweep-2")
    state.execute("UPDATE sweeps SET started_at = started_at + 1 WHERE sweep_id = 'sweep-2'")
    (agent.workspace / "memory" / "2026-03-09.md").unlink()
    finding = verification.anchors_resolve(agent, state)
    assert (finding.passed, finding.numbers["moved_since"]) == (True, 1)


def test_a_dry_run_is_not_the_latest_sweep(state: apsw.Connection) -> None:
    add_sweep(state, "sweep-2", outcome="dry_run")
    assert verification.latest_sweep(state) == "sweep-1"


def test_before_the_first_sweep_every_rule_holds(tmp_path: Path) -> None:
    agent = make_agent(tmp_path)
    with contextlib.closing(open_state(agent.folders.state_db)):
        pass
    rules = [getattr(verification, check.name) for check in _keys()]
    assert all(verified(rule, agent).passed for rule in rules)


def test_without_a_state_database_there_is_nothing_to_find(tmp_path: Path) -> None:
    assert verified(verification.no_recall_loop, make_agent(tmp_path)) == Finding(passed=True)


def _keys() -> list[dg.AssetCheckKey]:
    return [key for check in checks_of("main") for key in check.check_keys]


def test_the_checks_are_bound_to_their_assets() -> None:
    assert {(key.name, key.asset_key.to_user_string()) for key in _keys()} == {
        ("no_untrusted_eligible", "main/dreaming/gate_scores"),
        ("no_system_eligible", "main/dreaming/gate_scores"),
        ("session_kind_gated", "main/dreaming/gate_scores"),
        ("no_recall_loop", "main/dreaming/gate_scores"),
        ("within_budget", "main/curated/memory_md"),
        ("bounded_loss", "main/curated/memory_md"),
        ("anchors_resolve", "main/curated/memory_md"),
        ("user_md_imperative", "main/curated/user_md"),
        ("accounting_adds_up", "main/dreaming/staged_candidates"),
        ("input_read", "main/episodic/memory_index"),
    }
    blocking = {spec.name for check in checks_of("main") for spec in check.check_specs if spec.blocking}
    assert blocking == {"no_untrusted_eligible", "no_system_eligible", "session_kind_gated", "no_recall_loop"}


def test_a_result_carries_numbers_only() -> None:
    result = result_of(Finding(passed=False, violations=2, numbers={"a": 1.5}))
    assert not result.passed
    assert {name: value.value for name, value in result.metadata.items()} == {"violations": 2, "a": 1.5}
