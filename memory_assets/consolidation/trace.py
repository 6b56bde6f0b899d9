"""The story of one entry: back to the lines, messages and recalls behind it, forward to what superseded it.

Belongs here: collecting what the state database knows about an entry key.
Does not belong here: printing (``recall_runtime.cli``), which entry replaced which (``memory_assets.lineage``).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from memory_assets.lineage.graph import EntryState
from memory_assets.lineage.ledger import graph_from_connection
from recall_runtime.curated.effects import Source
from recall_runtime.errors import RefusedError
from recall_runtime.notes.markers import entry_key_of

_ALL = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TracedOperation:
    """One ledger row: what a sweep did with the entry. ``at`` in milliseconds UTC."""

    sweep_id: str
    at: int
    file: str
    operation: str
    claim_id: str | None
    line: str
    sources: tuple[Source, ...]
    priors: tuple[str, ...]
    gate: Mapping[str, Any]
    pre_image_id: int | None
    pre_image_hash: str | None


@dataclass(frozen=True, slots=True)
class TracedEvidence:
    """One place that stated the claim, live or not."""

    path: str
    start_line: int
    end_line: int
    day: str
    session_id: str | None
    message_id: str | None
    origin_class: str
    session_kind: str
    live: bool
    echo: bool


@dataclass(frozen=True, slots=True)
class TracedSignal:
    """One counted signal; recalls carry their question."""

    kind: str
    day: str
    score: float
    context: str
    query: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything known about one entry. ``superseded_by`` and ``supersedes`` are entry keys, nearest first."""

    entry_key: str
    lineage_key: str | None
    operations: tuple[TracedOperation, ...]
    claims: tuple[str, ...]
    evidence: tuple[TracedEvidence, ...]
    signals: tuple[TracedSignal, ...]
    superseded_by: tuple[str, ...]
    supersedes: tuple[str, ...]


def trace(state: apsw.Connection, entry: str) -> Trace:
    """Return the story of ``entry``, given as its key, the id of one of its claims, or words that stand in its line.

    Of several entries with these words it is the one written last.

    Raises:
        RefusedError: no such entry was ever written.
    """
    key = _key_of(state, entry)
    operations = _operations(state, key)
    claims = tuple(
        claim_id
        for (claim_id,) in state.execute(
            """SELECT claim_id FROM claims WHERE entry_key = ?1
               UNION SELECT claim_id FROM ledger WHERE entry_key = ?1 AND claim_id IS NOT NULL ORDER BY 1""",
            (key,),
        )
    )
    lineage = state.execute(
        "SELECT lineage_key FROM ledger WHERE entry_key = ? AND lineage_key IS NOT NULL"
        " ORDER BY ledger_id DESC LIMIT 1",
        (key,),
    ).fetchone()
    superseded_by, supersedes = _succession(state, key)
    return Trace(
        entry_key=key,
        lineage_key=str(lineage[0]) if lineage else None,
        operations=operations,
        claims=claims,
        evidence=tuple(found for claim_id in claims for found in _evidence(state, claim_id)),
        signals=tuple(found for claim_id in claims for found in _signals(state, claim_id)),
        superseded_by=superseded_by,
        supersedes=supersedes,
    )


def _key_of(state: apsw.Connection, entry: str) -> str:
    for key in (entry, entry_key_of(entry)):
        if state.execute("SELECT 1 FROM ledger WHERE entry_key = ? LIMIT 1", (key,)).fetchone():
            return key
    row = state.execute(
        """SELECT entry_key FROM claims WHERE claim_id = ?1 AND entry_key IS NOT NULL
           UNION ALL SELECT * FROM (SELECT entry_key FROM ledger WHERE instr(lower(text), lower(?1)) > 0
                                     ORDER BY ledger_id DESC LIMIT 1)""",
        (entry,),
    ).fetchone()
    if row is None:
        raise RefusedError(f"No write made an entry {entry!r}", "Give words of the entry, or the key in its marker.")
    return str(row[0])


def _operations(state: apsw.Connection, key: str) -> tuple[TracedOperation, ...]:
    rows = state.execute(
        """SELECT l.sweep_id, l.at, l.file, l.operation, l.claim_id, l.text, l.sources, l.priors, l.gate,
                  l.pre_image_id, p.hash
             FROM ledger l LEFT JOIN pre_images p USING (pre_image_id) WHERE l.entry_key = ? ORDER BY l.ledger_id""",
        (key,),
    )
    return tuple(
        TracedOperation(
            sweep_id=sweep_id,
            at=at,
            file=file,
            operation=operation,
            claim_id=claim_id,
            line=line,
            sources=tuple(Source(**source) for source in json.loads(sources)),
            priors=tuple(json.loads(priors)),
            gate=json.loads(gate),
            pre_image_id=pre_image_id,
            pre_image_hash=pre_image_hash,
        )
        for sweep_id, at, file, operation, claim_id, line, sources, priors, gate, pre_image_id, pre_image_hash in rows
    )


def _evidence(state: apsw.Connection, claim_id: str) -> list[TracedEvidence]:
    rows = state.execute(
        """SELECT path, start_line, end_line, day, session_id, message_id, origin_class, session_kind, live, echo
             FROM evidence WHERE claim_id = ? ORDER BY observed_at, evidence_id""",
        (claim_id,),
    )
    return [
        TracedEvidence(path, start, end, day, session_id, message_id, origin, kind, bool(live), bool(echo))
        for path, start, end, day, session_id, message_id, origin, kind, live, echo in rows
    ]


def _signals(state: apsw.Connection, claim_id: str) -> list[TracedSignal]:
    rows = state.execute(
        """SELECT s.kind, s.day, s.score, s.context, r.query
             FROM signals s LEFT JOIN recall_events r USING (event_id) WHERE s.claim_id = ? ORDER BY s.signal_id""",
        (claim_id,),
    )
    return [TracedSignal(*row) for row in rows]


def _succession(state: apsw.Connection, key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what came after the entry and what it came after, nearest first, as the ledger's graph has it."""
    entries = {entry.node_id: entry for entry in graph_from_connection(state, cap=_ALL).entries}
    start = next((entry for entry in entries.values() if entry.entry_key == key), None)
    if start is None:
        return (), ()
    later: list[str] = []
    current = start.replaced_by
    while current in entries and entries[current].entry_key not in (key, *later):
        later.append(entries[current].entry_key)
        current = entries[current].replaced_by
    earlier: list[str] = []
    waiting = list(start.replaces)
    while waiting:
        prior = entries[waiting.pop(0)]
        if prior.state is not EntryState.MERGED and prior.entry_key not in (key, *earlier):
            earlier.append(prior.entry_key)
            waiting += prior.replaces
    return tuple(later), tuple(earlier)
