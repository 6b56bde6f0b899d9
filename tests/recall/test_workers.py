"""Deadlines that hold whatever the work does."""

import threading
from collections.abc import Iterator

import pytest

from recall_runtime.recall.workers import LaneHangsError, LaneTimeoutError, Workers


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """Something to wait for without end; set when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_work_gives_its_result_and_its_errors() -> None:
    workers = Workers()
    assert workers.run(lambda: 3, 5.0, "a") == 3
    with pytest.raises(KeyError):
        workers.run(lambda: {}["x"], 5.0, "a")
    workers.close()


def test_hanging_work_is_left_behind_and_the_next_one_runs() -> None:
    let_go = threading.Event()
    workers = Workers()
    with pytest.raises(LaneTimeoutError):
        workers.run(let_go.wait, 0.02, "a")
    assert workers.run(lambda: "next", 5.0, "b") == "next"
    let_go.set()
    workers.close()


def test_a_thread_closes_what_it_opened_when_it_ends() -> None:
    closed: list[str] = []
    workers = Workers(lambda: closed.append(threading.current_thread().name))
    workers.run(lambda: None, 5.0, "a")
    workers.close()
    assert closed == ["dreamline-lane"]


def test_a_lane_that_hangs_is_not_begun_again_and_the_others_run(hanging: threading.Event) -> None:
    workers = Workers()
    with pytest.raises(LaneTimeoutError):
        workers.run(hanging.wait, 0.001, "a")
    before = threading.active_count()
    for _ in range(40):
        with pytest.raises(LaneHangsError):
            workers.run(lambda: "never", 5.0, "a")
    assert workers.run(lambda: "other", 5.0, "b") == "other"
    assert threading.active_count() <= before + 1
    workers.close()


def test_a_lane_runs_again_once_what_hung_has_ended(hanging: threading.Event) -> None:
    workers = Workers()
    hung: list[threading.Thread] = []

    def wait() -> None:
        hung.append(threading.current_thread())
        hanging.wait()

    with pytest.raises(LaneTimeoutError):
        workers.run(wait, 0.2, "a")
    hanging.set()
    hung[0].join()
    assert workers.run(lambda: "again", 5.0, "a") == "again"
    workers.close()
