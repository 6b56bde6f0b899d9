"""Takes the picture docs/images/lineage-entry.png: the graph of one entry in the real UI.

Belongs here: serving a state folder, finding an entry with several cited lines, one headless browser.
Does not belong here: assertions (``tests/dagster/test_ui.py``).

After ``make demo``::

    .venv/bin/python -m tests.dagster.browser.lineage_screenshot .demo/home docs/images/lineage-entry.png
"""

import argparse
import sys
import tempfile
from pathlib import Path

from memory_assets.lineage.graph import EntryState
from memory_assets.lineage.ledger import read_graph
from recall_runtime.paths import MEMORY_FILE
from tests.support.browser import find_chromium, screenshot
from tests.support.dagster_ui import serve

WIDTH, HEIGHT = 1700, 950
MOST_LINES = 3  # more don't fit the picture


def main() -> int:
    """Serve the state folder, photograph an entry, stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    if find_chromium() is None:
        sys.stderr.write("no Chromium on this machine; install the package chromium\n")
        return 1
    home = arguments.home.resolve()
    graph = read_graph(home / "agents" / "main" / "state.sqlite")
    entries = [entry for entry in graph.entries if entry.state is EntryState.ACTIVE and entry.file == MEMORY_FILE]
    if not entries:
        sys.stderr.write(f"nothing to show: {graph.problem or 'no entry was promoted yet'}\n")
        return 1
    entry = max(entries, key=lambda one: (min(len(one.evidence), MOST_LINES), one.node_id))
    with tempfile.TemporaryDirectory() as folder, serve(home, Path(folder) / "ui.log") as port:
        path = f"/assets/main/{entry.node_id}?view=lineage&lineageScope=upstream&lineageDepth=2"
        screenshot(f"http://127.0.0.1:{port}{path}", arguments.target.resolve(), size=(WIDTH, HEIGHT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
