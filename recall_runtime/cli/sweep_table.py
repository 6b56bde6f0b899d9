"""One sweep as a table: what was promoted, merged, superseded, and what was not, by gate and reason.

Belongs here: reading the rows one sweep left in the state database (a dry run leaves none: its report is read), and
laying them out.
Does not belong here: running a sweep (``memory_assets``), verdicts (they are read, never made here).
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import apsw

from recall_runtime.cli.output import table
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS

if TYPE_CHECKING:
    from memory_assets.sweep_report import SweepReport

# What a failed gate means, for people who have not read docs/concepts.md.
GATE_MEANINGS = {
    "source": "its line is gone, says something else now, or was taken back",
    "origin": "it came from outside: a web page, a stranger, a tool",
    "session_kind": "it came from a cron, heartbeat, sub-agent or unknown session",
    "contaminated": "it holds a secret, or is a record, a log or no single line",
    "already_promoted": "it is in the curated file already",
    "superseded": "a newer statement took its place",
    "min_recall_count": "too few signals",
    "min_unique_queries": "too few distinct questions or sessions",
    "max_age_days": "nobody needed it lately, or it held until a day that is over",
    "min_score": "its score is below the threshold",
    "limit": "tonight's places were taken; it stays eligible",
    "rehydration": "its line changed, or stands in two places",
    "budget": "the file or the night has no room; it stays eligible",
    "write": "the file could not be written; it stays eligible",
}
_EXAMPLES = 2
_BEHIND = re.compile(r" (?:<!--|Source: |\[score=)")


def sweep_data(state: apsw.Connection, sweep_id: str) -> dict[str, Any]:
    """Return what the sweep left behind: entries, failed gates and read statements, each with numbers."""
    ((outcome, reason, day),) = query(state, "SELECT outcome, reason, day FROM sweeps WHERE sweep_id = ?", (sweep_id,))
    return {
        "sweep_id": sweep_id,
        "outcome": outcome,
        "reason": reason,
        "day": day,
        "entries": _entries(state, sweep_id),
        "not_promoted": _failed(state, sweep_id),
        "read": _read(state, sweep_id),
        "problems": [],
    }


def report_data(report: "SweepReport") -> dict[str, Any]:
    """Return the same of a report, for a dry run: nothing of it is stored, so there are no texts of what failed."""
    scored = {row.claim_id: row for row in report.scored}
    gates: dict[str, dict[str, Any]] = {}
    late = {one.claim_id: one.reason for one in report.curated.refused} if report.curated else {}
    for row in report.scored:
        gate = row.failed_gate or late.get(row.claim_id)
        if gate is not None:
            _count_failure(gates, str(gate), row.score, row.signal_count)
    changes = report.curated.changes if report.curated else ()
    entries = []
    for change in changes:
        row_of = scored.get(change.entry_key.rsplit(":", 1)[-1])
        entries.append(
            {
                "operation": change.operation.value,
                "file": change.file,
                "entry_key": change.entry_key,
                "text": change.line,
                "score": row_of.score if row_of else None,
                "signals": row_of.signal_count if row_of else None,
            }
        )
    staging = report.counts.get("staging", {})
    return {
        "sweep_id": report.sweep_id,
        "outcome": report.outcome,
        "reason": report.reason,
        "day": report.day.isoformat(),
        "entries": entries,
        "not_promoted": _in_order(gates.values()),
        "read": {name: staging.get(name, 0) for name in ("seen", "taken", "duplicate", "waiting", "refused")}
        | {"refused_by_reason": staging.get("refused_by", {})},
        "problems": list(report.problems),
    }


def sweep_lines(data: dict[str, Any]) -> Iterator[str]:
    """Lay out ``sweep_data`` for people."""
    yield f"Sweep {data['sweep_id']}: {str(data['outcome']).replace('_', ' ')}"
    if data["reason"]:
        yield f"  {data['reason']}"
    yield from (f"  {problem}" for problem in data["problems"])
    if data["entries"]:
        written = [
            [row["operation"], row["file"], row["score"], row["signals"], _entry_text(row["text"])]
            for row in data["entries"]
        ]
        yield from ("", "Written", *table(("what", "file", "score", "signals", "entry"), written, widest=90))
    if data["not_promoted"]:
        rows = [
            [row["gate"], row["count"], row["best_score"], row["most_signals"], GATE_MEANINGS[row["gate"]]]
            for row in data["not_promoted"]
        ]
        yield from ("", "Not promoted", *table(("gate", "claims", "best score", "most signals", "why"), rows))
    examples = [(row["gate"], text) for row in data["not_promoted"] for text in row["examples"]]
    if examples:
        yield from ("", *table(("gate", "for instance"), examples, widest=100))
    read = data["read"]
    counts = ", ".join(f"{read[name]} {name}" for name in ("taken", "duplicate", "waiting", "refused"))
    yield from ("", f"Read {read['seen']} statements: {counts}")
    if read["refused_by_reason"]:
        yield from table(("refused because", "statements"), read["refused_by_reason"].items())


def _entry_text(line: str) -> str:
    """Return an entry as a reader sees it: without the list sign, and what the formats write behind it."""
    return _BEHIND.split(line.removeprefix("- "))[0]


def _entries(state: apsw.Connection, sweep_id: str) -> list[dict[str, Any]]:
    rows = query(
        state,
        """SELECT l.operation, l.file, l.entry_key, l.text, g.score, g.signal_count
             FROM ledger l LEFT JOIN gate_scores g ON g.sweep_id = l.sweep_id AND g.claim_id = l.claim_id
            WHERE l.sweep_id = ? ORDER BY l.ledger_id""",
        (sweep_id,),
    )
    names = ("operation", "file", "entry_key", "text", "score", "signals")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _failed(state: apsw.Connection, sweep_id: str) -> list[dict[str, Any]]:
    gates: dict[str, dict[str, Any]] = {}
    rows = query(
        state,
        """SELECT g.failed_gate, g.score, g.signal_count, c.text, c.origin_class
             FROM gate_scores g JOIN claims c USING (claim_id)
            WHERE g.sweep_id = ? AND g.failed_gate IS NOT NULL ORDER BY g.score DESC, g.claim_id""",
        (sweep_id,),
    )
    for gate, score, signals, text, origin in rows:
        row = _count_failure(gates, gate, score, signals)
        if len(row["examples"]) < _EXAMPLES:
            # text of strangers is quoted as such, also in our own tables
            row["examples"].append(text if origin in ELIGIBLE_ORIGINS else f"[{origin}] {text!r}")
    return _in_order(gates.values())


def _count_failure(gates: dict[str, dict[str, Any]], gate: str, score: float, signals: int) -> dict[str, Any]:
    row = gates.setdefault(gate, {"gate": gate, "count": 0, "best_score": score, "most_signals": 0, "examples": []})
    row["count"] += 1
    row["best_score"] = max(row["best_score"], score)
    row["most_signals"] = max(row["most_signals"], signals)
    return row


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    order = list(GATE_MEANINGS)
    return sorted(rows, key=lambda row: order.index(row["gate"]))


def _read(state: apsw.Connection, sweep_id: str) -> dict[str, Any]:
    counts: dict[str, int] = dict(
        query(state, "SELECT verdict, sum(lines) FROM accounting WHERE sweep_id = ? GROUP BY verdict", (sweep_id,))
    )
    refused = {
        verdict.removeprefix("refused:"): lines
        for verdict, lines in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if verdict.startswith("refused:")
    }
    return {
        "seen": sum(counts.values()),
        "taken": counts.get("taken", 0),
        "duplicate": counts.get("duplicate", 0),
        "waiting": counts.get("waiting", 0),
        "refused": sum(refused.values()),
        "refused_by_reason": refused,
    }
