"""Opening an agent: everything that is missing is said before any work starts."""

from pathlib import Path

import pytest

from recall_runtime.agent import open_agent
from recall_runtime.clock import FixedClock
from recall_runtime.errors import DreamlineError, WorkspaceError


def test_an_agent_without_workspace_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="init"):
        open_agent(home=tmp_path)


def test_a_workspace_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match=r"missing or can't be read\. Create it"):
        open_agent(home=tmp_path, workspace=tmp_path / "file")


def test_the_workspace_handed_over_wins_over_the_setting(tmp_path: Path) -> None:
    for name in ("set", "given"):
        (tmp_path / name).mkdir()
    (tmp_path / "dreamline.toml").write_text(f"workspace = '{tmp_path / 'set'}'\ntimezone = 'Asia/Tokyo'\n")
    set_one = open_agent(home=tmp_path, clock=FixedClock(7))
    given = open_agent(home=tmp_path, workspace=tmp_path / "given")
    assert (set_one.workspace.name, set_one.zone.key, set_one.clock.now_ms()) == ("set", "Asia/Tokyo", 7)
    assert given.workspace.name == "given"


@pytest.mark.parametrize(
    ("problem", "cure", "line"),
    [
        ("A file\nis missing", "Make it.", "A file is missing. Make it."),
        ("It failed", "", "It failed"),
    ],
)
def test_an_error_is_one_line(problem: str, cure: str, line: str) -> None:
    assert str(DreamlineError(problem, cure)) == line
