"""Standing intents of an OpenClaw installation.

Belongs here: reading its table from a private copy of the database. Does not belong here: firing intents.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from recall_runtime.errors import StoreError
from recall_runtime.storage.connection import open_reader

_COLUMNS = (
    "intent_id", "description", "trigger_keywords", "channel_scope", "sender_scope", "creator_sender", "status",
    "expires_at", "max_fires", "fire_count", "cooldown_seconds", "last_fired_at", "created_at", "source_session_id",
)  # fmt: skip
_MAX_ROWS = 10_000


def adopt_intents(state: apsw.Connection, databases: Iterable[Path], skipped: Counter[str]) -> int:
    """Copy the standing intents of ``databases``; return how many are new. The caller holds the write transaction.

    Intents without a known creator never fire, so they are left out and counted.
    """
    count = 0
    for database in databases:
        try:
            rows = _read(database)
        except (apsw.Error, OSError, StoreError):
            skipped["unreadable_file"] += 1
            continue
        for row in rows:
            try:
                state.execute(
                    f"INSERT INTO standing_intents ({', '.join(_COLUMNS)})"  # noqa: S608 - names are constants above
                    f" VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (intent_id) DO NOTHING",
                    row,
                )
                count += state.changes()
            except (apsw.ConstraintError, apsw.MismatchError):
                skipped["damaged"] += 1
    return count


def _read(database: Path) -> list[tuple[Any, ...]]:
    """Read from a copy: opening a live database, even for reading, may write beside it."""
    with tempfile.TemporaryDirectory(prefix="dreamline-") as folder:
        for file in (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm"))):
            if file.is_file():
                shutil.copyfile(file, Path(folder) / file.name)
        connection = open_reader(Path(folder) / database.name)
        try:
            present = connection.execute(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'standing_intents'"
            ).fetchone()
            if not present or not present[0]:
                return []
            select = ", ".join("id" if column == "intent_id" else column for column in _COLUMNS)
            query = f"SELECT {select} FROM standing_intents LIMIT {_MAX_ROWS}"  # noqa: S608 - constants only
            return list(connection.execute(query))
        finally:
            connection.close()
