"""The lock between our own processes: one owner, said by name, gone with its owner."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recall_runtime.errors import StoreLockedError
from recall_runtime.storage.locks import exclusive

HOLDER = """
import sys, time
from pathlib import Path
from recall_runtime.storage.locks import exclusive
with exclusive(Path(sys.argv[1]), what="A sweep"):
    print("held", flush=True)
    time.sleep(60)
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, os.fspath(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


def test_a_second_process_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "sweep.lock"
    holder = _holder(path)
    try:
        message = rf"A sweep is already running \(process {holder.pid}\)\. Wait"
        with pytest.raises(StoreLockedError, match=message), exclusive(path, what="A sweep"):
            pass
    finally:
        _end(holder)


def test_a_killed_owner_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "sweep.lock"
    _end(_holder(path))
    with exclusive(path, what="A sweep"):
        assert path.read_text(encoding="ascii") == str(os.getpid())


def test_a_lock_is_free_again_after_its_body_raised(tmp_path: Path) -> None:
    path = tmp_path / "sweep.lock"
    with pytest.raises(ZeroDivisionError), exclusive(path, what="A sweep"):
        raise ZeroDivisionError
    with exclusive(path, what="A sweep"):
        pass
