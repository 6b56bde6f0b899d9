"""The one place that opens SQLite databases.

Belongs here: opening, pragmas, the vector extension, transactions.
Does not belong here: schemas (``storage.schema``) and queries (the rooms that own the tables).

One SQLite library per process: a second one on the same file silently drops the first one's POSIX locks.
Writers take ``BEGIN IMMEDIATE`` and are short; no model or embedding call happens inside a transaction.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.errors import StoreError, StoreLockedError

BUSY_TIMEOUT_MS = 2_000
_RETRY_SECONDS = 0.01
OLDEST_SAFE_SQLITE = (3, 51, 3)  # before it two writers can corrupt a WAL database (the WAL-reset fault)


def sqlite_version() -> tuple[int, int, int]:
    """Return the version of the linked SQLite library."""
    major, minor, patch = (int(part) for part in apsw.sqlite_lib_version().split(".")[:3])
    return major, minor, patch


def open_writer(path: Path, *, vectors: bool = False) -> apsw.Connection:
    """Open ``path`` for reading and writing, creating it and its folder when missing.

    Raises:
        StoreError: SQLite is too old to write safely, or the file is no database.
    """
    if sqlite_version() < OLDEST_SAFE_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a shared database", "Upgrade the package apsw."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    return _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, vectors=vectors)


def open_reader(path: Path, *, vectors: bool = False) -> apsw.Connection:
    """Open the existing database ``path`` read-only.

    Raises:
        StoreError: the file is missing or no database.
    """
    if not path.exists():
        raise StoreError(f"Database {path} does not exist", "Run `dreamline index` first.")
    connection = _open(path, apsw.SQLITE_OPEN_READONLY, vectors=vectors)
    connection.execute("PRAGMA query_only = 1")
    return connection


def _open(path: Path, flags: int, *, vectors: bool) -> apsw.Connection:
    try:
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if flags & apsw.SQLITE_OPEN_READWRITE:
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
        else:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLockedError(
            f"Database {path} is locked by another process", "Wait for it to end, then run again."
        ) from error
    except apsw.Error as error:
        raise StoreError(
            f"{path} can't be opened as a database ({error})", "Restore it from a backup, or move it away."
        ) from error
    if vectors:
        load_vectors(connection)
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switch a new database to WAL. Of several that try at once SQLite refuses some without waiting: they try again."""
    ends_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() >= ends_at:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def load_vectors(connection: apsw.Connection) -> bool:
    """Load sqlite-vec; return whether it is there. A plain scan gives the same answers without it."""
    try:
        import sqlite_vec

        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
    except (apsw.Error, ImportError, AttributeError, OSError):
        return False
    finally:
        with contextlib.suppress(apsw.Error, AttributeError):
            connection.enable_load_extension(False)
    return True


def query(
    connection: apsw.Connection, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> list[tuple[Any, ...]]:
    """Return all rows of a reading ``statement``. The caller knows the types of its own columns."""
    return connection.execute(statement, values).fetchall()


@contextlib.contextmanager
def one_state(reader: apsw.Connection) -> Iterator[None]:
    """Hold one read transaction, so that all queries of the body see one state of the database."""
    if reader.in_transaction:
        yield
        return
    reader.execute("BEGIN")
    try:
        yield
    finally:
        with contextlib.suppress(apsw.Error):  # a damaged database is reported by the query that met it
            reader.execute("ROLLBACK")


@contextlib.contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[apsw.Connection]:
    """Run the body in one ``BEGIN IMMEDIATE`` transaction; commit at its end, roll back when it raises.

    Raises:
        StoreLockedError: another writer held the database longer than the busy timeout.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLockedError(
            f"Database {connection.filename} is busy", "Another process is writing; run again in a moment."
        ) from error
    try:
        yield connection
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
