"""Aspirations: Markdown lines with a review date, listed when due, never changed and never deleted.

Belongs here: the grammar, finding the owner's, which are due or expired.
Does not belong here: showing them (``review.render``), telling requests apart (``recall_runtime.intents.classify``).

Grammar: a line of a note ends in ``<!-- review: 2026-12-31 -->``, optionally ``<!-- review: 2026-12-31 | expires:
2027-03-31 -->``. It is due from the review day on. From ``expires`` on (180 days after the review day when not given)
it is shown as expired. A ticked task (``- [x]``) and a struck line are done. Other dates make no aspiration; they
are counted as faults.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from memory_assets.review.records import Aspiration
from recall_runtime.notes.blocks import BlockKind, read_note
from recall_runtime.paths import NOTES_FOLDER, PathKind, kind_of
from recall_runtime.provenance.note_lines import origins_of
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS

EXPIRES_AFTER_DAYS = 180
_COMMENT = re.compile(r"<!--\s*review\s*:\s*(\S{1,20})\s*(?:\|\s*expires\s*:\s*(\S{1,20})\s*)?-->\s*$", re.IGNORECASE)
_MAY_HOLD_ONE = re.compile(rb"<!--[^a-z]{0,80}review", re.IGNORECASE)
_LEAD = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])?\s*(?:\[[ xX]\]\s*)?")
_DONE = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s*\[[xX]\]|^\s*(?:[-*+]\s*)?~~.*~~\s*$")
_NOT_READ = frozenset({BlockKind.CODE, BlockKind.FRONT_MATTER, BlockKind.MANAGED})


@dataclass(frozen=True, slots=True)
class AspirationReading:
    """The open aspirations of a file and the lines whose dates don't exist."""

    aspirations: tuple[Aspiration, ...] = ()
    faulty_lines: tuple[int, ...] = ()


def aspirations_in(path: str, data: bytes) -> AspirationReading:
    """Return the open aspirations in the bytes of the note ``path``. Never raises."""
    if _MAY_HOLD_ONE.search(data) is None:  # every night looks at every note, so most must be done with here
        return AspirationReading()
    note = read_note(data, path=path)
    hidden = {
        line for block in note.blocks if block.kind in _NOT_READ for line in range(block.start_line, block.end_line + 1)
    }
    found: list[Aspiration] = []
    faulty: list[int] = []
    for line in note.reading.lines:
        match = _COMMENT.search(line.text[-200:]) if "review" in line.text.lower() else None
        if match is None or line.number in hidden:
            continue
        text = line.text[: len(line.text) - len(match[0])].rstrip()
        if _DONE.match(text) or not any(sign.isalnum() for sign in text):
            continue
        days = _days(match[1], match[2])
        if days is None:
            faulty.append(line.number)
        else:
            found.append(Aspiration(path, line.number, _LEAD.sub("", text, count=1), *days))
    return AspirationReading(tuple(found), tuple(faulty))


def due_on(found: Sequence[Aspiration], today: dt.date) -> tuple[Aspiration, ...]:
    """Return the aspirations whose review day has come, the longest waiting first."""
    due = [aspiration for aspiration in found if aspiration.review <= today]
    return tuple(sorted(due, key=lambda aspiration: (aspiration.review, aspiration.path, aspiration.line)))


def collect_due(
    workspace: Path, state: apsw.Connection | None, today: dt.date, *, max_file_bytes: int = 1024 * 1024
) -> tuple[Aspiration, ...]:
    """Return the due aspirations of the notes and ``MEMORY.md`` of a workspace; unreadable files are skipped.

    Only lines of the owner's own trust are wishes of the owner: a line of a group chat or from outside is none.
    """
    found: list[Aspiration] = []
    for path in (workspace / "MEMORY.md", *sorted((workspace / NOTES_FOLDER).rglob("*.md"))):
        relative = path.relative_to(workspace).as_posix()
        if kind_of(relative) not in (PathKind.MEMORY, PathKind.DAILY_NOTE, PathKind.TOPIC_NOTE):
            continue
        try:
            if path.is_file() and path.stat().st_size <= max_file_bytes:
                data = path.read_bytes()
                found += _of_the_owner(workspace, state, relative, data, aspirations_in(relative, data).aspirations)
        except OSError:
            continue
    return due_on(found, today)


def _of_the_owner(
    workspace: Path, state: apsw.Connection | None, path: str, data: bytes, found: Sequence[Aspiration]
) -> list[Aspiration]:
    if not found:
        return []
    origins = origins_of(workspace, state, path, data, read_note(data, path=path))
    return [item for item in found if origins[item.line - 1] in ELIGIBLE_ORIGINS]


def _days(review: str, expires: str | None) -> tuple[dt.date, dt.date] | None:
    try:
        first = dt.date.fromisoformat(review)
        last = dt.date.fromisoformat(expires) if expires else first + dt.timedelta(days=EXPIRES_AFTER_DAYS)
    except (ValueError, OverflowError):
        return None
    return first, last
