"""Measure the cosine levels of the installed embedders; the constants beside each embedder come from here."""

import json
import sys

from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.calibration import measure
from recall_runtime.index.embedders.registry import resolve


def main(argv: list[str]) -> int:
    """Print one JSON line a level for each embedder named in ``argv`` (all local ones without)."""
    for name in argv or ["static", "minilm", "e5"]:
        try:
            embedder = resolve(EmbedderSettings.model_validate({"name": name}))
        except EmbedderError as error:
            print(json.dumps({"name": f"calibration.{name}", "skipped": str(error)}))
            continue
        assert embedder is not None
        levels = measure(embedder)
        for level in ("unrelated", "paraphrase"):
            record = {"name": f"calibration.{name}.{level}", "value": getattr(levels, level), "unit": "cosine"}
            print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
