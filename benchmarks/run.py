"""Run benchmarks and keep their figures: ``make bench [ONLY=name]``.

Belongs here: finding the modules, running each in a process of its own, telling which of them finished.
Does not belong here: measuring (each module has ``main(argv) -> int`` and prints figures as JSON lines), the kept
figures and their table (``benchmarks.results``).
"""

import argparse
import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import results, started

NOT_BENCHMARKS = {
    "run",
    "results",
    "started",
    "inputs",
    "figures",
    "replay",
    "grading",
    "scripted_models",
    "retrieval",
    "calibrate",
    "wording",
}
INPUTS = {
    "locomo": "data",
    "beam": "data",
    "prefeval": "data",
    "rivals": "data",
    "rivals_beam": "data",
    "poisoning": "data",
    "ingest": "corpus",
    "questions": "corpus",
    "nightly": "corpus",
}  # what a benchmark reads from outside the repository


def main(argv: list[str] | None = None, *, root: Path = results.ROOT) -> int:
    """Run the chosen benchmarks of ``root`` one after the other; return 0 when all of them ended well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names separated by | or commas; default: all")
    parser.add_argument("--data", type=Path, help="folder of public data sets; what needs one is skipped without it")
    parser.add_argument("--corpus", type=Path, help="a generated corpus; what needs one is skipped without it")
    options = parser.parse_args(argv)
    outcomes = {name: _run(name, vars(options), root) for name in _chosen(options.only, root)}
    wrong = {name: code for name, code in outcomes.items() if code}
    for name, code in wrong.items():
        what = "missed a bound" if code == started.MISSED else f"ended with code {code}; its earlier figures were kept"
        sys.stderr.write(f"benchmark {name} {what}\n")
    return 1 if wrong else 0


def _chosen(only: str, root: Path) -> list[str]:
    folder = root / "benchmarks"
    every = sorted(path.stem for path in folder.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    wanted = [name for name in only.replace("|", ",").split(",") if name]
    unknown = [name for name in wanted if name not in every]
    if unknown:
        raise SystemExit(f"No benchmark {unknown[0]!r}. There are: {', '.join(every)}.")
    return wanted or every


def _run(name: str, options: dict[str, Any], root: Path) -> int:
    """Run one benchmark, keep its figures if it finished, and return its exit code."""
    command = [sys.executable, started.__file__, name]
    wanted = INPUTS.get(name)
    if wanted and options[wanted]:
        command += [f"--{wanted}", str(options[wanted].resolve())]
    day = dt.datetime.now(tz=dt.UTC).date().isoformat()
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    if done.returncode in (0, started.MISSED):
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        results.replace(root, name, [row for row in rows if "value" in row], day)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
