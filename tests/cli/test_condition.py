"""Counting what waits."""

from pathlib import Path

from recall_runtime.cli.condition import condition
from recall_runtime.remember.request import remember
from recall_runtime.signals import spool
from tests.support.workspace_days import Days


def test_tasks_of_the_host_are_no_recalls_that_wait(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.sync("2026-03-05T09:00:00Z")
    agent = days.at("2026-03-05T10:00:00Z")
    remember(agent, "Remind me on Friday at 9 to call Ana.", session_key="agent:main:main", sender="owner")
    assert condition(agent, deep=False)["memory"]["spooled"] == 0
    spool.append(agent.folders.spool, [{"text": "one"}, {"text": "two\u2028lines"}])
    assert condition(agent, deep=False)["memory"]["spooled"] == 2
