"""What a turn costs: warm against its floor, with a writer at work, on a large index, and as a cold process.

Belongs here: this one measurement. The floor are the raw queries of a question, fully fetched, and nothing made of
their rows: FTS5 over entries for all terms, again for those that name something where they differ, FTS5 over
documents, the vector of the question, and the scan for the nearest entries among the visible ones in memory. Words are
cut and filters are made before the clock starts. It is taken in turns with what it is compared with, each first every
second time. No question is asked twice, for a server keeps what it found out about words. Processor time stands beside
wall time: on a busy machine it is the fairer figure. Does not belong here: correctness (``tests/recall``), the quality
of answers (``benchmarks.locomo``).
"""

import argparse
import contextlib
import datetime as dt
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.figures import Figure, emit, percentile
from benchmarks.wording import drawer, vocabulary
from recall_runtime.agent import Agent
from recall_runtime.clock import SystemClock, zone_of
from recall_runtime.config import Settings
from recall_runtime.index import image, lanes
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.turn import turn
from recall_runtime.storage.connection import open_reader
from recall_runtime.text.words import query_terms

SESSION = "agent:main:main"
LINES_A_NOTE = 100
QUESTIONS_A_NOTE = 10
WARMING = 20  # questions before the clock starts
POOL = 150
SPARE = 4  # times as many matches are read, because some are not visible
ENTRIES = (
    "SELECT rowid, bm25(entries_fts, ?, ?) AS rank FROM entries_fts WHERE entries_fts MATCH ? ORDER BY rank LIMIT ?"
)
DOCUMENTS = "SELECT rowid, bm25(documents_fts) FROM documents_fts WHERE documents_fts MATCH ?"
WARMING_SECONDS = 60.0
WORDS = 12_000
STOP_WORDS = 150  # the most common ones; a stop list takes those of a real language out of a question
WRITER = """
import sys, time
from pathlib import Path
from recall_runtime.storage.connection import open_writer, write_transaction
connection = open_writer(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    with write_transaction(connection):
        connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
        connection.execute("UPDATE sources SET mtime_ns = mtime_ns WHERE source_id % 7 = 0")
    time.sleep(0.01)
"""


