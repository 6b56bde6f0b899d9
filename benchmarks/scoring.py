"""Scoring and gating of many candidates in DuckDB: the SQL of a sweep on made-up groups and signals.

Belongs here: the synthetic tables, timing of ``score.sql``, ``gates.sql`` and ``places.sql``, the growth with the size.
Does not belong here: the SQL itself (``memory_assets.gates``).

Signals come group by group, as ``gates.loading`` gives them. Each size is measured ``REPEATS`` times after a warm-up,
the sizes in turn, so that what else the machine does falls on all of them alike. Growth is told by the median of the
processor time, which other processes disturb least.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from memory_assets.gates.scoring import load_settings_row, run_scoring
from memory_assets.warehouse.connection import open_memory
from recall_runtime.clock import parse_instant
from recall_runtime.config import DeepSettings

NOW = parse_instant("2026-03-01T03:00:00Z")
REPEATS = 3
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
FROM range(?) AS t(i) ORDER BY group_id"""  # noqa: S608 - constants of this module


@dataclass(frozen=True, slots=True)
class _Run:
    """Seconds of one run: of scoring and gating by the clock and of the processor, and of the floor by the clock."""

    wall: float
    processor: float
    floor: float


def run(candidates: int, signals: int) -> _Run:
    """Time scoring, gating and reading the verdicts, and one bare scan that sums the same signals: the floor."""
    with open_memory() as connection:
        connection.execute("SET threads = 2")
        connection.execute(_CANDIDATES, [candidates])
        connection.execute(_SIGNALS, [candidates, signals])
        load_settings_row(connection, DeepSettings(), NOW)
        start = time.perf_counter()
        connection.execute("CREATE TEMP TABLE scan AS SELECT group_id, count(*), sum(score) FROM signals GROUP BY 1")
        floor = time.perf_counter() - start
        start, processor = time.perf_counter(), time.process_time()
        run_scoring(connection)
        verdicts = connection.sql("SELECT failed_gate, count(*) FROM verdicts GROUP BY 1").fetchall()
        taken = _Run(time.perf_counter() - start, time.process_time() - processor, floor)
        assert sum(count for _, count in verdicts) == candidates
        return taken


def main(argv: list[str] | None = None) -> int:
    """Measure, print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=1_000_000)
    parser.add_argument("--signals", type=int, default=5_000_000)
    options = parser.parse_args(argv)
    run(options.candidates // 100, options.signals // 100)
    runs: dict[int, list[_Run]] = {4: [], 2: [], 1: []}
    for _ in range(REPEATS):
        for part, taken in runs.items():
            taken.append(run(options.candidates // part, options.signals // part))
    processor = {part: median(each.processor for each in taken) for part, taken in runs.items()}
    note = f"{options.candidates} candidates, {options.signals} signals, 2 threads, median of {REPEATS}"
    emit(
        [
            Figure(
                "scoring.wall",
                round(median(each.wall for each in runs[1]), 3),
                "s",
                floor=round(median(each.floor for each in runs[1]), 3),
                target="<= 5 s",
                note=note,
            ),
            Figure(
                "scoring.growth_2x",
                round(processor[2] / processor[4], 2),
                "x for 2x the input",
                floor=2.0,
                target="ratio <= 1",
            ),
            Figure(
                "scoring.growth",
                round(processor[1] / processor[4], 2),
                "x for 4x the input",
                floor=4.0,
                target="ratio <= 1",
            ),
        ]
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
