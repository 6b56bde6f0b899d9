"""Locks between our own processes.

Belongs here: the advisory file lock. The kernel drops it when its owner dies, so there is no stale lock to clear.
Does not belong here: protection against editors and other programs (hash checks in ``storage.atomic`` do that).
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from recall_runtime.errors import StoreLockedError

if sys.platform != "win32":
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
else:  # pragma: no cover - Windows
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True


@contextlib.contextmanager
def exclusive(path: Path, *, what: str, wait_seconds: float = 0.0) -> Iterator[None]:
    """Hold the lock file ``path`` for the body.

    Args:
        path: The lock file; it is created and stays, holding the owner's process id for people who look.
        what: What is locked, for the message.
        wait_seconds: How long to wait for another owner.

    Raises:
        StoreLockedError: another process holds it longer than that.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        give_up_at = time.monotonic() + wait_seconds
        while not _try_lock(descriptor):
            if time.monotonic() >= give_up_at:
                owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() if os.name == "posix" else ""
                raise StoreLockedError(
                    f"{what} is already running{f' (process {owner})' if owner else ''}",
                    "Wait for it to end, then run again.",
                )
            time.sleep(0.02)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode("ascii"))
        yield
    finally:
        os.close(descriptor)
