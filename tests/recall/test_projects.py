"""Project scope: repository keys and the active set (openclaw-algorithms 16; case 28)."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.recall.projects import (
    ActiveProjects,
    enter_folder,
    is_eligible,
    kept_projects,
    key_from_remote,
    repository_key,
    split_keys,
)

SAME = (
    "https://git.example/team/tool.git",
    "https://git.example/team/tool",
    "https://git.example/team/tool/",
    "git@git.example:team/tool.git",
    "ssh://git@git.example/team/tool.git",
    "ssh://git@git.example:22/team/tool.git",
    "https://user:not-a-real-pass@git.example/team/tool.git",
    "git://git.example/team/tool",
    "HTTPS://GIT.EXAMPLE/team/tool.git",
)


@pytest.mark.parametrize("remote", SAME)
def test_every_spelling_of_one_remote_gives_one_key(remote: str) -> None:
    assert key_from_remote(remote) == "git.example/team/tool"


@pytest.mark.parametrize(
    "remote",
    [
        pytest.param("https://git.example/fork/tool", id="a fork is another repository"),
        pytest.param("https://git.example/team/tool2", id="a longer name"),
        pytest.param("https://git2.example/team/tool", id="another host"),
        pytest.param("https://git.example:8443/team/tool", id="another port is another server"),
        pytest.param("https://git.example/Team/Tool", id="the path keeps its case"),
    ],
)
def test_different_remotes_give_different_keys(remote: str) -> None:
    assert key_from_remote(remote) not in (None, "git.example/team/tool")


@pytest.mark.parametrize(
    ("remote", "key"),
    [
        pytest.param("git@GitHub.com:Owner/Repo.git", "github.com/Owner/Repo", id="worked value of 16.1, scp form"),
        pytest.param("https://user@github.com/Owner/Repo", "github.com/Owner/Repo", id="worked value of 16.1, https"),
        pytest.param("https://git.example/a;b/tool", "git.example/a%3bb/tool", id="a separator is escaped"),
        pytest.param("https://git.example/a--><b/tool", "git.example/a--%3e%3cb/tool", id="a comment end is escaped"),
        pytest.param("https://git.example/工具/tool", "git.example/工具/tool", id="other scripts are kept"),
        pytest.param("/srv/mirror/tool.git", None, id="a path is no remote"),
        pytest.param("C:/mirror/tool", None, id="a drive letter is no host"),
        pytest.param("http://[broken", None, id="what can't be parsed gives no key"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_hostile_and_odd_remotes(remote: str, key: str | None) -> None:
    assert key_from_remote(remote) == key


def test_an_escaped_key_stays_one_key() -> None:
    key = key_from_remote("https://git.example/a;b/tool")
    assert split_keys(key) == (key,)


def test_no_password_survives_in_a_key() -> None:
    assert "not-a-real-pass" not in (key_from_remote("https://user:not-a-real-pass@git.example/team/tool.git") or "")


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_a_repository_without_origin_is_known_by_its_root_in_every_work_tree(tmp_path: Path) -> None:
    root = tmp_path / "x;y"
    root.mkdir()
    _git(root, "init", "-q")
    _git(root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first")
    _git(root, "worktree", "add", "-q", str(tmp_path / "linked"))
    key = repository_key(root)
    assert key == "path:" + str(root).replace(";", "%3b")
    assert repository_key(tmp_path / "linked") == key


def test_the_origin_names_the_repository(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "remote", "add", "origin", "git@git.example:team/tool.git")
    assert repository_key(tmp_path) == "git.example/team/tool"


def test_outside_a_repository_there_is_no_key(tmp_path: Path) -> None:
    assert repository_key(tmp_path / "nowhere") is None


def test_the_active_set_keeps_the_four_most_recent() -> None:
    scope = ActiveProjects()
    for key in ("a", "b", "c", "d", "a", "e"):
        scope.enter("s", key)
    assert scope.of("s") == ("e", "a", "d", "c")
    assert scope.enter("s", None) == ("e", "a", "d", "c")


def test_sessions_do_not_share_their_sets() -> None:
    scope = ActiveProjects()
    scope.enter("one", "a")
    assert scope.of("two") == ()


def test_only_64_sessions_are_remembered() -> None:
    scope = ActiveProjects()
    for number in range(65):
        scope.enter(str(number), "a")
    assert scope.of("0") == ()
    assert scope.of("64") == ("a",)


KEYS = st.text(st.characters(exclude_categories=()), max_size=6)


@given(st.lists(st.tuples(KEYS, st.none() | KEYS), max_size=80))
def test_kept_sets_are_those_that_were_entered(steps: list[tuple[str, str | None]]) -> None:
    scope = ActiveProjects()
    for session, key in steps:
        scope.enter(session, key)
    read_back = ActiveProjects.loads(scope.dumps())
    assert [read_back.of(session) for session, _ in steps] == [scope.of(session) for session, _ in steps]
    assert read_back.dumps() == scope.dumps()


@pytest.mark.parametrize("data", [b"", b"{", b"5", b"[5]", b'[["a"]]', b"[[[1], 2]]", b"\xff", b"null"])
def test_kept_sets_that_can_not_be_read_are_none(data: bytes) -> None:
    assert ActiveProjects.loads(data).of("a") == ()


def test_sessions_that_enter_a_folder_at_once_are_both_kept(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    home = tmp_path / "home"
    with ThreadPoolExecutor() as pool:
        entered = list(pool.map(lambda name: enter_folder(home, name, tmp_path), ("one", "two")))
    assert entered == [(f"path:{tmp_path}",)] * 2
    assert [kept_projects(home, name) for name in ("one", "two")] == entered


@pytest.mark.parametrize(
    ("keys", "active", "eligible"),
    [
        pytest.param(None, (), True, id="untagged entries are unaffected"),
        pytest.param("a", ("a", "b"), True, id="its key is active"),
        pytest.param("a; b", ("a",), False, id="one of two keys is missing"),
        pytest.param("a; b", ("b", "a"), True, id="both keys are active"),
        pytest.param("!invalid-project-annotation", ("a",), False, id="an invalid tag fails closed"),
    ],
)
def test_an_entry_needs_all_its_keys(keys: str | None, active: tuple[str, ...], eligible: bool) -> None:
    assert is_eligible(keys, active) is eligible
