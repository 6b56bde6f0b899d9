"""Opening databases: what is no database is said, transactions are whole, readers do not write."""

from pathlib import Path

import apsw
import pytest

from recall_runtime.errors import StoreError, StoreLockedError
from recall_runtime.storage.connection import (
    OLDEST_SAFE_SQLITE,
    load_vectors,
    open_reader,
    open_writer,
    query,
    sqlite_version,
    write_transaction,
)


def test_the_linked_sqlite_is_safe_for_several_writers() -> None:
    assert sqlite_version() >= OLDEST_SAFE_SQLITE


@pytest.mark.parametrize("opener", [open_writer, open_reader])
def test_a_file_that_is_no_database_is_an_error_that_names_it(opener: object, tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(b"this is a text file, and it is long enough to be taken for a database header" * 20)
    with pytest.raises(StoreError, match=r"state\.sqlite can't be opened as a database.*move it away"):
        opener(path)  # type: ignore[operator]  # both openers take a path
    assert path.read_bytes().startswith(b"this is a text file")


def test_a_reader_of_a_missing_file_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Run `dreamline index` first"):
        open_reader(tmp_path / "index.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_can_not_write(tmp_path: Path) -> None:
    path = tmp_path / "some.sqlite"
    writer = open_writer(path)
    writer.execute("CREATE TABLE t(x)")
    reader = open_reader(path)
    with pytest.raises(apsw.Error):
        reader.execute("INSERT INTO t VALUES (1)")
    reader.close()
    writer.close()


def test_a_transaction_whose_body_raises_leaves_no_row(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "some.sqlite")
    connection.execute("CREATE TABLE t(x)")
    with pytest.raises(ZeroDivisionError), write_transaction(connection):
        connection.execute("INSERT INTO t VALUES (1)")
        raise ZeroDivisionError
    assert query(connection, "SELECT * FROM t") == []
    with write_transaction(connection):
        connection.execute("INSERT INTO t VALUES (2)")
    assert query(connection, "SELECT * FROM t") == [(2,)]
    connection.close()


def test_a_writer_that_waits_too_long_says_that_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "some.sqlite"
    first, second = open_writer(path), open_writer(path)
    second.set_busy_timeout(10)
    message = "is busy.*run again"
    with write_transaction(first), pytest.raises(StoreLockedError, match=message), write_transaction(second):
        pass
    first.close()
    second.close()


def test_vectors_load_and_further_extensions_stay_forbidden(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "some.sqlite")
    assert load_vectors(connection)
    assert query(connection, "SELECT vec_length('[1, 2, 3]')") == [(3,)]
    with pytest.raises(apsw.SQLError, match="not authorized"):
        connection.execute("SELECT load_extension('anything')")
    connection.close()
