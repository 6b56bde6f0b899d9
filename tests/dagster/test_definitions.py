"""The code location as a whole: what is in it, how it hangs together, and that it always loads."""

import datetime as dt
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from memory_assets.definitions import AgentPlan, build_defs, plan_for

ROOT = Path(__file__).parents[2]
DAILY = "Daily, starting 2020-01-01 Europe/Berlin. End offsetted by 1 partition."

# key: (upstream, group, partitions)
SNAPSHOT = {
    "main/episodic/daily_notes": ((), "episodic", DAILY),
    "main/episodic/transcript_ingests": ((), "episodic", None),
    "main/episodic/memory_index": (
        ("main/episodic/daily_notes", "main/episodic/transcript_ingests"),
        "episodic",
        None,
    ),
    "main/signals/recall_signals": (("main/episodic/memory_index",), "signals", DAILY),
    "main/dreaming/staged_candidates": (
        ("main/episodic/memory_index", "main/signals/recall_signals"),
        "dreaming",
        DAILY,
    ),
    "main/dreaming/rem_reflections": (("main/dreaming/staged_candidates",), "dreaming", DAILY),
    "main/dreaming/gate_scores": (("main/dreaming/rem_reflections",), "dreaming", DAILY),
    "main/curated/memory_md": (("main/dreaming/gate_scores",), "curated", None),
    "main/curated/user_md": (("main/dreaming/gate_scores",), "curated", None),
    "main/review/dreams_md": (("main/curated/memory_md", "main/curated/user_md"), "review", None),
    "main/analytics/published_snapshot": (("main/review/dreams_md",), "analytics", None),
}


def _defs(*plans: AgentPlan) -> dg.Definitions:
    defs = build_defs(home=Path("nowhere"), agents=plans or (AgentPlan("main", zone="Europe/Berlin"),))
    dg.Definitions.validate_loadable(defs)
    return defs


def test_the_assets_are_those_of_the_snapshot() -> None:
    graph = _defs().resolve_asset_graph()
    found = {}
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        upstream = tuple(sorted(parent.to_user_string() for parent in node.parent_keys))
        partitions = str(node.partitions_def) if node.partitions_def else None
        found[key.to_user_string()] = (upstream, node.group_name, partitions)
    assert found == SNAPSHOT


def test_the_jobs_schedule_and_sensors_are_those_of_the_snapshot() -> None:
    repository = _defs().get_repository_def()
    assert sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")) == [
        "dreaming_sweep",
        "index_notes",
        "ingest_transcripts",
    ]
    (schedule,) = repository.schedule_defs
    assert (schedule.name, schedule.job_name, schedule.cron_schedule, schedule.execution_timezone) == (
        "nightly_sweep",
        "dreaming_sweep",
        "0 3 * * *",
        "Europe/Berlin",
    )
    assert sorted(sensor.name for sensor in repository.sensor_defs) == [
        "changed_notes",
        "ended_transcripts",
        "reload_lineage",
        "sweep_failed",
    ]


def test_the_sweep_covers_every_asset_in_one_process() -> None:
    job = _defs().resolve_job_def("dreaming_sweep")
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == set(SNAPSHOT)
    assert job.executor_def is dg.in_process_executor


def test_duckdb_steps_share_a_pool() -> None:
    job = _defs().resolve_job_def("dreaming_sweep")
    assert {node.name for node in job.graph.nodes if node.definition.pool == "duckdb"} == {
        "gate_scores",
        "published_snapshot",
    }


def test_memory_md_turns_stale_after_36_hours() -> None:
    (spec,) = [s for s in _defs().resolve_all_asset_specs() if s.key.path[-1] == "memory_md"]
    assert spec.freshness_policy == dg.FreshnessPolicy.time_window(fail_window=dt.timedelta(hours=36))


def test_two_agents_live_side_by_side() -> None:
    defs = _defs(AgentPlan("main"), AgentPlan("night-owl", zone="Asia/Kolkata"))
    prefixes = {key.path[0] for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert prefixes == {"main", "night-owl"}
    assert defs.resolve_job_def("dreaming_sweep_night_owl")


@pytest.mark.parametrize("running", [True, False])
def test_nothing_starts_by_itself_unless_dreaming_is_on(running: bool) -> None:
    repository = _defs(AgentPlan("main", running=running)).get_repository_def()
    statuses = {item.default_status.value for item in (*repository.schedule_defs, *repository.sensor_defs)}
    assert statuses == {"RUNNING" if running else "STOPPED"}


@pytest.mark.parametrize(
    ("settings", "problem", "running"),
    [
        pytest.param(None, "No workspace is set", False, id="nothing configured"),
        pytest.param("workspace = 'w'", None, True, id="configured"),
        pytest.param("workspace = 'w'\n[dreaming]\nenabled = false", None, False, id="switched off"),
        pytest.param("workspace = 'w'\ntimezone = 'Mars/Base'", "Mars/Base", False, id="wrong zone"),
        pytest.param("workspace = 'w'\nsurprise = 1", "surprise", False, id="unknown key"),
        pytest.param("workspace = 'w'\n[dreaming]\nfrequency = 'sometimes'", "sometimes", False, id="wrong schedule"),
        pytest.param("no [toml", "TOML", False, id="no TOML"),
    ],
)
def test_a_location_always_loads_and_says_what_is_missing(
    tmp_path: Path, settings: str | None, problem: str | None, running: bool
) -> None:
    if settings is not None:
        (tmp_path / "dreamline.toml").write_text(settings)
    plan = plan_for("main", tmp_path)
    assert (problem or "") in (plan.problem or "")
    assert (plan.problem is None, plan.running) == (problem is None, running)
    defs = build_defs(home=tmp_path)
    dg.Definitions.validate_loadable(defs)
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert keys - {"main/setup_needed"} == set(SNAPSHOT)
    assert ("main/setup_needed" in keys) == (problem is not None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["dg", "check", "defs"], id="dg check defs"),
        pytest.param(["dagster", "definitions", "validate", "-w", "workspace.yaml"], id="both locations"),
    ],
)
def test_dagster_s_own_checks_pass(command: list[str], tmp_path: Path) -> None:
    program = Path(sys.executable).with_name(command[0])
    environment = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "DREAMLINE_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "DAGSTER_DG_UPDATE_CHECK_ENABLED": "0",
    }
    done = subprocess.run(
        [str(program), *command[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
