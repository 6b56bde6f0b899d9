"""The one place that opens DuckDB.

Belongs here: opening and closing, the settings every connection shares, handing a Polars frame over.
Does not belong here: schemas and queries.

Only calls that DuckDB 1.5 and 2.0 share are used: ``execute`` for statements, ``sql(...).fetchall()`` for reads.
Extensions are never fetched: what we need is built in, and a download hangs where there is no network.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recall_runtime.errors import StoreError, StoreLockedError

if TYPE_CHECKING:
    import duckdb
    import polars

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
# A published file is opened for strangers' SQL: it may read this one database and nothing else on the machine.
_CLOSED_SETTINGS: dict[str, str | bool | int | float | list[str]] = _SETTINGS | {
    "enable_external_access": "false",
    "lock_configuration": "true",
}


class ArrowStream:
    """A Polars frame as DuckDB can scan it without pyarrow: through the Arrow stream capsule alone."""

    __slots__ = ("_frame",)

    def __init__(self, frame: "polars.DataFrame") -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the frame's Arrow stream capsule."""
        return self._frame.__arrow_c_stream__(requested_schema)


@contextlib.contextmanager
def open_memory() -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a database in memory for the body."""
    import duckdb

    connection = duckdb.connect(":memory:", config=_SETTINGS)
    try:
        yield connection
    finally:
        connection.close()


@contextlib.contextmanager
def open_private(path: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open ``path`` for reading and writing for the body, creating it and its folder when missing.

    Raises:
        StoreLockedError: another process has it open.
        StoreError: the file is no database this version of DuckDB can read.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(path, read_only=False, settings=_SETTINGS) as connection:
        yield connection


@contextlib.contextmanager
def open_published(path: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open the published snapshot ``path`` read-only, with no access to other files, for the body.

    Raises:
        StoreError: there is no snapshot yet, or it can't be read.
    """
    if not path.exists():
        raise StoreError(f"There is no published snapshot at {path}", "Run `dreamline dream` once; a sweep publishes.")
    with _opened(path, read_only=True, settings=_CLOSED_SETTINGS) as connection:
        yield connection


@contextlib.contextmanager
def _opened(path: Path, *, read_only: bool, settings: dict[str, Any]) -> Iterator["duckdb.DuckDBPyConnection"]:
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=read_only, config=settings)
    except duckdb.Error as error:
        if "lock" in str(error).lower():
            raise StoreLockedError(
                f"{path} is open in another process", "Close that process; read the published snapshot instead."
            ) from error
        raise StoreError(f"{path} can't be opened as a DuckDB file ({_first_line(error)})", _CURE[read_only]) from error
    try:
        yield connection
    finally:
        connection.close()


_CURE = {
    True: "Run `dreamline dream`; the next sweep publishes it anew.",
    False: "Delete the file; it is rebuilt from the state database.",
}


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def insert_frame(connection: "duckdb.DuckDBPyConnection", select: str, frame: "polars.DataFrame") -> None:
    """Run ``select``, an ``INSERT … SELECT … FROM incoming``, with ``frame`` as the table ``incoming``."""
    connection.register("incoming", ArrowStream(frame))
    try:
        connection.execute(select)
    finally:
        connection.unregister("incoming")
