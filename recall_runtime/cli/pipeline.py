"""Commands of the pipeline: the only module of ring 1 that reaches ``memory_assets``, and only when one of them runs.

Belongs here: ``dream``, ``promote``, ``backfill``, ``explain``, ``trace``, ``query``, ``ui``.
Does not belong here: decisions about memory, Dagster or DuckDB calls (``memory_assets`` makes them), commands that need
no pipeline, such as ``undo`` (``cli.people``).
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from recall_runtime.cli.command import (
    Commands,
    Invocation,
    Reply,
    Run,
    add_command,
    count,
    day,
    plain,
    positive,
    share,
)
from recall_runtime.cli.output import counts, framed, table
from recall_runtime.clock import format_instant
from recall_runtime.errors import RefusedError, StoreError

if TYPE_CHECKING:
    import apsw

    from memory_assets.consolidation.trace import Trace
    from memory_assets.gates.explain import Explanation
    from memory_assets.staging.backfill import BackfillReport

_EXTRAS = frozenset({"dagster", "dagster_graphql", "dagster_webserver", "duckdb", "polars", "memory_assets"})
_BOUNDS = ("limit", "min_score", "min_recall_count", "min_unique_queries")


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the commands of this group."""

    def add(name: str, run: Run, summary: str) -> argparse.ArgumentParser:
        return add_command(commands, after, name, _needs_pipeline(run), summary)

    parser = add("dream", dream, "run one sweep now, recorded in the Dagster instance")
    parser.add_argument("--dry-run", action="store_true", help="show what a sweep would do; nothing is written")
    parser.add_argument("--phase", choices=("light", "rem", "deep"), help="run this phase alone, outside Dagster")
    parser = add("promote", promote, "try the gates with other bounds, outside Dagster; a preview by default")
    parser.add_argument("--apply", action="store_true", help="write what passes")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most so many")
    parser.add_argument("--min-score", type=share, metavar="X", help="least score, 0 to 1")
    parser.add_argument("--min-recall-count", type=count, metavar="N", help="least number of signals")
    parser.add_argument("--min-unique-queries", type=count, metavar="N", help="least number of distinct questions")
    parser = add("backfill", backfill, "stage old notes or sessions as grounded signals; a preview by default")
    parser.add_argument("kind", choices=("notes", "sessions"), metavar="notes|sessions", help="what is read")
    parser.add_argument("--from", dest="from_day", type=day, metavar="DAY", help="first day")
    parser.add_argument("--to", dest="to_day", type=day, metavar="DAY", help="last day")
    parser.add_argument("--stage", action="store_true", help="stage it")
    parser.add_argument("--rollback", action="store_true", help="take back what was staged")
    parser = add("explain", explain, "say why a candidate stands where it does")
    parser.add_argument("selector", metavar="SELECTOR", help="claim id, entry key, memory/DAY.md:12, or words")
    parser = add("trace", trace, "follow an entry back to its lines, messages, questions and sweeps, and forward")
    parser.add_argument("entry", metavar="ENTRY", help="entry key, claim id, or words of the entry")
    parser = add("query", query, "run read-only SQL on the published snapshot")
    parser.add_argument("sql", metavar="SQL", help="one query; tables: docs/analysts.md")
    parser = add("ui", ui, "serve the Dagster UI and its daemon on this machine")
    parser.add_argument("--port", type=positive, default=3000, metavar="N", help="port on 127.0.0.1")


def _needs_pipeline(run: Run) -> Run:
    """Turn a missing extra into one line that says what to install."""

    @functools.wraps(run)
    def guarded(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
        try:
            return run(invocation, arguments)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in _EXTRAS:
                raise
            raise StoreError(
                f"The pipeline isn't installed (no module {error.name})", "Run `pip install 'dreamline[assets]'`."
            ) from error

    return guarded


def _require(module: str) -> None:
    """Raise as the import would; for commands that need the extra only later, or in a process of their own."""
    if importlib.util.find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)


