"""Migrations: numbered, applied once, never edited after a release, never run on a newer file."""

import hashlib
import multiprocessing
from pathlib import Path

import apsw
import pytest

from recall_runtime.errors import NewerSchemaError, StoreError
from recall_runtime.storage.connection import open_writer, query
from recall_runtime.storage.schema import (
    Database,
    check_version,
    migrate,
    migrations,
    open_index,
    open_state,
    read_index,
    read_state,
)

READERS = {Database.STATE: read_state, Database.INDEX: read_index}
OPENERS = {Database.STATE: open_state, Database.INDEX: open_index}
RELEASED = {
    "state/0001_first.sql": "cbad87632c61b53a99d25bd8f1622c40d80910226a4ade8837981418d89c5f15",
    "state/0002_provenance_marks.sql": "625957f6025a9758c51a040cf36f6c31b684bf7f933e4cb45d8079cfba73736b",
    "state/0003_correction.sql": "6652b54515cee932d91826be33bd4ce8f87517f0c4f45809bd2893a3f4e3fd61",
    "index/0001_first.sql": "3ad45dafd5841c27ffac21ca92a3a0465b6ebd09bc288e41aaa3e5d6c03b082e",
    "index/0002_content.sql": "bcafee3de8fde18bc9f861296c08cbcab38355ff9231a5d35e027659484eaff5",
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


@pytest.mark.parametrize("database", list(Database))
def test_a_file_of_another_program_is_refused_and_left_alone(database: Database, tmp_path: Path) -> None:
    """Neither a reader nor a writer may make tables of ours among somebody else's."""
    path = tmp_path / "theirs.sqlite"
    connection = open_writer(path)
    connection.execute("CREATE TABLE theirs(x)")
    for opened in (READERS[database], OPENERS[database]):
        with pytest.raises(StoreError, match=r"not Dreamline's.*Move it away"):
            opened(path)
    assert query(connection, "SELECT name FROM sqlite_schema") == [("theirs",)]
    assert connection.pragma("user_version") == 0
    connection.close()


def _at_version(path: Path, database: Database, version: int, *more: str) -> None:
    """Write a database as the version that knew so many migrations did."""
    connection = open_writer(path)
    for number, name, file in list(migrations(database))[:version]:
        connection.execute(file.read_text(encoding="utf-8"))
        connection.execute("INSERT INTO schema_migrations(number, name) VALUES (?, ?)", (number, name))
    for statement in more:
        connection.execute(statement)
    connection.pragma("user_version", version)
    connection.close()


def _columns(connection: apsw.Connection) -> list[tuple[object, ...]]:
    """Return every column of every table, whatever their order."""
    return sorted(
        query(
            connection,
            'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value FROM sqlite_schema t, pragma_table_info(t.name) c'
            " WHERE t.type = 'table'",
        )
    )


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """A table of the same name stands in the way of the second migration: all of the run is rolled back."""
    _at_version(tmp_path / "state.sqlite", Database.STATE, 1, "CREATE TABLE provenance_marks(mine)")
    connection = open_writer(tmp_path / "state.sqlite")
    before = _columns(connection)
    with pytest.raises(apsw.SQLError):
        migrate(connection, Database.STATE)
    assert _columns(connection) == before
    assert check_version(connection, Database.STATE) == 1
    connection.close()


@pytest.mark.parametrize("database", list(Database))
def test_a_reader_finds_the_present_schema_in_a_file_of_any_older_version(database: Database, tmp_path: Path) -> None:
    """After an upgrade the first thing somebody runs may be a question."""
    fresh = OPENERS[database](tmp_path / "fresh.sqlite")
    for version in range(1, len(list(migrations(database)))):
        path = tmp_path / f"{version}.sqlite"
        _at_version(path, database, version)
        reader = READERS[database](path)
        assert _columns(reader) == _columns(fresh)
        assert reader.readonly("main")
        reader.close()
    fresh.close()


def test_a_file_whose_first_migration_already_had_a_later_column_ends_the_same(tmp_path: Path) -> None:
    column = "ALTER TABLE evidence ADD COLUMN correction INTEGER NOT NULL DEFAULT 0 CHECK (correction IN (0, 1))"
    _at_version(tmp_path / "state.sqlite", Database.STATE, 1, column)
    fresh, found = open_state(tmp_path / "fresh.sqlite"), read_state(tmp_path / "state.sqlite")
    assert _columns(found) == _columns(fresh)
    fresh.close()
    found.close()


@pytest.mark.parametrize("database", list(Database))
def test_a_reader_of_a_newer_file_is_refused(database: Database, tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "newer.sqlite")
    connection.execute("CREATE TABLE future(x); PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(NewerSchemaError, match="Upgrade dreamline"):
        READERS[database](tmp_path / "newer.sqlite")


@pytest.mark.parametrize("database", list(Database))
def test_a_reader_creates_no_database(database: Database, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        READERS[database](tmp_path / "missing.sqlite")
    assert list(tmp_path.iterdir()) == []


def _open_and_close(folder: str, barrier: object) -> None:
    for number in range(ROUNDS):
        barrier.wait(30)  # type: ignore[attr-defined]  # a multiprocessing proxy has no public type
        open_state(Path(folder) / f"{number}.sqlite").close()


ROUNDS = 30


def test_processes_that_create_a_database_at_once_apply_each_migration_once(tmp_path: Path) -> None:
    """None is turned away either: of several that switch to WAL at once SQLite refuses some without waiting."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(4)
    workers = [context.Process(target=_open_and_close, args=(str(tmp_path), barrier)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    connection = open_state(tmp_path / f"{ROUNDS - 1}.sqlite")
    assert query(connection, "SELECT count(*) FROM schema_migrations") == [(len(list(migrations(Database.STATE))),)]
    connection.close()
