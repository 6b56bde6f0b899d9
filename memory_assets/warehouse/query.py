"""Read-only SQL on the published snapshot.

Belongs here: running one query, turning DuckDB's errors into one line.
Does not belong here: printing (``recall_runtime.cli``), writing anything.
"""

from dataclasses import dataclass
from typing import Any

from memory_assets.warehouse.connection import open_published
from memory_assets.warehouse.publish import published_path
from recall_runtime.agent import Agent
from recall_runtime.errors import StoreError

_LONGEST_MESSAGE = 400


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Names of the columns and the rows, as Python values (instants are naive UTC ``datetime``)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def run_query(agent: Agent, sql: str) -> QueryResult:
    """Run ``sql`` on the published snapshot of ``agent``. Works while a sweep runs; sees the last finished one.

    The connection is read-only and can reach no other file, so that any SQL is harmless.

    Raises:
        StoreError: there is no snapshot yet, or the SQL is wrong or asks for more than reading.
    """
    import duckdb

    with open_published(published_path(agent)) as connection:
        try:
            relation = connection.sql(sql)
            if relation is None:
                return QueryResult((), ())
            return QueryResult(tuple(relation.columns), tuple(relation.fetchall()))
        except duckdb.Error as error:
            message = " ".join(str(error).split())[:_LONGEST_MESSAGE]
            raise StoreError(
                f"The query failed: {message}", "Tables: `SELECT table_name, comment FROM duckdb_tables()`."
            ) from error
