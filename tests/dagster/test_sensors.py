"""The sensors: which runs a tick asks for."""

import datetime as dt
import os
import threading
from pathlib import Path

import dagster as dg
import pytest

from memory_assets.partitions import days_in
from recall_runtime.agent import Agent
from recall_runtime.clock import SystemClock, day_of, zone_of
from resources.agents import AgentsResource
from sensors.changes import Cursor, FileStamp
from sensors.notes import MOST_RUNS, changed_notes_sensor, runs_for
from sensors.transcripts import ended_transcripts_sensor
from tests.support.state_rows import make_agent

DAYS = days_in("UTC")
TODAY = day_of(SystemClock().now_ms(), zone_of("UTC"))
OLD = 1_700_000_000


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Return an agent whose settings name its workspace and a session folder."""
    agent = make_agent(tmp_path)
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    agent.folders.home.mkdir(parents=True)
    (agent.folders.home / "dreamline.toml").write_text(
        f"workspace = '{agent.workspace}'\n[sources]\nsession_folders = ['{sessions}']\n"
    )
    return agent


def _write(path: Path, text: str = "- a note\n", *, at: int = OLD) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))


def _tick(sensor: dg.SensorDefinition, agent: Agent, cursor: str | None) -> dg.SensorResult:
    context = dg.build_sensor_context(cursor=cursor, resources={"agents": AgentsResource(home=str(agent.folders.home))})
    result = sensor(context)
    assert isinstance(result, dg.SensorResult)
    return result


def _cells(result: dg.SensorResult) -> list[str | None]:
    return [run.partition_key for run in result.run_requests or []]


def test_the_first_look_at_a_year_of_notes_starts_one_run(agent: Agent) -> None:
    for number in range(40):
        day = dt.date(2026, 1, 1) + dt.timedelta(days=number)
        _write(agent.workspace / "memory" / f"{day}.md", at=OLD + number)
    sensor = changed_notes_sensor("main", days=DAYS, running=False)
    first = _tick(sensor, agent, None)
    assert _cells(first) == [TODAY.isoformat()]
    assert _cells(_tick(sensor, agent, first.cursor)) == []


def test_one_changed_note_is_one_run_in_the_cell_of_its_day(agent: Agent) -> None:
    note = agent.workspace / "memory" / "2026-03-09.md"
    _write(note)
    _write(agent.workspace / "memory" / "2026-03-08.md")
    sensor = changed_notes_sensor("main", days=DAYS, running=False)
    cursor = _tick(sensor, agent, None).cursor
    _write(note, "- changed\n", at=OLD + 60)
    second = _tick(sensor, agent, cursor)
    assert _cells(second) == ["2026-03-09"]
    _write(note, "- changed again\n", at=OLD + 120)
    third = _tick(sensor, agent, second.cursor)
    keys = [run.run_key for result in (second, third) for run in result.run_requests or []]
    assert len(set(keys)) == 2


def test_curated_and_review_files_start_no_run(agent: Agent) -> None:
    sensor = changed_notes_sensor("main", days=DAYS, running=False)
    cursor = _tick(sensor, agent, None).cursor
    for name in ("MEMORY.md", "USER.md", "DREAMS.md", "memory/dreaming/deep/2026-03-09.md", "memory/.dreams/x.md"):
        _write(agent.workspace / name, at=OLD + 60)
    result = _tick(sensor, agent, cursor)
    assert _cells(result) == []
    assert result.skip_reason is not None


def test_a_note_that_is_being_written_waits(agent: Agent) -> None:
    note, stop = agent.workspace / "memory" / "2026-03-09.md", threading.Event()
    _write(note)

    def write_on() -> None:
        while not stop.is_set():
            note.touch()
            stop.wait(0.02)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        result = _tick(changed_notes_sensor("main", days=DAYS, running=False), agent, None)
    finally:
        stop.set()
        writer.join()
    assert _cells(result) == []
    assert "1 still being written" in str(result.skip_reason)


def test_without_a_workspace_the_tick_says_so(tmp_path: Path) -> None:
    context = dg.build_sensor_context(resources={"agents": AgentsResource(home=str(tmp_path))})
    for sensor in (
        changed_notes_sensor("main", days=DAYS, running=False),
        ended_transcripts_sensor("main", running=False),
    ):
        assert "No workspace is set" in str(sensor(context))


@pytest.mark.parametrize(
    ("paths", "cells"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(["memory/2026-03-09.md", "memory/2026-03-09-talk.md"], ["2026-03-09"], id="one day, two files"),
        pytest.param(["memory/2026-03-09.md", "memory/2026-03-10.md"], ["2026-03-09", "2026-03-10"], id="two days"),
        pytest.param(["memory/projects/x.md"], ["today"], id="an undated note counts for today"),
        pytest.param(["memory/2999-01-01.md"], ["today"], id="a day to come has no cell"),
        pytest.param(["memory/2001-01-01.md"], ["today"], id="a day before the first has no cell"),
        pytest.param([f"memory/2026-03-{n:02}.md" for n in range(1, MOST_RUNS + 2)], ["today"], id="too many days"),
    ],
)
def test_runs_for_a_batch(paths: list[str], cells: list[str]) -> None:
    stamps = [FileStamp(path, OLD, 1) for path in paths]
    runs = runs_for(stamps, days=DAYS, today=dt.date(2026, 3, 20), first_look=False, agent_id="main")
    assert [run.partition_key for run in runs] == [cell.replace("today", "2026-03-20") for cell in cells]


def test_a_reset_cursor_asks_for_the_same_run_again(agent: Agent) -> None:
    _write(agent.workspace / "memory" / "2026-03-09.md")
    sensor = changed_notes_sensor("main", days=DAYS, running=False)
    keys = [[run.run_key for run in _tick(sensor, agent, None).run_requests or []] for _ in range(2)]
    assert keys[0] == keys[1] != []


def test_ended_sessions_are_one_run_and_open_ones_wait(agent: Agent) -> None:
    (folder,) = AgentsResource(home=str(agent.folders.home)).open("main").folders.sessions
    _write(folder / "ended.jsonl", "{}\n")
    _write(folder / "also-ended.jsonl", "{}\n")
    _write(folder / "open.jsonl", "{}\n", at=SystemClock().now_ms() // 1000 - 60)
    sensor = ended_transcripts_sensor("main", running=False)
    first = _tick(sensor, agent, None)
    assert len(first.run_requests or []) == 1
    assert len(Cursor.loads(first.cursor).marks) == 2
    second = _tick(sensor, agent, first.cursor)
    assert not second.run_requests
    assert "1 still open" in str(second.skip_reason)


def test_a_session_that_goes_on_is_read_again_once_it_rests(agent: Agent) -> None:
    (folder,) = AgentsResource(home=str(agent.folders.home)).open("main").folders.sessions
    _write(folder / "a.jsonl", "{}\n")
    sensor = ended_transcripts_sensor("main", running=False)
    first = _tick(sensor, agent, None)
    _write(folder / "a.jsonl", "{}\n{}\n", at=OLD + 600)
    second = _tick(sensor, agent, first.cursor)
    keys = {run.run_key for result in (first, second) for run in result.run_requests or []}
    assert len(keys) == 2
