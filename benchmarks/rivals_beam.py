"""BEAM (100K), side by side in one run: Dreamline's modes and what ranks by words alone, as in ``benchmarks.rivals``.

Belongs here: which systems take part without being named. Does not belong here: anything else of the run
(``benchmarks.rivals``), reading the data set (``benchmarks.beam``), the data; ``--data`` names it.

Every message of a chat is one memory, every probe that names its messages is asked inside its chat, ten results. One
weight of Dreamline was chosen on nine of its chats: how much less one of many pieces of a message counts
(docs/decisions.md); the figures are of all chats. Messages are long, so systems with a model of their own take hours on
two cores; ``--system`` names them one by one.
"""

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.beam import chats
from benchmarks.inputs import data_file
from benchmarks.rivals import COLUMNS, SYSTEMS, compare, options_of

BY_DEFAULT = {"dreamline-static", "dreamline-none", "bm25s", "agentrecall", "reme"}


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    options = options_of(argv, __doc__)
    data = data_file(options.data, "beam_100k.jsonl.gz", "rivals_beam")
    if data is not None:
        systems = [system for system in SYSTEMS if system.driver in BY_DEFAULT]
        compare(list(chats(data)), options, COLUMNS, systems=systems)
    return 0


if __name__ == "__main__":
    sys.exit(main())
