"""Publishing: rows of the state database -> private DuckDB -> one read-only snapshot and its Parquet twins.

Belongs here: the hand-over of what changed, building the snapshot beside the old one, the atomic swap.
Does not belong here: the shape of the tables (``tables``), queries (``query``).

The private file holds numbers and identifiers only and is opened by nobody else; analysts get the published file,
which is replaced as a whole: a reader that has it open keeps what it opened and never stops a sweep.
Both are derived: delete them and the next sweep makes them again.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from memory_assets.lineage.graph import EntryNode
from memory_assets.lineage.ledger import graph_from_connection
from memory_assets.warehouse.connection import insert_frame, open_private
from memory_assets.warehouse.tables import ALL_TABLES, ENTRIES, STATE_TABLES, Table
from recall_runtime.agent import Agent
from recall_runtime.errors import StoreError, StoreLockedError
from recall_runtime.storage.locks import exclusive

if TYPE_CHECKING:
    import duckdb
    import polars

STORAGE_VERSION = "v1.2.0"  # readable by every DuckDB since 1.2
PUBLISHED_FILE = "recall.duckdb"
_UNLIMITED = 1_000_000_000
_BATCH_ROWS = 50_000
_TEMPORARY = ".dreamline-tmp"
_MACRO_FILES = ("macros.sql", "what_if.sql")  # in this order: the second uses the first


@dataclass(frozen=True, slots=True)
class PublishReport:
    """What one publishing did: rows handed over as new or changed, and rows of every published table."""

    handed_over: int
    rows: dict[str, int]
    macros: bool


def published_path(agent: Agent) -> Path:
    """Return the path of the snapshot analysts open."""
    return agent.folders.analytics / PUBLISHED_FILE


def private_path(agent: Agent) -> Path:
    """Return the path of the DuckDB file only a sweep opens."""
    return agent.folders.analytics / "private" / "memory.duckdb"


def parquet_folder(agent: Agent) -> Path:
    """Return the folder of the Parquet files, one a table."""
    return agent.folders.analytics / "parquet"


def publish(agent: Agent, *, state: apsw.Connection) -> PublishReport:
    """Hand over what changed in ``state`` and swap in a new snapshot of ``agent``.

    Raises:
        StoreLockedError: another process publishes, or has the private file open.
        StoreError: the disk can't be written.
    """
    import duckdb

    try:
        agent.folders.analytics.mkdir(parents=True, exist_ok=True)
        with exclusive(agent.folders.analytics / "publish.lock", what="Publishing", wait_seconds=30.0):
            return _publish(agent, state)
    except (OSError, duckdb.Error) as error:
        raise StoreError(
            f"The snapshot in {agent.folders.analytics} could not be published ({str(error)[:200]})",
            "Free space or give this user write access there; the next sweep publishes again.",
        ) from error


def _publish(agent: Agent, state: apsw.Connection) -> PublishReport:
    _clear_leftovers(agent)
    with _private(private_path(agent)) as private:
        with state:  # one savepoint: one consistent view of the state
            handed_over = sum(_hand_over(private, state, table) for table in STATE_TABLES if table.parts)
            report = _build(agent, private, state, handed_over)
        _swap_in(agent)
    return report


@contextlib.contextmanager
def _private(path: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open the private file with its tables; one of another shape or that can't be read is made anew."""
    if path.exists() and not _is_usable(path):
        for leftover in path.parent.glob(f"{path.name}*"):
            leftover.unlink()
    with open_private(path) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS shape AS SELECT ? AS shape", [_private_shape()])
        connection.execute(
            "CREATE TABLE IF NOT EXISTS handed_over (table_name VARCHAR, part VARCHAR, fingerprint VARCHAR)"
        )
        for name, columns in _private_tables():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        yield connection


def _is_usable(path: Path) -> bool:
    import duckdb

    try:
        with open_private(path) as connection:
            return connection.sql("SELECT shape FROM shape").fetchall() == [(_private_shape(),)]
    except StoreLockedError:
        raise
    except (StoreError, duckdb.Error):
        return False


def _private_tables() -> list[tuple[str, str]]:
    """Return name and column list of the tables that are handed over in parts."""
    return [
        (table.name, ", ".join(f'"{column.name}" {_RAW_TYPES[column.kind.read_as]}' for column in table.columns))
        for table in STATE_TABLES
        if table.parts
    ]


def _private_shape() -> str:
    return repr(_private_tables())


_RAW_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR"}


def _hand_over(private: "duckdb.DuckDBPyConnection", state: apsw.Connection, table: Table) -> int:
    """Replace the parts of ``table`` whose fingerprint differs from the last hand-over; return the rows copied."""
    present = {str(part): str(mark) for part, mark in state.execute(table.parts or "")}
    known = dict(
        private.sql("SELECT part, fingerprint FROM handed_over WHERE table_name = ?", params=[table.name]).fetchall()
    )
    changed = [part for part, mark in present.items() if known.get(part) != mark]
    stale = changed + [part for part in known if part not in present]
    if not stale:
        return 0
    with _transaction(private):
        private.execute(f'DELETE FROM {table.name} WHERE "{table.part_column}" IN (SELECT unnest(?))', [stale])
        private.execute(
            "DELETE FROM handed_over WHERE table_name = ? AND part IN (SELECT unnest(?))", [table.name, stale]
        )
        rows = _copy(private, table, state, changed)
        marks = [(table.name, part, present[part]) for part in changed]
        insert_frame(private, "INSERT INTO handed_over SELECT * FROM incoming", _frame(_MARKS, marks))
    return rows


