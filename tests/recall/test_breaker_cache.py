"""The circuit breaker and the cache of lane 2."""

import threading

import pytest

from recall_runtime.recall.breaker import CircuitBreaker
from recall_runtime.recall.cache import InFlight, TimedCache


def test_worked_values_of_the_breaker() -> None:
    """Timeouts at 0, 20 and 40 s, cooldown 60 s: open until 100 s (openclaw-algorithms 15.3)."""
    breaker = CircuitBreaker(3, 60_000)
    for at in (0, 20_000):
        breaker.timed_out("main:m", at)
    assert not breaker.is_open("main:m", 20_000)
    breaker.timed_out("main:m", 40_000)
    assert breaker.is_open("main:m", 40_000)
    assert breaker.is_open("main:m", 99_999)
    assert not breaker.is_open("main:m", 100_000)


def test_after_the_cooldown_the_count_starts_again() -> None:
    breaker = CircuitBreaker(2, 10)
    for at in (0, 1):
        breaker.timed_out("k", at)
    assert not breaker.is_open("k", 11)
    breaker.timed_out("k", 12)
    assert not breaker.is_open("k", 12)


def test_a_completed_run_forgets_the_timeouts() -> None:
    breaker = CircuitBreaker(2, 60_000)
    breaker.timed_out("k", 0)
    breaker.completed("k")
    breaker.timed_out("k", 1)
    assert not breaker.is_open("k", 1)


def test_keys_do_not_share_a_count() -> None:
    breaker = CircuitBreaker(1, 60_000)
    breaker.timed_out("a", 0)
    assert breaker.is_open("a", 0)
    assert not breaker.is_open("b", 0)


def test_a_value_lives_as_long_as_its_time() -> None:
    cache: TimedCache[str] = TimedCache(100)
    cache.put("k", "v", 1_000)
    assert cache.get("k", 1_099) == "v"
    assert cache.get("k", 1_100) is None


def test_the_oldest_go_first_when_there_are_too_many() -> None:
    cache: TimedCache[int] = TimedCache(1_000_000, max_entries=3)
    for number in range(5):
        cache.put(str(number), number, number)
    assert [cache.get(str(number), 5) for number in range(5)] == [None, None, 2, 3, 4]


def test_old_values_are_swept_at_most_once_a_second() -> None:
    cache: TimedCache[int] = TimedCache(100)
    cache.put("a", 1, 5_000)
    cache.put("b", 2, 5_500)
    assert len(cache) == 2
    cache.put("c", 3, 6_100)
    assert len(cache) == 1


class Signalling(str):
    """A key that tells when it is looked up: from then on the lock is held until it was found or entered."""

    __slots__ = ("looked_up",)

    def __init__(self, _: str) -> None:
        self.looked_up = threading.Event()

    def __hash__(self) -> int:
        self.looked_up.set()
        return super().__hash__()


@pytest.mark.parametrize("raised", [None, ValueError("no"), TimeoutError("late")])
def test_those_who_ask_while_a_run_goes_on_get_what_it_gives(raised: Exception | None) -> None:
    flight: InFlight[str] = InFlight()
    key, got = Signalling("key"), list[object]()

    def ask() -> None:
        try:
            got.append(flight.run(key, lambda: "my own run", 30.0))
        except (ValueError, TimeoutError) as error:
            got.append(error)

    others = [threading.Thread(target=ask) for _ in range(4)]

    def work() -> str:
        for other in others:
            key.looked_up.clear()
            other.start()
            assert key.looked_up.wait(30)
        if raised:
            raise raised
        return "once"

    if raised:
        with pytest.raises(type(raised)):
            flight.run("key", work, 0.0)
    else:
        assert flight.run("key", work, 0.0) == ("once", False)
    for other in others:
        other.join()
    assert got == [raised or ("once", True)] * 4


def test_who_waits_for_a_run_gives_up_at_the_end_of_its_own_time() -> None:
    flight: InFlight[str] = InFlight()

    def work() -> str:
        with pytest.raises(TimeoutError):
            flight.run("key", lambda: "my own run", 0.01)
        return flight.run("another key", lambda: "not shared", 0.0)[0]

    assert flight.run("key", work, 0.0) == ("not shared", False)
    assert flight.run("key", lambda: "after it", 0.0) == ("after it", False)
