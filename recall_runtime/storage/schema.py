"""Numbered migrations of the two databases of an agent.

Belongs here: applying the migrations, the version check. The SQL lives in ``migrations/<database>/NNNN_name.sql``.
Does not belong here: queries. A released migration is never edited; a change is a new number.
"""

import functools
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import apsw

from recall_runtime.errors import NewerSchemaError, StoreError
from recall_runtime.storage.connection import open_reader, open_writer, query, write_transaction


class Database(StrEnum):
    """The two SQLite files of an agent."""

    INDEX = "index"  # derived: may be deleted, the next sync rebuilds it with the same answers
    STATE = "state"  # original: never deleted by us


# One published version had this column in its first migration: such a file needs the later one no more.
_COLUMN_ALREADY_THERE = {(Database.STATE, 3): ("evidence", "correction")}


def migrations(database: Database) -> Iterator[tuple[int, str, Path]]:
    """Yield (number, name, file) of every migration of ``database``, in order."""
    folder = Path(__file__).parent / "migrations" / database.value
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".sql"):
            number, _, name = file.name.removesuffix(".sql").partition("_")
            yield int(number), name, file


def migrate(connection: apsw.Connection, database: Database) -> int:
    """Bring ``connection`` to the newest schema; return its version.

    Raises:
        NewerSchemaError: the file was written by a newer version of Dreamline.
        StoreError: the file holds tables of another program.
    """
    known = list(migrations(database))
    newest = known[-1][0]
    if check_version(connection, database) == newest:
        return newest
    with write_transaction(connection):
        current = _version(connection)  # another process may have migrated while we waited
        for number, name, file in known:
            if number > current:
                if not _is_there(connection, _COLUMN_ALREADY_THERE.get((database, number))):
                    connection.execute(file.read_text(encoding="utf-8"))
                connection.execute("INSERT INTO schema_migrations(number, name) VALUES (?, ?)", (number, name))
                connection.execute(f"PRAGMA user_version = {number}")
    return newest


def check_version(connection: apsw.Connection, database: Database) -> int:
    """Return the schema version of ``connection``; 0 means an empty file.

    Raises:
        NewerSchemaError: the file was written by a newer version of Dreamline.
        StoreError: the file holds tables of another program.
    """
    newest = _newest(database)
    current = _version(connection)
    if current == 0 and query(connection, "SELECT 1 FROM sqlite_schema LIMIT 1"):
        raise StoreError(
            f"{connection.filename} holds tables that are not Dreamline's",
            "Move it away, or name another state folder.",
        )
    if current > newest:
        raise NewerSchemaError(
            f"{connection.filename} has schema {current}, this version of Dreamline knows {newest}",
            "Upgrade dreamline, or run it with the version that wrote the file.",
        )
    return current


def _is_there(connection: apsw.Connection, column: tuple[str, str] | None) -> bool:
    if column is None:
        return False
    return bool(query(connection, "SELECT 1 FROM pragma_table_info(?) WHERE name = ?", column))


@functools.cache
def _newest(database: Database) -> int:
    return max(number for number, _, _ in migrations(database))


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))


def open_state(path: Path) -> apsw.Connection:
    """Open the state database for writing, creating or migrating it."""
    return _open_to_write(path, Database.STATE, vectors=False)


def open_index(path: Path) -> apsw.Connection:
    """Open the index database for writing with the vector extension, creating or migrating it."""
    return _open_to_write(path, Database.INDEX, vectors=True)


def read_state(path: Path) -> apsw.Connection:
    """Open the existing state database for reading; one that an older version wrote is migrated first.

    Raises:
        StoreError: it is missing, no database, of a newer version, or older and can't be written.
    """
    return _open_to_read(path, Database.STATE, vectors=False)


def read_index(path: Path, *, vectors: bool = False) -> apsw.Connection:
    """Open the existing index for reading; one that an older version wrote is migrated first.

    Its rows stay as they are until the next sync, which builds it anew where they would be different.

    Raises:
        StoreError: it is missing, no database, of a newer version, or older and can't be written.
    """
    return _open_to_read(path, Database.INDEX, vectors=vectors)


def _open_to_write(path: Path, database: Database, *, vectors: bool) -> apsw.Connection:
    connection = open_writer(path, vectors=vectors)
    try:
        migrate(connection, database)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_to_read(path: Path, database: Database, *, vectors: bool) -> apsw.Connection:
    reader = open_reader(path, vectors=vectors)
    try:
        current = check_version(reader, database)
    except BaseException:
        reader.close()
        raise
    if current == _newest(database):
        return reader
    reader.close()
    (open_index if database is Database.INDEX else open_state)(path).close()
    return open_reader(path, vectors=vectors)
