"""A workspace in which statements are noted, pass the gates, and are consolidated: what staging and gates would leave.

Belongs here: writing a note line with the claim, evidence and gate rows that belong to it.
Does not belong here: what consolidation makes of it (tests/consolidation).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memory_assets.consolidation.apply import ConsolidationReport, consolidate
from recall_runtime.agent import Agent
from recall_runtime.clock import parse_instant
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.statements import statements_of
from tests.support.curated import NOW, insert_row


@dataclass(slots=True)
class Night:
    """An agent, its state and a counter of sweeps."""

    agent: Agent
    state: apsw.Connection
    sweeps: int = 0

    def note(self, text: str, day: str = "2026-03-18", *, path: str | None = None, **claim: Any) -> str:
        """Append ``- text`` to the note of ``day`` and stage it; return the claim's id."""
        path = path or f"memory/{day}.md"
        file = self.agent.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else f"# {day}\n\n".encode()
        file.write_bytes(before + f"- {text}\n".encode())
        block = read_note(file.read_bytes(), path=path).blocks[-1]
        (statement,) = statements_of(block.text, block=block.kind, start_line=block.start_line, end_line=block.end_line)
        given = claim.pop("supersedes", None)
        row: dict[str, Any] = {
            "claim_id": statement.claim_id,
            "root_id": statement.claim_id,
            "text": statement.text,
            "kind": statement.kind.value,
            "project_key": block.annotations.project_key,
            "lineage_key": given,
            "key_is_given": int(given is not None),
            "origin_class": "agent",
            "session_kind": "interactive",
            "concept_tags": "",
            "first_seen_at": parse_instant(day),
            "last_seen_at": parse_instant(day),
        } | claim
        insert_row(self.state, "claims", "OR IGNORE", **row)
        insert_row(
            self.state,
            "evidence",
            "OR IGNORE",
            claim_id=statement.claim_id,
            source="note",
            path=path,
            start_line=block.start_line,
            end_line=block.end_line,
            source_key=hashlib.sha256(f"{block.text}{block.start_line}".encode()).hexdigest()[:24],
            day=day,
            origin_class=row["origin_class"],
            session_kind=row["session_kind"],
            observed_at=parse_instant(day),
        )
        return statement.claim_id

    def sweep(self, *passed: str, score: float = 0.8, **options: Any) -> ConsolidationReport:
        """Consolidate the claims ``passed`` as one sweep, best first."""
        self.sweeps += 1
        sweep_id = options.pop("sweep_id", f"s{self.sweeps}")
        self.score(sweep_id, passed, score)
        now = options.pop("now_ms", NOW + self.sweeps)
        return consolidate(self.agent, self.state, sweep_id=sweep_id, now_ms=now, passed=passed, **options)

    def score(self, sweep_id: str, passed: Sequence[str], score: float = 0.8) -> None:
        """Store the gate rows of claims that passed."""
        for claim_id in passed:
            components = dict.fromkeys(
                ("relevance", "frequency", "diversity", "recency", "consolidation", "conceptual", "phase_boost"), 0.5
            )
            counts = {"signal_count": 4, "recall_count": 3, "unique_queries": 3, "age_days": 1.0, "score": score}
            row = {"sweep_id": sweep_id, "claim_id": claim_id, **counts, **components}
            insert_row(self.state, "gate_scores", "OR REPLACE", **row)

    @property
    def memory(self) -> str:
        """Content of MEMORY.md."""
        return (self.agent.workspace / "MEMORY.md").read_text(encoding="utf-8")

    def write(self, content: str | bytes, file: str = "MEMORY.md") -> None:
        """Write a curated file as a person would."""
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (self.agent.workspace / file).write_bytes(data)

    def claim(self, claim_id: str) -> tuple[str, str | None, str | None]:
        """Status, reason and entry key of a claim."""
        row = self.state.execute(
            "SELECT status, reason, entry_key FROM claims WHERE claim_id = ?", (claim_id,)
        ).fetchone()
        assert row is not None
        return row
