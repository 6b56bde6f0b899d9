"""The past of the curated files: taking a sweep back, and how a file looked on a day.

Belongs here: undo (of the last write and of an earlier one), the three-way difference when it can't, ``as_of``.
Does not belong here: the steps of a write (``curated.writer``), merging bytes (``curated.merge``), explaining one
entry (``memory_assets``).
"""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry
from recall_runtime.curated.merge import Merged, changed_entries, take_out
from recall_runtime.curated.writer import Base, Step, WritePlan, apply, read_base, recover
from recall_runtime.errors import RefusedError
from recall_runtime.paths import USER_FILE
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import CandidateStatus, Operation

UNDONE_BY = "undone:"
_NOT_UNDOABLE = "A sweep can be taken back once, and only if it wrote a curated file; see `dreamline status`."


@dataclass(frozen=True, slots=True)
class FileUndo:
    """What undo did with one file.

    ``kept_later``: the file had been written or edited since, and all of that stayed. ``ours`` is what the sweep
    changed, ``theirs`` what was changed since, both as unified differences; they are given when somebody touched what
    the sweep had written, and then nothing was written.
    """

    file: str
    restored: bool
    kept_later: bool = False
    ours: str = ""
    theirs: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A curated file at an instant. ``known`` is false when no sweep had written it before or after."""

    file: str
    known: bool
    content: bytes | None = None


def undo(
    agent: Agent,
    state: apsw.Connection,
    sweep_id: str,
    *,
    now_ms: int,
    on_step: Callable[[Step], None] | None = None,
) -> tuple[FileUndo, ...]:
    """Put back what ``sweep_id`` replaced, file by file, whatever else was written or edited since.

    Exactly the entries it added go and the ones it retired come back (``curated.merge``); when one of them was touched
    since, by a person or by a later write, that file is left as it is. Claims that the sweep promoted are withdrawn
    with all that say the same in other words, so no later sweep brings them back until somebody states them anew;
    entries it superseded count again. The ledger gets a row
    ``undone`` for each row of the sweep.

    Raises:
        RefusedError: no such sweep wrote a curated file, or it was taken back already.
    """
    recover(agent, state)
    files = _files_of(state, sweep_id)
    if not files:
        raise RefusedError(f"Sweep {sweep_id} has nothing to take back", _NOT_UNDOABLE)
    undone = tuple(_undo_file(agent, state, sweep_id, now_ms, on_step, file) for file in files)
    if all(file.restored for file in undone):
        with write_transaction(state):
            state.execute("UPDATE sweeps SET outcome = 'undone' WHERE sweep_id = ?", (sweep_id,))
    return undone


def as_of(state: apsw.Connection, file: str, instant_ms: int) -> Snapshot:
    """Return ``file`` as the sweeps left it at ``instant_ms``; edits of people show from the next sweep on."""
    row = state.execute(
        "SELECT after_content FROM pre_images WHERE file = ? AND at <= ? ORDER BY pre_image_id DESC LIMIT 1",
        (file, instant_ms),
    ).fetchone()
    if row is None:
        row = state.execute(
            "SELECT content FROM pre_images WHERE file = ? ORDER BY pre_image_id LIMIT 1", (file,)
        ).fetchone()
    return Snapshot(file, known=row is not None, content=row[0] if row else None)


@dataclass(frozen=True, slots=True)
class _Write:
    """One write of a file."""

    pre_image_id: int
    before: bytes | None
    after: bytes | None


def _files_of(state: apsw.Connection, sweep_id: str) -> list[str]:
    """Return the files a sweep wrote and did not yet give back."""
    return [
        file
        for (file,) in state.execute(
            """SELECT file FROM pre_images WHERE sweep_id = ?1 AND file NOT IN (
                   SELECT file FROM ledger WHERE sweep_id = ?2 UNION SELECT file FROM pre_images WHERE sweep_id = ?2)
               GROUP BY file ORDER BY min(pre_image_id)""",
            (sweep_id, UNDONE_BY + sweep_id),
        )
    ]


def _writes_of(state: apsw.Connection, sweep_id: str, file: str) -> list[_Write]:
    """Return the writes of one file; a sweep that ran again at its instant may have written it twice."""
    return [
        _Write(*row)
        for row in state.execute(
            "SELECT pre_image_id, content, after_content FROM pre_images WHERE sweep_id = ? AND file = ?"
            " ORDER BY pre_image_id",
            (sweep_id, file),
        )
    ]


def _later_writes(state: apsw.Connection, sweep_id: str, file: str, after_id: int) -> list[_Write]:
    """Return the writes of others since then that still count, and no undo."""
    return [
        _Write(*row)
        for row in state.execute(
            """SELECT pre_image_id, content, after_content FROM pre_images
               WHERE file = ?1 AND pre_image_id > ?2 AND sweep_id <> ?3 AND substr(sweep_id, 1, length(?4)) <> ?4
                   AND ?4 || sweep_id NOT IN (SELECT sweep_id FROM pre_images WHERE file = ?1)""",
            (file, after_id, sweep_id, UNDONE_BY),
        )
    ]


def _undo_file(
    agent: Agent,
    state: apsw.Connection,
    sweep_id: str,
    now_ms: int,
    on_step: Callable[[Step], None] | None,
    file: str,
) -> FileUndo:
    writes = _writes_of(state, sweep_id, file)
    later = [write for made in writes for write in _later_writes(state, sweep_id, file, made.pre_image_id)]
    is_owned_by_others = any(_share_entries(write, other, file) for write in writes for other in later)

    def plan_on(base: Base) -> WritePlan | None:
        merged = None if is_owned_by_others else _without(writes, base)
        return None if merged is None else WritePlan(base, merged.content, _undo_effects(state, sweep_id, file))

    base = read_base(agent, file)
    plan = plan_on(base)
    if plan is not None:
        result = apply(
            agent, state, plan, sweep_id=UNDONE_BY + sweep_id, now_ms=now_ms, rebuild=plan_on, on_step=on_step
        )
        if result.plan is not None:
            return FileUndo(file, restored=True, kept_later=result.plan.content != writes[0].before)
        base = read_base(agent, file)
    first, last = writes[0], writes[-1]
    return FileUndo(
        file,
        restored=False,
        ours=_difference(first.before, last.after, "before the sweep", "after the sweep"),
        theirs=_difference(last.after, base.content, "after the sweep", "now"),
    )


def _without(writes: Sequence[_Write], base: Base) -> Merged | None:
    """Return the file of ``base`` without ``writes``, or ``None`` when that would lose what was done since."""
    merged: Merged | None = Merged(base.content)
    for write in reversed(writes):
        if merged is not None:
            merged = take_out(write.before, write.after, merged.content, user_file=base.file == USER_FILE)
    return merged


def _share_entries(write: _Write, later: _Write, file: str) -> bool:
    """Whether a later write added an entry that ``write`` added or retired: then it is the later one's."""
    mine, retired = changed_entries(write.before, write.after, user_file=file == USER_FILE)
    added, _ = changed_entries(later.before, later.after, user_file=file == USER_FILE)
    return bool(added & (mine | retired))


