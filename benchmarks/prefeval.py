"""PrefEval (explicit): does the right preference reach the prompt of its question?

Belongs here: reading the data set, one user file a topic with all its preferences as directives, what a turn injects.
Does not belong here: correctness (``tests/user_model``, ``tests/recall``). The data set is not shipped (its licence is
non-commercial): without ``--data`` the benchmark says so and ends well. Topics at even places of the sorted list were
used while building, the others are kept apart; both are reported.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from benchmarks.figures import Figure, emit, percentile
from benchmarks.inputs import data_file
from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock
from recall_runtime.config import Settings
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.turn import Lane, turn

FILE = "prefeval_explicit.json"
NOW = 1_772_355_600_000
SESSION = "agent:main:main"
TARGET = 0.9


@dataclass(frozen=True, slots=True)
class Answered:
    """Where the right directive of one question was: in the copy of the file, in the block next to the message."""

    in_file: bool
    in_block: bool
    block_directives: int
    block_ms: float


def topics_of(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return (preference, question) pairs by topic."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in json.loads(path.read_text(encoding="utf-8")):
        found[row["topic"]].append((" ".join(row["preference"].split()), row["question"]))
    return dict(found)


def ask(pairs: list[tuple[str, str]], embedder: str, folder: Path) -> list[Answered]:
    """Ask each question of one topic in a workspace whose ``USER.md`` holds all preferences of the topic."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    directives = "".join(f"- {preference}\n" for preference, _ in pairs)
    (workspace / "USER.md").write_text(f"# User\n\n## Directives\n\n{directives}", encoding="utf-8")
    folders = AgentFolders(home=folder / "home", agent_id="main", workspace=workspace)
    agent = Agent(folders, Settings.model_validate({"embedder": {"name": embedder}}), ZoneInfo("UTC"), FixedClock(NOW))
    sync(agent)
    answers: list[Answered] = []
    with Runtime(agent) as runtime:
        turn(agent, "warm up", session_key=SESSION, runtime=runtime, record=False)
        for preference, question in pairs:
            made = turn(agent, question, session_key=SESSION, runtime=runtime, record=False)
            line = f"- {preference}"
            block = made.applies_now.splitlines()
            shown = sum(one.startswith("- ") for one in block)
            spent = made.lanes[Lane.APPLIES_NOW].elapsed_ms
            answers.append(Answered(line in made.bootstrap.splitlines(), line in block, shown, spent))
    return answers


def figures_of(answers: list[Answered], half: str, embedder: str) -> list[Figure]:
    """Return the shares of one half with one embedder."""
    count = len(answers)
    together = sum(one.in_file or one.in_block for one in answers) / count
    target = f">= {TARGET:g}" if half == "test" else None
    rows = [
        ("injected", together, target),
        ("injected_by_bootstrap", sum(one.in_file for one in answers) / count, None),
        ("injected_by_block_alone", sum(one.in_block for one in answers) / count, None),
    ]
    made = [
        Figure(f"prefeval.{name}_{half}_{embedder}", round(value, 4), "share", target=at) for name, value, at in rows
    ]
    shown = sum(one.block_directives for one in answers) / count
    made.append(Figure(f"prefeval.block_directives_{half}_{embedder}", round(shown, 2), "a question"))
    spent = [one.block_ms for one in answers]
    made.append(Figure(f"prefeval.block_p50_{half}_{embedder}", percentile(spent, 0.5), "ms"))
    return made


def main(argv: list[str]) -> int:
    """Run the measurement; return 1 when the share asked for is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help=f"{FILE}, or its folder")
    parser.add_argument("--embedders", default="static", help="names, separated by commas")
    options = parser.parse_args(argv)
    data = data_file(options.data, FILE, "prefeval")
    if data is None:
        return 0
    topics = topics_of(data)
    names = sorted(topics)
    reached = True
    for embedder in options.embedders.split(","):
        for half, chosen in (("tune", names[0::2]), ("test", names[1::2])):
            with tempfile.TemporaryDirectory() as folder:
                answers = [one for name in chosen for one in ask(topics[name], embedder, Path(folder) / name)]
            found = figures_of(answers, half, embedder)
            emit(found)
            reached = reached and (half == "tune" or found[0].value >= TARGET)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
