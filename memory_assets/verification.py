"""What must hold after a sweep, looked up again in the state database and the files.

Belongs here: one function a rule, each giving a finding with numbers.
Does not belong here: enforcing the rules (the gates, the plan validator and the guarded writer do), showing them
(``memory_assets.checks``).

A rule that is enforced in one place and verified in another by other means catches the fault of either. Findings
carry numbers only: they end up in an event log that can't forget.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from memory_assets.consolidation.validate import allowed_losses
from memory_assets.lineage.graph import EntryState
from memory_assets.lineage.ledger import graph_from_connection
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY
from recall_runtime.index.files import find_files
from recall_runtime.notes.curated import parse_curated
from recall_runtime.paths import MEMORY_FILE, SESSIONS_PREFIX, USER_FILE
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.storage.connection import query
from recall_runtime.storage.schema import read_index
from recall_runtime.transcripts.sources import list_transcripts
from recall_runtime.vocabulary import EntryStatus, Operation, StatementKind


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a rule holds, in how many places it does not, and the numbers behind it."""

    passed: bool
    violations: int = 0
    numbers: dict[str, float] = field(default_factory=dict)


Rule = Callable[[Agent, apsw.Connection], Finding]


def latest_sweep(state: apsw.Connection) -> str | None:
    """Return the sweep that started last and was no dry run, or ``None``."""
    row = state.execute(
        "SELECT sweep_id FROM sweeps WHERE outcome <> 'dry_run' ORDER BY started_at DESC, rowid DESC LIMIT 1"
    ).fetchone()
    return None if row is None else str(row[0])


def no_untrusted_eligible(agent: Agent, state: apsw.Connection) -> Finding:
    """No candidate that passed the gates is untrusted, in itself or in any live place that states it."""
    return _none_of(state, "c.origin_class = 'untrusted'")


def no_system_eligible(agent: Agent, state: apsw.Connection) -> Finding:
    """No candidate that passed the gates is the system's own text."""
    return _none_of(state, "c.origin_class = 'system'")


def session_kind_gated(agent: Agent, state: apsw.Connection) -> Finding:
    """Every candidate that passed the gates comes from an interactive session."""
    return _none_of(state, "c.session_kind <> 'interactive'")


def no_recall_loop(agent: Agent, state: apsw.Connection) -> Finding:
    """No candidate that passed counts recalled text that came back, or a recall outside an interactive session."""
    return _none_of(
        state,
        """EXISTS (SELECT 1 FROM signals s JOIN evidence e USING (evidence_id)
                     WHERE s.claim_id = c.claim_id AND s.kind = 'observation' AND e.echo = 1)
           OR EXISTS (SELECT 1 FROM signals s JOIN recall_events r USING (event_id)
                       WHERE s.claim_id = c.claim_id AND s.kind = 'recall' AND r.session_kind <> 'interactive')""",
    )


def _none_of(state: apsw.Connection, violation: str) -> Finding:
    sweep = latest_sweep(state)
    passed, bad = state.execute(
        f"""SELECT count(*), count(*) FILTER (WHERE {violation})
              FROM gate_scores g JOIN claims c USING (claim_id)
             WHERE g.sweep_id = ? AND g.failed_gate IS NULL""",  # noqa: S608 - one of the constant conditions above
        (sweep or "",),
    ).fetchone() or (0, 0)
    return Finding(bad == 0, bad, {"candidates_passed": passed})


def within_budget(agent: Agent, state: apsw.Connection) -> Finding:
    """What the last sweep wrote keeps to the characters of each file, unless it was longer before and did not grow.

    A hand-written file may be longer than the budget: nothing of it is ever dropped, and a sweep must not add to it.
    """
    deep = agent.settings.dreaming.deep
    numbers: dict[str, float] = {}
    over = 0
    for file, budget in ((MEMORY_FILE, deep.memory_budget_characters), (USER_FILE, deep.user_budget_characters)):
        numbers[f"{file}/budget"] = budget
        numbers[f"{file}/characters"] = _characters(read_bytes(agent.workspace / file))
        write = _last_write(state, file)
        if write is not None:
            before, after = map(_characters, write)
            numbers[f"{file}/written"] = after
            over += bool(budget) and after > max(before, budget)
    return Finding(over == 0, over, numbers)


