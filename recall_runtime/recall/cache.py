"""Not doing the same work twice: a short memory of answers, and one run for those who ask at the same time.

Belongs here: ``TimedCache``, ``InFlight``. Does not belong here: what is worth keeping (``recall.deep``), the clock.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_ENTRIES = 1_000
SWEEP_EVERY_MS = 1_000


class TimedCache(Generic[T]):
    """Values that live ``ttl_ms``; at most 1,000, the oldest go first (openclaw-algorithms 15.1)."""

    def __init__(self, ttl_ms: int, max_entries: int = MAX_ENTRIES) -> None:
        self._ttl_ms, self._max = ttl_ms, max_entries
        self._values: OrderedDict[str, tuple[int, T]] = OrderedDict()
        self._swept_at = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str, now_ms: int) -> T | None:
        """Return the value of ``key`` while it lives."""
        with self._lock:
            found = self._values.get(key)
            if found is None or not 0 <= now_ms - found[0] < self._ttl_ms:
                return None
            return found[1]

    def put(self, key: str, value: T, now_ms: int) -> None:
        """Keep ``value``; what is too old goes, looked for at most once a second."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = (now_ms, value)
            if now_ms - self._swept_at >= SWEEP_EVERY_MS:
                self._swept_at = now_ms
                old = [name for name, (at, _) in self._values.items() if not 0 <= now_ms - at < self._ttl_ms]
                for name in old:
                    del self._values[name]
            while len(self._values) > self._max:
                self._values.popitem(last=False)


class InFlight(Generic[T]):
    """One run of a piece of work for all who ask for its key while it runs (openclaw-algorithms 15.4)."""

    def __init__(self) -> None:
        self._running: dict[str, Future[T]] = {}
        self._lock = threading.Lock()

    def run(self, key: str, work: Callable[[], T], seconds: float) -> tuple[T, bool]:
        """Return what ``work`` gives, and whether somebody else's run gave it.

        Raises:
            TimeoutError: the run of somebody else isn't done within ``seconds``.
            Exception: whatever the one run raised, for each who waits for it.
        """
        own: Future[T] = Future()
        with self._lock:
            other = self._running.setdefault(key, own)
        if other is not own:
            return other.result(seconds), True
        try:
            own.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised below, here and in all who wait
            own.set_exception(error)
        finally:
            with self._lock:
                del self._running[key]
        return own.result(), False
