"""Deadlines that hold whatever the work does."""

import threading
from collections.abc import Iterator

import pytest

from recall_runtime.recall.workers import LaneHangsError, LaneTimeoutError, Plan, Step, Workers


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


def test_one_worker_takes_all_steps_of_a_plan_in_order() -> None:
    threads: list[str] = []

    def plan() -> Plan[list[int]]:
        found = []
        for number in range(3):
            found.append((yield Step(f"lane {number}", 5.0, lambda number=number: note(number))))
        return found

    def note(number: int) -> int:
        threads.append(threading.current_thread().name)
        return number * 10

    workers = Workers()
    before = threading.active_count()
    assert workers.follow(plan()) == [0, 10, 20]
    assert threads == ["dreamline-lane"] * 3
    assert threading.active_count() == before + 1
    workers.close()


def test_the_error_of_a_step_is_thrown_into_the_plan() -> None:
    def plan() -> Plan[str]:
        try:
            yield Step("a", 5.0, lambda: {}["x"])
        except KeyError as error:
            return f"caught {error}"
        return "nothing"

    workers = Workers()
    assert workers.follow(plan()) == "caught 'x'"
    workers.close()


def test_the_error_of_a_plan_is_raised_to_the_caller() -> None:
    def plan() -> Plan[str]:
        yield Step("a", 5.0, lambda: None)
        raise ValueError("of the plan")

    workers = Workers()
    with pytest.raises(ValueError, match="of the plan"):
        workers.follow(plan())
    assert workers.run(lambda: "usable", 5.0, "a") == "usable"
    workers.close()


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.15], ids=["at once", "before it is looked after", "later"])
def test_a_step_that_hangs_is_left_behind_and_the_plan_goes_on(hanging: threading.Event, seconds: float) -> None:
    reached: list[str] = []

    def plan() -> Plan[str]:
        reached.append((yield Step("a", 5.0, lambda: "before")))
        try:
            yield Step("b", seconds, hanging.wait)
        except LaneTimeoutError:
            reached.append("late")
        return (yield Step("c", 5.0, lambda: "after"))

    workers = Workers()
    assert workers.follow(plan()) == "after"
    assert reached == ["before", "late"]
    with pytest.raises(LaneHangsError):
        workers.run(lambda: None, 5.0, "b")
    workers.close()


def test_what_a_late_step_gives_goes_nowhere(hanging: threading.Event) -> None:
    sent: list[object] = []
    ended = threading.Event()

    def late() -> str:
        hanging.wait()
        ended.set()
        return "too late"

    def plan() -> Plan[str]:
        try:
            sent.append((yield Step("a", 0.02, late)))
        except LaneTimeoutError:
            hanging.set()
        sent.append((yield Step("b", 5.0, ended.wait)))
        return "done"

    workers = Workers()
    assert workers.follow(plan()) == "done"
    assert sent == [True]
    workers.close()


def test_a_step_whose_lane_still_hangs_is_not_begun(hanging: threading.Event) -> None:
    def plan() -> Plan[str]:
        try:
            yield Step("a", 5.0, lambda: "begun")
        except LaneHangsError:
            return (yield Step("b", 5.0, lambda: "other"))
        return "begun"

    workers = Workers()
    with pytest.raises(LaneTimeoutError):
        workers.run(hanging.wait, 0.001, "a")
    assert workers.follow(plan()) == "other"
    workers.close()


def test_several_callers_follow_plans_at_once() -> None:
    met = threading.Barrier(3)

    def plan(number: int) -> Plan[int]:
        yield Step(f"lane {number}", 5.0, met.wait)
        return number

    workers = Workers()
    found: list[int] = []
    callers = [threading.Thread(target=lambda n=n: found.append(workers.follow(plan(n)))) for n in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(5.0)
    assert sorted(found) == [0, 1, 2]
    workers.close()
