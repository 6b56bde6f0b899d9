"""The curated files as they stand on disk now, each line with its class, read again only when something changed.

Belongs here: reading ``MEMORY.md`` and ``USER.md`` with provenance for the blocks of a turn; the cache of that.
Does not belong here: choosing and rendering (``bootstrap``, ``project_memory``), the grammar (``notes.curated``).

A turn never waits for a sync: what a consolidation or a hand wrote a moment ago is what is injected.
"""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.notes.blocks import Note, read_note
from recall_runtime.notes.conditions import is_over
from recall_runtime.notes.curated import CuratedEntry, CuratedFile, parse_curated
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from recall_runtime.provenance.note_lines import origins_of, provenance_hash
from recall_runtime.recall.projects import is_eligible
from recall_runtime.storage.atomic import read_regular
from recall_runtime.text.redaction import redact_file
from recall_runtime.user_model.contract import Directive, directives_of
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, EntryStatus, OriginClass, worst_origin

Stamp = tuple[int, int, int]  # mtime_ns, size, inode


@dataclass(frozen=True, slots=True)
class CuratedView:
    """One curated file, its secrets masked: what is injected is made of nothing else.

    ``origins[i]`` is the class of line ``i + 1``; ``raw_chars`` the length of the file as decoded text.
    """

    name: str
    stamp: Stamp
    data: bytes
    note: Note
    file: CuratedFile
    origins: tuple[OriginClass, ...]
    directives: tuple[Directive, ...]
    raw_chars: int
    today: dt.date  # what expired before it is not injected

    def is_over(self, text: str) -> bool:
        """Return whether ``text`` names a last day on which it holds, and that is past."""
        return is_over(text, self.today)

    def origin_of(self, start_line: int, end_line: int) -> OriginClass:
        """Return the least trusted class of the lines, both included."""
        return worst_origin(self.origins[start_line - 1 : end_line])

    def reason_against(self, entry: CuratedEntry, active: tuple[str, ...]) -> str | None:
        """Return why ``entry`` may not be injected, or ``None``."""
        if entry.conflicted:
            return "conflict"
        if entry.status is EntryStatus.SUPERSEDED:
            return "superseded"
        if self.is_over(entry.text):
            return "expired"
        origin = self.origin_of(entry.first_line, entry.end_line)
        if origin not in ELIGIBLE_ORIGINS:
            return f"origin:{origin}"
        return None if is_eligible(entry.annotations.project_key, active) else "project"


class CuratedViews:
    """The views of one agent's files, each kept until the file's stamp, its records of writes or the day change."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, CuratedView]] = {}

    def load(self, agent: Agent, name: str, state: apsw.Connection | None) -> CuratedView | None:
        """Return the view of ``name``, or ``None`` when there is no such file.

        Args:
            agent: Whose workspace it is.
            name: ``MEMORY.md`` or ``USER.md``.
            state: A reader of the state database; ``None`` before there is one.

        Raises:
            OSError: the file can't be read, or is no regular one.
        """
        path = agent.workspace / name
        stamp = stamp_of(path)
        if stamp is None:
            return None
        records = provenance_hash(state, name)
        known = self._known.get(name)
        today = day_of(agent.clock.now_ms(), agent.zone)
        if known is not None and known[0] == records and known[1].stamp == stamp and known[1].today == today:
            return known[1]
        view = _read(agent, name, path, stamp, state, today)
        self._known[name] = records, view
        return view

    def memory(self, agent: Agent, state: apsw.Connection | None) -> CuratedView | None:
        """Return the view of ``MEMORY.md``, or of its older spelling ``memory.md`` where only that exists."""
        return self.load(agent, MEMORY_FILE, state) or self.load(agent, MEMORY_FILE.lower(), state)


def stamp_of(path: Path) -> Stamp | None:
    """Return what changes when a file is written or replaced; ``None`` when it is missing.

    Raises:
        OSError: the place can't be reached.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _read(
    agent: Agent, name: str, path: Path, stamp: Stamp, state: apsw.Connection | None, today: dt.date
) -> CuratedView:
    raw = read_regular(path)
    written = read_note(raw, path=name)  # records of writes are of the text as it stands there
    data = redact_file(raw)
    file = parse_curated(data, user_file=name == USER_FILE)
    return CuratedView(
        name=name,
        stamp=stamp,
        data=data,
        note=written if data == raw else read_note(data, path=name),
        file=file,
        origins=origins_of(agent.workspace, state, name, raw, written),
        directives=_that_hold(directives_of(file), today) if name == USER_FILE else (),
        raw_chars=len(raw.decode("utf-8", errors="replace")),
        today=today,
    )


def _that_hold(found: tuple[Directive, ...], today: dt.date) -> tuple[Directive, ...]:
    return tuple(directive for directive in found if not is_over(directive.text, today))
