"""Rows of claims, evidence and signals written straight into a state database, for tests of what reads them."""

from typing import Any

import apsw

from recall_runtime.clock import parse_instant

SEEN_AT = parse_instant("2026-03-01T09:00:00Z")


def insert(state: apsw.Connection, table: str, **values: Any) -> int:
    """Insert one row and return its rowid."""
    columns = ", ".join(values)
    marks = ", ".join("?" * len(values))
    state.execute(f"INSERT INTO {table}({columns}) VALUES ({marks})", list(values.values()))  # noqa: S608 - test columns
    return state.last_insert_rowid()


def add_claim(state: apsw.Connection, claim_id: str, text: str, **values: Any) -> None:
    """Insert a waiting claim of an interactive session, with one live note line as its evidence."""
    live = values.pop("live", 1)
    path, line = values.pop("path", "memory/2026-03-01.md"), values.pop("line", 3)
    claim: dict[str, Any] = {
        "claim_id": claim_id,
        "root_id": claim_id,
        "text": text,
        "kind": "fact",
        "origin_class": "agent",
        "session_kind": "interactive",
        "first_seen_at": SEEN_AT,
        "last_seen_at": SEEN_AT,
    }
    claim |= values
    insert(state, "claims", **claim)
    insert(
        state,
        "evidence",
        claim_id=claim_id,
        source="note",
        path=path,
        start_line=line,
        end_line=line,
        source_key=f"{path}:{line}",
        day="2026-03-01",
        origin_class=claim["origin_class"],
        session_kind=claim["session_kind"],
        live=live,
        observed_at=SEEN_AT,
    )


def add_signals(state: apsw.Connection, claim_id: str, count: int, *, kind: str = "recall", **values: Any) -> None:
    """Insert ``count`` signals of distinct contexts on as many days from 2026-03-02 on."""
    for number in range(count):
        day = values.get("day", f"2026-03-{2 + number:02d}")
        insert(
            state,
            "signals",
            claim_id=claim_id,
            kind=kind,
            context=f"{values.get('context', kind)}-{number}",
            day=day,
            score=values.get("score", 0.9),
            observed_at=parse_instant(f"{day}T10:00:00Z"),
        )
