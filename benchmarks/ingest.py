"""Taking in a year of notes and transcripts from nothing, and one more day of it.

Belongs here: wall time and memory of a sync without vectors over a generated corpus.
Does not belong here: the corpus; ``--corpus`` names one (``benchmarks.inputs``; reported: 365 days).
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit, peak_memory
from benchmarks.inputs import corpus_folder
from recall_runtime.agent import Agent
from recall_runtime.clock import SystemClock, zone_of
from recall_runtime.config import Settings
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="a generated corpus")
    corpus = corpus_folder(parser.parse_args(argv).corpus, "workspace", "ingest")
    if corpus is None:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(corpus / "workspace", root / "workspace", symlinks=True)
        shutil.copytree(corpus / "agents", root / "agents", symlinks=True)
        emit(_measure(root))
    return 0


def _measure(root: Path) -> list[Figure]:
    sessions = root / "agents/main/sessions"
    held_back = _hold_back_the_last_day(root / "workspace/memory", sessions, root / "later")
    folders = AgentFolders(root / "home", "main", root / "workspace", (sessions,))
    agent = Agent(folders, Settings(), zone_of("UTC"), SystemClock())
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    floor = _seconds_to_read(root)
    start = time.perf_counter()
    report = sync(agent, vectors=False)
    whole = time.perf_counter() - start
    for kept, place in held_back:
        shutil.move(kept, place)
    start = time.perf_counter()
    day = sync(agent, vectors=False)
    increment = time.perf_counter() - start
    start = time.perf_counter()
    again = sync(agent, vectors=False)
    nothing = time.perf_counter() - start
    assert not again.changed
    assert day.transcripts_read + day.notes_read >= len(held_back) > 0
    files = report.notes_read + report.transcripts_read
    return [
        Figure("ingest.whole", round(whole, 2), "s", floor=round(floor, 3), target="<= 20", note=f"{files} files"),
        Figure("ingest.entries_per_second", round(report.entries_written / whole), "1/s", target=">= 3000"),
        Figure("ingest.day", round(increment, 3), "s", target="<= 1"),
        Figure("ingest.nothing_changed", round(nothing, 3), "s"),
        Figure("ingest.peak_memory", round(peak_memory()), "MB", target="<= 1000"),
        Figure("ingest.input", round(size / 1e6, 1), "MB"),
        Figure("ingest.index", round(folders.index_db.stat().st_size / 1e6, 1), "MB"),
    ]


def _hold_back_the_last_day(notes: Path, sessions: Path, later: Path) -> list[tuple[Path, Path]]:
    """Move the newest day's notes and the four last sessions away; return (kept, place) of each."""
    later.mkdir()
    newest = sorted(notes.glob("20*.md"))[-1].name[:10]
    moved = [*notes.glob(f"{newest}*.md"), *sorted(sessions.glob("*.jsonl"), key=_started)[-4:]]
    pairs = []
    for file in moved:
        kept = later / file.name
        shutil.move(file, kept)
        pairs.append((kept, file))
    return pairs


def _started(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as stream:
        try:
            return str(json.loads(stream.readline()).get("timestamp", ""))
        except ValueError:
            return ""


def _seconds_to_read(root: Path) -> float:
    """Return the time to read and JSON-parse or decode the same bytes: the least a sync must do."""
    start = time.perf_counter()
    for file in root.rglob("*"):
        if file.suffix == ".jsonl":
            for line in file.read_bytes().splitlines():
                try:
                    json.loads(line)
                except ValueError:
                    continue
        elif file.suffix == ".md" and file.is_file():
            file.read_bytes().decode("utf-8", "replace")
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
