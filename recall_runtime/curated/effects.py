"""What a write of a curated file means beside its bytes: ledger rows and changes of claims.

Belongs here: the records, their JSON form in the write journal, publishing them into the state database.
Does not belong here: files (``curated.writer``).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import apsw

from recall_runtime.notes.curated import CuratedEntry
from recall_runtime.storage.connection import query
from recall_runtime.text.lines import printable
from recall_runtime.vocabulary import CandidateStatus, Operation

SUPERSEDED_BY = "superseded_by:"


@dataclass(frozen=True, slots=True)
class Source:
    """One cited place. ``day`` is ISO; ``message_id`` belongs to transcripts, ``evidence_id`` to the state database."""

    path: str
    start: int
    end: int
    day: str | None = None
    session_id: str | None = None
    message_id: str | None = None
    evidence_id: int | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One row of the ledger. ``text`` is the entry line, ``priors`` the entry lines it replaced or joined."""

    operation: Operation
    entry_key: str
    text: str
    claim_id: str | None = None
    sources: tuple[Source, ...] = ()
    priors: tuple[str, ...] = ()
    lineage_key: str | None = None
    gate: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClaimChange:
    """The state a claim takes with this write."""

    claim_id: str
    status: CandidateStatus
    reason: str | None = None
    promoted_at: int | None = None
    entry_key: str | None = None


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything that is published together once the file holds its new bytes."""

    ledger: tuple[LedgerEntry, ...] = ()
    claims: tuple[ClaimChange, ...] = ()


def to_json(effects: Effects) -> dict[str, Any]:
    """Return ``effects`` as plain JSON values."""
    return {
        "ledger": [asdict(row) | {"gate": dict(row.gate)} for row in effects.ledger],
        "claims": [asdict(change) for change in effects.claims],
    }


def from_json(tree: Mapping[str, Any]) -> Effects:
    """Return what ``to_json`` wrote."""
    ledger = [
        LedgerEntry(
            **row
            | {
                "operation": Operation(row["operation"]),
                "sources": tuple(Source(**source) for source in row["sources"]),
                "priors": tuple(row["priors"]),
            }
        )
        for row in tree["ledger"]
    ]
    claims = [ClaimChange(**row | {"status": CandidateStatus(row["status"])}) for row in tree["claims"]]
    return Effects(tuple(ledger), tuple(claims))


def drops(entries: Iterable[CuratedEntry]) -> tuple[LedgerEntry, ...]:
    """Return the rows of entries of ours that went to make room, nothing took their place."""
    return tuple(
        LedgerEntry(Operation.DROPPED, entry.entry_keys[-1], printable(entry.raw.split("\n", 1)[0]))
        for entry in entries
    )


def retirements(state: apsw.Connection, entry_keys: Iterable[str], successor: str) -> Iterator[ClaimChange]:
    """Yield the change of every promoted claim behind ``entry_keys``: the entry ``successor`` took their place."""
    for key in entry_keys:
        rows = query(
            state,
            "SELECT claim_id, promoted_at FROM claims WHERE entry_key = ? AND status = ?",
            (key, CandidateStatus.PROMOTED),
        )
        for claim_id, promoted_at in rows:
            yield ClaimChange(claim_id, CandidateStatus.SUPERSEDED, SUPERSEDED_BY + successor, promoted_at, key)


def publish(
    state: apsw.Connection, effects: Effects, *, sweep_id: str, file: str, at_ms: int, pre_image_id: int | None
) -> None:
    """Write the rows of ``effects``; the caller holds the transaction."""
    state.executemany(
        """INSERT INTO ledger (sweep_id, at, file, operation, entry_key, claim_id, text, sources, priors, lineage_key,
                               gate, pre_image_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [
            (
                sweep_id,
                at_ms,
                file,
                row.operation.value,
                row.entry_key,
                row.claim_id,
                row.text,
                json.dumps([asdict(source) for source in row.sources], ensure_ascii=False),
                json.dumps(list(row.priors), ensure_ascii=False),
                row.lineage_key,
                json.dumps(dict(row.gate), ensure_ascii=False),
                pre_image_id,
            )
            for row in effects.ledger
        ],
    )
    state.executemany(
        "UPDATE claims SET status = ?, reason = ?, promoted_at = ?, entry_key = ? WHERE claim_id = ?",
        [
            (change.status.value, change.reason, change.promoted_at, change.entry_key, change.claim_id)
            for change in effects.claims
        ],
    )
