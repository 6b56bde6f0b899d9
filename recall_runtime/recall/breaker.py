"""The circuit breaker of lane 2: a model that keeps timing out is left alone for a while.

Belongs here: counting timeouts by key (openclaw-algorithms 15.3).
Does not belong here: what a timeout is (``recall.deep``), the clock.
"""

import threading
from dataclasses import dataclass


@dataclass(slots=True)
class _Count:
    timeouts: int = 0
    last_ms: int = 0


class CircuitBreaker:
    """Open for a key after ``max_timeouts`` timeouts in a row, until ``cooldown_ms`` have passed since the last one."""

    def __init__(self, max_timeouts: int, cooldown_ms: int) -> None:
        self._max, self._cooldown_ms = max_timeouts, cooldown_ms
        self._counts: dict[str, _Count] = {}
        self._lock = threading.Lock()

    def is_open(self, key: str, now_ms: int) -> bool:
        """Return whether calls are to be left out. Once the cooldown has passed, the count starts again at 0."""
        with self._lock:
            count = self._counts.get(key)
            if count is None or count.timeouts < self._max:
                return False
            if now_ms - count.last_ms < self._cooldown_ms:
                return True
            del self._counts[key]
            return False

    def timed_out(self, key: str, now_ms: int) -> None:
        """Count one timeout."""
        with self._lock:
            count = self._counts.setdefault(key, _Count())
            count.timeouts += 1
            count.last_ms = now_ms

    def completed(self, key: str) -> None:
        """Forget the timeouts: a call came to its end."""
        with self._lock:
            self._counts.pop(key, None)
