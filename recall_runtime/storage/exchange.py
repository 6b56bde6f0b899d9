"""Swapping two files in one step, where the system can: the way to see what a rename would have overwritten.

Belongs here: the system call. Does not belong here: what to do with the file that was swapped out.
"""

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE_LINUX = 1 << 1
_RENAME_SWAP_MACOS = 0x00000002


def exchange(first: Path, second: Path) -> bool:
    """Swap the two files atomically; return ``False`` when the system or file system can't (nothing changed then)."""
    call = _system_call()
    return call is not None and call(os.fsencode(first), os.fsencode(second)) == 0


@functools.cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    """Return the swap of this system, or ``None``."""
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(library, "renamex_np", None)
        return None if swap is None else lambda first, second: int(swap(first, second, _RENAME_SWAP_MACOS))
    swap = getattr(library, "renameat2", None)
    if swap is None:
        return None
    return lambda first, second: int(swap(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE_LINUX))
