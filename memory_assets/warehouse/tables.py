"""The published tables: name, meaning and type of every column, and where the rows come from.

Belongs here: the documented shape of the snapshot, as data. The DDL, the comments and the hand-over follow from it.
Does not belong here: opening databases (``connection``), the order of publishing (``publish``).

Text that came from somebody untrusted is never published: its columns are NULL, the numbers stay.
Instants are UTC; days are days of the workspace's zone.
"""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """Type of a published column: (DuckDB type, SQLite type it is read as, expression that converts)."""

    TEXT = ("VARCHAR", "TEXT", '"{0}"')
    TAGS = ("VARCHAR[]", "TEXT", "CASE WHEN \"{0}\" = '' THEN [] ELSE string_split(\"{0}\", '; ') END")
    JSON = ("JSON", "TEXT", 'try_cast("{0}" AS JSON)')
    INTEGER = ("BIGINT", "INTEGER", '"{0}"')
    REAL = ("DOUBLE", "REAL", '"{0}"')
    BOOLEAN = ("BOOLEAN", "INTEGER", 'CAST("{0}" AS BOOLEAN)')
    INSTANT = ("TIMESTAMP", "INTEGER", 'epoch_ms("{0}")')
    DAY = ("DATE", "TEXT", 'try_cast("{0}" AS DATE)')

    @property
    def duckdb_type(self) -> str:
        """Type of the published column."""
        return self.value[0]

    @property
    def read_as(self) -> str:
        """Type of the value as the state database holds it."""
        return self.value[1]

    def converted(self, column: str) -> str:
        """Return the DuckDB expression that turns the value read into the value published."""
        return self.value[2].format(column)


@dataclass(frozen=True, slots=True)
class Column:
    """One published column."""

    name: str
    kind: Kind
    comment: str


