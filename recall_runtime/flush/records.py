"""The table ``flushes``: one row for each session and compaction.

Belongs here: its queries. Does not belong here: anything that writes notes.
"""

import apsw

WRITTEN = "written"
NOTHING = "nothing"
_DONE = (WRITTEN, NOTHING)


def flushed(state: apsw.Connection, session: str, compaction_count: int) -> bool:
    """Return whether the session was flushed for this compaction; a failed attempt does not count."""
    row = state.execute(
        "SELECT outcome FROM flushes WHERE session_id = ? AND compaction_count = ?", (session, compaction_count)
    ).fetchone()
    return row is not None and row[0] in _DONE


def record_flush(state: apsw.Connection, session: str, compaction_count: int, outcome: str, now_ms: int) -> None:
    """Store the outcome of one attempt; the caller holds the write transaction."""
    state.execute(
        "INSERT OR REPLACE INTO flushes (session_id, compaction_count, outcome, at) VALUES (?, ?, ?, ?)",
        (session, compaction_count, outcome, now_ms),
    )
