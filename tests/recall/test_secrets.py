"""No block of a prompt shows a secret, wherever in the files it stands."""

from pathlib import Path

import pytest

from recall_runtime.index.sync import sync
from recall_runtime.recall.turn import turn
from tests.support.fake_secrets import fake_key
from tests.support.index_agents import agent_over, write_files

MAIN, TOOL = "agent:main:main", "git.example/team/tool"
MARK = "<!-- openclaw-memory-promotion:k1 -->"
PLACES = {
    "a hand-written entry": ("MEMORY.md", "- Keep: {secret}\n- Stays.\n"),
    "a generated entry": ("MEMORY.md", f"{MARK}\n- Keep: {{secret}}\n- Stays.\n"),
    "an entry of a project": ("MEMORY.md", f"- Keep: {{secret}} <!-- project: {TOOL} -->\n- Stays.\n"),
    "an entry with a trigger": ("MEMORY.md", "- Keep: {secret} <!-- trigger: oven door -->\n- Stays.\n"),
    "a heading": ("MEMORY.md", "# {secret}\n\n- Stays.\n"),
    "a paragraph": ("MEMORY.md", "Words before it.\n{secret}\n\n- Stays.\n"),
    "code": ("MEMORY.md", "```\n{secret}\n```\n\n- Stays.\n"),
    "a directive": ("USER.md", "- Always use {secret} at the oven door.\n- Always answer: Stays.\n"),
    "a note of today": ("memory/2026-03-20.md", "- Keep: {secret}\n- Stays.\n"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("password: FAKE-fake-1", id="a password"),
        pytest.param("sk-exampleFAKEexample", id="a key by its prefix"),
        pytest.param("postgres://u:FAKEpw1@db/x", id="in an address"),
        pytest.param(fake_key(), id="a private key"),
    ],
)
def test_a_secret_reaches_no_prompt(tmp_path: Path, place: str, secret: str) -> None:
    path, content = PLACES[place]
    files = {path: content.format(secret=secret)}
    agent = agent_over(write_files(tmp_path / "ws", files), tmp_path / "home")
    sync(agent)
    for _ in range(5):  # on a busy machine a lane may miss its deadline
        made = turn(agent, "the oven door", session_key=MAIN, active_projects=(TOOL,), fresh_start=True, record=False)
        if "timeout" not in {lane.decision for lane in made.lanes.values()}:
            break
    assert "FAKE" not in made.text
    assert "Stays." in made.text


def test_a_label_above_a_list_does_not_eat_the_marks_of_the_list(tmp_path: Path) -> None:
    files = {"MEMORY.md": "Password:\n- One fact.\n- Another fact.\n"}
    agent = agent_over(write_files(tmp_path / "ws", files), tmp_path / "home")
    made = turn(agent, "hi", session_key=MAIN, record=False)
    assert "Password:\n- One fact.\n- Another fact." in made.bootstrap
