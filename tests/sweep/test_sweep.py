"""One sweep end to end: what it writes, that it can be repeated, and what it says when there is nothing to do."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from memory_assets.sweep import LOCK_FILE, Phase, SweepStep, open_sweep, run_sweep
from recall_runtime.curated.writer import Step
from recall_runtime.errors import StoreLockedError
from recall_runtime.index.freshness import compare
from recall_runtime.storage.locks import exclusive
from recall_runtime.vocabulary import Operation
from tests.support.workspace_days import Days

NOTE = "memory/2026-03-03.md"
PIER = "The Harbourline ferry leaves from pier 41877."
NIGHT = "2026-03-08T03:00:00Z"


@pytest.fixture
def days(tmp_path):
    days = Days(tmp_path)
    days.write("MEMORY.md", "# Memory\n\n- Hand-written and kept.\n")
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    for day in range(4, 8):
        days.recall(f"2026-03-0{day}T09:00:00Z", f"which pier, question {day}", NOTE, 1, 0.95)
    return days


def sweep(days, instant=NIGHT, **options):
    return run_sweep(days.at(instant), publishing=False, **options)


def files(days):
    root = days.agent.workspace
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_recalled_note_line_reaches_memory_md_with_its_source(days):
    report = sweep(days)
    text = (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")
    assert report.outcome == "promoted"
    assert text.count(PIER) == 1
    assert f"{NOTE}#L1" in text
    assert "- Hand-written and kept.\n" in text
    ((outcome, counts),) = days.rows("SELECT outcome, counts FROM sweeps")
    assert outcome == "promoted"
    assert json.loads(counts)["operations"] == {"added": 1}


def test_without_a_model_the_rules_are_named_with_all_they_do(tmp_path):
    days = Days(tmp_path)
    for day, port in (("03", "8080"), ("04", "8080"), ("05", "8080"), ("07", "9100"), ("08", "9100"), ("09", "9100")):
        text = f"The ferry gateway listens on port {port}. <!-- project: github.com/x/ferry -->"
        days.note(f"2026-03-{day}T10:00:00Z", text, f"s{day}")
        if day == "05":
            sweep(days, "2026-03-06T03:00:00Z")
    assert sweep(days, "2026-03-10T03:00:00Z").curated.count(Operation.SUPERSEDED) == 1
    text = (days.agent.workspace / "DREAMS.md").read_text(encoding="utf-8")
    assert "- Consolidated by the rules." in text
    assert "- Superseded: 1\n- Decided by the rules: no model is configured\n" in text
    assert "append-only" not in text  # an entry was replaced


def test_what_a_sweep_wrote_is_in_the_index_when_it_ends(days):
    """Triggers and search know the new entry from the next message on, not from the next sync on."""
    sweep(days)
    assert compare(days.at(NIGHT)).is_fresh


def test_the_same_sweep_again_at_the_same_instant_changes_no_byte(days):
    first = sweep(days)
    before = files(days)
    again = sweep(days)
    assert files(days) == before
    assert again.sweep_id == first.sweep_id
    assert days.rows("SELECT outcome FROM sweeps") == [("promoted",)]
    assert days.rows("SELECT failed_gate FROM gate_scores") == [(None,)]


def test_ten_more_nights_without_new_input_change_no_curated_or_review_file(days):
    sweep(days)
    before = files(days)
    for night in range(9, 19):
        report = sweep(days, f"2026-03-{night:02d}T03:00:00Z")
        assert report.outcome == "nothing_to_do"
    assert files(days) == before


def test_an_empty_workspace_says_why_nothing_happened(tmp_path):
    report = sweep(Days(tmp_path))
    assert (report.outcome, report.reason) == ("nothing_to_do", "the workspace holds no notes and no transcripts")
    assert days_files(tmp_path) == []


def days_files(folder):
    return [path for path in (folder / "workspace").rglob("*") if path.is_file()]


def test_a_sweep_without_signals_says_so(tmp_path):
    days = Days(tmp_path)
    days.write(NOTE, f"- {PIER}\n")
    report = sweep(days)
    assert report.reason == "no candidate has a signal yet: nothing was recalled, and nothing said twice"


def test_a_sweep_in_which_none_passed_counts_the_gates(days):
    days.rows("DELETE FROM recall_events WHERE event_id > 2")
    report = sweep(days)
    assert report.reason == "none of 1 candidates passed the gates: min_recall_count 1"
    assert report.counts["gates"]["failed"] == {"min_recall_count": 1}


def test_a_dry_run_says_what_would_happen_and_leaves_no_trace(days):
    before, rows = files(days), days.dump()
    report = sweep(days, dry_run=True)
    assert report.outcome == "dry_run"
    assert report.operations["added"] == 1
    assert (files(days), days.dump()) == (before, rows)
    assert days.rows("SELECT count(*) FROM sweeps") == [(0,)]


def test_phases_can_be_run_alone(days):
    report = sweep(days, phases=[Phase.LIGHT])
    assert report.staged
    assert report.scored == ()
    assert report.reason == "the deep phase was not run"


def test_steps_run_in_their_order_with_the_steps_of_the_write_in_between(days):
    steps: list[str] = []
    sweep(days, on_step=steps.append)
    assert steps == [
        SweepStep.RECOVERED,
        SweepStep.INDEXED,
        SweepStep.STAGED,
        SweepStep.REFLECTED,
        SweepStep.SCORED,
        *Step,
        SweepStep.CURATED,
        SweepStep.REVIEWED,
        SweepStep.FINISHED,
    ]


def test_each_step_can_be_called_alone_on_an_opened_sweep(days):
    for name in ("index", "stage", "reflect", "score", "curate", "review", "finish"):
        with open_sweep(days.at(NIGHT)) as opened:
            getattr(opened, name)()
    assert PIER in (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")


class StoppedError(Exception):
    """Ends a sweep from within."""


@pytest.mark.parametrize("last", [*SweepStep, *Step])
def test_a_sweep_that_ends_after_any_step_is_made_good_by_the_next(days, last):
    def stop(step):
        if step == last:
            raise StoppedError

    with contextlib.suppress(StoppedError):
        sweep(days, on_step=stop)
    sweep(days)
    text = (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")
    assert text.count(PIER) == 1
    assert days.rows("SELECT count(*) FROM ledger") == [(1,)]
    assert days.rows("SELECT count(*) FROM signals") == [(4,)]


def test_a_failed_sweep_says_why_in_its_row(days):
    def stop(step):
        if step == SweepStep.STAGED:
            raise StoppedError

    with pytest.raises(StoppedError):
        sweep(days, on_step=stop)
    assert days.rows("SELECT outcome, reason FROM sweeps") == [("failed", "StoppedError")]


def test_a_second_sweep_is_told_that_one_is_running(days):
    lock = days.agent.folders.agent_home / LOCK_FILE
    with exclusive(lock, what="test"), pytest.raises(StoreLockedError, match="already running"):
        sweep(days)


_OTHER = """
import sys
from pathlib import Path
from memory_assets.sweep import run_sweep
from recall_runtime.errors import StoreLockedError
from recall_runtime.index.freshness import compare
from tests.support.workspace_days import Days
days = Days(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    print(run_sweep(days.at(sys.argv[2]), publishing=False).outcome)
except StoreLockedError as error:
    print("locked", error)
"""


@pytest.mark.slow
def test_two_processes_at_once_double_nothing(days):
    root = Path(__file__).parent.parent.parent
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OTHER, str(days.folder), NIGHT],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert "promoted" in answers
    assert any(answer.startswith("locked") or answer == "nothing_to_do" for answer in answers)
    assert (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8").count(PIER) == 1
    assert days.rows("SELECT count(*) FROM ledger") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("following", [NIGHT, "2026-03-09T03:00:00Z"], ids=["the-same-again", "the-next-night"])
@pytest.mark.parametrize("last", [SweepStep.STAGED, Step.PREPARED, Step.REPLACED, SweepStep.CURATED])
def test_a_killed_sweep_is_made_good_by_the_next(days, last, following):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom memory_assets.sweep import run_sweep\n"
        "from tests.support.workspace_days import Days\n"
        "def stop(step):\n    if step == sys.argv[3]:\n        os.kill(os.getpid(), 9)\n"
        "run_sweep(Days(Path(sys.argv[1])).at(sys.argv[2]), publishing=False, on_step=stop)\n"
    )
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", code, str(days.folder), NIGHT, str(last)], cwd=root, check=False)
    assert done.returncode == -9
    sweep(days, following)
    assert (days.agent.workspace / "MEMORY.md").read_text(encoding="utf-8").count(PIER) == 1
    assert days.rows("SELECT count(*) FROM ledger") == [(1,)]
    assert days.rows("SELECT count(*) FROM signals") == [(4,)]
    assert days.rows("SELECT count(*) FROM write_journal") == [(0,)]
    assert days.rows("SELECT count(*) FROM sweeps WHERE outcome = 'running'") == [(0,)]
