"""One night's consolidation from the claims that passed to the written files.

Belongs here: the order of the steps, effects of the decisions, the report.
Does not belong here: each step's rules (the modules beside this one), the steps of a write (``curated.writer``).
"""

import contextlib
import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import apsw

from memory_assets.consolidation.candidates import load_candidates
from memory_assets.consolidation.deterministic import against_file, follow, overtaken, reduce_night
from memory_assets.consolidation.effects import effects_of, not_brought_back
from memory_assets.consolidation.entries import MemoryFile, load_entries
from memory_assets.consolidation.model_step import ask
from memory_assets.consolidation.plan import MemoryPlan, build
from memory_assets.consolidation.records import Candidate, Conflict, Decision, Mode, PriorEntry, Refused
from memory_assets.consolidation.user_file import UserFilePlan, plan_user_file
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.effects import Effects
from recall_runtime.curated.writer import Base, Step, WritePlan, apply, read_base, recover
from recall_runtime.lineage_keys.book import LineageBook
from recall_runtime.lineage_keys.stored import assign_keys
from recall_runtime.models.protocol import ChatModel
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import read_index
from recall_runtime.vocabulary import Gate, Operation, StatementKind

NO_MODEL = "no model is configured"
IN_PART = "not for every project"


@dataclass(frozen=True, slots=True)
class Change:
    """One operation for the review: what was written, and what it replaced or joined."""

    file: str
    operation: Operation
    entry_key: str
    line: str
    priors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileChange:
    """A curated file before and after; ``None`` means it did not exist. Of a dry run: what would have been written."""

    file: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What one night did. ``why`` says why a mode other than the wished one was used, or is empty.

    ``conflicts`` are hand-written entries that a newer claim contradicts: both stand, the owner decides.
    """

    sweep_id: str
    mode: Mode
    why: str
    changes: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    files: tuple[FileChange, ...] = ()
    problems: tuple[str, ...] = ()
    model_calls: int = 0
    dry_run: bool = False

    def count(self, operation: Operation) -> int:
        """Return how many entries had ``operation``."""
        return sum(change.operation is operation for change in self.changes)

    @property
    def refusals(self) -> Counter[str]:
        """Refused candidates by reason."""
        return Counter(refusal.reason for refusal in self.refused)


@dataclass(slots=True)
class _Night:
    """What all steps of one night share."""

    agent: Agent
    state: apsw.Connection
    book: LineageBook
    day: dt.date
    now_ms: int
    model: ChatModel | None
    mode: Mode = Mode.DETERMINISTIC
    why: str = NO_MODEL
    calls: int = 0


def consolidate(
    agent: Agent,
    state: apsw.Connection,
    *,
    sweep_id: str,
    now_ms: int,
    passed: Sequence[str],
    model: ChatModel | None = None,
    dry_run: bool = False,
    on_step: Callable[[Step], None] | None = None,
) -> ConsolidationReport:
    """Write what passed the gates into ``MEMORY.md`` and ``USER.md``.

    Args:
        agent: Whose memory it is.
        state: Its open state database; ``gate_scores`` of this sweep are read and late refusals noted there.
        sweep_id: The sweep, for the ledger.
        now_ms: Its instant, milliseconds UTC.
        passed: Ids of the claims that passed, best score first.
        model: Proposes operations for ``MEMORY.md``; without one, or when it fails, the rules decide alone.
        dry_run: Plan only; nothing is written but lineage keys that claims did not have yet.
        on_step: Called after each step of each write, for tests.

    Raises:
        StoreLockedError: another process writes curated files.
        WorkspaceError: a curated file or its folder can't be read or written.
    """
    if not dry_run:
        recover(agent, state)
    book = assign_keys(state)
    with _index(agent) as index:
        candidates, refused = load_candidates(agent, state, index, book, sweep_id=sweep_id, passed=passed)
    night = _Night(agent, state, book, day_of(now_ms, agent.zone), now_ms, model)
    facts = [candidate for candidate in candidates if candidate.kind is StatementKind.FACT]
    directives = [candidate for candidate in candidates if candidate.kind is StatementKind.DIRECTIVE]
    changes: list[Change] = []
    files: list[FileChange] = []
    conflicts: list[Conflict] = []
    problems: list[str] = []
    for write in (_memory(night, facts), _user(night, directives)):
        done = write.run(night, sweep_id, dry_run=dry_run, on_step=on_step)
        changes += done.changes
        refused += done.refused
        conflicts += done.conflicts
        problems += done.problems
        files += done.files
    if not dry_run:
        _note_refusals(state, sweep_id, refused)
    return ConsolidationReport(
        sweep_id=sweep_id,
        mode=night.mode,
        why=night.why,
        changes=tuple(changes),
        refused=tuple(refused),
        conflicts=tuple(conflicts),
        files=tuple(files),
        problems=tuple(problems),
        model_calls=night.calls,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _Planned:
    """The plan for one file, with its effects and what goes into the report."""

    write: WritePlan
    changes: tuple[Change, ...] = ()
    refused: tuple[Refused, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Done:
    changes: tuple[Change, ...]
    refused: tuple[Refused, ...]
    conflicts: tuple[Conflict, ...]
    problems: tuple[str, ...]
    files: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class _FileWrite:
    """One curated file of the night: how to plan it on any base."""

    file: str
    candidates: tuple[Candidate, ...]
    plan_on: Callable[[Base, bool], _Planned]

    def run(self, night: _Night, sweep_id: str, *, dry_run: bool, on_step: Callable[[Step], None] | None) -> _Done:
        base = read_base(night.agent, self.file)
        latest = self.plan_on(base, True)
        written = latest.write
        if not dry_run and (written.changes_file or written.effects.ledger or written.effects.claims):

            def rebuild(changed: Base) -> WritePlan:
                nonlocal latest
                latest = self.plan_on(changed, False)
                return latest.write

            result = apply(
                night.agent,
                night.state,
                written,
                sweep_id=sweep_id,
                now_ms=night.now_ms,
                rebuild=rebuild,
                on_step=on_step,
            )
            if result.plan is None:
                waiting = tuple(
                    Refused(candidate.claim_id, Gate.WRITE, f"{self.file} kept changing")
                    for candidate in self.candidates
                )
                return _Done((), waiting, (), (f"{self.file} kept changing; nothing was written",), ())
            written = result.plan
        files = (FileChange(self.file, written.base.content, written.content),) if written.changes_file else ()
        return _Done(latest.changes, latest.refused, latest.conflicts, latest.problems, files)


def _memory(night: _Night, facts: Sequence[Candidate]) -> _FileWrite:
    return _FileWrite(MEMORY_FILE, tuple(facts), lambda base, first: _plan_memory(night, base, facts, ask_model=first))


def _user(night: _Night, directives: Sequence[Candidate]) -> _FileWrite:
    return _FileWrite(USER_FILE, tuple(directives), lambda base, _: _plan_user(night, base, directives))


def _plan_memory(night: _Night, base: Base, facts: Sequence[Candidate], *, ask_model: bool) -> _Planned:
    file = load_entries(night.agent, night.state, night.book, base.content)
    if file.unwritable is not None:
        waiting = tuple(Refused(candidate.claim_id, Gate.WRITE, file.unwritable) for candidate in facts)
        return _Planned(WritePlan(base, base.content, Effects()), refused=waiting, problems=(file.unwritable,))
    facts, hidden = _without_hidden(facts, file)
    decisions, refused = _decide(night, facts, file.trusted, ask_model=ask_model)
    decisions = [_in_scope_of_priors(decision) for decision in decisions]
    plan = build(
        base.content,
        file.entries,
        decisions,
        night.agent.settings.dreaming.deep,
        day=night.day,
        mode=night.mode,
        overtaken=not_brought_back(night.state, overtaken(file.trusted)),
    )
    refused = _with_successors([*refused, *hidden, *plan.refused], plan, file.trusted)
    effects = effects_of(night.state, plan, refused, mode=night.mode, now_ms=night.now_ms)
    return _Planned(
        WritePlan(base, plan.content, effects),
        tuple(Change(MEMORY_FILE, row.operation, row.entry_key, row.text, row.priors) for row in effects.ledger),
        tuple(refused),
        plan.conflicts,
    )


def _without_hidden(facts: Sequence[Candidate], file: MemoryFile) -> tuple[list[Candidate], list[Refused]]:
    """Let those wait whose marker stands above lines of an untrusted writer: one marker never stands twice."""
    taken = {key for entry in file.entries if not entry.is_trusted for key in entry.keys}
    why = f"its marker in {MEMORY_FILE} stands above a line of an untrusted writer; delete both"
    waiting = [Refused(one.claim_id, Gate.WRITE, why) for one in facts if one.entry_key in taken]
    return [one for one in facts if one.entry_key not in taken], waiting


def _decide(
    night: _Night, facts: Sequence[Candidate], entries: Sequence[PriorEntry], *, ask_model: bool
) -> tuple[list[Decision], list[Refused]]:
    """Return the decisions by the rules, with the model's for what would be written, when its answer holds."""
    kept, joined, refused = reduce_night(facts)
    outcomes = [against_file(candidate, entries) for candidate in kept]
    decisions = [outcome for outcome in outcomes if isinstance(outcome, Decision)]
    refused += [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    written = [decision for decision in decisions if decision.writes]
    night.mode = Mode.DETERMINISTIC
    if night.model is not None and not ask_model:
        night.why = f"{MEMORY_FILE} was changed while the model was asked"
    elif night.model is not None and not written:
        night.why = "nothing to ask the model"
    elif night.model is not None:
        outcome = ask(
            night.model,
            [decision.candidate for decision in written],
            entries,
            max_loss=night.agent.settings.dreaming.deep.max_prior_entry_loss_fraction,
            book=night.book,
        )
        night.calls += outcome.calls
        night.why = f"{IN_PART}: {outcome.reason}" if outcome.reason and outcome.decisions else outcome.reason
        if outcome.decisions:
            night.mode = Mode.MODEL
            proposed = {decision.candidate.entry_key: decision for decision in outcome.decisions}
            decisions = [_chosen(ruled, proposed.get(ruled.candidate.entry_key)) for ruled in decisions]
    following, lost = follow(joined, decisions, refused)
    return decisions + following, refused + lost


def _chosen(ruled: Decision, proposed: Decision | None) -> Decision:
    """Return the model's decision; the rules' own without one, or when only they see that two entries contradict."""
    if proposed is None:
        return ruled
    unseen = proposed.operation is Operation.ADDED and ruled.operation is Operation.SUPERSEDED
    return ruled if unseen else proposed


def _in_scope_of_priors(decision: Decision) -> Decision:
    """Give a candidate without annotation the project of the entries it replaces: it belongs where they did."""
    candidate = decision.candidate
    scopes = {prior.project_key for prior in decision.priors}
    if decision.operation is not Operation.SUPERSEDED or candidate.project_key is not None or len(scopes) != 1:
        return decision
    annotations = replace(candidate.annotations, project_key=scopes.pop())
    return replace(decision, candidate=replace(candidate, annotations=annotations))


def _with_successors(refused: Sequence[Refused], plan: MemoryPlan, entries: Sequence[PriorEntry]) -> list[Refused]:
    """Keep a successor only when its entry stands in the new file; else the older candidate stays eligible."""
    standing = {decision.candidate.entry_key for decision in plan.decisions if decision.writes}
    standing |= {decision.into for decision in plan.decisions if decision.into}
    standing |= {key for entry in entries for key in entry.keys}
    return [
        one
        if one.superseded_by is None or one.superseded_by in standing
        else Refused(one.claim_id, one.reason, one.detail)
        for one in refused
    ]


def _plan_user(night: _Night, base: Base, directives: Sequence[Candidate]) -> _Planned:
    plan: UserFilePlan = plan_user_file(night.agent, night.state, base.content, directives, now_ms=night.now_ms)
    return _Planned(
        WritePlan(base, plan.content, plan.effects),
        tuple(Change(USER_FILE, row.operation, row.entry_key, row.text, row.priors) for row in plan.effects.ledger),
        plan.refused,
        problems=plan.problems,
    )


def _note_refusals(state: apsw.Connection, sweep_id: str, refused: Sequence[Refused]) -> None:
    """Store late refusals beside the gate values, so that ``explain`` shows them."""
    if not refused:
        return
    with write_transaction(state):
        state.executemany(
            "UPDATE gate_scores SET failed_gate = ?, detail = json_patch(detail, ?)"
            " WHERE sweep_id = ? AND claim_id = ? AND failed_gate IS NULL",
            [
                (one.reason, json.dumps({"late": one.detail}, ensure_ascii=False), sweep_id, one.claim_id)
                for one in refused
            ],
        )


@contextlib.contextmanager
def _index(agent: Agent) -> Iterator[apsw.Connection | None]:
    if not agent.folders.index_db.exists():
        yield None
        return
    with contextlib.closing(read_index(agent.folders.index_db)) as index:
        yield index
