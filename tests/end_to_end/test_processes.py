"""Real sweeps that are killed or meet each other, repeated sweeps, and a derived index that was deleted."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_assets.sweep import SweepStep
from recall_runtime.clock import format_instant
from recall_runtime.curated.writer import Step
from recall_runtime.storage.binding import take_over
from tests.end_to_end.chain import OPEN_GATES, Chain
from tests.support.workspace_days import Days

ROOT = Path(__file__).parents[2]
FIRST, NIGHT, NEXT = "2026-03-08T03:00:00Z", "2026-03-11T03:00:00Z", "2026-03-12T03:00:00Z"
WRITING = [f"{step}:{file}" for file in (1, 2) for step in Step]  # MEMORY.md is written first, then USER.md
STEPS = [*SweepStep, *WRITING]
FACTS = {
    "2026-03-03": "The Harbourline ferry leaves from pier 41877.",
    "2026-03-04": "Always give prices in euro.",
    "2026-03-05": "The Quaygate office opens at 41878 Mill Lane.",
}
Orders = Callable[..., list[str]]
_STATE = {
    "ledger": "SELECT sweep_id, at, file, operation, entry_key, claim_id, text, sources, priors, lineage_key"
    " FROM ledger ORDER BY ledger_id",
    "claims": "SELECT * FROM claims ORDER BY claim_id",
    "signals": "SELECT claim_id, kind, context, day, score FROM signals ORDER BY 1, 2, 3, 4",
    "evidence": "SELECT claim_id, path, source_key, live FROM evidence ORDER BY 1, 2, 3",
    "accounting": "SELECT * FROM accounting ORDER BY 1, 2, 3",
    "sweeps": "SELECT sweep_id, day, outcome, reason FROM sweeps ORDER BY 1",
    "gate_scores": "SELECT sweep_id, claim_id, score, failed_gate, detail FROM gate_scores ORDER BY 1, 2",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with one promoted value of the past and a night's work before it.

    Tonight a newer value supersedes the old entry, a fact is added, and a directive enters USER.md.
    """
    folder = tmp_path_factory.mktemp("template")
    chain = Chain(folder, dreaming=OPEN_GATES)
    chain.write("MEMORY.md", "# Memory\n\n- Hand-written and kept.\n")
    _ask(chain, "2026-03-02", "The Harbourline ferry leaves from pier 41870.", key="pier")
    chain.sweep(FIRST)
    for day, text in FACTS.items():
        _ask(chain, day, text, key="pier" if "pier" in text else None)
    return folder


def _ask(chain: Chain, day: str, text: str, *, key: str | None) -> None:
    chain.note(f"{day}T08:00:00Z", f"- {text}\n", f"s-{day}", supersedes_key=key)
    chain.sync(f"{day}T12:00:00Z")
    for number in range(1, 4):
        chain.recall(f"2026-03-0{4 + number}T13:00:00Z", f"{text} {number}?", f"memory/{day}.md", 1, 1.0)


@pytest.fixture(scope="module")
def orders() -> Iterator[Orders]:
    """Return a function that lets real processes sweep; see ``tests.end_to_end.processes``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.end_to_end.processes"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout

    def give(*lines: tuple[Path, str, str]) -> list[str]:
        assert process.stdin
        assert process.stdout
        together = f"together {len(lines)}\n" if len(lines) > 1 else ""
        process.stdin.write(together + "".join("\t".join(map(str, line)) + "\n" for line in lines))
        process.stdin.flush()
        return [process.stdout.readline().strip() for _ in lines]

    yield give
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


def copy_of(template: Path, folder: Path) -> Chain:
    """Return a chain over a copy of ``template``."""
    shutil.copytree(template, folder, dirs_exist_ok=True)
    chain = Chain(folder, dreaming=OPEN_GATES)
    take_over(chain.agent.folders)
    return chain


def state_of(chain: Days) -> dict[str, list[tuple[Any, ...]]]:
    """Return what a sweep leaves in the state database, without running numbers."""
    return {name: chain.rows(statement) for name, statement in _STATE.items()}


@pytest.fixture(scope="module")
def undisturbed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Return the workspace after a night in which nothing went wrong."""
    chain = copy_of(template, tmp_path_factory.mktemp("undisturbed"))
    report = chain.sweep(NIGHT)
    assert report.operations == {"added": 2, "superseded": 1}
    return chain


