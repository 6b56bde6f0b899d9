"""Lineage keys in the state database: computed once for each claim, in the order in which claims were met.

Belongs here: opening the book of keys on what is stored, storing new keys, the key of an entry that stands in a file.
Does not belong here: the rules of a key (``book``).
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from recall_runtime.lineage_keys.book import LineageBook, LineageClaim, given_key
from recall_runtime.lineage_keys.succession import NAMED
from recall_runtime.notes.identity import claim_id
from recall_runtime.paths import MEMORY_FILE
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import Operation

_WATERMARK = "lineage_keys"
_RULES = 2  # counts up when the rules of a key change: keys of other rules are made anew


def assign_keys(state: apsw.Connection) -> LineageBook:
    """Give every claim that came since the last call its lineage key; return the book, for claims outside the table.

    Near-duplicates state one fact, so the lineages of a group are one: that is how a paraphrase in another language
    finds the lineage of its weak slot. Only claims that may be promoted join lineages.

    When a project becomes known, claims without a key and those whose subject was but a proper name are looked at
    again. Keys that writers gave are brought into the form ``given:<key>``. Keys made by other rules are made anew.
    """
    row = state.execute("SELECT value FROM watermarks WHERE name = ?", (_WATERMARK,)).fetchone()
    last, before, rules = (0, set(), _RULES) if row is None else _parse(str(row[0]))
    if rules != _RULES:
        last = 0
        with write_transaction(state):
            state.execute("UPDATE claims SET lineage_key = NULL WHERE key_is_given = 0 AND lineage_key IS NOT NULL")
    projects = known_projects(state)
    again = bool(projects - before)
    book = open_book(state)
    newest = last
    fresh = []
    roots = set()
    for rowid, claim, root_id, text, project_key, key, is_given, corrects, trusted in _to_look_at(
        state, last, again=again
    ):
        newest = max(newest, rowid)
        if rowid > last:
            roots.add(root_id)
        made: str | None
        if is_given:
            made = given_key(key)
        elif key is not None and not (again and key.startswith(NAMED)):
            continue
        else:
            made = book.key_of(
                LineageClaim(claim, text, project_key, is_correction=bool(corrects), is_trusted=bool(trusted))
            )
            if key is not None and (made is None or made.startswith(NAMED)):
                continue
        if made is not None and made != key:
            fresh.append((made, claim))
            roots.add(root_id)
    if fresh or newest != last or again or rules != _RULES:
        mark = {"rowid": newest, "projects": sorted(projects), "rules": _RULES}
        _store(state, fresh, roots, json.dumps(mark, ensure_ascii=False))
    return open_book(state)


def _to_look_at(state: apsw.Connection, last: int, *, again: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the claims after row ``last`` and those with a given key; ``again``: also those that a project may name."""
    return state.execute(
        "SELECT rowid, claim_id, root_id, text, project_key, lineage_key, key_is_given, EXISTS ("
        "SELECT 1 FROM evidence e WHERE e.claim_id = claims.claim_id AND e.correction = 1 AND e.echo = 0"
        " AND e.session_kind = 'interactive' AND e.origin_class IN ('owner', 'agent')),"
        " session_kind = 'interactive' AND origin_class IN ('owner', 'agent') FROM claims"
        " WHERE rowid > ? OR key_is_given = 1 OR (? AND (lineage_key IS NULL OR lineage_key GLOB ?)) ORDER BY rowid",
        (last, again, f"{NAMED}*"),
    )


def _store(state: apsw.Connection, keys: Iterable[tuple[str, str]], roots: Iterable[str], watermark: str) -> None:
    with write_transaction(state):
        state.executemany("UPDATE claims SET lineage_key = ? WHERE claim_id = ?", keys)
        for root_id in sorted(roots):
            _join_group(state, root_id)
        state.execute(
            "INSERT INTO watermarks (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (_WATERMARK, watermark),
        )


def open_book(state: apsw.Connection) -> LineageBook:
    """Return the book on what is stored, without giving keys to claims that have none yet."""
    return LineageBook(known_projects(state), lambda prefix: _stored(state, prefix))


