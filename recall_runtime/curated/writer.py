"""The one guarded writer of ``MEMORY.md`` and ``USER.md``.

Belongs here: the base of a plan, the steps of a write, what the next run does after a crash at any of them.
Does not belong here: what is written (``curated.compose`` and the planners), undo (``curated.history``).

A write has four steps; ``on_step`` is called after each of them::

    prepared   one transaction: pre-image and journal row with all effects
    replaced   hash check and atomic replacement of the file
    published  one transaction: ledger rows and claims, journal row deleted

A crash before ``replaced`` is rolled back, a crash after it is finished, by ``recover`` of the next run. A person may
have edited the file in between: then the lines that only the new content has decide which of the two it is.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import Effects, from_json, publish, to_json
from recall_runtime.errors import ConflictError, WorkspaceError
from recall_runtime.storage.atomic import content_hash, read_bytes, remove_file, replace_file
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.locks import exclusive

PRE_IMAGES_KEPT = 8  # per file, beyond those the ledger refers to
MAX_CONFLICTS = 3  # how often a write is built again on a file that keeps changing
_LOCK_WAIT_SECONDS = 10.0
_ABSENT = ""  # hash of a file that does not exist, in columns that can't be NULL


class Step(StrEnum):
    """Steps of a write, for tests that end the process after each of them."""

    PREPARED = "prepared"
    REPLACED = "replaced"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Base:
    """A curated file as it was when a plan was built. ``content`` and ``hash`` are ``None`` when it did not exist."""

    file: str
    content: bytes | None
    hash: str | None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """New content for the file of ``base``. ``content`` ``None`` removes it; equal content publishes effects only."""

    base: Base
    content: bytes | None
    effects: Effects

    @property
    def changes_file(self) -> bool:
        """Whether bytes change at all."""
        return self.content != self.base.content


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What came of a plan: the plan that was written after ``conflicts`` rebuilds, or ``None`` for nothing."""

    plan: WritePlan | None
    pre_image_id: int | None = None
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was left over from a crashed write of one file, and what became of it."""

    file: str
    sweep_id: str
    finished: bool  # else rolled back
    kept_aside: tuple[str, ...] = ()  # files whose content nobody knows; left for the owner


def read_base(agent: Agent, file: str) -> Base:
    """Read the curated file ``file`` (``MEMORY.md`` or ``USER.md``). A dangling link is a missing file.

    Raises:
        WorkspaceError: it is a folder, a link loop, or can't be read.
    """
    path = agent.workspace / file
    try:
        content = read_bytes(path)
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(
            f"{file} can't be read ({error.__class__.__name__})", "Make it a readable file, or take it away."
        ) from error
    return Base(file, content, None if content is None else content_hash(content))


def apply(
    agent: Agent,
    state: apsw.Connection,
    plan: WritePlan,
    *,
    sweep_id: str,
    now_ms: int,
    rebuild: Callable[[Base], WritePlan | None] | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> WriteResult:
    """Write ``plan``; when the file changed since its base was read, build it again on the present content.

    Args:
        agent: Whose file it is.
        state: Its open state database.
        plan: What to write.
        sweep_id: Whose write it is, in the ledger.
        now_ms: Instant of the write, milliseconds UTC.
        rebuild: Makes a plan for a changed base, or ``None`` when nothing can be written to it. Without it a
            conflict writes nothing.
        on_step: Called after each step.

    Raises:
        StoreLockedError: another process writes curated files.
        WorkspaceError: the file or its folder can't be read or written.
    """
    on_step = on_step or _no_hook
    conflicts = 0
    with _lock(agent):
        while True:
            try:
                pre_image_id = _write(agent, state, plan, sweep_id, now_ms, on_step)
            except ConflictError:
                conflicts += 1
            else:
                return WriteResult(plan, pre_image_id, conflicts)
            base = read_base(agent, plan.base.file)
            rebuilt = rebuild(base) if rebuild is not None and conflicts <= MAX_CONFLICTS else None
            if rebuilt is None:
                return WriteResult(None, conflicts=conflicts)
            plan = rebuilt


def recover(agent: Agent, state: apsw.Connection) -> tuple[Recovery, ...]:
    """Finish or roll back writes that a crash left half done. Cheap when there are none."""
    if state.execute("SELECT 1 FROM write_journal LIMIT 1").fetchone() is None:
        return ()
    with _lock(agent):
        rows = list(
            state.execute(
                "SELECT journal_id, sweep_id, file, base_hash, new_hash, effects, at FROM write_journal"
                " ORDER BY journal_id"
            )
        )
        return tuple(_recover(agent, state, *row) for row in rows)


def _no_hook(step: Step) -> None:
    """Do nothing after a step."""


@contextlib.contextmanager
def _lock(agent: Agent) -> Iterator[None]:
    path = agent.folders.agent_home / "curated.lock"
    with exclusive(path, what="A write of the curated files", wait_seconds=_LOCK_WAIT_SECONDS):
        yield


def _write(
    agent: Agent,
    state: apsw.Connection,
    plan: WritePlan,
    sweep_id: str,
    now_ms: int,
    on_step: Callable[[Step], None],
) -> int | None:
    if not plan.changes_file:
        if read_base(agent, plan.base.file).hash != plan.base.hash:
            raise ConflictError(f"{plan.base.file} was changed meanwhile", "Nothing was written.")
        with write_transaction(state):
            publish(state, plan.effects, sweep_id=sweep_id, file=plan.base.file, at_ms=now_ms, pre_image_id=None)
        return None
    journal_id, pre_image_id = _prepare(state, plan, sweep_id, now_ms)
    on_step(Step.PREPARED)
    try:
        _replace(agent.workspace / plan.base.file, plan)
    except BaseException:
        _roll_back(state, journal_id, pre_image_id)
        raise
    on_step(Step.REPLACED)
    _finish(state, journal_id, plan.effects, sweep_id, plan.base.file, now_ms, pre_image_id)
    on_step(Step.PUBLISHED)
    return pre_image_id


def _prepare(state: apsw.Connection, plan: WritePlan, sweep_id: str, now_ms: int) -> tuple[int, int]:
    new_hash = _ABSENT if plan.content is None else content_hash(plan.content)
    with write_transaction(state):
        state.execute(
            """INSERT INTO pre_images (file, sweep_id, at, hash, content, after_hash, after_content)
               VALUES (?, ?, ?, ?, ?, ?, ?)""",
            (plan.base.file, sweep_id, now_ms, plan.base.hash or _ABSENT, plan.base.content, new_hash, plan.content),
        )
        pre_image_id = state.last_insert_rowid()
        tree = to_json(plan.effects) | {"pre_image_id": pre_image_id} | _tell_tales(plan)
        state.execute(
            "INSERT INTO write_journal (sweep_id, file, base_hash, new_hash, effects, at) VALUES (?, ?, ?, ?, ?, ?)",
            (sweep_id, plan.base.file, plan.base.hash, new_hash, json.dumps(tree, ensure_ascii=False), now_ms),
        )
        return state.last_insert_rowid(), pre_image_id


def _replace(path: Path, plan: WritePlan) -> None:
    if plan.content is not None:
        replace_file(path, plan.content, expected_hash=plan.base.hash)
    else:
        remove_file(path, expected_hash=plan.base.hash)


def _finish(
    state: apsw.Connection,
    journal_id: int,
    effects: Effects,
    sweep_id: str,
    file: str,
    at_ms: int,
    pre_image_id: int,
) -> None:
    with write_transaction(state):
        publish(state, effects, sweep_id=sweep_id, file=file, at_ms=at_ms, pre_image_id=pre_image_id)
        state.execute("DELETE FROM write_journal WHERE journal_id = ?", (journal_id,))
        state.execute(
            """DELETE FROM pre_images WHERE file = ?1 AND pre_image_id NOT IN (
                   SELECT pre_image_id FROM ledger WHERE file = ?1 AND pre_image_id IS NOT NULL
                   UNION SELECT * FROM (SELECT pre_image_id FROM pre_images WHERE file = ?1
                                         ORDER BY pre_image_id DESC LIMIT ?2))""",
            (file, PRE_IMAGES_KEPT),
        )


def _roll_back(state: apsw.Connection, journal_id: int, pre_image_id: int) -> None:
    with write_transaction(state):
        state.execute("DELETE FROM write_journal WHERE journal_id = ?", (journal_id,))
        state.execute("DELETE FROM pre_images WHERE pre_image_id = ?", (pre_image_id,))


def _recover(
    agent: Agent,
    state: apsw.Connection,
    journal_id: int,
    sweep_id: str,
    file: str,
    base_hash: str | None,
    new_hash: str,
    effects_json: str,
    at_ms: int,
) -> Recovery:
    tree: dict[str, Any] = json.loads(effects_json)
    base = read_base(agent, file)
    finished = _was_replaced(base, base_hash, new_hash, tree)
    known = {base_hash, new_hash}
    kept_aside = _clean_up(agent.workspace / file, known, finished=finished)
    if finished:
        _finish(state, journal_id, from_json(tree), sweep_id, file, at_ms, tree["pre_image_id"])
    else:
        _roll_back(state, journal_id, tree["pre_image_id"])
    return Recovery(file, sweep_id, finished, kept_aside)


def _was_replaced(present: Base, base_hash: str | None, new_hash: str, tree: dict[str, Any]) -> bool:
    """Tell whether the replacement took place, also when a person has edited the file since."""
    if (present.hash or _ABSENT) == new_hash:
        return True
    if present.hash == base_hash:
        return False
    lines = _line_hashes(present.content)
    if tree["only_new"]:
        return not lines.isdisjoint(tree["only_new"])
    return lines.isdisjoint(tree["only_base"])


def _tell_tales(plan: WritePlan) -> dict[str, list[str]]:
    """Return hashes of the lines that only the new, and only the old content has."""
    new, old = _line_hashes(plan.content), _line_hashes(plan.base.content)
    return {"only_new": sorted(new - old), "only_base": sorted(old - new)}


def _line_hashes(content: bytes | None) -> set[str]:
    return {sha256(line.strip()).hexdigest()[:16] for line in (content or b"").split(b"\n") if line.strip()}


def _clean_up(path: Path, known: set[str | None], *, finished: bool) -> tuple[str, ...]:
    """Remove temporary files of the crashed write.

    After the replacement a temporary file holds what was swapped out. When that is neither the base nor our own
    content it may be an edit of a person that landed in the last instant: it is left and named.
    """
    target = path.resolve()
    kept = []
    for temporary in sorted(target.parent.glob(f".{target.name}.*.dreamline-tmp")):
        content = read_bytes(temporary)
        if content is not None and finished and content_hash(content) not in known:
            kept.append(temporary.name)
        else:
            temporary.unlink(missing_ok=True)
    return tuple(kept)
