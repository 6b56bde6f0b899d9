"""The code location ``lineage``: every promoted entry, the lines it cites and the notes they stand in, as a graph.

Belongs here: turning the plain graph of ``memory_assets.lineage`` into external asset specs, escaped for a browser.
Does not belong here: reading the ledger's rows (``lineage.ledger``), the pipeline (``definitions``).

The location is separate so that it can be loaded again after a sweep without touching the pipeline, and so that a
damaged ledger can't break it. Text reaches the UI only through what is built here at load time: a forgotten entry
is gone after the next load. Keys and tags hold identifiers, never words. Markdown comes from fixed templates;
every piece of a memory in it goes through ``recall_runtime.text.escaping.markdown``.
https://docs.dagster.io/guides/build/assets/external-assets
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from memory_assets.lineage.graph import DEFAULT_CAP, EntryNode, EvidenceNode, LineageGraph, NoteNode
from memory_assets.lineage.ledger import read_graph
from memory_assets.metadata import AGENT_TAG, STATE_TAG, SWEEP_TAG
from recall_runtime.agent import default_home
from recall_runtime.clock import format_instant
from recall_runtime.config import configured_agents
from recall_runtime.errors import ConfigError
from recall_runtime.notes.annotations import strip_annotations
from recall_runtime.paths import USER_FILE, AgentFolders
from recall_runtime.text.escaping import clip, markdown

_SHOWN_CHARACTERS = 400


def build_lineage_defs(*, home: Path | None = None, cap: int = DEFAULT_CAP) -> dg.Definitions:
    """Return the location: the graph of every configured agent below ``home``. Never fails to load."""
    home = home or default_home()
    try:
        agents = configured_agents(home)
    except ConfigError as error:
        return dg.Definitions(assets=[_reason("main", str(error))])
    specs: list[dg.AssetSpec] = []
    for agent_id in agents:
        folders = AgentFolders(home=home, agent_id=agent_id, workspace=home)
        specs += specs_of(agent_id, read_graph(folders.state_db, cap=cap))
    return dg.Definitions(assets=specs)


def specs_of(agent_id: str, graph: LineageGraph) -> list[dg.AssetSpec]:
    """Return the external assets of ``graph``; a graph that could not be read gives one that says why."""
    if graph.problem:
        return [_reason(agent_id, graph.problem)]
    if not graph.entries:
        return [_reason(agent_id, "No entry was promoted yet. The first sweep that promotes one fills this graph.")]
    specs = [_note(agent_id, note) for note in graph.notes]
    specs += [_evidence(agent_id, line) for line in graph.evidence]
    specs += [_entry(agent_id, entry) for entry in graph.entries]
    if graph.hidden or graph.damaged:
        specs.append(
            _reason(
                agent_id,
                f"{graph.hidden} older entries are not drawn; {graph.damaged} ledger rows could not be read in full.",
            )
        )
    return specs


def _entry(agent_id: str, entry: EntryNode) -> dg.AssetSpec:
    file_asset = "user_md" if entry.file == USER_FILE else "memory_md"
    upstream = [*entry.evidence, *entry.replaces]
    withheld = "Text withheld: not trusted."
    shown = withheld if entry.text is None else markdown(clip(strip_annotations(entry.text), _SHOWN_CHARACTERS))
    metadata: dict[str, Any] = {
        "entry_key": dg.MetadataValue.text(entry.node_id.removeprefix("entries/")),
        "file": dg.MetadataValue.text(entry.file),
        "operation": dg.MetadataValue.text(entry.operation),
        "promoted_at": dg.MetadataValue.text(format_instant(entry.promoted_at)),
        "changed_at": dg.MetadataValue.text(format_instant(entry.changed_at)),
        "cited_lines": len(entry.evidence),
    }
    if entry.gate:
        metadata["gate"] = _gate_table(entry.gate)
    if entry.replaced_by:
        metadata["replaced_by"] = dg.MetadataValue.asset(_key(agent_id, entry.replaced_by))
    return dg.AssetSpec(
        key=_key(agent_id, entry.node_id),
        deps=[dg.AssetKey([agent_id, "curated", file_asset]), *(_key(agent_id, node) for node in upstream)],
        description=shown,
        metadata=metadata,
        tags={AGENT_TAG: agent_id, STATE_TAG: entry.state.value, SWEEP_TAG: _tag(entry.sweep_id)},
        group_name="entries",
        kinds={"markdown"},
    )


def _evidence(agent_id: str, line: EvidenceNode) -> dg.AssetSpec:
    metadata: dict[str, Any] = {
        "path": dg.MetadataValue.text(line.path),
        "first_line": line.start_line,
        "last_line": line.end_line,
    }
    if line.day:
        metadata["day"] = dg.MetadataValue.text(line.day)
    if line.session_id:
        metadata["session"] = dg.MetadataValue.text(line.session_id)
    return dg.AssetSpec(
        key=_key(agent_id, line.node_id),
        deps=[_key(agent_id, line.note_id)],
        description=markdown(f"{line.path}#L{line.start_line}-L{line.end_line}"),
        metadata=metadata,
        tags={AGENT_TAG: agent_id},
        group_name="evidence",
        kinds={"markdown"},
    )


def _note(agent_id: str, note: NoteNode) -> dg.AssetSpec:
    source = "transcript_ingests" if note.is_transcript else "daily_notes"
    metadata: dict[str, Any] = {"path": dg.MetadataValue.text(note.path)}
    if note.day:
        metadata["day"] = dg.MetadataValue.text(note.day)
    return dg.AssetSpec(
        key=_key(agent_id, note.node_id),
        deps=[dg.AssetKey([agent_id, "episodic", source])],
        description=markdown(note.path),
        metadata=metadata,
        tags={AGENT_TAG: agent_id},
        group_name="notes",
        kinds={"json" if note.is_transcript else "markdown"},
    )


def _reason(agent_id: str, problem: str) -> dg.AssetSpec:
    """Return the one asset that says why something is not drawn."""
    return dg.AssetSpec(
        key=dg.AssetKey([agent_id, "lineage_note"]),
        description=markdown(problem),
        tags={AGENT_TAG: agent_id},
        group_name="entries",
    )


def _gate_table(gate: Mapping[str, Any]) -> dg.TableMetadataValue:
    """Return the numbers of the gate vector as a table; table cells render as plain text."""
    records = [
        dg.TableRecord({"component": clip(str(name), 60), "value": float(value)})
        for name, value in sorted(_numbers(gate))
    ]
    return dg.MetadataValue.table(
        records,
        schema=dg.TableSchema(columns=[dg.TableColumn("component", "string"), dg.TableColumn("value", "float")]),
    )


def _numbers(gate: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for name, value in gate.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            found.append((f"{prefix}{name}", float(value)))
    return found


def _key(agent_id: str, node_id: str) -> dg.AssetKey:
    return dg.AssetKey([agent_id, *node_id.split("/")])


def _tag(value: str) -> str:
    """Return ``value`` as a tag value: what Dagster does not allow in one becomes ``-``."""
    kept = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "-" for sign in value)
    return kept[:63].strip("._-")


defs = build_lineage_defs()
