"""One nightly sweep over a workspace that has been dreamed over for as long as the corpus lasts.

Belongs here: the last night of a replay, run several times from the same state, with publishing, in process; its memory
in a process of its own, which has done nothing else.
Does not belong here: the replay itself (``benchmarks.replay``); the corpus (``benchmarks.inputs``; reported: 365 days).
The replay takes minutes; ``--keep DIR`` keeps its state, and the next run starts from there.
"""

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit, peak_memory
from benchmarks.inputs import corpus_folder
from benchmarks.replay import Replay
from memory_assets.sweep import run_sweep
from recall_runtime.agent import open_agent
from recall_runtime.clock import FixedClock

NIGHTS = 3
STARTED = "last-night.json"  # beside the state: the instant of the night that is to come


@dataclass(frozen=True, slots=True)
class _Night:
    wall: float
    processor: float
    peak: float  # megabytes that the process held at most, so far


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="a generated corpus")
    parser.add_argument("--keep", type=Path, help="folder of the state before the last night")
    options = parser.parse_args(argv)
    corpus = corpus_folder(options.corpus, "timeline.jsonl", "nightly")
    if corpus is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        state = (options.keep or Path(folder) / "state").resolve()
        if not (state / STARTED).exists():
            at = Replay(corpus, state, embedder="static", model_url=None).run(last_sweep=False)
            (state / STARTED).write_text(json.dumps({"at": at}), encoding="utf-8")
        emit(_measure(state, Path(folder) / "saved"))
    return 0


def _measure(state: Path, saved: Path) -> list[Figure]:
    """Run the night ``NIGHTS`` times, each from the same files in the same place with their times."""
    at = json.loads((state / STARTED).read_text(encoding="utf-8"))["at"]
    shutil.copytree(state, saved, symlinks=True)
    nights: list[_Night] = []
    for _ in range(NIGHTS):
        _restore(saved, state)
        nights.append(_night(state, at))
    _restore(saved, state)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as fresh:
        peak = fresh.submit(_night, state, at).result().peak
    _restore(saved, state)
    files = [file for folder in ("workspace", "agents") for file in (state / folder).rglob("*") if file.is_file()]
    start = time.perf_counter()
    for file in files:
        file.stat()
    floor = time.perf_counter() - start
    note = f"{len(files)} files, static vectors, with publishing, median of {NIGHTS}, floor: a stat of every file"
    return [
        Figure(
            "nightly.wall",
            round(median(night.wall for night in nights), 3),
            "s",
            floor=round(floor, 4),
            target="<= 10 s",
            note=note,
        ),
        Figure("nightly.processor", round(median(night.processor for night in nights), 3), "s", note=note),
        Figure("nightly.peak_memory", round(peak, 1), "MB", note="of a process that does this one night"),
    ]


def _restore(saved: Path, state: Path) -> None:
    shutil.rmtree(state)
    shutil.copytree(saved, state, symlinks=True)


def _night(state: Path, at: int) -> _Night:
    wall, processor = time.perf_counter(), time.process_time()
    run_sweep(open_agent(home=state / "home", clock=FixedClock(at)))
    return _Night(time.perf_counter() - wall, time.process_time() - processor, peak_memory())


if __name__ == "__main__":
    raise SystemExit(main())
