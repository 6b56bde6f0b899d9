"""Writing review files: never through a link, never over somebody else's change, never by half.

Belongs here: the guarded replacement of one review file.
Does not belong here: what stands in it.
"""

import stat
from collections.abc import Callable
from pathlib import Path

from recall_runtime.errors import ConflictError, WorkspaceError
from recall_runtime.storage.atomic import content_hash, replace_file

MAX_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 3


def rewrite(path: Path, compose: Callable[[bytes], bytes]) -> bool:
    """Replace the file by ``compose(present bytes)``; return whether it changed. A missing file counts as empty.

    Composing runs again when somebody changed the file meanwhile.

    Raises:
        WorkspaceError: the path is a link, no regular file, larger than 16 MiB, or can't be written.
        ConflictError: it kept changing.
    """
    for attempt in range(_ATTEMPTS):
        present = _read(path)
        wanted = compose(present or b"")
        if wanted == (present or b""):
            return False
        try:
            replace_file(path, wanted, expected_hash=None if present is None else content_hash(present))
        except ConflictError:
            if attempt + 1 == _ATTEMPTS:
                raise
            continue
        if present is None:
            path.chmod(0o600)
        return True
    return False


def _read(path: Path) -> bytes | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(f"{path.name} can't be read ({error.strerror})", "Give this user access.") from error
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{path.name} is a link or no file", "Review files are only written to regular files.")
    if status.st_size > MAX_BYTES:
        raise WorkspaceError(f"{path.name} is larger than 16 MiB", "Move it away; a new one is begun.")
    return path.read_bytes()
