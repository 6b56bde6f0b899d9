"""Deadlines that hold whatever the work does."""

import threading

import pytest

from recall_runtime.recall.workers import MAX_ABANDONED, LaneTimeoutError, Workers


def test_work_gives_its_result_and_its_errors() -> None:
    workers = Workers()
    assert workers.run(lambda: 3, 5.0) == 3
    with pytest.raises(KeyError):
        workers.run(lambda: {}["x"], 5.0)
    workers.close()


def test_hanging_work_is_left_behind_and_the_next_one_runs() -> None:
    let_go = threading.Event()
    workers = Workers()
    with pytest.raises(LaneTimeoutError):
        workers.run(let_go.wait, 0.02)
    assert workers.run(lambda: "next", 5.0) == "next"
    let_go.set()
    workers.close()


def test_a_thread_closes_what_it_opened_when_it_ends() -> None:
    closed: list[str] = []
    workers = Workers(lambda: closed.append(threading.current_thread().name))
    workers.run(lambda: None, 5.0)
    workers.close()
    assert closed == ["dreamline-lane"]


def test_hanging_threads_do_not_pile_up_without_end() -> None:
    let_go = threading.Event()
    workers = Workers()
    for _ in range(MAX_ABANDONED):
        with pytest.raises(LaneTimeoutError):
            workers.run(let_go.wait, 0.001)
    before = threading.active_count()
    with pytest.raises(LaneTimeoutError):
        workers.run(lambda: None, 5.0)
    assert threading.active_count() == before
    let_go.set()
    workers.close()
