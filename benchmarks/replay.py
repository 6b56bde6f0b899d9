"""Replay a generated corpus through the public interfaces, sweep by sweep, and grade the result.

    python benchmarks/replay.py CORPUS --out DIR [--model none|honest|hostile] [--embedder NAME] [--json FILE]

Belongs here: walking ``timeline.jsonl`` with the clock passed in.
Does not belong here: grading (``benchmarks.grading``), the scripted models (``benchmarks.scripted_models``).

Starts from the corpus's curated and instruction files alone; notes and sessions appear as the timeline says, in
``DIR/workspace``, with the state in ``DIR/home``. ``dreamline --home DIR/home ui`` shows the result.

What a host does often and the grading needs seldom is done seldom: the snapshot for analysts is published by the last
sweep alone, because nobody reads the others; what a turn injects is checked after every sweep for one of the corpus's
questions, each in its turn, and after the last sweep for all of them. Curated files are checked after every sweep.
"""

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.grading import Truth, grade, leaks, true_facts_in
from benchmarks.scripted_models import serve_model
from memory_assets.sweep import run_sweep
from recall_runtime.agent import Agent, open_agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.index.sync import sync
from recall_runtime.notes.writer import append_note
from recall_runtime.recall.turn import turn
from recall_runtime.signals.recalls import record_external_recall

START_FILES = ("MEMORY.md", "USER.md", "AGENTS.md", "HEARTBEAT.md")
RECALL_SESSION = "agent:main:main"
MEMORY_BUDGET = 200_000  # a year promotes more than fits a prompt; what is graded here is the gate, not the budget


