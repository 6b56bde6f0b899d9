"""Scores and verdicts of a sweep: rows in, DuckDB over the ``.sql`` files, rows of ``gate_scores`` out.

Belongs here: running the SQL, the record of a verdict, storing it.
Does not belong here: formulas (``score.sql``, ``macros.sql``), gates (``gates.sql``, ``places.sql``), grouping
(``loading``).
"""

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import apsw

from memory_assets.gates.loading import Candidate, Signal, load_groups
from memory_assets.warehouse.connection import insert_frame, open_memory
from recall_runtime.agent import Agent
from recall_runtime.config import DeepSettings
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import Gate, SignalKind

if TYPE_CHECKING:
    import duckdb

_EPOCH = dt.date(1970, 1, 1)
_SLICE = 250_000  # groups scored at a time
_SWEEPS_KEPT = 30  # verdicts of failing candidates are kept this many sweeps, passed ones for good

_CREATE = """
CREATE TEMP TABLE candidates (
    group_id BIGINT, claim_id VARCHAR, root_id VARCHAR, path VARCHAR, live BOOLEAN, origin_class VARCHAR,
    session_kind VARCHAR, status VARCHAR, tags INTEGER, light_hits INTEGER, rem_hits INTEGER,
    last_light_at BIGINT, last_rem_at BIGINT);
CREATE TEMP TABLE signals (
    group_id BIGINT, recall BOOLEAN, "grounded" BOOLEAN, context BIGINT, day INTEGER, score DOUBLE,
    observed_at BIGINT);
"""
_CREATE_TRIED = """
CREATE OR REPLACE TEMP TABLE tried (
    group_id BIGINT, claim_id VARCHAR, root_id VARCHAR, path VARCHAR, signal_count BIGINT, recall_count BIGINT,
    grounded_count BIGINT, unique_queries BIGINT, day_count BIGINT, span_days BIGINT, age_days DOUBLE,
    relevance DOUBLE, frequency DOUBLE, diversity DOUBLE, recency DOUBLE, consolidation DOUBLE, conceptual DOUBLE,
    phase_boost DOUBLE, raw_score DOUBLE, score DOUBLE, first_failed VARCHAR);
"""
_COLUMNS = (
    "claim_id, root_id, signal_count, recall_count, grounded_count, unique_queries, day_count, span_days, age_days,"
    " relevance, frequency, diversity, recency, consolidation, conceptual, phase_boost, raw_score, score, place,"
    " failed_gate"
)


@dataclass(frozen=True, slots=True)
class GateRow:
    """The verdict on one candidate group. Components and ``score`` lie in 0..1, ``raw_score`` is not clamped.

    Attributes:
        claim_id: The claim that speaks for the group.
        members: All claims whose signals count.
        place: Rank among those that passed every gate before the limit, from 1; ``None`` when one failed.
        failed_gate: The first gate that failed, ``None``: passed.
    """

    claim_id: str
    root_id: str
    members: tuple[str, ...]
    signal_count: int
    recall_count: int
    grounded_count: int
    unique_queries: int
    day_count: int
    span_days: int
    age_days: float
    relevance: float
    frequency: float
    diversity: float
    recency: float
    consolidation: float
    conceptual: float
    phase_boost: float
    raw_score: float
    score: float
    place: int | None
    failed_gate: Gate | None

    @property
    def passed(self) -> bool:
        """Whether every gate of the deep phase let it through."""
        return self.failed_gate is None


def score(agent: Agent, *, sweep_id: str, now_ms: int, state: apsw.Connection) -> list[GateRow]:
    """Score every candidate with a recent signal, store the verdicts of ``sweep_id``, return them best first."""
    settings = agent.settings.dreaming.deep
    candidates, signals = load_groups(state, now_ms=now_ms, max_age_days=settings.max_age_days)
    rows = score_groups(candidates, signals, settings=settings, now_ms=now_ms)
    store(state, sweep_id, rows, settings)
    return rows


def score_groups(
    candidates: Sequence[Candidate], signals: Sequence[Signal], *, settings: DeepSettings, now_ms: int
) -> list[GateRow]:
    """Return the verdicts on ``candidates``: those that passed in order of place, then the rest by score.

    The formulas are those of openclaw-algorithms 23 and 24, in ``macros.sql``, ``score.sql``, ``gates.sql`` and
    ``places.sql``.
    """
    if not candidates:
        return []
    members = {candidate.claim_id: candidate.members for candidate in candidates}
    with open_memory() as connection:
        _load(connection, candidates, signals)
        load_settings_row(connection, settings, now_ms)
        run_scoring(connection)
        found = connection.sql(
            f"SELECT {_COLUMNS} FROM verdicts"  # noqa: S608 - a constant list of columns
            " ORDER BY place NULLS LAST, score DESC, recall_count DESC, path, claim_id"
        ).fetchall()
    return [_gate_row(row, members[row[0]]) for row in found]


def _gate_row(row: tuple[Any, ...], members: tuple[str, ...]) -> GateRow:
    values: tuple[Any, ...] = (row[0], row[1], members, *row[2:-1], Gate(row[-1]) if row[-1] else None)
    return GateRow(*values)


