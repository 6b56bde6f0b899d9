"""What benchmarks share in reading their command line: inputs that may be missing, weights for a measurement.

Belongs here: turning options into a file, a folder or a value. Does not belong here: reading what lies there (one
module each).

A generated corpus is a folder with a made-up past of one agent: ``workspace/`` and ``agents/main/sessions/`` as they
are at its end, ``timeline.jsonl`` with every message, write and night in order, and ``truth.json`` with what should be
kept and the questions. Its generator isn't part of this repository.
"""

import json
import sys
from pathlib import Path
from typing import Any

from recall_runtime.index.ranking import FusionWeights


def data_file(given: Path | None, name: str, benchmark: str) -> Path | None:
    """Return the data set ``name`` that ``given`` is or holds.

    ``None`` says that it is not there; the benchmark's line that it was skipped is printed then.
    """
    file = given / name if given is not None and given.is_dir() else given
    if file is not None and file.exists():
        return file
    skipped(benchmark, f"give the data set with --data {name}")
    return None


def corpus_folder(given: Path | None, holding: str, benchmark: str) -> Path | None:
    """Return the generated corpus ``given`` when ``holding`` is in it.

    ``None`` says that it is not there; the benchmark's line that it was skipped is printed then.
    """
    if given is not None and (given / holding).exists():
        return given
    skipped(benchmark, f"give a generated corpus (with {holding}) with --corpus DIR")
    return None


def skipped(benchmark: str, cure: str) -> None:
    """Print the line that says a benchmark, or a part of it, was skipped, and what it needs."""
    sys.stdout.write(json.dumps({"name": benchmark, "skipped": cure}) + "\n")


def fusion_weights(text: str) -> FusionWeights | None:
    """Return the weights that ``text`` names, such as ``vector=0.5,neighbours=0.4/0.2``; ``None`` for an empty text."""
    given: dict[str, Any] = dict(part.split("=") for part in text.split(",") if part)
    for name, value in given.items():
        numbers = tuple(float(number) for number in value.split("/") if number)
        given[name] = numbers if name == "neighbours" else numbers[0]
    return FusionWeights(**given) if given else None