@pytest.mark.parametrize("step", STEPS)
def test_a_sweep_killed_at_any_step_leaves_what_an_undisturbed_one_leaves(
    template: Path, undisturbed: Chain, orders: Orders, tmp_path: Path, step: str
) -> None:
    chain = copy_of(template, tmp_path)
    assert orders((tmp_path, NIGHT, step)) == ["killed"]
    chain.sweep(NIGHT)
    assert chain.files() == undisturbed.files()
    assert state_of(chain) == state_of(undisturbed)
    chain.assert_second_run_changes_nothing(NIGHT)


@pytest.mark.parametrize("step", [SweepStep.STAGED, SweepStep.SCORED, *WRITING, SweepStep.CURATED])
def test_a_killed_sweep_is_made_good_by_the_next_night(
    template: Path, undisturbed: Chain, orders: Orders, tmp_path: Path, step: str
) -> None:
    chain = copy_of(template, tmp_path)
    assert orders((tmp_path, NIGHT, step)) == ["killed"]
    chain.sweep(NEXT)
    for file in ("MEMORY.md", "USER.md"):
        assert _entries(chain, file) == _entries(undisturbed, file)
    columns = "SELECT claim_id, text, status, entry_key FROM claims ORDER BY claim_id"
    assert chain.rows(columns) == undisturbed.rows(columns)
    operations = "SELECT operation, entry_key, text FROM ledger ORDER BY entry_key, operation, text"
    assert chain.rows(operations) == undisturbed.rows(operations)
    assert chain.rows("SELECT count(*) FROM sweeps WHERE outcome = 'running'") == [(0,)]
    history = chain.file("DREAMS.md").splitlines()
    for sweep_id, at in chain.rows("SELECT sweep_id, min(at) FROM ledger WHERE sweep_id >= ? GROUP BY 1", "2026-03-11"):
        assert history.count(f"### {format_instant(at)}") == 1, sweep_id


def _entries(chain: Chain, file: str) -> list[str]:
    return sorted(line for line in chain.file(file).splitlines() if line.startswith(("- ", "<!-- openclaw")))


def test_of_two_sweeps_at_once_one_runs_and_nothing_is_doubled(
    template: Path, undisturbed: Chain, orders: Orders, tmp_path: Path
) -> None:
    chain = copy_of(template, tmp_path)
    answers = orders((tmp_path, NIGHT, ""), (tmp_path, NIGHT, ""))
    assert sorted(answers) in (["locked", "promoted"], ["nothing_to_do", "promoted"])
    assert chain.files() == undisturbed.files()
    assert state_of(chain) == state_of(undisturbed)


def test_the_same_sweep_twice_changes_no_byte_of_a_curated_or_review_file(template: Path, tmp_path: Path) -> None:
    chain = copy_of(template, tmp_path)
    chain.sweep(NIGHT)
    before, state = chain.files(), state_of(chain)
    chain.sweep(NIGHT)
    assert chain.files() == before
    assert state_of(chain) == state


def test_a_deleted_index_is_built_again_with_the_same_answers_and_nothing_is_promoted_twice(
    template: Path, tmp_path: Path
) -> None:
    chain = copy_of(template, tmp_path)
    chain.sweep(NIGHT)
    chain.sync(NEXT)
    before, state, answers = chain.files(), state_of(chain), _answers(chain)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{chain.agent.folders.index_db}{suffix}").unlink(missing_ok=True)
    chain.sync(NEXT)
    assert _answers(chain) == answers
    report = chain.sweep(NEXT)
    assert report.outcome == "nothing_to_do"
    assert chain.files() == before
    after = state_of(chain)
    for name in ("ledger", "claims", "signals", "evidence"):
        assert after[name] == state[name], name


def _answers(chain: Chain) -> list[list[tuple[str, float]]]:
    return [
        [(hit.citation, round(hit.relevance, 9)) for hit in chain.search(question, NEXT).hits]
        for question in ("which pier does the ferry leave from?", "Quaygate office", "prices")
    ]


def test_deleting_the_published_analytics_is_harmless(template: Path, tmp_path: Path) -> None:
    chain = copy_of(template, tmp_path)
    chain.sweep(NIGHT, publishing=True)
    assert list(chain.agent.folders.analytics.rglob("*.parquet"))
    before, state = chain.files(), state_of(chain)
    shutil.rmtree(chain.agent.folders.analytics)
    report = chain.sweep(NEXT, publishing=True)
    assert report.outcome == "nothing_to_do"
    assert chain.files() == before
    assert state_of(chain)["ledger"] == state["ledger"]
    assert list(chain.agent.folders.analytics.rglob("*.parquet"))