def run_scoring(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make the view ``verdicts`` from ``candidates``, ``signals`` and ``settings``, a slice of the groups at a time."""
    connection.execute(sql_text("macros.sql"))
    connection.execute(_CREATE_TRIED)
    ((groups,),) = connection.sql("SELECT coalesce(max(group_id) + 1, 0) FROM candidates").fetchall()
    steps = [sql_text("score.sql"), sql_text("gates.sql")]
    for first in range(0, groups, _SLICE):
        for step in steps:
            connection.execute(step, {"first": first, "last": first + _SLICE})
    connection.execute(sql_text("places.sql"))


def sql_text(name: str) -> str:
    """Return the text of the SQL file ``name`` of this room (``what_if.sql`` is for the published snapshot)."""
    return (resources.files("memory_assets.gates") / name).read_text(encoding="utf-8")


def load_settings_row(connection: "duckdb.DuckDBPyConnection", settings: DeepSettings, now_ms: int) -> None:
    """Create the table ``settings``: one row with the instant, weights and thresholds."""
    values = {
        "now_ms": now_ms,
        "half_life_days": settings.recency_half_life_days,
        **{f"w_{name}": weight for name, weight in settings.weights.model_dump().items()},
        "min_recall_count": settings.min_recall_count,
        "min_unique_queries": settings.min_unique_queries,
        "max_age_days": settings.max_age_days,
        "min_score": settings.min_score,
        "promotion_limit": settings.limit,
    }
    kinds = ("BIGINT" if isinstance(value, int) else "DOUBLE" for value in values.values())
    columns = ", ".join(f"?::{kind} AS {name}" for name, kind in zip(values, kinds, strict=True))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE settings AS SELECT {columns}", list(values.values()))


def _load(connection: "duckdb.DuckDBPyConnection", candidates: Sequence[Candidate], signals: Sequence[Signal]) -> None:
    import polars as pl

    connection.execute(_CREATE)
    frame = pl.DataFrame(
        [
            (
                c.group_id, c.claim_id, c.root_id, c.path, c.live, c.origin_class.value, c.session_kind.value,
                c.status.value, c.tags, c.light_hits, c.rem_hits, c.last_light_at, c.last_rem_at,
            )
            for c in candidates
        ],
        schema={
            "group_id": pl.Int64, "claim_id": pl.String, "root_id": pl.String, "path": pl.String, "live": pl.Boolean,
            "origin_class": pl.String, "session_kind": pl.String, "status": pl.String, "tags": pl.Int32,
            "light_hits": pl.Int32, "rem_hits": pl.Int32, "last_light_at": pl.Int64, "last_rem_at": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    insert_frame(connection, "INSERT INTO candidates BY NAME SELECT * FROM incoming", frame)
    contexts: dict[str, int] = {}
    frame = pl.DataFrame(
        [
            (
                s.group_id, s.kind is SignalKind.RECALL, s.kind is SignalKind.GROUNDED,
                contexts.setdefault(s.context, len(contexts)), (dt.date.fromisoformat(s.day) - _EPOCH).days,
                s.score, s.observed_at,
            )
            for s in signals
        ],
        schema={
            "group_id": pl.Int64, "recall": pl.Boolean, "grounded": pl.Boolean, "context": pl.Int64, "day": pl.Int32,
            "score": pl.Float64, "observed_at": pl.Int64,
        },
        orient="row",
    )  # fmt: skip
    insert_frame(connection, "INSERT INTO signals BY NAME SELECT * FROM incoming", frame)


def store(state: apsw.Connection, sweep_id: str, rows: Sequence[GateRow], settings: DeepSettings) -> None:
    """Replace the verdicts of ``sweep_id``; once it has written, all its verdicts stay what they were then."""
    with write_transaction(state):
        state.execute(
            "DELETE FROM gate_scores WHERE sweep_id = ?1 AND NOT EXISTS (SELECT 1 FROM ledger WHERE sweep_id = ?1)",
            (sweep_id,),
        )
        state.executemany(
            "INSERT OR IGNORE INTO gate_scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [_stored(sweep_id, row, settings) for row in rows],
        )
        state.execute(
            "DELETE FROM gate_scores WHERE failed_gate IS NOT NULL AND sweep_id NOT IN"
            " (SELECT sweep_id FROM sweeps ORDER BY started_at DESC LIMIT ?) AND sweep_id <> ?",
            (_SWEEPS_KEPT, sweep_id),
        )


def _stored(sweep_id: str, row: GateRow, settings: DeepSettings) -> tuple[Any, ...]:
    detail = {
        "members": list(row.members),
        "place": row.place,
        "raw_score": row.raw_score,
        "grounded_count": row.grounded_count,
        "days": row.day_count,
        "span_days": row.span_days,
        "thresholds": settings.model_dump(
            include={"min_recall_count", "min_unique_queries", "max_age_days", "min_score", "limit"}
        ),
        "weights": settings.weights.model_dump(),
    }
    return (
        sweep_id, row.claim_id, row.signal_count, row.recall_count, row.unique_queries, row.age_days, row.relevance,
        row.frequency, row.diversity, row.recency, row.consolidation, row.conceptual, row.phase_boost, row.score,
        row.failed_gate.value if row.failed_gate else None, json.dumps(detail, sort_keys=True),
    )  # fmt: skip
