"""The process around one memory system: JSON lines in, JSON lines out, times taken around the system's own calls.

Belongs here: the protocol, clocks, keeping whatever a library prints out of the answers.
Does not belong here: the systems (``benchmarks.drivers.systems``), scoring (``benchmarks.rivals``).

Runs as ``python -m benchmarks.drivers.serve NAME FOLDER`` under the interpreter of the system's own environment, so it
imports the standard library only. Requests: ``{"do": "ingest", "conversation": id, "memories": [...]}`` answers
``{"seconds": s}``; ``{"do": "search", "conversation": id, "question": text, "way": name}`` answers ``{"units": [...],
"ms": wall, "cpu_ms": processor}``; ``{"do": "size"}`` answers ``{"bytes": n}``. A failure answers ``{"error": text}``.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.drivers.systems import DRIVERS, Driver


def serve(name: str, folder: Path) -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes to the log
    driver: Driver | None = None
    for line in sys.stdin:
        try:
            driver = driver or DRIVERS[name](folder)
            answer = _answer(driver, folder, json.loads(line))
        except Exception as error:  # noqa: BLE001 - any failure of a foreign library is its row's reason
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(driver: Driver, folder: Path, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "size":
        return {"bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())}
    start, start_cpu = time.perf_counter(), time.process_time()
    if request["do"] == "ingest":
        driver.ingest(request["conversation"], request["memories"])
        return {"seconds": time.perf_counter() - start}
    units = driver.search(request["conversation"], request["question"], request["way"])
    wall, processor = time.perf_counter() - start, time.process_time() - start_cpu
    return {"units": units, "ms": wall * 1000, "cpu_ms": processor * 1000}


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
