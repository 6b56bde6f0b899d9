"""Replacing a file: all or nothing, only what was read, links and modes kept."""

import multiprocessing
import os
from pathlib import Path

import pytest

from recall_runtime.errors import ConflictError, WorkspaceError
from recall_runtime.storage.atomic import content_hash, read_bytes, remove_file, replace_file
from recall_runtime.storage.exchange import exchange
from tests.support.curated import run_child

OLD = b"old\n"
NEW = "new ✓\n".encode()


def _leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".dreamline-tmp"))


def test_a_file_whose_content_is_as_read_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(OLD)
    replace_file(path, NEW, expected_hash=content_hash(OLD))
    assert path.read_bytes() == NEW
    assert _leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (b"edited\n", content_hash(OLD)),  # somebody wrote since
        (None, content_hash(OLD)),  # somebody deleted it
        (b"", None),  # somebody created it: an empty file is a file
    ],
)
def test_a_file_that_changed_since_it_was_read_is_left_alone(
    present: bytes | None, expected: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "MEMORY.md"
    if present is not None:
        path.write_bytes(present)
    with pytest.raises(ConflictError, match="changed meanwhile"):
        replace_file(path, NEW, expected_hash=expected)
    assert read_bytes(path) == present
    assert _leftovers(tmp_path) == []


def test_a_missing_file_is_created_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "dreaming" / "report.md"
    replace_file(path, NEW, expected_hash=None)
    assert path.read_bytes() == NEW


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "vault" / "memory.md"
    target.parent.mkdir()
    target.write_bytes(OLD)
    link = tmp_path / "MEMORY.md"
    link.symlink_to(target)
    replace_file(link, NEW, expected_hash=content_hash(OLD))
    assert link.is_symlink()
    assert target.read_bytes() == NEW


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_mode_is_kept(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "USER.md"
    path.write_bytes(OLD)
    path.chmod(mode)
    replace_file(path, NEW, expected_hash=content_hash(OLD))
    assert path.stat().st_mode & 0o7777 == mode


def test_a_folder_that_can_not_be_written_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    with pytest.raises(WorkspaceError, match="write access"):
        replace_file(tmp_path / "file" / "MEMORY.md", NEW, expected_hash=None)


def test_swapped_files_hold_each_other_s_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(OLD)
    second.write_bytes(NEW)
    swapped = exchange(first, second)
    assert (first.read_bytes(), second.read_bytes()) == ((NEW, OLD) if swapped else (OLD, NEW))


def test_a_swap_with_a_missing_file_changes_nothing(tmp_path: Path) -> None:
    first = tmp_path / "a"
    first.write_bytes(OLD)
    assert exchange(first, tmp_path / "missing") is False
    assert first.read_bytes() == OLD


EDIT_IN_THE_LAST_INSTANT = """
import sys
from pathlib import Path
from recall_runtime.errors import ConflictError
from recall_runtime.storage.atomic import content_hash, remove_file, replace_file
call, path = sys.argv[1], Path(sys.argv[2])
def edit(event, arguments):
    if event in ("os.link", "os.rename") and not path.with_name("done").exists():
        path.with_name("done").touch()
        path.write_bytes(b"a person's\\n")
sys.addaudithook(edit)
try:
    if call == "create":
        replace_file(path, b"ours\\n", expected_hash=None)
    else:
        remove_file(path, expected_hash=content_hash(b"old\\n"))
except ConflictError:
    path.with_name("refused").touch()
"""


@pytest.mark.parametrize("call", ["create", "remove"])
def test_an_edit_between_the_check_and_the_change_of_the_name_is_kept(call: str, tmp_path: Path) -> None:
    """A process in which a person's edit comes right before the system call."""
    path = tmp_path / "MEMORY.md"
    if call == "remove":
        path.write_bytes(OLD)
    assert run_child(EDIT_IN_THE_LAST_INSTANT, call, str(path)) == 0
    assert path.read_bytes() == b"a person's\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["MEMORY.md", "done", "refused"]


def test_a_file_whose_content_is_as_read_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(OLD)
    remove_file(path, expected_hash=content_hash(OLD))
    remove_file(path, expected_hash=None)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changed_since_it_was_read_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(NEW)
    with pytest.raises(ConflictError):
        remove_file(path, expected_hash=content_hash(OLD))
    assert path.read_bytes() == NEW


def _append_lines(path: str, name: str, count: int) -> None:
    """Add ``count`` lines the way our writers do: read, compose, replace, and start again on a conflict."""
    file = Path(path)
    for number in range(count):
        while True:
            present = file.read_bytes()
            try:
                replace_file(file, present + f"{name} {number}\n".encode(), expected_hash=content_hash(present))
            except ConflictError:
                continue
            break


@pytest.mark.skipif(os.name != "posix", reason="the swap of two files needs a POSIX system")
def test_processes_that_write_at_once_lose_no_line_of_each_other(tmp_path: Path) -> None:
    """Without the swap, a rename between check and rename of another would drop a line now and then."""
    path = tmp_path / "MEMORY.md"
    path.write_bytes(b"")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_lines, args=(str(path), name, 40)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in "abc" for number in range(40))
