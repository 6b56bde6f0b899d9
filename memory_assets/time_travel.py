"""The past for a dry run: the state and the workspace as a sweep at an earlier instant would have met them.

Belongs here: taking copies of the databases and of the notes back to an instant, from the ledger and the pre-images.
Does not belong here: the curated files of a day alone (``recall_runtime.curated.history``), the sweep itself.

Exact are the curated files as the sweeps left them, what was promoted or superseded, signals, places and recall events.
Not kept by anybody, and so taken as they are now: the lines of notes that people changed since, hits of the phases.
"""

import datetime as dt
import shutil
from dataclasses import replace
from pathlib import Path

import apsw

from memory_assets.staging import claims, grouping
from memory_assets.staging.stage import roots_of
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.effects import SUPERSEDED_BY
from recall_runtime.curated.history import UNDONE_BY, as_of
from recall_runtime.paths import MEMORY_FILE, NOTES_FOLDER, USER_FILE, note_day
from recall_runtime.storage.connection import query, write_transaction

_LATER_ROWS = (
    ("ledger", "at"),
    ("pre_images", "at"),
    ("write_journal", "at"),
    ("recall_events", "at"),
    ("signals", "observed_at"),
    ("evidence", "observed_at"),
    ("claims", "first_seen_at"),
)


def is_past(state: apsw.Connection, now_ms: int) -> bool:
    """Return whether a sweep was started, or a curated file written or taken back, at ``now_ms`` or later."""
    return bool(
        query(
            state,
            "SELECT 1 FROM sweeps WHERE started_at >= ?1 UNION ALL SELECT 1 FROM ledger WHERE at >= ?1 LIMIT 1",
            (now_ms,),
        )
    )


def past_workspace(agent: Agent, state: apsw.Connection, now_ms: int, folder: Path) -> Agent:
    """Fill ``folder`` with the curated files and notes of the instant; return the agent with it as its workspace.

    A curated file that no sweep ever wrote is copied as it is. Notes of later days are left out.
    """
    for name in (MEMORY_FILE, USER_FILE):
        snapshot = as_of(state, name, now_ms - 1)
        present = agent.workspace / name
        if not snapshot.known and present.is_file():
            shutil.copy2(present, folder / name)
        elif snapshot.content is not None:
            (folder / name).write_bytes(snapshot.content)
    today = day_of(now_ms, agent.zone)
    for path in sorted((agent.workspace / NOTES_FOLDER).rglob("*.md")):
        relative = path.relative_to(agent.workspace)
        if path.is_file() and (note_day(relative.as_posix()) or dt.date.min) <= today:
            (folder / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder / relative)
    return replace(agent, folders=replace(agent.folders, workspace=folder))


def rewind(state: apsw.Connection, now_ms: int) -> None:
    """Take ``state``, a copy, back to the instant before a sweep at ``now_ms``."""
    with write_transaction(state):
        _revive(state, now_ms)
        touched = {
            claim
            for (claim,) in query(
                state, "SELECT DISTINCT claim_id FROM evidence WHERE observed_at >= ?1 OR gone_at >= ?1", (now_ms,)
            )
        }
        roots = roots_of(state, touched)
        state.execute(
            "DELETE FROM gate_scores WHERE sweep_id IN (SELECT sweep_id FROM sweeps WHERE started_at >= ?)", (now_ms,)
        )
        state.execute("DELETE FROM sweeps WHERE started_at >= ?", (now_ms,))
        for table, column in _LATER_ROWS:
            state.execute(f"DELETE FROM {table} WHERE {column} >= ?", (now_ms,))  # noqa: S608 - constant names
        state.execute("UPDATE evidence SET live = 1, gone_at = NULL WHERE gone_at >= ?", (now_ms,))
        left = {claim for claim in touched if query(state, "SELECT 1 FROM claims WHERE claim_id = ?", (claim,))}
        for root in sorted(roots):
            grouping.reroot(state, root)
        claims.settle(state, left)
        grouping.inherit(state, left)
        claims.withdraw(state, roots_of(state, left))


def _revive(state: apsw.Connection, now_ms: int) -> None:
    """Give back the state of claims that were promoted, taken back, or lost their place to one promoted, since then.

    A claim lost its place when its successor was first written after it had been promoted itself; what a successor
    merely joined later, or a place it had in an earlier life, says nothing. A claim that an undo took back had been
    promoted until then; those that only waited in its group have no entry, and wait.
    """
    state.execute(
        """UPDATE claims SET reason = NULL, status = iif(promoted_at IS NULL, 'waiting', 'promoted')
            WHERE status = 'superseded' AND ?2 <= (
                SELECT min(at) FROM ledger WHERE entry_key = substr(reason, ?1)
                   AND operation IN ('added', 'superseded') AND at >= coalesce(promoted_at, first_seen_at))""",
        (len(SUPERSEDED_BY) + 1, now_ms),
    )
    undone = query(
        state, "SELECT DISTINCT sweep_id FROM ledger WHERE at >= ? AND sweep_id GLOB ?", (now_ms, UNDONE_BY + "*")
    )
    for (undo,) in undone:
        state.execute(
            "UPDATE claims SET status = 'promoted', promoted_at = l.at, entry_key = l.entry_key FROM ledger l"
            " WHERE reason = ?1 AND l.claim_id = claims.claim_id AND l.sweep_id = ?2",
            (undo, undo.removeprefix(UNDONE_BY)),
        )
        state.execute(
            "UPDATE claims SET reason = NULL, status = iif(promoted_at IS NULL, 'waiting', status) WHERE reason = ?",
            (undo,),
        )
    state.execute(
        "UPDATE claims SET reason = NULL, status = 'waiting', promoted_at = NULL, entry_key = NULL"
        " WHERE promoted_at >= ?",
        (now_ms,),
    )
