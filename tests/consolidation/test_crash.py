"""kill -9 of a real sweep process at every step of both writes, then a new sweep: the same end state as without."""

import shutil
from pathlib import Path

import pytest

from recall_runtime.curated.writer import Step
from recall_runtime.storage.schema import open_state
from tests.support.curated import agent_in, run_child
from tests.support.night import Night

CHILD = """
import os, signal, sys
from pathlib import Path
from tests.consolidation.test_crash import SECOND
from tests.support.curated import agent_in
from tests.support.night import Night
from recall_runtime.storage.schema import open_state
folder, step, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
agent = agent_in(folder)
night = Night(agent, open_state(agent.folders.state_db))
seen = []
def hook(reached):
    seen.append(reached)
    if reached == step and seen.count(reached) == number:
        os.kill(os.getpid(), signal.SIGKILL)
waiting = night.state.execute("SELECT claim_id FROM claims WHERE status = 'waiting' ORDER BY rowid")
passed = [claim_id for (claim_id,) in waiting]
night.sweep(*passed, sweep_id="s2", now_ms=SECOND, on_step=hook)
"""
SECOND = 1_774_000_000_000


def prepare(folder: Path) -> None:
    """One finished sweep, then news that supersede in both files."""
    agent = agent_in(folder)
    state = open_state(agent.folders.state_db)
    night = Night(agent, state)
    night.write("# Memory\n\n- By hand.\n")
    night.sweep(
        night.note("The boathouse queue is jobs.11. <!-- project: github.com/e/boathouse -->", "2026-03-01"),
        night.note("Always give prices in euro.", "2026-03-01"),
        sweep_id="s1",
    )
    night.note("boathouse workers consume jobs.22.", "2026-03-09")
    night.note("The ram is called Otto.", "2026-03-09")
    night.note("Always give prices in Swiss francs.", "2026-03-09")
    state.close()


def end_state(folder: Path) -> tuple[object, ...]:
    """Files and every row that must not depend on the crash."""
    agent = agent_in(folder)
    state = open_state(agent.folders.state_db)
    rows = (
        list(state.execute("SELECT sweep_id, file, operation, entry_key, text, priors FROM ledger ORDER BY ledger_id")),
        list(state.execute("SELECT claim_id, status, reason, entry_key FROM claims ORDER BY claim_id")),
        list(state.execute("SELECT file, sweep_id, hash, after_hash FROM pre_images ORDER BY pre_image_id")),
        list(state.execute("SELECT * FROM write_journal")),
    )
    state.close()
    files = {
        path.relative_to(agent.workspace).as_posix(): path.read_bytes()
        for path in agent.workspace.rglob("*")
        if path.is_file()
    }
    return (files, *rows)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["first-file", "second-file"])
@pytest.mark.parametrize("step", list(Step), ids=str)
def test_the_end_state_is_that_of_an_undisturbed_sweep(tmp_path: Path, step: Step, number: int) -> None:
    """Nothing is lost, nothing is doubled."""
    prepare(tmp_path / "crashed")
    shutil.copytree(tmp_path / "crashed", tmp_path / "calm")
    assert run_child(CHILD, str(tmp_path / "calm"), "never", "1") == 0
    assert run_child(CHILD, str(tmp_path / "crashed"), step.value, str(number)) == -9
    assert run_child(CHILD, str(tmp_path / "crashed"), "never", "1") == 0
    assert end_state(tmp_path / "crashed") == end_state(tmp_path / "calm")