@contextlib.contextmanager
def _transaction(connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


_MARKS = (("table_name", "TEXT"), ("part", "TEXT"), ("fingerprint", "TEXT"))


def _copy(private: "duckdb.DuckDBPyConnection", table: Table, state: apsw.Connection, parts: Sequence[str]) -> int:
    """Copy the rows of ``parts`` of ``table`` as they are; return their number."""
    query = table.select.replace("{parts}", "SELECT value FROM json_each(?)")
    shape = tuple((column.name, column.kind.read_as) for column in table.columns)
    copied = 0
    for batch in _batches(state.execute(query, (json.dumps(parts),))):
        insert_frame(private, f"INSERT INTO {table.name} SELECT * FROM incoming", _frame(shape, batch))
        copied += len(batch)
    return copied


def _batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    source = iter(rows)
    while batch := list(islice(source, _BATCH_ROWS)):
        yield batch


def _frame(shape: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> "polars.DataFrame":
    import polars

    types = {"INTEGER": polars.Int64, "REAL": polars.Float64, "TEXT": polars.String}
    return polars.DataFrame(rows, schema={name: types[kind] for name, kind in shape}, orient="row")


def _build(
    agent: Agent, private: "duckdb.DuckDBPyConnection", state: apsw.Connection, handed_over: int
) -> PublishReport:
    """Write the new snapshot and Parquet files beside the present ones."""
    private.execute(
        f"ATTACH {_literal(_beside(published_path(agent)))} AS published (STORAGE_VERSION '{STORAGE_VERSION}')"
    )
    try:
        with _transaction(private):  # each statement by itself would wait for the disk
            for table in STATE_TABLES:
                _publish_table(private, state, table)
            _publish_entries(private, state)
            macros = _create_macros(private)
        rows = {table.name: _count(private, table) for table in ALL_TABLES}
        parquet_folder(agent).mkdir(exist_ok=True)
        for target in _parquet_files(agent):
            private.execute(
                f"COPY published.{target.stem} TO {_literal(_beside(target))} (FORMAT parquet, COMPRESSION zstd)"
            )
    finally:
        private.execute("DETACH published")
    return PublishReport(handed_over=handed_over, rows=rows, macros=macros)


def _publish_table(private: "duckdb.DuckDBPyConnection", state: apsw.Connection, table: Table) -> None:
    _create_published(private, table)
    converted = ", ".join(column.kind.converted(column.name) for column in table.columns)
    if table.parts:
        private.execute(f"INSERT INTO published.{table.name} SELECT {converted} FROM {table.name}")
        return
    shape = tuple((column.name, column.kind.read_as) for column in table.columns)
    statement = f"INSERT INTO published.{table.name} SELECT {converted} FROM incoming"
    for batch in _batches(state.execute(table.select)):
        insert_frame(private, statement, _frame(shape, batch))


def _create_published(private: "duckdb.DuckDBPyConnection", table: Table) -> None:
    columns = ", ".join(f'"{column.name}" {column.kind.duckdb_type}' for column in table.columns)
    private.execute(f"CREATE TABLE published.{table.name} ({columns})")
    private.execute(f"COMMENT ON TABLE published.{table.name} IS {_literal(table.comment)}")
    for column in table.columns:
        private.execute(f'COMMENT ON COLUMN published.{table.name}."{column.name}" IS {_literal(column.comment)}')


def _publish_entries(private: "duckdb.DuckDBPyConnection", state: apsw.Connection) -> None:
    graph = graph_from_connection(state, cap=_UNLIMITED)
    keys = {entry.node_id: entry.entry_key for entry in graph.entries}
    _create_published(private, ENTRIES)
    shape = tuple((column.name, column.kind.read_as) for column in ENTRIES.columns)
    frame = _frame(shape, [_entry_row(entry, keys) for entry in graph.entries])
    converted = ", ".join(column.kind.converted(column.name) for column in ENTRIES.columns)
    insert_frame(private, f"INSERT INTO published.{ENTRIES.name} SELECT {converted} FROM incoming", frame)


def _entry_row(entry: EntryNode, keys: dict[str, str]) -> tuple[Any, ...]:
    score = entry.gate.get("score")
    return (
        entry.entry_key,
        entry.file,
        entry.state.value,
        entry.text,
        entry.claim_id,
        entry.promoted_at,
        entry.changed_at,
        entry.sweep_id,
        float(score) if isinstance(score, int | float) else None,
        len(entry.evidence),
        keys.get(entry.replaced_by or ""),
    )


def _create_macros(private: "duckdb.DuckDBPyConnection") -> bool:
    """Put the gate's macros into the snapshot, so that an analyst can score with other weights."""
    gates = resources.files("memory_assets") / "gates"
    files = [gates / name for name in _MACRO_FILES if (gates / name).is_file()]
    home = private.sql("SELECT current_database()").fetchall()[0][0]
    private.execute("USE published")
    try:
        for file in files:
            private.execute(file.read_text(encoding="utf-8"))
    finally:
        private.execute(f'USE "{home}"')
    return bool(files)


def _count(private: "duckdb.DuckDBPyConnection", table: Table) -> int:
    return int(private.sql(f"SELECT count(*) FROM published.{table.name}").fetchall()[0][0])


def _swap_in(agent: Agent) -> None:
    """Make the new files durable, then put each in the place of the old one in one step."""
    for target in (published_path(agent), *_parquet_files(agent)):
        temporary = _beside(target)
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)


def _parquet_files(agent: Agent) -> list[Path]:
    return [parquet_folder(agent) / f"{table.name}.parquet" for table in ALL_TABLES]


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}{_TEMPORARY}")


def _clear_leftovers(agent: Agent) -> None:
    """Remove half-built files of a publishing that was killed; the lock says that nobody is at work."""
    for folder in (agent.folders.analytics, parquet_folder(agent)):
        for leftover in folder.glob(f"*{_TEMPORARY}*"):
            leftover.unlink(missing_ok=True)


def _literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
