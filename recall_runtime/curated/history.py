"""The past of the curated files: taking a sweep back, and how a file looked on a day.

Belongs here: undo with its three-way difference, ``as_of``.
Does not belong here: the steps of a write (``curated.writer``), explaining one entry (``memory_assets``).
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry
from recall_runtime.curated.writer import Step, WritePlan, apply, read_base, recover
from recall_runtime.errors import RefusedError
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import CandidateStatus, Operation

UNDONE_BY = "undone:"
_NOT_UNDOABLE = "A sweep can be taken back once, and only if it wrote a curated file; see `dreamline status`."


@dataclass(frozen=True, slots=True)
class FileUndo:
    """What undo did with one file.

    ``ours`` is what the sweep changed, ``theirs`` what was changed since, both as unified differences; they are
    given when somebody edited the file meanwhile, and then nothing was written.
    """

    file: str
    restored: bool
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
    """Put back what ``sweep_id`` replaced, file by file, unless somebody edited the file since.

    Claims that the sweep promoted are withdrawn, so the next sweep does not bring them back by itself; entries it
    superseded count again. The ledger gets a row ``undone`` for each row of the sweep.

    Raises:
        RefusedError: no such sweep wrote a curated file, or it was taken back already.
    """
    recover(agent, state)
    images = [image for image in _images(state, sweep_id) if not _is_undone(state, sweep_id, image.file)]
    if not images:
        raise RefusedError(f"Sweep {sweep_id} has nothing to take back", _NOT_UNDOABLE)
    undone = tuple(_undo_file(agent, state, sweep_id, now_ms, on_step, image) for image in images)
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
class _Image:
    """What a sweep made of one file. ``whole`` is false when somebody edited it between two writes of the sweep."""

    file: str
    before: bytes | None
    after: bytes | None
    after_hash: str
    whole: bool = True


def _images(state: apsw.Connection, sweep_id: str) -> list[_Image]:
    """Return one image a file; a sweep that ran again at its instant may have written a file twice."""
    found: dict[str, _Image] = {}
    for file, before_hash, before, after_hash, after in state.execute(
        "SELECT file, hash, content, after_hash, after_content FROM pre_images WHERE sweep_id = ?"
        " ORDER BY pre_image_id",
        (sweep_id,),
    ):
        first = found.get(file)
        if first is None:
            found[file] = _Image(file, before, after, after_hash)
        else:
            whole = first.whole and first.after_hash == before_hash
            found[file] = _Image(file, first.before, after, after_hash, whole)
    return list(found.values())


def _is_undone(state: apsw.Connection, sweep_id: str, file: str) -> bool:
    row = state.execute("SELECT 1 FROM ledger WHERE sweep_id = ? AND file = ?", (UNDONE_BY + sweep_id, file)).fetchone()
    return row is not None


def _undo_file(
    agent: Agent,
    state: apsw.Connection,
    sweep_id: str,
    now_ms: int,
    on_step: Callable[[Step], None] | None,
    image: _Image,
) -> FileUndo:
    present = read_base(agent, image.file)
    if image.whole and (present.hash or "") == image.after_hash:
        plan = WritePlan(present, image.before, _undo_effects(state, sweep_id, image.file))
        result = apply(agent, state, plan, sweep_id=UNDONE_BY + sweep_id, now_ms=now_ms, on_step=on_step)
        if result.plan is not None:
            return FileUndo(image.file, restored=True)
        present = read_base(agent, image.file)
    return FileUndo(
        image.file,
        restored=False,
        ours=_difference(image.before, image.after, "before the sweep", "after the sweep"),
        theirs=_difference(image.after, present.content, "after the sweep", "now"),
    )


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
    claims = [
        ClaimChange(claim_id, CandidateStatus.WITHDRAWN, UNDONE_BY + sweep_id)
        for _, entry_key, claim_id, _, _ in rows
        if claim_id is not None and entry_key in written
    ]
    for entry_key in sorted(written):
        superseded = state.execute(
            "SELECT claim_id, promoted_at, entry_key FROM claims WHERE reason = ? AND entry_key IS NOT NULL",
            (SUPERSEDED_BY + entry_key,),
        )
        claims += [ClaimChange(prior, CandidateStatus.PROMOTED, None, at, key) for prior, at, key in superseded]
    return Effects(tuple(ledger), tuple(claims))


def _difference(old: bytes | None, new: bytes | None, old_name: str, new_name: str) -> str:
    def lines(content: bytes | None) -> list[str]:
        return (content or b"").decode("utf-8", errors="replace").split("\n")

    return "\n".join(difflib.unified_diff(lines(old), lines(new), old_name, new_name, lineterm=""))
