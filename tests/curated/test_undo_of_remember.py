"""Taking back an older request of the owner after newer writes."""

import contextlib
from pathlib import Path

import pytest

from recall_runtime.curated.history import FileUndo, undo
from recall_runtime.errors import RefusedError
from recall_runtime.remember.request import Remembered, remember
from recall_runtime.storage.schema import open_state
from tests.support.curated import NOW, agent_in


def test_an_older_request_is_taken_back_from_under_newer_ones(tmp_path: Path) -> None:
    """A fact and a directive said first go, what was said later stays, and a second undo is refused."""
    agent = agent_in(tmp_path)

    def say(text: str) -> Remembered:
        return remember(agent, text, session_key="agent:main:main", sender="owner")

    def take_back(made: Remembered) -> tuple[FileUndo, ...]:
        with contextlib.closing(open_state(agent.folders.state_db)) as state:
            return undo(agent, state, made.undo.removeprefix("dreamline undo "), now_ms=NOW)

    fact, directive = say("The gate code of the shed is 4711."), say("Always answer in German.")
    say("The boiler was serviced by Hansen.")
    say("Never book a flight before 9:00.")
    assert [file.kept_later for file in (*take_back(fact), *take_back(directive))] == [True, True]
    memory = (agent.workspace / "MEMORY.md").read_text(encoding="utf-8")
    user = (agent.workspace / "USER.md").read_text(encoding="utf-8")
    assert ("4711" in memory, "Hansen" in memory) == (False, True)
    assert ("German" in user, "Never book a flight" in user, "## Directives" in user) == (False, True, True)
    with pytest.raises(RefusedError, match="nothing to take back"):
        take_back(fact)