def bounded_loss(agent: Agent, state: apsw.Connection) -> Finding:
    """What the last sweep wrote has lost no more entries than allowed, and none that the ledger does not name.

    What the budget dropped counts apart.
    """
    share = agent.settings.dreaming.deep.max_prior_entry_loss_fraction
    numbers: dict[str, float] = {"allowed_share": share}
    violations = 0
    for file in (MEMORY_FILE, USER_FILE):
        write = _last_write(state, file)
        if write is None:
            continue
        before = _entry_lines(write[0], file)
        gone = before - _entry_lines(write[1], file)
        replaced, dropped = _named(state, latest_sweep(state) or "", file)
        lost, unnamed = (gone & replaced).total(), (gone - replaced - dropped).total()
        numbers[f"{file}/entries_before"] = before.total()
        numbers[f"{file}/replaced"] = lost
        numbers[f"{file}/dropped_for_budget"] = (gone & dropped).total()
        numbers[f"{file}/unnamed"] = unnamed
        violations += unnamed + max(0, lost - allowed_losses(before.total(), share))
    return Finding(violations == 0, violations, numbers)


def _entry_lines(content: bytes, file: str) -> Counter[str]:
    entries = parse_curated(content, user_file=file == USER_FILE).entries
    return Counter(entry.raw.strip().split("\n", 1)[0].strip() for entry in entries)


def _named(state: apsw.Connection, sweep: str, file: str) -> tuple[Counter[str], Counter[str]]:
    """Return the entry lines that the ledger says ``sweep`` replaced, and those it dropped."""
    replaced: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    rows = state.execute("SELECT operation, text, priors FROM ledger WHERE sweep_id = ? AND file = ?", (sweep, file))
    for operation, text, priors in rows:
        if operation == Operation.DROPPED:
            dropped[text.strip()] += 1
        else:
            replaced.update(line.strip() for line in json.loads(priors) if isinstance(line, str))
    return replaced, dropped


def anchors_resolve(agent: Agent, state: apsw.Connection) -> Finding:
    """Every line that the last sweep's entries cite is there. Older citations may have moved; they are counted."""
    sweep = latest_sweep(state)
    graph = graph_from_connection(state, cap=10_000)
    lines = {line.node_id: line for line in graph.evidence}
    lengths: dict[str, int | None] = {}
    fresh = stale = checked = 0
    for entry in graph.entries:
        if entry.state is not EntryState.ACTIVE:
            continue
        for node in entry.evidence:
            line = lines[node]
            if line.path.startswith(SESSIONS_PREFIX + "/"):
                continue
            if line.path not in lengths:
                lengths[line.path] = _line_count(agent.workspace / line.path)
            length = lengths[line.path]
            checked += 1
            if length is None or not 1 <= line.start_line <= line.end_line <= length:
                fresh += entry.sweep_id == sweep
                stale += entry.sweep_id != sweep
    return Finding(fresh == 0, fresh, {"anchors": checked, "moved_since": stale})


def user_md_imperative(agent: Agent, state: apsw.Connection) -> Finding:
    """Every active entry that sweeps wrote into ``USER.md`` is a directive by the class of its claim."""
    content = read_bytes(agent.workspace / USER_FILE) or b""
    kinds = dict(
        state.execute(
            "SELECT l.entry_key, c.kind FROM ledger l JOIN claims c USING (claim_id) WHERE l.file = ?", (USER_FILE,)
        )
    )
    entries = [
        entry
        for entry in parse_curated(content, user_file=True).entries
        if entry.status is EntryStatus.ACTIVE and entry.entry_key in kinds
    ]
    facts = sum(kinds[entry.entry_key] != StatementKind.DIRECTIVE for entry in entries)
    return Finding(facts == 0, facts, {"active_entries": len(entries)})


