"""Scoring and gating of many candidates in DuckDB: the SQL of a sweep on made-up groups and signals.

Belongs here: the synthetic tables, timing of ``score.sql`` and ``gates.sql``, the growth from a quarter of the size.
Does not belong here: the SQL itself (``memory_assets.gates``).
"""

import argparse
import sys
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from memory_assets.gates.scoring import load_settings_row, run_scoring
from memory_assets.warehouse.connection import open_memory
from recall_runtime.clock import parse_instant
from recall_runtime.config import DeepSettings

NOW = parse_instant("2026-03-01T03:00:00Z")
_DAY = 86_400_000
_CANDIDATES = f"""CREATE TEMP TABLE candidates AS SELECT
    i AS group_id, printf('%012x', i) AS claim_id, printf('%012x', i) AS root_id,
    printf('memory/2026-02-%02d.md', 1 + i % 28) AS path, i % 50 > 0 AS live,
    CASE WHEN i % 20 = 0 THEN 'untrusted' ELSE 'agent' END AS origin_class, 'interactive' AS session_kind,
    CASE WHEN i % 30 = 0 THEN 'promoted' ELSE 'waiting' END AS status, (i % 8)::INTEGER AS tags,
    (i % 4)::INTEGER AS light_hits, (i % 3)::INTEGER AS rem_hits,
    {NOW} - (i % 20) * {_DAY} AS last_light_at,
    CASE WHEN i % 3 > 0 THEN {NOW} - (i % 10) * {_DAY} END AS last_rem_at
FROM range(?) AS t(i)"""  # noqa: S608 - constants of this module
_SIGNALS = f"""CREATE TEMP TABLE signals AS SELECT
    (hash(i) % ?)::BIGINT AS group_id, i % 5 < 4 AS recall, i % 25 = 24 AS "grounded",
    (hash(i * 7) % 50000)::BIGINT AS context, (20480 + hash(i * 3) % 30)::INTEGER AS day,
    (hash(i * 11) % 1000) / 1000.0 AS score, {NOW} - (hash(i * 3) % 30)::BIGINT * {_DAY} AS observed_at
FROM range(?) AS t(i)"""  # noqa: S608 - constants of this module


def seconds(candidates: int, signals: int) -> tuple[float, float]:
    """Return the time of scoring and gating, and of one bare scan that sums the same signals: the floor."""
    with open_memory() as connection:
        connection.execute("SET threads = 2")
        connection.execute(_CANDIDATES, [candidates])
        connection.execute(_SIGNALS, [candidates, signals])
        load_settings_row(connection, DeepSettings(), NOW)
        start = time.perf_counter()
        connection.execute("CREATE TEMP TABLE scan AS SELECT group_id, count(*), sum(score) FROM signals GROUP BY 1")
        floor = time.perf_counter() - start
        start = time.perf_counter()
        run_scoring(connection)
        taken = time.perf_counter() - start
        (count,) = connection.sql("SELECT count(*) FROM verdicts").fetchall()[0]
        assert count == candidates
        return taken, floor


def main(argv: list[str] | None = None) -> int:
    """Measure, print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--signals", type=int, default=5_000_000)
    options = parser.parse_args(argv)
    quarter, _ = seconds(options.candidates // 4, options.signals // 4)
    whole, floor = seconds(options.candidates, options.signals)
    note = f"{options.candidates} candidates, {options.signals} signals, 2 threads"
    emit(
        [
            Figure("scoring.wall", round(whole, 3), "s", floor=round(floor, 3), target="<= 5 s", note=note),
            Figure("scoring.growth", round(whole / quarter, 2), "x for 4x the input", floor=4.0, target="ratio <= 1"),
        ]
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