def _join_group(state: apsw.Connection, root_id: str) -> None:
    """Make one lineage of those of a group that differ in the id of their first claim only; the oldest one stays."""
    rows = state.execute(
        """SELECT c.lineage_key, min(f.rowid) FROM claims c
             JOIN claims f ON f.claim_id = substr(c.lineage_key, -12)
            WHERE c.root_id = ? AND c.key_is_given = 0 AND c.session_kind = 'interactive'
              AND c.origin_class IN ('owner', 'agent') AND c.lineage_key LIKE '%|%|%'
            GROUP BY c.lineage_key ORDER BY 2""",
        (root_id,),
    )
    oldest: dict[str, str] = {}
    for key, _ in list(rows):
        kept = oldest.setdefault(key.rpartition("|")[0], key)
        if kept != key:
            state.execute("UPDATE claims SET lineage_key = ? WHERE lineage_key = ?", (kept, key))


def known_projects(state: apsw.Connection) -> set[str]:
    """Return the keys of the projects that trusted writers named so far."""
    rows = state.execute(
        "SELECT DISTINCT project_key FROM claims WHERE project_key IS NOT NULL AND origin_class IN ('owner', 'agent')"
    )
    return {part.strip() for (keys,) in rows for part in keys.split(";") if part.strip()}


def _stored(state: apsw.Connection, prefix: str) -> list[tuple[str, str]]:
    """Return text and key of claims that may be promoted and whose key begins with ``prefix``: a range of the index."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return list(
        state.execute(
            "SELECT text, lineage_key FROM claims WHERE lineage_key >= ? AND lineage_key < ?"
            " AND session_kind = 'interactive' AND origin_class IN ('owner', 'agent') ORDER BY rowid",
            (prefix, end),
        )
    )


def _parse(value: str) -> tuple[int, set[str], int]:
    tree = json.loads(value)
    return int(tree["rowid"]), set(tree["projects"]), int(tree.get("rules", 1))


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """What the ledger and the claims know of an entry of ours.

    ``line`` is the entry line as it was last written. ``observed_at`` (milliseconds UTC) is when its claim was last
    observed, or asked for: what the owner asked to remember is as new as the request, whatever was written before.
    ``claim_key`` follows when a project becomes known, ``ledger_key`` is that of the day of writing.
    """

    claim_id: str | None
    line: str
    claim_key: str | None
    ledger_key: str | None
    observed_at: int | None


def written_entry(state: apsw.Connection, entry_keys: Iterable[str], file: str = MEMORY_FILE) -> WrittenEntry | None:
    """Return what is known of the entry of ``file`` with these keys, ``None`` when it is not ours."""
    for key in entry_keys:
        row = state.execute(
            "SELECT claim_id, text, lineage_key, CASE gate ->> '$.because' WHEN 'remember' THEN at END FROM ledger"
            " WHERE entry_key = ? AND file = ? AND operation IN (?, ?) AND claim_id IS NOT NULL"
            " ORDER BY ledger_id DESC LIMIT 1",
            (key, file, Operation.ADDED, Operation.SUPERSEDED),
        ).fetchone()
        if row is None:
            continue
        claim_id, line, ledger_key, asked_at = row
        claim = state.execute(
            """SELECT c.lineage_key, coalesce(max(e.observed_at), c.last_seen_at)
                 FROM claims c LEFT JOIN evidence e ON e.claim_id = c.claim_id AND e.echo = 0
                WHERE c.claim_id = ? GROUP BY c.claim_id""",
            (claim_id,),
        ).fetchone()
        claim_key, observed_at = claim or (None, None)
        times = [at for at in (observed_at, asked_at) if at is not None]
        return WrittenEntry(claim_id, line, claim_key, ledger_key, max(times, default=None))
    return None


def entry_lineage(
    book: LineageBook, text: str, project_key: str | None, *, marked: str | None, written: WrittenEntry | None
) -> str | None:
    """Return the lineage key of an entry that stands in a file.

    Its mark comes first, then the key of its claim; what nobody staged gets its key as a new claim would.

    Args:
        book: The book of keys.
        text: What the entry says.
        project_key: The project it is annotated with.
        marked: The key of its lineage mark.
        written: What ``written_entry`` gave.
    """
    stored = given_key(marked) if marked else written.claim_key if written else None
    if stored is not None and not stored.startswith(NAMED):
        return stored
    made = book.key_of(LineageClaim(claim_id(text), text, project_key))
    if made is None or (stored is not None and made.startswith(NAMED)):
        return stored or (written.ledger_key if written else None)
    return made