def accounting_adds_up(agent: Agent, state: apsw.Connection) -> Finding:
    """What the last sweep saw in a source is the sum of its verdicts; every promoted claim is in the ledger."""
    sweep = latest_sweep(state) or ""
    numbers: dict[str, float] = {}
    for verdict, lines in state.execute(
        "SELECT iif(verdict LIKE 'refused:%', 'refused', verdict), sum(lines) FROM accounting"
        " WHERE sweep_id = ? GROUP BY 1",
        (sweep,),
    ):
        numbers[f"lines/{verdict}"] = lines
    unknown = sum(lines for name, lines in numbers.items() if name.removeprefix("lines/") not in _VERDICTS)
    unbalanced = _count(
        state,
        "SELECT count(*) FROM accounting_seen s WHERE sweep_id = ? AND lines <> (SELECT coalesce(sum(a.lines), 0)"
        " FROM accounting a WHERE a.sweep_id = s.sweep_id AND a.source = s.source)",
        sweep,
    )
    unexplained = _count(
        state,
        "SELECT count(*) FROM claims c WHERE status = 'promoted'"
        " AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.entry_key = c.entry_key)",
    )
    claims = _count(state, "SELECT count(*) FROM claims")
    numbers |= {"claims": claims, "promoted_without_ledger_row": unexplained, "unbalanced_sources": unbalanced}
    violations = int(unknown) + unexplained + unbalanced
    return Finding(violations == 0, violations, numbers)


def _count(state: apsw.Connection, query: str, *values: str) -> int:
    return int(next(iter(state.execute(query, values)))[0])


def input_read(agent: Agent, state: apsw.Connection) -> Finding:
    """No note or session file that was there for ``sources.stale_after_days`` is missing from the index.

    A reader that broke on some day goes on reporting success; what it leaves unread tells.
    """
    horizon_ns = (agent.clock.now_ms() - agent.settings.sources.stale_after_days * MS_PER_DAY) * 1_000_000
    known = _indexed(agent)
    files = [(file.path, file.mtime_ns, file.size) for file in find_files(agent.workspace).files]
    files += [(f.name, f.mtime_ns, f.size) for f in list_transcripts(agent, state) if f.excluded_reason is None]
    waiting = [stamp for stamp in files if known.get(stamp[0]) != stamp[1:]]
    unread = sum(mtime_ns <= horizon_ns for _, mtime_ns, _ in waiting)
    return Finding(unread == 0, unread, {"files": len(files), "changed_since_last_read": len(waiting)})


def _indexed(agent: Agent) -> dict[str, tuple[int, int]]:
    if not agent.folders.index_db.exists():
        return {}
    with contextlib.closing(read_index(agent.folders.index_db)) as index:
        return {path: (mtime, size) for path, mtime, size in index.execute("SELECT path, mtime_ns, size FROM sources")}


_VERDICTS = frozenset({"taken", "duplicate", "refused", "waiting"})


def _last_write(state: apsw.Connection, file: str) -> tuple[bytes, bytes] | None:
    """Return ``file`` before and after the last sweep, or ``None`` when that did not write it."""
    rows = query(
        state,
        "SELECT content, after_content FROM pre_images WHERE file = ? AND sweep_id = ? ORDER BY pre_image_id",
        (file, latest_sweep(state) or ""),
    )
    return (bytes(rows[0][0] or b""), bytes(rows[-1][1] or b"")) if rows else None


def _characters(content: bytes | None) -> int:
    return len((content or b"").decode("utf-8", "replace"))


def _line_count(path: Path) -> int | None:
    content = read_bytes(path)
    return None if content is None else content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