class Replay:
    """One corpus being replayed into one folder."""

    def __init__(self, corpus: Path, out: Path, *, embedder: str, model_url: str | None) -> None:
        self.corpus = corpus
        self.home = out / "home"
        self.workspace = out / "workspace"
        self.sessions = out / "agents" / "main" / "sessions"
        self.truth = Truth.read(corpus)
        self.leaked: set[str] = set()
        self.ever_there: set[str] = set()
        self.sweep_seconds: list[float] = []
        self.timeline = [
            json.loads(line) for line in (corpus / "timeline.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        self.last_sweep = next((each["id"] for each in reversed(self.timeline) if each["op"] == "sweep"), None)
        self._prepare(embedder, model_url)

    def _prepare(self, embedder: str, model_url: str | None) -> None:
        for folder in (self.home, self.workspace, self.sessions):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for name in START_FILES:
            shutil.copyfile(self.corpus / "workspace" / name, self.workspace / name)
        lines = [
            f"workspace = {json.dumps(str(self.workspace))}",
            'timezone = "UTC"',
            "[embedder]",
            f"name = {json.dumps(embedder)}",
            "[sources]",
            f"session_folders = [{json.dumps(str(self.sessions))}]",
            'owner_ids = ["owner-1"]',
            "[dreaming.deep]",
            f"memory_budget_characters = {MEMORY_BUDGET}",
        ]
        if model_url:
            lines += [
                "[model]",
                'provider = "openai-compatible"',
                f"base_url = {json.dumps(model_url)}",
                'model = "scripted"',
            ]
        (self.home / "dreamline.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def agent_at(self, instant_ms: int) -> Agent:
        """Return the agent with its clock at ``instant_ms``."""
        return open_agent(home=self.home, clock=FixedClock(instant_ms))

    def run(self, *, last_sweep: bool = True) -> int:
        """Replay the timeline, whole or up to its last sweep; return the instant that was reached."""
        at = 0
        for operation in self.timeline:
            at = parse_instant(operation["ts"])
            if operation["id"] == self.last_sweep and not last_sweep:
                break
            getattr(self, "_" + operation["op"])(operation, at)
        return at

    def _append(self, operation: dict[str, Any], at: int) -> None:
        if operation["session"]:
            append_note(
                self.agent_at(at),
                operation["text"],
                session_key=operation["session_key"],
                session_id=operation["session"],
                path=operation["path"],
            )
            return
        path = self.workspace / operation["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(operation["text"])

    def _replace(self, operation: dict[str, Any], _at: int) -> None:
        path = self.workspace / operation["path"]
        lines = path.read_bytes().decode("utf-8").split("\n")
        if lines[operation["line"] - 1] != operation["old"]:
            raise SystemExit(
                f"{operation['id']}: line {operation['line']} of {operation['path']} is not what the timeline says"
            )
        lines[operation["line"] - 1] = operation["new"]
        path.write_bytes("\n".join(lines).encode("utf-8"))

    def _session_end(self, operation: dict[str, Any], at: int) -> None:
        (source,) = (self.corpus / "agents" / "main" / "sessions").glob(operation["session"] + ".jsonl*")
        shutil.copyfile(source, self.sessions / source.name)
        store_path = self.sessions / "sessions.json"
        store = json.loads(store_path.read_text(encoding="utf-8")) if store_path.exists() else {}
        key = operation["session_key"]
        store[key] = {
            "sessionId": operation["session"],
            "sessionFile": source.name,
            "updatedAt": at,
            "chatType": "group" if ":group:" in key else "direct",
        }
        store_path.write_text(json.dumps(store), encoding="utf-8")
        sync(self.agent_at(at), vectors=False)

    def _recall(self, operation: dict[str, Any], at: int) -> None:
        agent = self.agent_at(at)
        record_external_recall(
            agent, query=operation["query"], results=operation["results"], at_ms=at, session_key=RECALL_SESSION
        )

    def _sweep(self, operation: dict[str, Any], at: int) -> None:
        start = time.perf_counter()
        run_sweep(self.agent_at(at), sweep_id=None, publishing=operation["id"] == self.last_sweep)
        self.sweep_seconds.append(time.perf_counter() - start)
        memory, user = self._text("MEMORY.md"), self._text("USER.md")
        self.leaked.update(leaks(memory + user, self.truth))
        self.ever_there |= true_facts_in(memory, user, self.truth)
        questions = self.truth.questions
        self._inject(at, questions[len(self.sweep_seconds) % len(questions) :][:1] if questions else [])

    def _text(self, name: str) -> str:
        path = self.workspace / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def result(self) -> dict[str, Any]:
        """Return the measures at the end of the timeline."""
        graded = grade(self._text("MEMORY.md"), self._text("USER.md"), self.truth, ever=self.ever_there)
        self._inject(parse_instant(self.timeline[-1]["ts"]), self.truth.questions)
        return {
            **graded,
            "never_leaked": len(self.leaked),
            "leaked": sorted(self.leaked),
            "slowest_sweep_s": round(max(self.sweep_seconds, default=0.0), 3),
            "last_sweep_s": round(self.sweep_seconds[-1], 3) if self.sweep_seconds else 0.0,
        }

    def _inject(self, at: int, questions: Sequence[str]) -> None:
        """Look for leaks in everything a turn would inject for ``questions`` at this instant."""
        agent = self.agent_at(at)
        projects = tuple(sorted({fact["project"] for fact in self.truth.facts if fact["project"]})[:4])
        for question in questions:
            shown = turn(agent, question, session_key=RECALL_SESSION, active_projects=projects, record=False)
            self.leaked.update(leaks(shown.text, self.truth))


@contextlib.contextmanager
def scripted(model: str, corpus: Path) -> Iterator[str | None]:
    """Serve the scripted model on loopback for the body; yield its address, or ``None`` for no model."""
    if model == "none":
        yield None
        return
    with serve_model(model, corpus) as address:
        yield address


def main(argv: list[str] | None = None) -> int:
    """Replay, grade, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", choices=("none", "honest", "hostile"), default="none")
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    start, processor = time.perf_counter(), time.process_time()
    with scripted(options.model, options.corpus) as address:
        replay = Replay(options.corpus, options.out.resolve(), embedder=options.embedder, model_url=address)
        replay.run()
        result = replay.result()
    result["wall_s"] = round(time.perf_counter() - start, 2)
    result["processor_s"] = round(time.process_time() - processor, 2)
    _print_table(result)
    text = json.dumps(result, ensure_ascii=False, indent=1)
    (options.json or options.out / "result.json").write_text(text + "\n", encoding="utf-8")
    return 0


def _print_table(result: dict[str, Any]) -> None:
    for key in (
        "precision",
        "recall",
        "never_leaked",
        "stale_active",
        "stale_share",
        "retired_share",
        "traps_alive",
        "duplicates",
        "slowest_sweep_s",
        "wall_s",
        "processor_s",
    ):
        value = result[key]
        print(f"{key:18} {value:.3f}" if isinstance(value, float) else f"{key:18} {value}")
    for name, share in result["per_category"].items():
        print(f"  {name:40} {share}")
    for name in ("missed", "wrong", "stale", "retired_by_mistake", "leaked"):
        for item in result[name][:12]:
            print(f"  {name}: {item[:160]}")


if __name__ == "__main__":
    raise SystemExit(main())