def workspace(root: Path, entries: int, generator: random.Random) -> list[str]:
    """Write ``entries`` lines of notes, ``MEMORY.md`` with triggers and ``USER.md``; return questions about them."""
    words = vocabulary(WORDS, generator)
    draw_words, common = drawer(words, generator), frozenset(words[:STOP_WORDS])

    def draw(number: int) -> str:
        return " ".join(draw_words(number))

    (root / "memory").mkdir(parents=True)
    questions: list[str] = []
    for number in range(0, entries, LINES_A_NOTE):
        lines = [draw(generator.randint(8, 24)) for _ in range(LINES_A_NOTE)]
        day = dt.date(2020, 1, 1) + dt.timedelta(days=number // LINES_A_NOTE)
        (root / "memory" / f"{day}.md").write_text("".join(f"- {line}.\n" for line in lines), encoding="utf-8")
        for line in generator.sample(lines, QUESTIONS_A_NOTE):
            some = [word for word in line.split() if word not in common]
            questions.append(f"What did we decide about the {' '.join(generator.sample(some, min(5, len(some))))}?")
    memory = [f"- {draw(12)}. <!-- trigger: {draw(2)}, {draw(3)} -->\n" for _ in range(100)]
    (root / "MEMORY.md").write_text("# Memory\n\n" + "".join(memory), encoding="utf-8")
    user = [f"- Always {draw(6)}.\n" for _ in range(40)]
    (root / "USER.md").write_text("# User\n\n" + "".join(user), encoding="utf-8")
    return questions


def agent_over(root: Path, embedder: str) -> Agent:
    """Return an agent over ``root/ws`` with its state beside it."""
    settings = Settings.model_validate({"embedder": {"name": embedder}, "workspace": str(root / "ws")})
    return Agent(AgentFolders(root / "home", "main", root / "ws"), settings, zone_of("UTC"), SystemClock())


class Floor:
    """The raw queries of one question, on a connection and an image that are kept."""

    def __init__(self, agent: Agent) -> None:
        self._reader = open_reader(agent.folders.index_db, vectors=True)
        self._embedder = resolve(agent.settings.embedder)
        self._image = image.load(self._reader)
        self._scope = lanes.Scope(include_untrusted=False)
        self._known: dict[str, tuple[list[str], list[str]]] = {}

    def prepare(self, question: str) -> None:
        """Cut the question into terms."""
        if question not in self._known:
            terms = [term for term in query_terms(question) if lanes.document_frequency(self._reader, term)]
            self._known[question] = terms, lanes.specific_terms(terms)

    def ask(self, question: str) -> None:
        """Send the queries of one question."""
        terms, telling = self._known[question]
        if terms:
            for some in [terms, telling] if telling and telling != terms else [terms]:
                values = lanes.BODY_WEIGHT, lanes.CONTEXT_WEIGHT, lanes.match_any(some), SPARE * POOL
                self._reader.execute(ENTRIES, values).fetchall()
            self._reader.execute(DOCUMENTS, (lanes.match_any(terms),)).fetchall()
        if self._embedder is not None and self._image is not None:
            self._image.nearest(self._embedder.embed_query(question), POOL, self._scope)

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


@dataclass(frozen=True, slots=True)
class Spent:
    """Milliseconds of each question, on the wall and of the processor."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def in_turns(first: Callable[[str], object], floor: Floor, questions: list[str]) -> tuple[Spent, Spent]:
    """Return what ``first`` and the floor take for each question, side by side: both meet the same machine."""
    spent = Spent(), Spent()
    for number, question in enumerate(questions):
        floor.prepare(question)
        pairs = list(zip(spent, (first, floor.ask), strict=True))
        for one, action in pairs if number % 2 else reversed(pairs):
            began, used = time.perf_counter(), time.process_time()
            action(question)
            one.wall.append((time.perf_counter() - began) * 1000)
            one.processor.append((time.process_time() - used) * 1000)
    return spent


def wait_until_warm(runtime: Runtime) -> None:
    """Wait until the image of the index is in memory; a large one is loaded in the background."""
    until = time.monotonic() + WARMING_SECONDS
    while runtime.image(runtime.index_reader()) is None and time.monotonic() < until:
        time.sleep(0.05)


@contextlib.contextmanager
def committing(path: Path) -> Iterator[None]:
    """Let another process commit to the index all the time."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def measured(root: Path, entries: int, embedder: str, times: int) -> list[Figure]:
    """Return the figures of one size."""
    generator = random.Random(7)  # noqa: S311 - a reproducible workload
    questions = workspace(root / "ws", entries, generator)
    generator.shuffle(questions)
    warming, asked, later = questions[:WARMING], questions[WARMING:][:times], questions[WARMING + times :][:times]
    plain = [question.removeprefix("What did we decide about ") for question in asked]
    agent = agent_over(root, embedder)
    sync(agent)
    size = f"{entries // 1000}k"
    figures: list[Figure] = []
    floor = Floor(agent)
    with Runtime(agent) as runtime:

        def one(message: str) -> object:
            return turn(agent, message, session_key=SESSION, runtime=runtime, record=False)

        def look_up(message: str) -> object:
            runtime.deep().forget()
            return one(message)

        wait_until_warm(runtime)
        in_turns(look_up, floor, warming)
        spent, least = in_turns(look_up, floor, asked)
        limits = ("<= 5 ms", "<= 15 ms") if entries <= 10_000 else (None, "<= 40 ms")
        for name, share, limit in (("p50", 0.5, limits[0]), ("p99", 0.99, limits[1])):
            value, low = percentile(spent.wall, share), percentile(least.wall, share)
            figures.append(Figure(f"turn.warm_{size}_{name}", value, "ms", floor=low, target=limit))
        value, low = percentile(spent.processor, 0.5), percentile(least.processor, 0.5)
        note = "asked: <= 1.5 x floor" if entries <= 10_000 else ""
        figures.append(Figure(f"turn.warm_{size}_processor_p50", value, "ms", floor=low, note=note))
        quick, _ = in_turns(one, floor, plain)
        figures.append(Figure(f"turn.warm_{size}_no_recall_p50", percentile(quick.wall, 0.5), "ms"))
        figures.append(Figure(f"turn.warm_{size}_no_recall_p99", percentile(quick.wall, 0.99), "ms"))
        with committing(agent.folders.index_db):
            busy, low_busy = in_turns(look_up, floor, later)
        for name, share, limit in (("p50", 0.5, None), ("p99", 0.99, "<= 30 ms" if entries <= 10_000 else None)):
            value, low = percentile(busy.wall, share), percentile(low_busy.wall, share)
            figures.append(Figure(f"turn.writer_{size}_{name}", value, "ms", floor=low, target=limit))
        figures += shortlist_figures(agent, asked[:200], size)
    floor.close()
    return figures


def shortlist_figures(agent: Agent, questions: list[str], size: str) -> list[Figure]:
    """Return how many of the 24 nearest by the exact order a large index finds through its shortlist."""
    embedder = resolve(agent.settings.embedder)
    with contextlib.closing(open_reader(agent.folders.index_db, vectors=True)) as reader:
        kept = image.load(reader)
    if kept is None or kept.signs is None or embedder is None:
        return []
    exact, scope, shares = replace(kept, signs=None), lanes.Scope(), list[float]()
    for question in questions:
        vector = embedder.embed_query(question)
        right = exact.nearest(vector, 24, scope)
        shares.append(len(right.keys() & kept.nearest(vector, 24, scope).keys()) / max(1, len(right)))
    share = sum(shares) / len(shares)
    return [Figure(f"turn.shortlist_{size}_recall@24", round(share, 4), "share", target=">= 0.99")]


def cold(root: Path, times: int) -> list[Figure]:
    """Return the time of whole ``dreamline turn`` processes, against an interpreter that imports numpy and apsw."""
    command = [sys.executable, "-m", "recall_runtime.cli.main", "--home", str(root / "home"), "--workspace"]
    command += [str(root / "ws"), "turn", "--session", SESSION, "What did we decide about the gateway?"]
    bare = [sys.executable, "-c", "import numpy, apsw"]
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = kept | {"PYTHONPYCACHEPREFIX": str(root / "bytecode")}  # as installed: nothing is compiled anew
    spent: list[list[float]] = [[], []]
    for number in range(times + 1):
        for place, line in enumerate((command, bare)):
            began = time.perf_counter()
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env=environment)
            if number:  # the first run compiles
                spent[place].append(time.perf_counter() - began)
    return [
        Figure(
            "turn.cold_process", percentile(spent[0], 0.5), "s", floor=percentile(spent[1], 0.5), target="<= 0.35 s"
        ),
        Figure("turn.cold_process_best", min(spent[0]), "s", floor=min(spent[1])),
    ]


def main(argv: list[str]) -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000", help="entries, separated by commas")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--times", type=int, default=400)
    options = parser.parse_args(argv)
    for size in (int(part) for part in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            emit(measured(Path(folder), size, options.embedder, options.times))
            if size <= 10_000:
                emit(cold(Path(folder), 10))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
