"""Handing clock times over to the host's scheduler, so that nothing said with a time is lost.

Belongs here: the task record, its calendar text (RFC 5545), the spool file the host reads.
Does not belong here: running tasks (the host does), reading the time out of words (``intents.when``).

Spool: ``<state folder>/agents/<id>/spool/scheduled-tasks.jsonl``, one JSON object a line, appended, never changed.
"""

import datetime as dt
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from recall_runtime.clock import format_instant
from recall_runtime.errors import RefusedError, WorkspaceError
from recall_runtime.intents.scopes import Speaker, sender_identity
from recall_runtime.intents.when import resolve_when
from recall_runtime.storage.locks import exclusive
from recall_runtime.text.escaping import terminal

SPOOL_FILE = "scheduled-tasks.jsonl"
MAX_TEXT = 2_000
_WAIT_SECONDS = 2.0
_FOLD_AT = 73  # octets of a calendar line before it is folded, below the 75 the format allows


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """One task for the host. ``start`` is ISO 8601 with offset; ``None`` means the time has still to be settled."""

    task_id: str
    text: str
    start: str | None
    rrule: str | None
    timezone: str
    created_at: int
    sender: str
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """What became of a request with a time, and the sentence to answer with."""

    task: ScheduledTask
    spooled: bool
    answer: str


def scheduled_task(
    text: str, speaker: Speaker, now_ms: int, zone: ZoneInfo, *, session_id: str | None = None
) -> ScheduledTask:
    """Return the task that an owner's ``text`` asks for. The same words in the same minute are the same task.

    Raises:
        RefusedError: the speaker is no authenticated owner, or the text is empty or too long.
    """
    if not speaker.is_owner or not speaker.is_known:
        raise RefusedError(
            "Only an owner the host has authenticated can schedule a task", "Hand over sender and ownership."
        )
    text = terminal(" ".join(text.split()))
    if not text or len(text) > MAX_TEXT:
        raise RefusedError(f"The task is empty or longer than {MAX_TEXT} characters", "Say it in a sentence or two.")
    when = resolve_when(text, now_ms, zone)
    sender = sender_identity(speaker)
    identity = f"{sender}\n{text}\n{now_ms // 60_000}".encode("utf-8", errors="replace")
    return ScheduledTask(
        task_id=hashlib.sha256(identity).hexdigest()[:24],
        text=text,
        start=when.start.isoformat() if when else None,
        rrule=when.rrule if when else None,
        timezone=zone.key,
        created_at=now_ms,
        sender=sender,
        session_id=session_id,
    )


def hand_over(task: ScheduledTask, spool: Path, *, host_takes_tasks: bool) -> HandOver:
    """Append ``task`` to the spool and say what to expect. A host without a scheduler is named in the answer."""
    append(task, spool)
    if not host_takes_tasks:
        answer = (
            "Kept as a scheduled task, but this host runs none: nothing will remind you until a scheduler reads it."
        )
    elif task.start is None:
        answer = "Handed to the scheduler, but the time is not clear: say the day and the hour."
    else:
        again = f", repeating ({task.rrule})" if task.rrule else ""
        answer = f"Handed to the scheduler for {task.start}{again}."
    return HandOver(task, True, answer)


def append(task: ScheduledTask, spool: Path) -> Path:
    """Append one line to the spool file in ``spool``, whole and durable when this returns.

    A line that a writer left unfinished (killed, disk full) is ended first, so it takes no task with it.

    Raises:
        WorkspaceError: the folder can't be written, or the disk is full.
        StoreLockedError: another process writes to the spool for too long.
    """
    path = spool / SPOOL_FILE
    line = (json.dumps(as_json(task), ensure_ascii=True) + "\n").encode("ascii")
    try:
        spool.mkdir(parents=True, exist_ok=True)
        with exclusive(spool / "tasks.lock", what="Writing to the spool", wait_seconds=_WAIT_SECONDS):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _write_line(descriptor, line)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be written ({error.strerror})", "Give this user write access and room on the disk."
        ) from error
    return path


def _write_line(descriptor: int, line: bytes) -> None:
    if os.lseek(descriptor, 0, os.SEEK_END):
        os.lseek(descriptor, -1, os.SEEK_END)
        if os.read(descriptor, 1) != b"\n":
            line = b"\n" + line
    while line:  # a nearly full disk takes a part before it says so
        line = line[os.write(descriptor, line) :]
    os.fsync(descriptor)


def as_json(task: ScheduledTask) -> dict[str, str | int | None]:
    """Return the spool line of ``task``."""
    return {
        "task_id": task.task_id,
        "text": task.text,
        "start": task.start,
        "rrule": task.rrule,
        "timezone": task.timezone,
        "created_at": format_instant(task.created_at),
        "sender": task.sender,
        "session_id": task.session_id,
        "ics": calendar_text(task),
    }


def calendar_text(task: ScheduledTask) -> str:
    """Return ``task`` as an iCalendar to-do (RFC 5545) with CRLF line ends; times in UTC."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//dreamline//scheduled task//EN",
        "BEGIN:VTODO",
        f"UID:{task.task_id}@dreamline",
        f"DTSTAMP:{_utc(dt.datetime.fromtimestamp(task.created_at / 1000, tz=dt.UTC))}",
    ]
    if task.start is not None:
        start = dt.datetime.fromisoformat(task.start)
        local = task.rrule is not None and task.timezone != "UTC"  # a recurrence follows the wall clock of its zone
        lines.append(
            f"DTSTART;TZID={task.timezone}:{start.strftime('%Y%m%dT%H%M%S')}" if local else f"DTSTART:{_utc(start)}"
        )
    if task.rrule:
        lines.append(f"RRULE:{task.rrule}")
    lines += [f"SUMMARY:{_escaped(task.text)}", "END:VTODO", "END:VCALENDAR"]
    return "".join(f"{_folded(line)}\r\n" for line in lines)


def _utc(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _folded(line: str) -> str:
    """Fold a line at 73 octets, never inside a character."""
    parts: list[str] = []
    part, size = "", 0
    for sign in line:
        width = len(sign.encode("utf-8", errors="replace"))
        if size + width > _FOLD_AT:
            parts.append(part)
            part, size = "", 0
        part, size = part + sign, size + width
    return "\r\n ".join([*parts, part])
