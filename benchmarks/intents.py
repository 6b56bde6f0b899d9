"""Matching against 10,000 armed standing intents: time a message takes, and false fires.

Belongs here: this one measurement. Prints one JSON line a figure.
Does not belong here: correctness (``tests/intents``).
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from benchmarks.figures import Figure, emit, percentile
from benchmarks.wording import drawer, vocabulary
from recall_runtime.intents.matching import Turn, match
from recall_runtime.intents.scopes import Scope, SenderScope, Speaker
from recall_runtime.intents.store import IntentDraft, create
from recall_runtime.storage.connection import open_reader
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import SessionKind

P99_BOUND_MS = 5.0
NOW = 1_772_355_600_000
OWNER = Speaker("ada", "webchat", channel="lobby", is_owner=True)
FILLER = [
    "please",
    "could",
    "you",
    "have",
    "a",
    "look",
    "at",
    "this",
    "when",
    "there",
    "is",
    "some",
    "time",
    "today",
    "and",
    "tell",
    "me",
    "what",
    "you",
    "think",
    "about",
    "it",
]


def fill(path: Path, number: int, draw: Callable[[int], list[str]], generator: random.Random) -> None:
    """Arm ``number`` intents with one to three entries of one to three words."""
    connection = open_state(path)
    for index in range(number):
        entries = tuple(" ".join(draw(generator.randint(1, 3))) for _ in range(generator.randint(1, 3)))
        draft = IntentDraft(f"Mention matter {index}.", entries, Scope.ANYWHERE, SenderScope.ANYONE)
        create(connection, draft, OWNER, NOW + index)
    connection.close()


def timed(path: Path, messages: list[str]) -> tuple[list[float], list[float], int]:
    """Return the milliseconds each message took on the clock and on the processor, and how many intents fired."""
    connection = open_state(path)
    zone = ZoneInfo("UTC")
    spent: list[float] = []
    worked: list[float] = []
    fired = 0
    for number, text in enumerate(messages):
        turn = Turn(text, OWNER, SessionKind.INTERACTIVE, "agent:main:main")
        before, worked_before = time.perf_counter(), time.thread_time()
        result = match(connection, turn, NOW + 1_000_000 + number, zone)
        spent.append((time.perf_counter() - before) * 1_000)
        worked.append((time.thread_time() - worked_before) * 1_000)
        fired += len(result.fired)
    connection.close()
    return spent, worked, fired


def main(argv: list[str]) -> int:
    """Run the measurement; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--intents", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    generator = random.Random(options.seed)  # noqa: S311 - a reproducible workload
    draw = drawer(vocabulary(5_000, generator), generator)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.sqlite"
        fill(path, options.intents, draw, generator)
        connection = open_reader(path)
        armed = connection.execute("SELECT count(*) FROM standing_intents WHERE status = 'armed'").fetchone()
        connection.close()
        related = [" ".join([*generator.sample(FILLER, 8), *draw(8)]) for _ in range(options.messages)]
        spent, worked, fired = timed(path, related)
        unrelated = [" ".join(generator.sample(FILLER, 14)) + f" number {n}" for n in range(100)]
        false_fires = timed(path, unrelated)[2]
    p99 = percentile(spent, 0.99)
    count = int(str(armed[0])) if armed else 0
    emit(
        (
            Figure("intents.armed", count, "rows"),
            Figure("intents.match_p50", percentile(spent, 0.5), "ms", floor=P99_BOUND_MS),
            Figure("intents.match_p99", p99, "ms", floor=P99_BOUND_MS, target=f"<= {P99_BOUND_MS:g} ms"),
            Figure("intents.match_cpu_p99", percentile(worked, 0.99), "ms", floor=P99_BOUND_MS, note="processor time"),
            Figure("intents.fired", fired, "fires"),
            Figure("intents.false_fires_in_100", false_fires, "fires", target="0"),
        )
    )
    return 0 if p99 <= P99_BOUND_MS and not false_fires else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
