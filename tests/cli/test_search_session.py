"""``search`` for a session: it sees what its conversation may see, as with the tool of the same name."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_runtime.storage.connection import open_reader
from tests.support.example import dreamline
from tests.support.index_agents import write_files, write_session

MAIN, GROUP = "agent:main:main", "agent:main:telegram:group:42"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A private fact, a private talk and a group's talk, indexed."""
    place = tmp_path_factory.mktemp("place")
    write_files(place / "ws", {"MEMORY.md": "- The safe code is violet.\n"})
    write_session(place / "talks", "s1", [("user", "The safe stands in the cellar, violet again.")], key=MAIN)
    write_session(place / "talks", "s2", [("user", "The safe of the club is turquoise.")], key=GROUP)
    config = place / "home" / "dreamline.toml"
    done = dreamline("--workspace", "ws", "init", "--embedder", "none", "--sessions", "talks", cwd=place)
    assert done.returncode == 0, done.stderr
    config.write_text(
        config.read_text(encoding="utf-8").replace("[sources]", '[sources]\nowner_ids = ["ada"]'), "utf-8"
    )
    assert dreamline("index", cwd=place).returncode == 0
    yield place


@pytest.mark.parametrize(
    ("session", "sender"),
    [
        pytest.param(GROUP, None, id="a group"),
        pytest.param(GROUP, "ada", id="a group, the owner asks"),
        pytest.param("agent:main:telegram:direct:eve", "eve", id="another person"),
        pytest.param(MAIN, "eve", id="another person in the main session"),
        pytest.param("agent:other:main", None, id="another agent"),
        pytest.param("hello", None, id="an unknown form"),
        pytest.param("", None, id="empty"),
    ],
)
@pytest.mark.parametrize("corpus", ["memory", "sessions", "all"])
def test_memory_is_not_printed_for_anybody_else(place: Path, session: str, sender: str | None, corpus: str) -> None:
    who = ("--session", session, *(("--sender", sender) if sender else ()))
    done = dreamline("search", "safe violet turquoise", "--corpus", corpus, *who, cwd=place)
    assert done.returncode == 1
    assert "violet" not in done.stdout + done.stderr
    assert "turquoise" not in done.stdout + done.stderr


def test_the_owner_s_conversation_sees_no_group_s_transcript(place: Path) -> None:
    done = dreamline("search", "safe", "--corpus", "all", "--session", MAIN, cwd=place)
    assert (done.returncode, "violet" in done.stdout, "turquoise" in done.stdout) == (0, True, False)


def test_the_operator_without_a_session_sees_all(place: Path) -> None:
    done = dreamline("search", "safe", "--corpus", "all", cwd=place)
    assert (done.returncode, "violet" in done.stdout, "turquoise" in done.stdout) == (0, True, True)


@pytest.mark.parametrize(("session", "recorded"), [(MAIN, 1), ("agent:main:cron:job", 0)])
def test_only_an_interactive_session_s_search_is_recorded(place: Path, session: str, recorded: int) -> None:
    def events() -> int:
        with contextlib.closing(open_reader(place / "home" / "agents" / "main" / "state.sqlite")) as state:
            return int(state.execute("SELECT count(*) FROM recall_events").fetchall()[0][0])

    before = events()
    done = dreamline("search", "safe", "--session", session, cwd=place)
    assert (done.returncode, "violet" in done.stdout) == (0, True)
    assert events() - before == recorded
