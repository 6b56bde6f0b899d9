"""Real processes that sweep: killed in the middle, or two at a time. Run as a script; one start serves many children.

Belongs here: forking a child for each order read from standard input, and telling how it ended.
Does not belong here: what a sweep should leave behind (``test_processes``).

An order is a line ``FOLDER<tab>INSTANT<tab>STEP``: sweep the workspace below FOLDER at INSTANT and die by SIGKILL at
STEP (empty: never; ``step:2``: when it comes the second time, so at the second file). The answer is a line: ``killed``,
``locked`` or the outcome of the sweep. ``together N`` lets the N orders that follow start at once.
"""

import os
import select
import signal
import sys
from pathlib import Path

from memory_assets.sweep import run_sweep
from recall_runtime.errors import StoreLockedError
from tests.end_to_end.chain import OPEN_GATES, Chain


def sweep(folder: str, instant: str, step: str) -> str:
    """Sweep and return the outcome; die at ``step``."""
    last, _, count = step.partition(":")
    met: list[str] = []

    def hook(reached: str) -> None:
        met.append(reached)
        if reached == last and met.count(reached) == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    chain = Chain(Path(folder), dreaming=OPEN_GATES)
    try:
        return run_sweep(chain.at(instant), publishing=False, on_step=hook).outcome
    except StoreLockedError:
        return "locked"


def child(order: str, gate: int | None = None) -> tuple[int, int]:
    """Fork a child for ``order``; return its process id and the pipe it answers on. It waits for ``gate`` to close."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        if gate is not None:
            select.select([gate], [], [])
        os.write(writer, sweep(*order.split("\t")).encode())
        status = 0
    finally:
        os._exit(status)


def answer(pid: int, reader: int) -> str:
    """Wait for a child and return its answer."""
    with os.fdopen(reader) as stream:
        said = stream.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}"
    return said or f"failed {status}"


def main() -> None:
    """Serve orders until standard input ends."""
    for line in sys.stdin:
        order = line.rstrip("\n")
        if order.startswith("together "):
            gate, opener = os.pipe()
            orders = [sys.stdin.readline().rstrip("\n") for _ in range(int(order.split()[1]))]
            children = []
            for each in orders:
                children.append(child(each, gate))
            os.write(opener, b"x")
            answers = [answer(*each) for each in children]
            os.close(opener)
            os.close(gate)
        else:
            answers = [answer(*child(order))]
        for said in answers:
            sys.stdout.write(said + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
