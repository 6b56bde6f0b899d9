"""Ledger rows as a graph: note -> evidence line -> entry, and an entry on the entry it replaced.

Belongs here: identifiers without memory text, the state of an entry, edges, the cap, what to do with bad rows.
Does not belong here: Markdown, Dagster, writing the ledger (``recall_runtime.curated``).

Identifiers end up in logs that can't forget, so they are keys, numbers and hashes, never words of a memory.
Text travels in attributes only, and only when every source of it is owner or agent.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.paths import PathKind, kind_of, note_day
from recall_runtime.vocabulary import Operation

DEFAULT_CAP = 300
_CLAIM_KEY = re.compile(r"(?:memory:claim:)?([0-9a-f]{8,40})")  # our own entry keys; others may hold a file name


class EntryState(StrEnum):
    """What became of an entry."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    MERGED = "merged"
    DROPPED = "dropped"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the ledger, its JSON decoded."""

    ledger_id: int
    sweep_id: str
    at: int
    file: str
    operation: str
    entry_key: str
    claim_id: str | None
    text: str
    sources: tuple[Mapping[str, Any], ...] = ()
    priors: tuple[str, ...] = ()
    gate: Mapping[str, Any] = field(default_factory=dict)
    trusted: bool = True  # False: the claim's class is no longer owner or agent; its text is not shown


@dataclass(frozen=True, slots=True)
class NoteNode:
    """A cited file: a note or a transcript."""

    node_id: str  # notes/<id>
    path: str
    day: str | None
    is_transcript: bool


@dataclass(frozen=True, slots=True)
class EvidenceNode:
    """Cited lines of one file."""

    node_id: str  # evidence/<id>
    note_id: str
    path: str
    start_line: int
    end_line: int
    day: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class EntryNode:
    """An entry of a curated file, as the newest ledger row that speaks of it leaves it."""

    node_id: str  # entries/<id>
    entry_key: str
    file: str
    state: EntryState
    operation: str
    text: str | None
    claim_id: str | None
    promoted_at: int
    changed_at: int
    sweep_id: str
    gate: Mapping[str, Any]
    evidence: tuple[str, ...]
    replaces: tuple[str, ...]
    replaced_by: str | None


@dataclass(frozen=True, slots=True)
class LineageGraph:
    """Everything that can be drawn.

    Attributes:
        entries: Newest change first.
        evidence: Cited lines of these entries.
        notes: Files of these lines.
        edges: (upstream node, downstream node), sorted.
        hidden: Entries left out by the cap.
        damaged: Ledger rows whose JSON could not be read; they count with what is left of them.
        problem: Why there is nothing to draw, or ``None``.
    """

    entries: tuple[EntryNode, ...] = ()
    evidence: tuple[EvidenceNode, ...] = ()
    notes: tuple[NoteNode, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    hidden: int = 0
    damaged: int = 0
    problem: str | None = None


_PLAIN_COLUMNS = ("ledger_id", "sweep_id", "at", "file", "operation", "entry_key", "claim_id", "text")


def decode_row(row: Sequence[Any]) -> tuple[LedgerRow, bool]:
    """Return the ledger row and whether all of it could be read.

    Args:
        row: ledger_id, sweep_id, at, file, operation, entry_key, claim_id, text, sources, priors, gate, trusted.
    """
    sources, sources_ok = _json_list(row[8], dict)
    priors, priors_ok = _json_list(row[9], str)
    gate, gate_ok = _json_object(row[10])
    plain = dict(zip(_PLAIN_COLUMNS, row, strict=False))
    decoded = LedgerRow(**plain, sources=sources, priors=priors, gate=gate, trusted=bool(row[11]))
    return decoded, sources_ok and priors_ok and gate_ok


def build_graph(rows: Iterable[LedgerRow], *, cap: int = DEFAULT_CAP, damaged: int = 0) -> LineageGraph:
    """Return the graph of ledger ``rows`` (in order), keeping the ``cap`` entries that changed last."""
    entries = _replay(rows)
    newest = sorted(entries.values(), key=lambda entry: (-entry.changed, entry.entry_id))
    shown = newest[:cap]
    shown_ids = {entry.entry_id for entry in shown}
    evidence: dict[str, EvidenceNode] = {}
    notes: dict[str, NoteNode] = {}
    edges: set[tuple[str, str]] = set()
    nodes = []
    for entry in shown:
        lines = [_evidence_of(source) for source in entry.sources if _is_anchor(source)]
        for line, note in lines:
            evidence[line.node_id], notes[note.node_id] = line, note
            edges |= {(note.node_id, line.node_id), (line.node_id, entry.entry_id)}
        # An entry written again later than the one that replaced it would close a circle: only newer replaces older.
        replaces = tuple(
            prior for prior in entry.replaces if prior in shown_ids and entries[prior].written < entry.written
        )
        edges |= {(prior, entry.entry_id) for prior in replaces}
        nodes.append(entry.frozen(tuple(dict.fromkeys(line.node_id for line, _ in lines)), replaces))
    return LineageGraph(
        entries=tuple(nodes),
        evidence=tuple(sorted(evidence.values(), key=lambda node: node.node_id)),
        notes=tuple(sorted(notes.values(), key=lambda node: node.node_id)),
        edges=tuple(sorted(edges)),
        hidden=len(newest) - len(shown),
        damaged=damaged,
    )


@dataclass(slots=True)
class _Entry:
    """An entry while the ledger is replayed."""

    entry_id: str
    row: LedgerRow
    promoted_at: int
    changed: int = 0  # ledger row that spoke of it last
    changed_at: int = 0
    written: int = 0  # ledger row that wrote it last
    state: EntryState = EntryState.UNDONE  # until a row that was not taken back writes it
    sources: list[Mapping[str, Any]] = field(default_factory=list)
    replaces: list[str] = field(default_factory=list)
    replaced_by: str | None = None

    def frozen(self, evidence: tuple[str, ...], replaces: tuple[str, ...]) -> EntryNode:
        return EntryNode(
            node_id=self.entry_id,
            entry_key=self.row.entry_key,
            file=self.row.file,
            state=self.state,
            operation=self.row.operation,
            text=self.row.text if self.row.trusted else None,
            claim_id=self.row.claim_id,
            promoted_at=self.promoted_at,
            changed_at=self.changed_at,
            sweep_id=self.row.sweep_id,
            gate=self.row.gate,
            evidence=evidence,
            replaces=replaces,
            replaced_by=self.replaced_by,
        )


def _replay(rows: Iterable[LedgerRow]) -> dict[str, _Entry]:
    """Follow the ledger in order. What an undone sweep did never happened, but its entries are remembered as undone."""
    history = list(rows)
    taken_back = {
        (row.sweep_id.removeprefix(UNDONE_BY), row.file, row.entry_key): row.ledger_id
        for row in history
        if row.operation == Operation.UNDONE
    }
    entries: dict[str, _Entry] = {}
    by_line: dict[tuple[str, str], str] = {}
    for row in history:
        entry_id = f"entries/{_key_id(row.entry_key)}"
        entry = entries.get(entry_id)
        if entry is None:
            entry = entries[entry_id] = _Entry(entry_id, row, row.at)
        entry.changed, entry.changed_at = row.ledger_id, row.at
        if row.operation == Operation.UNDONE or row.ledger_id <= taken_back.get(
            (row.sweep_id, row.file, row.entry_key), -1
        ):
            continue
        if row.operation == Operation.DROPPED:
            entry.state = EntryState.DROPPED
        else:
            _write(entry, row, entries, by_line)
    return entries


def _write(entry: _Entry, row: LedgerRow, entries: dict[str, _Entry], by_line: dict[tuple[str, str], str]) -> None:
    entry.row, entry.written = row, row.ledger_id
    entry.state, entry.replaced_by = EntryState.ACTIVE, None
    entry.sources += [source for source in row.sources if source not in entry.sources]
    ended_as = EntryState.MERGED if row.operation == Operation.MERGED else EntryState.SUPERSEDED
    for prior in row.priors:
        prior_id = by_line.get((row.file, prior.strip()))
        if prior_id is not None and prior_id != entry.entry_id:
            entries[prior_id].state, entries[prior_id].replaced_by = ended_as, entry.entry_id
            if prior_id not in entry.replaces:
                entry.replaces.append(prior_id)
    by_line[(row.file, row.text.strip())] = entry.entry_id


def _evidence_of(source: Mapping[str, Any]) -> tuple[EvidenceNode, NoteNode]:
    path, start, end = str(source["path"]), int(source["start"]), int(source["end"])
    day = source.get("day")
    note = _note_of(path, day if isinstance(day, str) else None)
    session = source.get("session_id")
    lines = f"L{start}" if start == end else f"L{start}-{end}"
    evidence = EvidenceNode(
        node_id=f"evidence/{note.node_id.removeprefix('notes/')}-{lines}",
        note_id=note.node_id,
        path=path,
        start_line=start,
        end_line=end,
        day=note.day,
        session_id=session if isinstance(session, str) else None,
    )
    return evidence, note


def _note_of(path: str, day: str | None) -> NoteNode:
    """Return the node of a file: the plain daily note is called after its day, everything else after a hash."""
    dated = note_day(path)
    plain = dated is not None and path == f"memory/{dated.isoformat()}.md"
    name = dated.isoformat() if dated is not None and plain else _hash(path)
    is_transcript = kind_of(path) is PathKind.TRANSCRIPT
    return NoteNode(f"notes/{name}", path, dated.isoformat() if dated else day, is_transcript)


def _is_anchor(source: Mapping[str, Any]) -> bool:
    lines = (source.get("start"), source.get("end"))
    return isinstance(source.get("path"), str) and all(isinstance(line, int) for line in lines)


def _key_id(entry_key: str) -> str:
    match = _CLAIM_KEY.fullmatch(entry_key)
    return match[1] if match else _hash(entry_key)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _json_list(text: object, member: type) -> tuple[tuple[Any, ...], bool]:
    value, ok = _json(text)
    if not isinstance(value, list):
        return (), False
    kept = tuple(item for item in value if isinstance(item, member))
    return kept, ok and len(kept) == len(value)


def _json_object(text: object) -> tuple[Mapping[str, Any], bool]:
    value, ok = _json(text)
    return (value, ok) if isinstance(value, dict) else ({}, False)


def _json(text: object) -> tuple[Any, bool]:
    try:
        return json.loads(str(text)), True
    except ValueError:
        return None, False
