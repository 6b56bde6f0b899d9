"""Rows of a state database, written the way the rooms write them, for tests of what reads them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant, zone_of
from recall_runtime.config import Settings
from recall_runtime.paths import AgentFolders

NOON = parse_instant("2026-03-10T12:00:00Z")


def make_agent(tmp_path: Path, *, zone: str = "UTC", now_ms: int = NOON, agent_id: str = "main") -> Agent:
    """Return an agent with an empty workspace and a state folder below ``tmp_path``."""
    workspace = tmp_path / "workspace"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    folders = AgentFolders(home=tmp_path / "home", agent_id=agent_id, workspace=workspace)
    settings = Settings(workspace=workspace, timezone=zone)
    return Agent(folders=folders, settings=settings, zone=zone_of(zone), clock=FixedClock(now_ms))


def add_claim(
    state: apsw.Connection,
    claim_id: str,
    text: str,
    *,
    origin: str = "agent",
    kind: str = "interactive",
    status: str = "waiting",
) -> None:
    """Add one claim."""
    state.execute(
        "INSERT INTO claims(claim_id, root_id, text, kind, origin_class, session_kind, concept_tags, first_seen_at,"
        " last_seen_at, status) VALUES (?, ?, ?, 'fact', ?, ?, 'gateway; port', ?, ?, ?)",
        (claim_id, claim_id, text, origin, kind, NOON, NOON, status),
    )


def add_signal(state: apsw.Connection, claim_id: str, context: str, *, day: str = "2026-03-09") -> None:
    """Add one observation signal."""
    state.execute(
        "INSERT INTO signals(claim_id, kind, context, day, score, observed_at) VALUES (?, 'observation', ?, ?, .6, ?)",
        (claim_id, context, day, NOON),
    )


def add_sweep(state: apsw.Connection, sweep_id: str, *, day: str = "2026-03-10", outcome: str = "promoted") -> None:
    """Add one finished sweep."""
    state.execute(
        "INSERT INTO sweeps(sweep_id, day, started_at, finished_at, outcome) VALUES (?, ?, ?, ?, ?)",
        (sweep_id, day, NOON, NOON + 1000, outcome),
    )


def add_gate_score(
    state: apsw.Connection, sweep_id: str, claim_id: str, *, score: float = 0.8, failed: str | None = None
) -> None:
    """Add one verdict."""
    state.execute(
        "INSERT INTO gate_scores(sweep_id, claim_id, signal_count, recall_count, unique_queries, age_days, relevance,"
        " frequency, diversity, recency, consolidation, conceptual, phase_boost, score, failed_gate)"
        " VALUES (?, ?, 4, 2, 3, 1.5, .9, .6, .6, .9, .5, .3, .0, ?, ?)",
        (sweep_id, claim_id, score, failed),
    )


def add_promotion(
    state: apsw.Connection,
    entry_key: str,
    text: str,
    *,
    operation: str = "added",
    file: str = "MEMORY.md",
    sweep_id: str = "sweep-1",
    at: int = NOON,
    sources: Sequence[dict[str, Any]] | str = (),
    priors: Sequence[str] = (),
    gate: dict[str, Any] | None = None,
    claim_id: str | None = None,
) -> None:
    """Add one ledger row; ``sources`` may be a broken string."""
    state.execute(
        "INSERT INTO ledger(sweep_id, at, file, operation, entry_key, claim_id, text, sources, priors, gate)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            sweep_id,
            at,
            file,
            operation,
            entry_key,
            claim_id or entry_key,
            text,
            sources if isinstance(sources, str) else json.dumps(list(sources)),
            json.dumps(list(priors)),
            json.dumps(gate or {}),
        ),
    )