def _undo_effects(state: apsw.Connection, sweep_id: str, file: str) -> Effects:
    rows = list(
        state.execute(
            "SELECT operation, entry_key, claim_id, text, lineage_key FROM ledger WHERE sweep_id = ? AND file = ?"
            " ORDER BY ledger_id",
            (sweep_id, file),
        )
    )
    written = {row[1] for row in rows if row[0] in (Operation.ADDED, Operation.SUPERSEDED)}
    ledger = [
        LedgerEntry(Operation.UNDONE, entry_key, text, claim_id, lineage_key=lineage_key)
        for _, entry_key, claim_id, text, lineage_key in rows
    ]
    promoted = {claim_id for _, entry_key, claim_id, _, _ in rows if claim_id is not None and entry_key in written}
    claims = [
        ClaimChange(claim_id, CandidateStatus.WITHDRAWN, UNDONE_BY + sweep_id)
        for claim_id in sorted(promoted | _waiting_beside(state, promoted))
    ]
    for entry_key in sorted(written):
        superseded = state.execute(
            "SELECT claim_id, promoted_at, entry_key FROM claims WHERE reason = ? AND entry_key IS NOT NULL",
            (SUPERSEDED_BY + entry_key,),
        )
        claims += [ClaimChange(prior, CandidateStatus.PROMOTED, None, at, key) for prior, at, key in superseded]
    return Effects(tuple(ledger), tuple(claims))


def _waiting_beside(state: apsw.Connection, claim_ids: Iterable[str]) -> set[str]:
    """Return the claims that wait in the groups of ``claim_ids``: the same facts in other words."""
    return {
        member
        for claim_id in claim_ids
        for (member,) in state.execute(
            "SELECT claim_id FROM claims WHERE status = ?"
            " AND root_id = (SELECT root_id FROM claims WHERE claim_id = ?)",
            (CandidateStatus.WAITING, claim_id),
        )
    }


def _difference(old: bytes | None, new: bytes | None, old_name: str, new_name: str) -> str:
    def lines(content: bytes | None) -> list[str]:
        return (content or b"").decode("utf-8", errors="replace").split("\n")

    return "\n".join(difflib.unified_diff(lines(old), lines(new), old_name, new_name, lineterm=""))
