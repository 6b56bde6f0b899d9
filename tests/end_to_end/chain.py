"""The whole chain over a small workspace: files, sessions, recalls, then a real sweep; and every derived byte of it.

Belongs here: placing the input of a case, recalling everything, reading what came out.
Does not belong here: what should come out (the tests beside this module).
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memory_assets.sweep import run_sweep
from memory_assets.sweep_report import SweepReport
from recall_runtime.clock import parse_instant
from recall_runtime.index.hits import SearchAnswer, SearchHit
from recall_runtime.index.search import search
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.signals.recalls import record_recall
from recall_runtime.storage.connection import open_reader
from recall_runtime.vocabulary import Corpus, EntryStatus, OriginClass, SessionKind, Tier
from tests.support.sessions import save_rows
from tests.support.workspace_days import DIRECT, Days

TESTS = Path(__file__).parents[1]
CASES = TESTS / "cases"
REAL = TESTS / "cases_real"
# Nothing is held back by number or room, so that only structure and provenance decide.
OPEN_GATES: dict[str, Any] = {
    "deep": {
        "min_score": 0,
        "min_recall_count": 0,
        "min_unique_queries": 0,
        "max_age_days": 10_000,
        "limit": 1_000,
        "max_added_characters": 1_000_000,
        "memory_budget_characters": 1_000_000,
        "max_promoted_snippet_tokens": 10_000,
    },
    "light": {"lookback_days": 10_000},
}


class Chain(Days):
    """One workspace on its way through the whole product."""

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.agent.workspace

    def place(self, source: Path, target: str, *, replace: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
        """Copy a file byte for byte, but for strings that stand for the product's own; return the bytes."""
        data = source.read_bytes()
        for old, new in replace:
            data = data.replace(old, new)
        file = self.root / target
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return data

    def take_sessions(self, folder: Path, keys: dict[str, str | None], owner: set[str]) -> None:
        """Copy the sessions of a case; the host's own metadata says who wrote and of what kind each session is."""
        store: dict[str, Any] = {}
        for file in sorted(folder.glob("*.jsonl")):
            rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            for row in rows:
                if file.stem in owner and row.get("message", {}).get("role") == "user":
                    row["message"]["__openclaw"] = {"senderIsOwner": True}
                    row["message"]["provenance"] = {"kind": "external_user", "sourceChannel": "telegram"}
            save_rows(self.folder / "sessions" / f"{rows[0]['id']}.jsonl", rows)
            if key := keys.get(file.stem):
                store[key] = {"sessionId": rows[0]["id"], "chatType": "direct"}
        (self.folder / "sessions" / "sessions.json").write_text(json.dumps(store), encoding="utf-8")

    def index_rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return rows of the index database."""
        with contextlib.closing(open_reader(self.agent.folders.index_db)) as index:
            return index.execute(statement, values).fetchall()

    def shown(self, *tiers: Tier) -> list[SearchHit]:
        """Return every row of the index as a hit of relevance 1."""
        rows = self.index_rows(
            "SELECT e.entry_id, s.path, s.tier, e.start_line, e.end_line, e.text, s.day, e.origin_class,"
            " e.session_kind, e.observed_at, e.session_id, e.message_id FROM entries e JOIN sources s USING (source_id)"
            " ORDER BY s.path, e.ordinal"
        )
        return [
            SearchHit(
                IndexEntry(
                    *(row[0], row[1], Tier(row[2]), row[3], row[4], row[5], (), row[6], Annotations()),
                    EntryStatus.ACTIVE,
                    Provenance(OriginClass(row[7]), SessionKind(row[8]), row[9], row[10]),
                    row[11],
                ),
                1.0, 1.0, 1.0, None, row[5], row[7] == "untrusted",
            )
            for row in rows
            if not tiers or Tier(row[2]) in tiers
        ]  # fmt: skip

    def recall_all(
        self, days: Iterable[str], questions: Iterable[str], *tiers: Tier, lane: str = "search", key: str = DIRECT
    ) -> None:
        """Record that every row of the index was shown for each of ``questions`` on each of ``days``."""
        hits, questions = self.shown(*tiers), list(questions)
        for day in days:
            now = parse_instant(f"{day}T09:00:00Z")
            for question in questions:
                assert record_recall(self.agent, query=question, hits=hits, session_key=key, lane=lane, now_ms=now)

    def sweep(self, instant: str, **options: Any) -> SweepReport:
        """Run one real sweep at ``instant``."""
        return run_sweep(self.at(instant), **({"publishing": False} | options))

    def search(self, query: str, instant: str, *, corpus: Corpus = Corpus.ALL, **options: Any) -> SearchAnswer:
        """Search at ``instant``."""
        return search(self.at(instant), query, corpus=corpus, **options)

    def file(self, name: str = "MEMORY.md") -> str:
        """Return a file of the workspace, empty when it is missing; line ends as they are."""
        path = self.root / name
        return path.read_bytes().decode("utf-8") if path.exists() else ""

    def files(self) -> dict[str, bytes]:
        """Return every file of the workspace."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }

    def sources(self) -> dict[str, bytes]:
        """Return the files a sweep may never change: notes and transcripts."""
        notes = {name: data for name, data in self.files().items() if name.startswith("memory/")}
        reports = {name for name in notes if name.startswith("memory/dreaming/")}
        sessions = {f"sessions/{path.name}": path.read_bytes() for path in (self.folder / "sessions").iterdir()}
        return {name: data for name, data in notes.items() if name not in reports} | sessions

    def assert_second_run_changes_nothing(self, instant: str) -> None:
        """The same input again, at the same instant and a night later: no byte of a file, no claim, no signal."""
        before, rows = self.files(), self.dump()
        self.sweep(instant)
        assert self.files() == before
        assert self.dump() == rows

    def accounting(self, path: str | None = None) -> dict[str, int]:
        """Return lines by verdict of all sweeps, of one source or all."""
        where = "WHERE source = ?" if path else ""
        values = (path,) if path else ()
        return dict(self.rows(f"SELECT verdict, sum(lines) FROM accounting {where} GROUP BY verdict", *values))  # noqa: S608 - constant


def lines_with(text: str, needle: str) -> list[int]:
    """Return the 1-based lines of ``text`` that hold ``needle``."""
    return [number for number, line in enumerate(text.split("\n"), start=1) if needle in line]


def every_stored_text(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of every file below ``folder``: databases, their logs, snapshots, spools."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()