@dataclass(frozen=True, slots=True)
class Table:
    """One published table.

    Attributes:
        name: As analysts see it.
        comment: One sentence: what a row is.
        columns: In order.
        select: SQLite query on the state database that gives exactly these columns; ``{parts}`` stands for the
            condition on the part, when the table is handed over in parts.
        parts: SQLite query that gives (part, fingerprint) of every part, or ``None``: read whole each time.
        part_column: The column that tells the part.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    select: str
    parts: str | None = None
    part_column: str = ""


_TRUSTED = "c.origin_class IN ('owner', 'agent')"

SIGNALS = Table(
    "signals",
    "One row per counted signal: why a claim is held to be needed.",
    (
        Column("signal_id", Kind.INTEGER, "number of the signal, ascending in the order of arrival"),
        Column("claim_id", Kind.TEXT, "the claim it counts for (candidates.claim_id)"),
        Column("kind", Kind.TEXT, "recall, observation or grounded"),
        Column("context", Kind.TEXT, "what makes it distinct: hash of the query, session:<id> or day:<day>"),
        Column("day", Kind.DAY, "day of the signal"),
        Column("score", Kind.REAL, "relevance of the recall, or the fixed score of its kind, 0 to 1"),
        Column("observed_at", Kind.INSTANT, "when"),
        Column("event_id", Kind.INTEGER, "recall event, for recalls"),
        Column("evidence_id", Kind.INTEGER, "evidence row, for observations"),
        Column("batch", Kind.TEXT, "backfill that staged it, for its rollback"),
    ),
    "SELECT signal_id, claim_id, kind, context, day, score, observed_at, event_id, evidence_id, batch"
    " FROM signals WHERE day IN ({parts})",
    parts="SELECT day, count(*) || ':' || sum(signal_id) || ':' || total(score) || ':' || total(unicode(claim_id))"
    " FROM signals GROUP BY day",
    part_column="day",
)

CANDIDATES = Table(
    "candidates",
    "One row per claim that was ever staged, with where it stands.",
    (
        Column("claim_id", Kind.TEXT, "12 hex digits of the hash of the normalised statement"),
        Column("root_id", Kind.TEXT, "claim that stands for the group of near-duplicates"),
        Column("text", Kind.TEXT, "the statement; NULL when its origin is untrusted or system"),
        Column("kind", Kind.TEXT, "fact or directive"),
        Column("project_key", Kind.TEXT, "project it belongs to, if any"),
        Column("lineage_key", Kind.TEXT, "what it is about; equal keys supersede by time"),
        Column("origin_class", Kind.TEXT, "owner, agent, system or untrusted: the least trusted of its sources"),
        Column("session_kind", Kind.TEXT, "kind of session that stated it"),
        Column("concept_tags", Kind.TAGS, "what it speaks of"),
        Column("first_seen_at", Kind.INSTANT, "first time stated"),
        Column("last_seen_at", Kind.INSTANT, "last time stated"),
        Column("status", Kind.TEXT, "waiting, promoted, superseded, refused or withdrawn"),
        Column("reason", Kind.TEXT, "why it is refused, superseded or withdrawn"),
        Column("promoted_at", Kind.INSTANT, "when it was promoted"),
        Column("entry_key", Kind.TEXT, "entry it became (entries.entry_key)"),
        Column("light_hits", Kind.INTEGER, "how often the light phase reinforced it"),
        Column("rem_hits", Kind.INTEGER, "how often the REM phase reinforced it"),
    ),
    f"""SELECT c.claim_id, c.root_id, CASE WHEN {_TRUSTED} THEN c.text END, c.kind,
               CASE WHEN {_TRUSTED} THEN c.project_key END, CASE WHEN {_TRUSTED} THEN c.lineage_key END,
               c.origin_class, c.session_kind, CASE WHEN {_TRUSTED} THEN c.concept_tags ELSE '' END,
               c.first_seen_at, c.last_seen_at, c.status, c.reason, c.promoted_at, c.entry_key,
               coalesce(p.light_hits, 0), coalesce(p.rem_hits, 0)
          FROM claims c LEFT JOIN phase_signals p USING (claim_id)""",
)

EVIDENCE = Table(
    "evidence",
    "One row per place where a claim was stated.",
    (
        Column("evidence_id", Kind.INTEGER, "number of the evidence"),
        Column("claim_id", Kind.TEXT, "the claim stated there"),
        Column("source", Kind.TEXT, "note or transcript"),
        Column("path", Kind.TEXT, "file, relative to the workspace"),
        Column("start_line", Kind.INTEGER, "first line, counted from 1"),
        Column("end_line", Kind.INTEGER, "last line"),
        Column("day", Kind.DAY, "day it was stated"),
        Column("session_id", Kind.TEXT, "session that wrote it, when known"),
        Column("message_id", Kind.TEXT, "message, for transcripts"),
        Column("origin_class", Kind.TEXT, "owner, agent, system or untrusted"),
        Column("session_kind", Kind.TEXT, "interactive, cron, heartbeat, subagent or unknown"),
        Column("echo", Kind.BOOLEAN, "recalled text that came back; never counted"),
        Column("live", Kind.BOOLEAN, "whether the source still says so"),
        Column("observed_at", Kind.INSTANT, "when it was stated"),
    ),
    "SELECT evidence_id, claim_id, source, path, start_line, end_line, day, session_id, message_id, origin_class,"
    " session_kind, echo, live, observed_at FROM evidence",
)

GATE_SCORES = Table(
    "gate_scores",
    "One row per candidate and sweep: every component, the score and the first gate that failed.",
    (
        Column("sweep_id", Kind.TEXT, "the sweep (sweeps.sweep_id)"),
        Column("claim_id", Kind.TEXT, "the candidate"),
        Column("signal_count", Kind.INTEGER, "counted signals of all kinds"),
        Column("recall_count", Kind.INTEGER, "signals that are recalls"),
        Column("unique_queries", Kind.INTEGER, "distinct questions plus distinct observation contexts"),
        Column("age_days", Kind.REAL, "age of the newest signal in days"),
        Column("relevance", Kind.REAL, "component, 0 to 1"),
        Column("frequency", Kind.REAL, "component, 0 to 1"),
        Column("diversity", Kind.REAL, "component, 0 to 1"),
        Column("recency", Kind.REAL, "component, 0 to 1"),
        Column("consolidation", Kind.REAL, "component, 0 to 1"),
        Column("conceptual", Kind.REAL, "component, 0 to 1"),
        Column("phase_boost", Kind.REAL, "what the phases added"),
        Column("score", Kind.REAL, "weighted sum plus boost, 0 to 1"),
        Column("failed_gate", Kind.TEXT, "first gate that failed; NULL when all passed"),
        Column("detail", Kind.JSON, "values and thresholds of the gates"),
    ),
    "SELECT sweep_id, claim_id, signal_count, recall_count, unique_queries, age_days, relevance, frequency, diversity,"
    " recency, consolidation, conceptual, phase_boost, score, failed_gate,"
    # a late refusal may name the other entry in words, and words don't go into the private file
    " CASE WHEN json_valid(detail) THEN json_remove(detail, '$.late') ELSE '{}' END"
    " FROM gate_scores WHERE sweep_id IN ({parts})",
    parts="SELECT sweep_id, count(*) || ':' || total(score) || ':' || count(failed_gate) || ':'"
    " || total(length(failed_gate)) || ':' || total(length(detail)) FROM gate_scores GROUP BY sweep_id",
    part_column="sweep_id",
)

ACCOUNTING = Table(
    "accounting",
    "What a sweep read, by source and verdict; per source the verdicts add up to what was seen.",
    (
        Column("sweep_id", Kind.TEXT, "the sweep"),
        Column("source", Kind.TEXT, "file, relative to the workspace"),
        Column("verdict", Kind.TEXT, "taken, duplicate, waiting or refused:<reason>"),
        Column("lines", Kind.INTEGER, "number of statements"),
    ),
    "SELECT sweep_id, source, verdict, lines FROM accounting WHERE sweep_id IN ({parts})",
    parts="SELECT sweep_id, count(*) || ':' || total(lines) || ':' || total(length(verdict))"
    " FROM accounting GROUP BY sweep_id",
    part_column="sweep_id",
)

SWEEPS = Table(
    "sweeps",
    "One row per sweep.",
    (
        Column("sweep_id", Kind.TEXT, "name of the sweep"),
        Column("day", Kind.DAY, "day it belongs to"),
        Column("started_at", Kind.INSTANT, "start"),
        Column("finished_at", Kind.INSTANT, "end; NULL while it runs"),
        Column("outcome", Kind.TEXT, "running, promoted, nothing_to_do, failed, dry_run or undone"),
        Column("reason", Kind.TEXT, "why it ended so, when there is something to say"),
        Column("counts", Kind.JSON, "counts by step"),
    ),
    "SELECT sweep_id, day, started_at, finished_at, outcome, reason, counts FROM sweeps",
)

PROMOTIONS = Table(
    "promotions",
    "The ledger: one row per change of a curated file, in order, never altered.",
    (
        Column("ledger_id", Kind.INTEGER, "number of the change, ascending"),
        Column("sweep_id", Kind.TEXT, "sweep that made it"),
        Column("at", Kind.INSTANT, "when"),
        Column("file", Kind.TEXT, "MEMORY.md or USER.md"),
        Column("operation", Kind.TEXT, "added, merged, superseded, reconciled, dropped or undone"),
        Column("entry_key", Kind.TEXT, "key in the promotion marker of the entry"),
        Column("claim_id", Kind.TEXT, "claim that was promoted"),
        Column("text", Kind.TEXT, "the entry as written; NULL when the claim's origin is no longer trusted"),
        Column("lineage_key", Kind.TEXT, "what it is about"),
        Column("sources", Kind.JSON, "cited lines: path, start, end, day, session, message, evidence"),
        Column("prior_count", Kind.INTEGER, "how many entries it replaced"),
        Column("gate", Kind.JSON, "components and thresholds at the time"),
    ),
    f"""SELECT l.ledger_id, l.sweep_id, l.at, l.file, l.operation, l.entry_key, l.claim_id,
               CASE WHEN c.claim_id IS NULL OR {_TRUSTED} THEN l.text END,
               CASE WHEN c.claim_id IS NULL OR {_TRUSTED} THEN l.lineage_key END,
               l.sources, CASE WHEN json_valid(l.priors) THEN json_array_length(l.priors) END, l.gate
          FROM ledger l LEFT JOIN claims c USING (claim_id)""",
)

STATE_TABLES = (SIGNALS, CANDIDATES, EVIDENCE, GATE_SCORES, ACCOUNTING, SWEEPS, PROMOTIONS)

ENTRIES = Table(
    "entries",
    "One row per entry that was ever promoted, as the ledger leaves it.",
    (
        Column("entry_key", Kind.TEXT, "key in the promotion marker"),
        Column("file", Kind.TEXT, "MEMORY.md or USER.md"),
        Column("status", Kind.TEXT, "active, superseded, merged, dropped or undone"),
        Column("text", Kind.TEXT, "the entry as written; NULL when its origin is no longer trusted"),
        Column("claim_id", Kind.TEXT, "claim it came from"),
        Column("promoted_at", Kind.INSTANT, "when it was first written"),
        Column("changed_at", Kind.INSTANT, "when the ledger last spoke of it"),
        Column("sweep_id", Kind.TEXT, "sweep that wrote it"),
        Column("score", Kind.REAL, "score at promotion"),
        Column("evidence_count", Kind.INTEGER, "number of cited lines"),
        Column("replaced_by", Kind.TEXT, "entry that superseded or took it in"),
    ),
    "",
)

ALL_TABLES = (*STATE_TABLES, ENTRIES)
