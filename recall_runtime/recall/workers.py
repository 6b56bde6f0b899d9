"""Running a piece of work under a deadline that holds whatever the work does.

Belongs here: worker threads that can be left behind, plans of several pieces of work, the error for one too slow.
Does not belong here: what the work is, how long it may take (``recall.turn``).

A read from a dead disk can't be cancelled, only abandoned: the worker that hangs is given up and a new one takes its
place, for other lanes. A lane whose earlier work still hangs isn't begun again, so it holds one thread and not one more
with every turn. Workers are daemon threads, so a hanging one never keeps the process alive.
"""

import queue
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
LOOK_AFTER = 0.1  # seconds until a plan is looked after that has not said how long its step may take


class LaneTimeoutError(Exception):
    """The work was not done within its time; it may still end later, and nobody looks at what it gives."""


class LaneHangsError(LaneTimeoutError):
    """The work was not begun: earlier work of the same lane still hangs."""


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of work of a plan, the lane it belongs to, how long it may take."""

    lane: str
    seconds: float
    work: Callable[[], Any]


Plan = Generator[Step, Any, T]  # yields steps, is sent what each gives or thrown its error, returns the plan's result


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

    def follow(self, plan: Plan[T]) -> T:
        """Return what ``plan`` returns. One worker takes step after step; the caller only watches over the deadlines.

        Handing each step over would cost more than a step: two threads wake each other on different processors. A step
        that is too slow is thrown ``LaneTimeoutError`` into the plan, which goes on in another worker; one whose lane
        still hangs is thrown ``LaneHangsError``.
        """
        course = _Course(plan, self._hangs)
        worker = self._take_any()
        worker.submit(course.begin())
        while (late := course.wait()) is not None:
            go_on, lane = late
            self._abandon(worker, lane)
            worker = self._take_any()
            worker.submit(go_on)
        self._give_back(worker)
        return course.result()

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
        if self._hangs(lane):
            raise LaneHangsError
        return self._take_any()

    def _hangs(self, lane: str) -> bool:
        with self._lock:
            hanging = [worker for worker in self._hanging.pop(lane, ()) if worker.thread.is_alive()]
            if hanging:
                self._hanging[lane] = hanging
            return bool(hanging)

    def _take_any(self) -> _Worker:
        with self._lock:
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


class _Course(Generic[T]):
    """A plan on its way. Only the runner of the current number may take it further."""

    def __init__(self, plan: Plan[T], hangs: Callable[[str], bool]) -> None:
        self._plan, self._hangs = plan, hangs
        self._changed = threading.Condition()
        self._runner = 0
        self._step: tuple[str, float] | None = None  # lane of the step at work, when it must be done
        self._looked_after_at = 0.0
        self._done = False
        self._result: list[T] = []
        self._error: BaseException | None = None

    def begin(self) -> Callable[[], None]:
        """Return what the first worker does."""
        return self._runner_from(None)

    def wait(self) -> tuple[Callable[[], None], str] | None:
        """Wait for the end: ``None``; or for a late step: what another worker has to do, and the lane of the step."""
        with self._changed:
            while not self._done:
                now = time.monotonic()
                self._looked_after_at = self._step[1] if self._step else now + LOOK_AFTER
                if self._step and self._looked_after_at <= now:
                    lane, self._step = self._step[0], None
                    self._runner += 1
                    return self._runner_from(LaneTimeoutError()), lane
                self._changed.wait(self._looked_after_at - now)
        return None

    def result(self) -> T:
        """Return the result of the plan that has ended, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _runner_from(self, error: BaseException | None) -> Callable[[], None]:
        runner = self._runner
        return lambda: self._run(runner, error)

    def _run(self, runner: int, error: BaseException | None) -> None:
        value: Any = None
        while True:
            try:
                step = self._plan.throw(error) if error is not None else self._plan.send(value)
            except StopIteration as end:
                return self._end(end.value, None)
            except BaseException as fault:  # noqa: BLE001 - carried to the caller's thread and raised there
                return self._end(None, fault)
            value, error = None, LaneHangsError() if self._hangs(step.lane) else None
            if error is None:
                self._begin_step(step)
                try:
                    value = step.work()
                except BaseException as fault:  # noqa: BLE001 - thrown into the plan
                    error = fault
                if not self._end_step(runner):
                    return None  # given up: nobody looks at what came too late

    def _begin_step(self, step: Step) -> None:
        with self._changed:
            ends_at = time.monotonic() + max(0.0, step.seconds)
            self._step = step.lane, ends_at
            if ends_at < self._looked_after_at:
                self._changed.notify()

    def _end_step(self, runner: int) -> bool:
        with self._changed:
            if runner != self._runner:
                return False
            self._step = None
            return True

    def _end(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            self._result, self._error, self._done = [value], error, True
            self._changed.notify()
