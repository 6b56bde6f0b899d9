"""Handing clock times over to the host."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from recall_runtime.errors import RefusedError, WorkspaceError
from recall_runtime.intents.scheduled import SPOOL_FILE, calendar_text, hand_over, scheduled_task
from tests.intents.helpers import NOW, OWNER, UTC

FRIDAY = "Remind me on Friday at 09:00 to renew the certificate, please; it matters."


def test_friday_is_never_lost(tmp_path: Path) -> None:
    task = scheduled_task(FRIDAY, OWNER, NOW, UTC, session_id="s1")
    result = hand_over(task, tmp_path / "spool", host_takes_tasks=True)
    (line,) = (tmp_path / "spool" / SPOOL_FILE).read_text(encoding="utf-8").splitlines()
    spooled = json.loads(line)
    assert spooled["start"] == "2026-03-06T09:00:00+00:00"
    assert spooled["text"] == FRIDAY
    assert spooled["session_id"] == "s1"
    assert result.answer == "Handed to the scheduler for 2026-03-06T09:00:00+00:00."


def test_calendar_text_is_folded_escaped_and_in_utc() -> None:
    text = calendar_text(scheduled_task(FRIDAY, OWNER, NOW, UTC))
    assert "DTSTART:20260306T090000Z\r\n" in text
    assert "certificate\\, please\\; it" in text.replace("\r\n ", "")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert text.startswith("BEGIN:VCALENDAR\r\n")
    assert text.endswith("END:VCALENDAR\r\n")


def test_wide_signs_are_folded_between_characters() -> None:
    text = calendar_text(scheduled_task("明天九点提醒我" + "说明" * 60, OWNER, NOW, UTC))
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert "说明" * 60 in text.replace("\r\n ", "")


def test_a_recurrence_follows_the_wall_clock_of_its_zone() -> None:
    text = calendar_text(scheduled_task("Every Monday at 9:00, send the list", OWNER, NOW, ZoneInfo("Europe/Berlin")))
    assert "DTSTART;TZID=Europe/Berlin:20260302T090000\r\nRRULE:FREQ=WEEKLY;BYDAY=MO\r\n" in text


def test_a_host_without_a_scheduler_is_named_in_the_answer(tmp_path: Path) -> None:
    result = hand_over(scheduled_task(FRIDAY, OWNER, NOW, UTC), tmp_path, host_takes_tasks=False)
    assert "this host runs none" in result.answer
    assert result.spooled


def test_an_unclear_time_is_kept_and_asked_about(tmp_path: Path) -> None:
    task = scheduled_task("Remind me in good time", OWNER, NOW, UTC)
    assert (task.start, task.rrule) == (None, None)
    assert "say the day and the hour" in hand_over(task, tmp_path, host_takes_tasks=True).answer
    assert "DTSTART" not in calendar_text(task)


def test_the_same_words_in_the_same_minute_are_the_same_task() -> None:
    first, second, later = (scheduled_task(FRIDAY, OWNER, NOW + step, UTC) for step in (0, 5_000, 60_000))
    assert first.task_id == second.task_id != later.task_id


@pytest.mark.parametrize("text", ["", "x" * 2_001])
def test_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        scheduled_task(text, OWNER, NOW, UTC)


def test_only_an_owner_schedules() -> None:
    with pytest.raises(RefusedError, match="authenticated"):
        scheduled_task(FRIDAY, replace(OWNER, is_owner=False), NOW, UTC)


def test_a_line_break_in_the_text_can_not_add_calendar_lines() -> None:
    text = calendar_text(scheduled_task("tomorrow\r\nEND:VTODO\r\nBEGIN:VTODO", OWNER, NOW, UTC))
    assert text.split("\r\n").count("BEGIN:VTODO") == 1


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="the superuser may write anywhere")
def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(WorkspaceError, match="can't be written"):
        hand_over(scheduled_task(FRIDAY, OWNER, NOW, UTC), tmp_path / "spool", host_takes_tasks=True)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="can't be written"):
        hand_over(scheduled_task(FRIDAY, OWNER, NOW, UTC), tmp_path / "spool", host_takes_tasks=True)


SHORT_WRITE = """
import resource, sys
from pathlib import Path
from recall_runtime.errors import WorkspaceError
from recall_runtime.intents.scheduled import hand_over, scheduled_task
from tests.intents.helpers import NOW, OWNER, UTC
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    hand_over(scheduled_task("Remind me on Friday at 9", OWNER, NOW, UTC), Path(sys.argv[1]), host_takes_tasks=True)
except WorkspaceError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size to set")
@pytest.mark.parametrize("room", [0, 10, 300], ids=["no room", "a few bytes", "half a line"])
def test_a_task_that_does_not_fit_on_the_disk_is_never_called_handed_over(tmp_path: Path, room: int) -> None:
    hand_over(scheduled_task(FRIDAY, OWNER, NOW, UTC), tmp_path, host_takes_tasks=True)
    limit = (tmp_path / SPOOL_FILE).stat().st_size + room
    run = subprocess.run(
        [sys.executable, "-c", SHORT_WRITE, str(tmp_path), str(limit)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "can't be written" in run.stdout
    assert (tmp_path / SPOOL_FILE).stat().st_size == limit


@pytest.mark.parametrize("torn", [b'{"task_id":"torn', b"x", b'{"task_id": "whole"}\n{"'], ids=["line", "sign", "two"])
def test_a_torn_line_takes_no_task_with_it(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / SPOOL_FILE).write_bytes(torn)
    task = scheduled_task(FRIDAY, OWNER, NOW, UTC)
    hand_over(task, tmp_path, host_takes_tasks=True)
    kept, _, line = (tmp_path / SPOOL_FILE).read_bytes().removesuffix(b"\n").rpartition(b"\n")
    assert kept == torn
    assert json.loads(line)["task_id"] == task.task_id
