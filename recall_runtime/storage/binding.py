"""Of which workspace the databases of an agent are.

Belongs here: the name of the workspace in both databases, refusing those of another one.
Does not belong here: finding the workspace (``recall_runtime.agent``), building an index (``index.sync``).

Both databases name things by paths inside the workspace: with another workspace beside them they would show one
person's memory as another's, and put old content into a foreign file. A workspace is known by its path. The state says
so with authority, because it can't be made again; an index of another workspace is built anew. A database without a
name is of a version that wrote none; the next sync names it.
"""

import contextlib
from pathlib import Path

import apsw

from recall_runtime.errors import StoreError, WorkspaceError
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.connection import open_reader, query, write_transaction
from recall_runtime.storage.schema import open_index, open_state, read_index

CHECK_MS = 100  # a state that is locked for longer is not looked into; whoever needs it will say so
_STATE = "watermarks(name, value)", "SELECT value FROM watermarks WHERE name = 'workspace'"
_INDEX = "meta(key, value)", "SELECT value FROM meta WHERE key = 'workspace'"


def require_own_state(folders: AgentFolders) -> None:
    """Refuse a state database of another workspace. One that is missing or can't be read is no matter of ours.

    Raises:
        WorkspaceError: it is of another workspace.
    """
    if not folders.state_db.exists():
        return
    with contextlib.suppress(StoreError, apsw.Error), contextlib.closing(open_reader(folders.state_db)) as state:
        state.set_busy_timeout(CHECK_MS)
        _refuse_other(folders, _name_in(state, _STATE))


def claim_state(folders: AgentFolders, state: apsw.Connection) -> None:
    """Refuse the open ``state`` when it is of another workspace; name it when it has no name yet.

    Raises:
        WorkspaceError: it is of another workspace.
    """
    name = _name_in(state, _STATE)
    _refuse_other(folders, name)
    if name is None:
        _set_name(state, _STATE, folders.workspace)


def is_own_index(folders: AgentFolders, index: apsw.Connection) -> bool:
    """Return whether the open ``index`` is of this workspace, or of a version that wrote no name."""
    return _name_in(index, _INDEX) in (None, _spelled(folders.workspace))


def name_index(folders: AgentFolders, index: apsw.Connection) -> None:
    """Write the name of the workspace into the open ``index`` where it stands there not yet."""
    if _name_in(index, _INDEX) is None:
        _set_name(index, _INDEX, folders.workspace)


def read_own_index(folders: AgentFolders, *, vectors: bool = False) -> apsw.Connection:
    """Open the index of this workspace for reading.

    Raises:
        StoreError: it is missing, of another workspace, or can't be read.
    """
    reader = read_index(folders.index_db, vectors=vectors)
    with contextlib.ExitStack() as stack:
        stack.callback(reader.close)
        if is_own_index(folders, reader):
            stack.pop_all()
            return reader
    raise StoreError(
        f"{folders.index_db} is the index of another workspace than {folders.workspace}", "Run `dreamline index`."
    )


def take_over(folders: AgentFolders) -> None:
    """Name this workspace in the databases that are there, whatever they were called before: it was moved or copied.

    Raises:
        StoreError: one of them can't be written.
    """
    for path, opened, where in ((folders.state_db, open_state, _STATE), (folders.index_db, open_index, _INDEX)):
        if path.exists():
            with contextlib.closing(opened(path)) as connection:
                _set_name(connection, where, folders.workspace)


def _refuse_other(folders: AgentFolders, name: str | None) -> None:
    if name not in (None, _spelled(folders.workspace)):
        raise WorkspaceError(
            f"The memory in {folders.agent_home} is of the workspace {name}, not of {folders.workspace}",
            "Give this one a state folder of its own with --home DIR. If the folder was moved, run"
            f" `dreamline --workspace {folders.workspace} init --moved`.",
        )


def _name_in(connection: apsw.Connection, where: tuple[str, str]) -> str | None:
    rows = query(connection, where[1])
    return rows[0][0] if rows else None


def _set_name(connection: apsw.Connection, where: tuple[str, str], workspace: Path) -> None:
    with write_transaction(connection):
        connection.execute(
            f"INSERT OR REPLACE INTO {where[0]} VALUES ('workspace', ?)",  # noqa: S608 - one of our two tables
            (_spelled(workspace),),
        )


def _spelled(workspace: Path) -> str:
    return str(workspace).encode("utf-8", "backslashreplace").decode()  # a path may hold bytes that are no text