def dream(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Run one sweep and show what it did with everything."""
    from memory_assets.sweep import Phase, run_sweep
    from recall_runtime.cli.progress import Stages
    from recall_runtime.cli.sweep_table import report_data, sweep_data, sweep_lines
    from recall_runtime.storage.schema import read_state

    agent = invocation.open()
    if arguments.dry_run or arguments.phase:
        phases = (Phase(arguments.phase),) if arguments.phase else tuple(Phase)
        data = report_data(run_sweep(agent, dry_run=arguments.dry_run, phases=phases, progress=Stages()))
        return Reply(data, sweep_lines(data))
    from memory_assets.runner import run_dreaming

    run = run_dreaming(
        home=agent.folders.home,
        agent_id=agent.folders.agent_id,
        workspace=agent.workspace,
        now_ms=invocation.now_ms,
    )
    with contextlib.closing(read_state(agent.folders.state_db)) as state:
        data = sweep_data(state, run.sweep_id) | {"run_id": run.run_id, "problems": list(run.problems)}
    return Reply(data, sweep_lines(data))


def promote(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Try the gates with other bounds; with ``--apply`` write what passes."""
    from memory_assets.sweep import Phase, run_sweep
    from recall_runtime.cli.sweep_table import report_data, sweep_lines

    _require("duckdb")
    agent = invocation.open()
    deep = agent.settings.dreaming.deep
    wanted = {name: getattr(arguments, name) for name in _BOUNDS if getattr(arguments, name) is not None}
    dreaming = agent.settings.dreaming.model_copy(update={"deep": deep.model_copy(update=wanted)})
    agent = dataclasses.replace(agent, settings=agent.settings.model_copy(update={"dreaming": dreaming}))
    data = report_data(run_sweep(agent, dry_run=not arguments.apply, phases=(Phase.DEEP,)))
    if arguments.apply:
        return Reply(data, sweep_lines(data))
    return Reply(data, [*sweep_lines(data), "", "Preview: nothing was written. Add --apply to write it."])


def backfill(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Stage what lies before the look-back, or take it back."""
    from memory_assets.staging.backfill import BackfillKind, preview, rollback, stage_backfill
    from recall_runtime.storage.schema import open_state, read_index

    agent = invocation.open()
    kind = BackfillKind(arguments.kind)
    days = {"first_day": arguments.from_day, "last_day": arguments.to_day}
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(contextlib.closing(open_state(agent.folders.state_db)))
        if arguments.rollback:
            back = rollback(state, f"backfill:{kind}")
            return Reply(
                plain(back),
                [f"Taken back: {back.signals} signals, {back.places} places, {back.claims} claims nothing else states"],
            )
        index = stack.enter_context(contextlib.closing(read_index(agent.folders.index_db)))
        if arguments.stage:
            now = agent.clock.now_ms()
            batch = f"backfill:{kind}"
            report = stage_backfill(agent, kind, batch=batch, now_ms=now, index=index, state=state, **days)
        else:
            report = preview(agent, kind, index=index, state=state, **days)
    return Reply(plain(report), _backfilled(report))


def _backfilled(report: "BackfillReport") -> Iterator[str]:
    rows = [(item.day, item.path, item.candidates, counts(item.refused)) for item in report.items]
    yield from table(("day", "source", "candidates", "refused"), rows)
    if report.batch is None:
        yield "Preview: nothing was staged. Add --stage to stage it."
    else:
        yield f"Staged {report.new_claims} claims and {report.signals} grounded signals; --rollback takes them back."


def query(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Run one query on the published snapshot."""
    from memory_assets.warehouse.query import run_query

    result = run_query(invocation.open(), arguments.sql)
    lines = table(result.columns, result.rows) if result.columns else ()
    return Reply({"columns": list(result.columns), "rows": plain(result.rows)}, lines)


def ui(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Serve Dagster's UI until it is stopped."""
    _require("dagster_webserver")
    from memory_assets.ui import run_ui

    agent = invocation.open()
    print(f"Dagster UI: http://127.0.0.1:{arguments.port} (Ctrl-C ends it)", file=sys.stderr)
    return Reply(exit_code=run_ui(agent.folders.home, port=arguments.port, workspace=invocation.workspace))


def explain(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Show every gate of one candidate with value, threshold and verdict, its evidence, and what is missing."""
    _require("duckdb")
    from memory_assets.gates.explain import explain as explain_claim
    from recall_runtime.storage.schema import read_state

    agent = invocation.open()
    with contextlib.closing(read_state(agent.folders.state_db)) as state:
        found = explain_claim(
            state,
            arguments.selector,
            settings=agent.settings.dreaming.deep,
            now_ms=agent.clock.now_ms(),
            workspace=agent.workspace,
        )
    return Reply(plain(found), _explained(found))


def _explained(found: "Explanation") -> Iterator[str]:
    origin = next(view.value for view in found.gates if view.gate == "origin")
    yield f"Claim {found.claim_id} ({found.kind}, {found.status}{f': {found.reason}' if found.reason else ''})"
    yield from framed(found.text, str(origin))
    verdicts = {True: "passed", False: "FAILED", None: "not tried"}
    rows = [(view.gate, view.value, view.threshold, verdicts[view.passed]) for view in found.gates]
    yield from ("", *table(("gate", "value", "needs", "verdict"), rows))
    parts = ("relevance", "frequency", "diversity", "recency", "consolidation", "conceptual", "phase_boost", "score")
    yield from ("", *table(parts, [[getattr(found.scores, name) for name in parts]]))
    places = [
        (view.day, f"{view.path}:{view.start_line}-{view.end_line}", view.origin_class, view.session_kind, view.live)
        for view in found.evidence
    ]
    yield from ("", f"Stated in {len(places)} places", *table(("day", "where", "origin", "session", "live"), places))
    questions = [(view.day, view.score, view.query) for view in found.recalls]
    yield from ("", f"{len(questions)} recalls", *(table(("day", "score", "question"), questions) if questions else ()))
    others = [(view.day, view.kind, view.context) for view in found.other_signals]
    yield from ("", f"{len(others)} other signals", *(table(("day", "kind", "context"), others) if others else ()))
    if found.missing:
        yield from ("", "Missing", *(f"  {sentence}" for sentence in found.missing))


def trace(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Tell the story of one entry."""
    from memory_assets.consolidation.trace import trace as trace_entry
    from memory_assets.gates.explain import find_claims
    from recall_runtime.storage.schema import read_state

    agent = invocation.open()
    with contextlib.closing(read_state(agent.folders.state_db)) as state:
        try:
            found = trace_entry(state, arguments.entry)
        except RefusedError:
            # words of the entry: the first claim they mean that has become one
            with_entry = [claim for claim in find_claims(state, arguments.entry) if _has_entry(state, claim)]
            if not with_entry:
                raise
            found = trace_entry(state, with_entry[0])
    return Reply(plain(found), _traced(found))


def _has_entry(state: "apsw.Connection", claim_id: str) -> bool:
    query = "SELECT 1 FROM claims WHERE claim_id = ? AND entry_key IS NOT NULL"
    return state.execute(query, (claim_id,)).fetchone() is not None


def _traced(found: "Trace") -> Iterator[str]:
    yield f"Entry {found.entry_key}{f', about {found.lineage_key}' if found.lineage_key else ''}"
    for step in found.operations:
        yield f"{format_instant(step.at)}  {step.operation} in {step.file} by sweep {step.sweep_id}"
        yield f"  {step.line}"
        yield from (f"  before: {prior}" for prior in step.priors)
        if step.pre_image_id is not None:
            yield f"  pre-image {step.pre_image_id}; `dreamline undo {step.sweep_id}` puts it back"
    places = [
        (item.day, f"{item.path}:{item.start_line}-{item.end_line}", item.message_id, item.origin_class, item.live)
        for item in found.evidence
    ]
    yield from ("", f"Stated in {len(places)} places")
    yield from table(("day", "where", "message", "origin", "live"), places)
    signals = [(item.day, item.kind, item.score, item.query or item.context) for item in found.signals]
    yield from ("", f"{len(signals)} signals", *table(("day", "kind", "score", "question or context"), signals))
    yield from (f"supersedes {key}" for key in found.supersedes)
    yield from (f"superseded by {key}" for key in found.superseded_by)
