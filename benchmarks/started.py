"""One benchmark, in the process that ``benchmarks.run`` starts for it.

Belongs here: telling by the exit code whether the benchmark finished.
Does not belong here: choosing benchmarks, what becomes of their figures.

    python benchmarks/started.py NAME [its options]      # in the repository
"""

import importlib
import sys
from pathlib import Path

MISSED = 3  # it finished and missed a bound; Python's own codes for a crash are 1 and 2


def main(argv: list[str]) -> int:
    """Run the benchmark that the first argument names, with the others; return 0 or ``MISSED`` when it finished."""
    sys.path[0] = str(Path.cwd())
    return MISSED if importlib.import_module(f"benchmarks.{argv[0]}").main(argv[1:]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
