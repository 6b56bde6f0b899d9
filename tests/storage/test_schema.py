"""Migrations: numbered, applied once, never edited after a release, never run on a newer file."""

import hashlib
import multiprocessing
from pathlib import Path

import apsw
import pytest

from recall_runtime.errors import NewerSchemaError
from recall_runtime.storage.connection import open_writer, query
from recall_runtime.storage.schema import Database, check_version, migrate, migrations, open_index, open_state

OPENERS = {Database.STATE: open_state, Database.INDEX: open_index}
RELEASED = {
    "state/0001_first.sql": "ef6d4cb62a23a223d2d01ed6ab93c79f0708e1912aced8711c644075bc6b5fea",
    "index/0001_first.sql": "3ad45dafd5841c27ffac21ca92a3a0465b6ebd09bc288e41aaa3e5d6c03b082e",
}


@pytest.mark.parametrize("database", list(Database))
def test_migrations_are_numbered_without_gaps(database: Database) -> None:
    numbers = [number for number, _, _ in migrations(database)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_released_migration_is_never_edited() -> None:
    """A file that somebody's database has already run; a change is a new number."""
    found = {
        f"{database}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for database in Database
        for _, _, file in migrations(database)
    }
    assert {name: found.get(name) for name in RELEASED} == RELEASED


@pytest.mark.parametrize("database", list(Database))
def test_opening_twice_applies_each_migration_once(database: Database, tmp_path: Path) -> None:
    for _ in range(2):
        connection = OPENERS[database](tmp_path / "some.sqlite")
        applied = query(connection, "SELECT number, name FROM schema_migrations ORDER BY number")
        connection.close()
    assert applied == [(number, name) for number, name, _ in migrations(database)]


@pytest.mark.parametrize("database", list(Database))
def test_a_file_of_a_newer_version_is_refused_and_left_alone(database: Database, tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    connection = open_writer(path)
    connection.execute("CREATE TABLE future(x); PRAGMA user_version = 999")
    with pytest.raises(NewerSchemaError, match=r"schema 999.*Upgrade dreamline"):
        migrate(connection, database)
    assert query(connection, "SELECT name FROM sqlite_schema") == [("future",)]
    connection.close()


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A table of the same name stands in the way of the first migration: all of it is rolled back."""
    connection = open_writer(tmp_path / "state.sqlite")
    connection.execute("CREATE TABLE evidence(mine)")
    with pytest.raises(apsw.SQLError):
        migrate(connection, Database.STATE)
    assert query(connection, "SELECT name FROM sqlite_schema") == [("evidence",)]
    assert check_version(connection, Database.STATE) == 0
    connection.close()


def _open_and_close(path: str, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]  # a multiprocessing proxy has no public type
    open_state(Path(path)).close()


def test_processes_that_create_a_database_at_once_apply_each_migration_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(4)
    path = tmp_path / "state.sqlite"
    workers = [context.Process(target=_open_and_close, args=(str(path), barrier)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    connection = open_state(path)
    assert query(connection, "SELECT count(*) FROM schema_migrations") == [(len(list(migrations(Database.STATE))),)]
    connection.close()
