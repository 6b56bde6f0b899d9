"""One write of the owner's words into a curated file: what both files have in common.

Belongs here: who asked, what came of it, planning again when the file changed meanwhile, claims and id of the write.
Does not belong here: what an entry says or replaces (``facts``, ``preferences``), the steps of a write
(``curated.writer``).
"""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import ClaimChange, Effects, LedgerEntry, retirements
from recall_runtime.curated.writer import Base, WritePlan, apply, read_base, recover
from recall_runtime.errors import ConflictError
from recall_runtime.notes.curated import CuratedEntry
from recall_runtime.text.lines import printable
from recall_runtime.vocabulary import CandidateStatus, Operation, OriginClass


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked, for the ledger."""

    session_key: str
    sender: str


@dataclass(frozen=True, slots=True)
class CuratedWrite:
    """What came of it. ``write_id`` is what ``undo`` takes, ``None`` when the file said so already."""

    file: str
    entry_key: str
    line: int
    write_id: str | None
    superseded: tuple[str, ...] = ()
    kept_beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """What a request makes of one state of the file. Without ``write`` the file says so already."""

    write: WritePlan | None
    outcome: CuratedWrite


def write(
    agent: Agent, state: apsw.Connection, file: str, plan_on: Callable[[Base], Planned], now_ms: int
) -> CuratedWrite:
    """Write what ``plan_on`` makes of ``file``, planning again when it was changed meanwhile.

    Raises:
        ConflictError: it kept changing.
    """
    recover(agent, state)
    latest = plan_on(read_base(agent, file))
    if latest.write is None or latest.outcome.write_id is None:
        return latest.outcome

    def rebuild(base: Base) -> WritePlan | None:
        nonlocal latest
        latest = plan_on(base)
        return latest.write

    result = apply(agent, state, latest.write, sweep_id=latest.outcome.write_id, now_ms=now_ms, rebuild=rebuild)
    if result.plan is None and latest.outcome.write_id is not None:
        raise ConflictError(f"{file} kept changing", "Nothing was written; ask again.")
    return latest.outcome


def effects_of(
    state: apsw.Connection,
    asked: Asked,
    *,
    claim: str,
    entry_key: str,
    line: str,
    replaced: Sequence[CuratedEntry],
    now_ms: int,
    lineage_key: str | None = None,
) -> Effects:
    """Return the ledger row and the claims of one entry that takes the place of ``replaced``."""
    row = LedgerEntry(
        Operation.SUPERSEDED if replaced else Operation.ADDED,
        entry_key,
        line,
        claim,
        priors=tuple(printable(entry.raw) for entry in replaced),
        lineage_key=lineage_key,
        gate={
            "because": "remember",
            "origin_class": OriginClass.OWNER.value,
            "session_key": asked.session_key,
            "sender": asked.sender,
        },
    )
    promoted = ClaimChange(claim, CandidateStatus.PROMOTED, None, now_ms, entry_key)
    keys = [key for entry in replaced for key in entry.entry_keys if key != entry_key]
    return Effects((row,), (promoted, *retirements(state, keys, entry_key)))


def write_id_of(state: apsw.Connection, now_ms: int, claim: str) -> str:
    """Return an id for the write that no write had before."""
    stamp = dt.datetime.fromtimestamp(now_ms / 1000, tz=dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    wanted = f"remember-{stamp}-{claim[:6]}"
    for number in range(1, 1_000):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if state.execute("SELECT 1 FROM ledger WHERE sweep_id = ? LIMIT 1", (name,)).fetchone() is None:
            return name
    raise ConflictError(f"{wanted} was used a thousand times", "Wait a second, then ask again.")
