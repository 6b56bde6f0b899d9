"""Building an index: entries a second without vectors, and the share of the embedder's own speed with them.

Belongs here: a made-up workspace of many short notes, its build, the bare batch speed of the embedder as the floor.
Does not belong here: real corpora (``ingest``), search.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from recall_runtime.agent import Agent
from recall_runtime.clock import SystemClock, zone_of
from recall_runtime.config import Settings
from recall_runtime.index.embedders.protocol import Embedder, Vector, Vectors
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders

_WORDS = [
    *("garden", "server", "invoice", "boiler", "flight", "dentist", "cellar", "contract", "backup", "ticket", "lamp"),
    *("report", "engine", "window", "budget", "meeting", "printer", "account", "holiday", "recipe", "battery", "river"),
]


class _Recorder:
    """Hands on to an embedder and keeps the batches, so that its bare speed is measured on the very same texts."""

    def __init__(self, embedder: Embedder) -> None:
        self.batches: list[Sequence[str]] = []
        self._embedder = embedder
        self.dimensions, self.identity = embedder.dimensions, embedder.identity
        self.calibration, self.worth_caching = embedder.calibration, embedder.worth_caching

    def embed_query(self, text: str) -> Vector:
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(texts)
        return self._embedder.embed_documents(texts)


def _workspace(root: Path, entries: int) -> None:
    """Write notes of 40 bullets each."""
    generator = random.Random(7)  # noqa: S311 - made-up text, no secret
    (root / "workspace/memory").mkdir(parents=True)
    for number in range(0, entries, 40):
        bullets = [
            f"The {' '.join(generator.choices(_WORDS, k=12))} number {generator.randint(1, 99999)}" for _ in range(40)
        ]
        text = f"# Topic {number}\n\n" + "".join(f"- {bullet}.\n" for bullet in bullets)
        (root / f"workspace/memory/topic-{number:06d}.md").write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--embedder", action="append", help="static, minilm, e5; may be repeated")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    for name in options.embedder or ["static"]:
        with tempfile.TemporaryDirectory() as folder:
            figures += _measure(Path(folder), name, options.entries)
    emit(figures)
    return 0


def _measure(root: Path, name: str, entries: int) -> list[Figure]:
    _workspace(root, entries)
    settings = Settings.model_validate({"embedder": {"name": name}})
    folders = AgentFolders(root / "home", "main", root / "workspace", ())
    agent = Agent(folders, settings, zone_of("UTC"), SystemClock())
    start = time.perf_counter()
    report = sync(agent, vectors=False)
    words = time.perf_counter() - start
    answer = search(agent, "boiler invoice", embedder=None)
    assert answer.hits  # the keyword lane answers while vectors are missing
    embedder = resolve(settings.embedder)
    assert embedder is not None
    embedder.embed_documents(["a text to warm up"])
    recorder = _Recorder(embedder)
    start = time.perf_counter()
    made = sync(agent, embedder=recorder).vectors_made
    with_vectors = made / (time.perf_counter() - start)
    start = time.perf_counter()
    for batch in recorder.batches:
        embedder.embed_documents(batch)
    bare = made / (time.perf_counter() - start)
    rate = report.entries_written / words
    return [
        Figure("index_build.keyword_only", round(rate), "entries/s", target=">= 3000"),
        Figure(
            f"index_build.{name}.vectors", round(with_vectors), "entries/s", floor=round(bare), target=">= 0.9 of floor"
        ),
        Figure("index_build.size", round(folders.index_db.stat().st_size / 1e6, 1), "MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
