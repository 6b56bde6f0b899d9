"""The job dreaming_sweep, run for real on a copy of the example workspace."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from memory_assets.definitions import AgentPlan, build_defs
from memory_assets.jobs import SWEEP_ASSETS
from memory_assets.metadata import SWEEP_TAG
from memory_assets.runner import DreamRun, run_dreaming
from memory_assets.sweep import open_sweep
from memory_assets.warehouse.query import run_query
from recall_runtime.agent import Agent, open_agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.errors import StoreLockedError, WorkspaceError
from recall_runtime.storage.atomic import content_hash
from recall_runtime.storage.connection import open_reader, query
from resources.agents import AgentsResource
from resources.clock import ClockResource

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NIGHT = parse_instant("2026-05-31T03:00:00+02:00")
MORNING = "2026-05-31"


@pytest.fixture(scope="module", autouse=True)
def _no_dagster_home() -> Iterator[None]:
    """Take the machine's own DAGSTER_HOME away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        yield


def _example(folder: Path) -> Path:
    """Copy the example below ``folder``; return the state folder."""
    shutil.copytree(ROOT / "examples" / "workspace", folder / "workspace")
    shutil.copytree(ROOT / "examples" / "sessions", folder / "sessions")
    (folder / "home").mkdir()
    (folder / "home" / "dreamline.toml").write_text(
        f"workspace = '{folder / 'workspace'}'\ntimezone = 'Europe/Berlin'\n"
        f"[embedder]\nname = 'none'\n[sources]\nsession_folders = ['{folder / 'sessions'}']\n"
    )
    return folder / "home"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state folder of a copy of the example."""
    return _example(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def run(home: Path) -> DreamRun:
    """Run one sweep."""
    return run_dreaming(home=home, now_ms=NIGHT)


@pytest.fixture(scope="module")
def instance(home: Path, run: DreamRun) -> Iterator[dg.DagsterInstance]:
    """Return the instance the sweep was recorded in."""
    with dg.DagsterInstance.from_config(os.fspath(home / "dagster")) as instance:
        yield instance


def _agent(home: Path) -> Agent:
    return open_agent(home=home, agent_id="main", clock=FixedClock(NIGHT))


def test_a_sweep_promotes_and_says_so(home: Path, run: DreamRun) -> None:
    assert (run.outcome, run.problems, run.sweep_id) == ("promoted", (), "2026-05-31T01:00:00.000Z")
    with contextlib.closing(open_reader(_agent(home).folders.state_db)) as state:
        rows = query(state, "SELECT file, entry_key FROM ledger WHERE sweep_id = ?", (run.sweep_id,))
    assert rows
    for file, key in rows:
        assert key in (_agent(home).workspace / file).read_text()


def test_every_asset_of_the_sweep_is_recorded_with_its_numbers(instance: dg.DagsterInstance, run: DreamRun) -> None:
    for path in SWEEP_ASSETS:
        event = instance.get_latest_materialization_event(dg.AssetKey(["main", *path]))
        assert event is not None
        assert event.run_id == run.run_id
        assert event.asset_materialization is not None
        values = [entry.value for entry in event.asset_materialization.metadata.values()]
        assert values
        assert all(isinstance(value, int | float) for value in values)


def test_the_night_has_its_cell(instance: dg.DagsterInstance, run: DreamRun) -> None:
    for name in ("staged_candidates", "rem_reflections", "gate_scores"):
        assert instance.get_materialized_partitions(dg.AssetKey(["main", "dreaming", name])) == {MORNING}


def test_every_check_passed(instance: dg.DagsterInstance, run: DreamRun) -> None:
    records = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    results = {}
    for record in records:
        assert record.event_log_entry.dagster_event is not None
        evaluation = record.event_log_entry.dagster_event.asset_check_evaluation_data
        results[evaluation.check_name] = evaluation.passed
    assert len(results) == 10
    assert [name for name, passed in results.items() if not passed] == []


def test_no_memory_text_reaches_the_event_log(home: Path, run: DreamRun) -> None:
    with contextlib.closing(open_reader(_agent(home).folders.state_db)) as state:
        texts = [text.encode() for (text,) in query(state, "SELECT text FROM claims")]
        texts += [text.lstrip("- ").encode()[:40] for (text,) in query(state, "SELECT text FROM ledger")]
    log = b"".join(path.read_bytes() for path in (home / "dagster").rglob("*") if path.is_file())
    assert len(texts) > 50
    assert [text for text in texts if len(text) > 15 and text in log] == []


def test_the_snapshot_is_published(home: Path, run: DreamRun) -> None:
    result = run_query(_agent(home), "SELECT outcome FROM sweeps")
    assert result.rows == (("promoted",),)
    assert run_query(_agent(home), "SELECT count(*) > 0 FROM gate_scores").rows == ((True,),)


def _hashes(home: Path) -> dict[str, str]:
    workspace = _agent(home).workspace
    return {str(p): content_hash(p.read_bytes()) for p in sorted(workspace.rglob("*.md"))}


def test_the_same_sweep_again_at_the_same_instant_changes_no_byte(home: Path, run: DreamRun) -> None:
    before = _hashes(home)
    again = run_dreaming(home=home, now_ms=NIGHT)
    assert again.outcome == "promoted"  # what the first run did stands
    assert _hashes(home) == before


def test_a_night_without_a_cell_is_swept_all_the_same(home: Path, run: DreamRun, instance: dg.DagsterInstance) -> None:
    far = run_dreaming(home=home, now_ms=parse_instant("2999-01-01T03:00:00Z"))
    assert far.outcome == "nothing_to_do"
    assert far.reason
    assert instance.get_materialized_partitions(dg.AssetKey(["main", "dreaming", "gate_scores"])) == {MORNING}


def test_a_sweep_beside_another_says_so_and_leaves_the_other_alone(home: Path, run: DreamRun) -> None:
    code = (
        "import sys; from pathlib import Path; from memory_assets.sweep import open_sweep\n"
        "from recall_runtime.agent import open_agent; from recall_runtime.clock import FixedClock\n"
        f"agent = open_agent(home=Path(sys.argv[1]), clock=FixedClock({NIGHT + 60_000}))\n"
        "with open_sweep(agent):\n    print('open', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError, match="already running"):
            run_dreaming(home=home, now_ms=NIGHT + 120_000)
        other.stdin.write("\n")
        other.stdin.close()
    assert other.returncode == 0


def test_a_failed_run_is_a_failed_run_in_the_instance(tmp_path: Path) -> None:
    home = _example(tmp_path)
    agent = _agent(home)
    with open_sweep(agent), pytest.raises(StoreLockedError):
        run_dreaming(home=home, now_ms=NIGHT)
    with dg.DagsterInstance.from_config(os.fspath(home / "dagster")) as instance:
        (record,) = instance.get_run_records(dg.RunsFilter(tags={SWEEP_TAG: "2026-05-31T01:00:00.000Z"}))
    assert record.dagster_run.status is dg.DagsterRunStatus.FAILURE


def test_a_snapshot_that_cannot_be_published_is_a_problem_of_a_good_sweep(tmp_path: Path) -> None:
    home = _example(tmp_path)
    agent = _agent(home)
    agent.folders.analytics.mkdir(parents=True)
    (agent.folders.analytics / "parquet").write_text("a file where a folder should be")
    done = run_dreaming(home=home, now_ms=NIGHT)
    assert done.outcome == "promoted"
    assert len(done.problems) == 1


def test_a_violated_gate_stops_the_sweep_before_anything_is_written(tmp_path: Path) -> None:
    home = _example(tmp_path)
    before = (_agent(home).workspace / "MEMORY.md").read_bytes()

    @dg.asset_check(asset=dg.AssetKey(["main", "dreaming", "gate_scores"]), name="planted", blocking=True)
    def planted() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False)

    resources = {"agents": AgentsResource(home=str(home)), "clock": ClockResource(now=MORNING + "T01:00:00Z")}
    defs = dg.Definitions.merge(
        build_defs(home=home, agents=[AgentPlan("main", zone="Europe/Berlin")], resources=resources),
        dg.Definitions(asset_checks=[planted]),
    )
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "i")) as instance:
        result = defs.resolve_job_def("dreaming_sweep").execute_in_process(instance=instance, raise_on_error=False)
    assert not result.success
    assert (_agent(home).workspace / "MEMORY.md").read_bytes() == before
    with contextlib.closing(open_reader(_agent(home).folders.state_db)) as state:
        assert query(state, "SELECT outcome FROM sweeps") == [("failed",)]


def test_the_notes_job_indexes_without_a_sweep(tmp_path: Path) -> None:
    home = _example(tmp_path)
    defs = build_defs(
        home=home,
        agents=[AgentPlan("main", zone="Europe/Berlin")],
        resources={"agents": AgentsResource(home=str(home))},
    )
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "i")) as instance:
        job = defs.resolve_job_def("index_notes")
        result = job.execute_in_process(instance=instance, partition_key="2026-05-20")
        counts = {
            event.asset_key.path[-1]: {k: v.value for k, v in event.materialization.metadata.items()}
            for event in result.get_asset_materialization_events()
            if event.asset_key
        }
    assert counts["daily_notes"]["files"] == 1
    assert counts["memory_index"]["notes_read"] > 10
    with contextlib.closing(open_reader(_agent(home).folders.state_db)) as state:
        assert query(state, "SELECT count(*) FROM sweeps") == [(0,)]


def test_a_year_of_notes_is_one_run(tmp_path: Path) -> None:
    home = _example(tmp_path)
    defs = build_defs(
        home=home,
        agents=[AgentPlan("main", zone="Europe/Berlin")],
        resources={"agents": AgentsResource(home=str(home))},
    )
    tags = {"dagster/asset_partition_range_start": "2026-05-01", "dagster/asset_partition_range_end": "2026-05-30"}
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path / "i")) as instance:
        defs.resolve_job_def("index_notes").execute_in_process(instance=instance, tags=tags)
        key = dg.AssetKey(["main", "episodic", "daily_notes"])
        assert len(instance.get_materialized_partitions(key)) == 30


def test_a_workspace_that_is_missing_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="No workspace is set"):
        run_dreaming(home=tmp_path)
