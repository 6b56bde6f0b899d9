"""Running a piece of work under a deadline that holds whatever the work does.

Belongs here: worker threads that can be left behind, the error for a piece of work that was too slow.
Does not belong here: what the work is, how long it may take (``recall.turn``).

A read from a dead disk can't be cancelled, only abandoned: the worker that hangs is given up and a new one takes its
place, for other lanes. A lane whose earlier work still hangs isn't begun again, so it holds one thread and not one more
with every turn. Workers are daemon threads, so a hanging one never keeps the process alive.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LaneTimeoutError(Exception):
    """The work was not done within its time; it may still end later, and nobody looks at what it gives."""


class LaneHangsError(LaneTimeoutError):
    """The work was not begun: earlier work of the same lane still hangs."""


class _Task(Generic[T]):
    __slots__ = ("_done", "_error", "_result", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            self._error = error
        self._done.set()

    def wait(self, seconds: float) -> T:
        if not self._done.wait(max(0.0, seconds)):
            raise LaneTimeoutError
        if self._error is not None:
            raise self._error
        return self._result[0]


class _Worker:
    """One thread that does one task at a time and runs ``at_end`` before it ends."""

    def __init__(self, at_end: Callable[[], None]) -> None:
        self._tasks: queue.SimpleQueue[_Task[Any] | None] = queue.SimpleQueue()
        self._at_end = at_end
        self.thread = threading.Thread(target=self._loop, name="dreamline-lane", daemon=True)
        self.thread.start()

    def _loop(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
        self._at_end()

    def submit(self, work: Callable[[], T]) -> _Task[T]:
        task = _Task(work)
        self._tasks.put(task)
        return task

    def end(self) -> None:
        self._tasks.put(None)


class Workers:
    """A pool of workers. ``run`` may be called from any thread.

    Args:
        at_end: Called in a worker's own thread when it ends, to close what that thread opened.
    """

    def __init__(self, at_end: Callable[[], None] = lambda: None) -> None:
        self._at_end = at_end
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._hanging: dict[str, list[_Worker]] = {}
        self._closed = False

    def run(self, work: Callable[[], T], seconds: float, lane: str) -> T:
        """Return what ``work`` of ``lane`` gives.

        Raises:
            LaneTimeoutError: it took longer than ``seconds``, or earlier work of the lane still hangs.
        """
        worker = self._take(lane)
        task = worker.submit(work)
        try:
            result = task.wait(seconds)
        except LaneTimeoutError:
            self._abandon(worker, lane)
            raise
        except BaseException:
            self._give_back(worker)
            raise
        self._give_back(worker)
        return result

    def close(self) -> None:
        """End all idle workers and wait a moment for them; hanging ones are left to themselves."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()
        for worker in idle:
            worker.thread.join(1.0)

    def _take(self, lane: str) -> _Worker:
        with self._lock:
            hanging = [worker for worker in self._hanging.pop(lane, ()) if worker.thread.is_alive()]
            if hanging:
                self._hanging[lane] = hanging
                raise LaneHangsError
            if self._idle:
                return self._idle.pop()
        return _Worker(self._at_end)

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        worker.end()

    def _abandon(self, worker: _Worker, lane: str) -> None:
        worker.end()  # it ends as soon as its task lets go of it
        with self._lock:
            self._hanging.setdefault(lane, []).append(worker)
