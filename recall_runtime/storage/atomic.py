"""Replacing a file so that a crash leaves the old or the new content, never half of one.

Belongs here: hash-checked atomic replacement, hashing of content.
Does not belong here: who may replace what (the guarded writers of notes and curated files).
"""

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from recall_runtime.errors import ConflictError, WorkspaceError
from recall_runtime.storage.exchange import exchange


def content_hash(content: bytes) -> str:
    """Return the SHA-256 of ``content`` in hex."""
    return hashlib.sha256(content).hexdigest()


def read_bytes(path: Path) -> bytes | None:
    """Return the content of ``path``, or ``None`` when it does not exist (a dangling link does not exist)."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def read_regular(path: Path, limit: int = -1) -> bytes:
    """Return the first ``limit`` bytes of ``path``, all by default.

    Raises:
        OSError: it is missing, can't be read, or is no regular file (opening a pipe would wait for ever).
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as stream:
        return stream.read(limit)


def replace_file(path: Path, content: bytes, *, expected_hash: str | None) -> None:
    """Replace ``path`` by ``content`` if its present content still has ``expected_hash`` (``None``: must not exist).

    A link stays a link: its target is replaced, on the target's own file system, with the target's mode.
    Where the system can swap two files, an edit that lands between the check and the rename is seen and put back.

    Raises:
        ConflictError: somebody changed the file in between; nothing was written.
        WorkspaceError: the folder can't be written.
    """
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".dreamline-tmp", dir=target.parent)
    except OSError as error:
        raise WorkspaceError(
            f"{path} can't be written ({error.strerror})", "Give this user write access to its folder."
        ) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(target.stat().st_mode & 0o7777 if target.exists() else 0o644)
        _check(path, target, expected_hash)
        if expected_hash is None:
            _create(path, temporary, target)
        elif exchange(temporary, target):
            _put_back_unless(path, target, temporary, expected_hash)
        else:
            temporary.replace(target)
        _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def remove_file(path: Path, *, expected_hash: str | None) -> None:
    """Remove ``path`` if its present content still has ``expected_hash``; a missing file is no error.

    It is moved aside first and looked at there, so an edit of the last instant is seen and put back.

    Raises:
        ConflictError: somebody changed the file in between; it stands as they left it.
    """
    target = path.resolve()
    _check(path, target, expected_hash)
    aside = target.with_name(f".{target.name}.removed.dreamline-tmp")
    try:
        target.replace(aside)
    except FileNotFoundError:
        return
    try:
        _check(path, aside, expected_hash)
    except ConflictError as error:
        if _put_back(aside, target):
            raise
        raise ConflictError(
            f"{path} was changed twice meanwhile", f"Its state before the last change is kept in {aside.name}."
        ) from error
    aside.unlink()
    _sync_folder(target.parent)


def _create(path: Path, temporary: Path, target: Path) -> None:
    """Give the new file its name unless somebody else has made one of that name meanwhile."""
    try:
        os.link(temporary, target)
    except FileExistsError as error:
        raise _changed(path) from error
    except OSError:  # a file system without links
        temporary.replace(target)


def _check(path: Path, file: Path, expected_hash: str | None) -> None:
    present = read_bytes(file)
    if (None if present is None else content_hash(present)) != expected_hash:
        raise _changed(path)


def _changed(path: Path) -> ConflictError:
    return ConflictError(f"{path} was changed meanwhile", "Nothing was written; run again to take the change in.")


def _put_back_unless(path: Path, target: Path, swapped_out: Path, expected_hash: str) -> None:
    """Put the file back that was swapped out when it is an edit that nobody has read."""
    try:
        _check(path, swapped_out, expected_hash)
    except ConflictError:
        if not exchange(swapped_out, target):
            swapped_out.replace(target)
        raise


def _put_back(edited: Path, target: Path) -> bool:
    """Give a person's file its name again; return ``False`` when another one has the name by now."""
    try:
        os.link(edited, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        edited.replace(target)
    else:
        edited.unlink()
    return True


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the platform can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
