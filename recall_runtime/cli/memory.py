"""Commands that read memory: ``search``, ``get``, ``index``, ``status``, ``doctor``.

Belongs here: their arguments and answers.
Does not belong here: ranking and sync (``recall_runtime.index``), counting what is stored (``cli.condition``).
"""

import argparse
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from recall_runtime.cli.command import Commands, Invocation, Reply, add_command, plain, positive, share
from recall_runtime.cli.output import framed

if TYPE_CHECKING:
    from recall_runtime.agent import Agent
    from recall_runtime.index.hits import SearchAnswer
    from recall_runtime.index.reading import Window
    from recall_runtime.index.sync_report import SyncReport


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the commands of this group."""
    parser = add_command(
        commands, after, "status", status, "what is indexed, staged, waiting, degraded; the next sweep"
    )
    parser.add_argument("--deep", action="store_true", help="also each source, and what the last sweep read of it")
    parser = add_command(commands, after, "doctor", doctor, "look for what is broken, and say the cure")
    parser.add_argument("--fix", action="store_true", help="repair what can be derived again")

    parser = add_command(commands, after, "index", index, "bring the index up to date with the files")
    parser.add_argument("--force", action="store_true", help="build a new index beside the old one and swap")

    parser = add_command(commands, after, "search", search, "search the memory")
    parser.add_argument("query", metavar="QUERY", help="any text")
    parser.add_argument("--max-results", type=positive, metavar="N", help="at most so many hits")
    parser.add_argument("--min-score", type=share, metavar="X", help="leave out hits below this relevance, 0 to 1")
    parser.add_argument("--corpus", choices=("memory", "sessions", "all"), default="memory", help="what is searched")
    parser.add_argument(
        "--session", metavar="KEY", help="session that asks: it sees what it may, and the recall is recorded"
    )
    parser.add_argument("--sender", metavar="ID", help="who speaks in that session, as the host has authenticated them")

    parser = add_command(commands, after, "get", get, "show lines of a memory file")
    parser.add_argument("path", metavar="PATH", help="file in the workspace, such as memory/2026-05-01.md")
    parser.add_argument("--from", dest="from_line", type=positive, default=1, metavar="N", help="first line, from 1")
    parser.add_argument("--lines", type=positive, metavar="N", help="number of lines")
    parser.add_argument(
        "--from-character", type=positive, default=1, metavar="N", help="first character of the first line, from 1"
    )


def status(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Count what is there."""
    from recall_runtime.cli.condition import condition, condition_lines

    data = condition(invocation.open(), deep=arguments.deep)
    return Reply(data, condition_lines(data))


def doctor(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Check the pieces; exit 1 when one of them needs a hand."""
    from recall_runtime.cli.condition import findings

    found = findings(invocation.open(), fix=arguments.fix)
    lines = [f"{'ok  ' if item['ok'] else 'BAD '} {item['what']}: {item['detail']}" for item in found]
    return Reply({"findings": found}, lines, exit_code=0 if all(item["ok"] for item in found) else 1)


def index(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Sync, and name every source that isn't wholly indexed."""
    from recall_runtime.cli.progress import Stages
    from recall_runtime.index.sync import sync

    report = sync(invocation.open(), force=arguments.force, progress=Stages())
    return Reply(plain(report), _synced(report))


def _synced(report: "SyncReport") -> Iterator[str]:
    built = "Built a new index" if report.rebuilt else "Index is up to date" if not report.changed else "Index updated"
    yield (
        f"{built}: {report.notes_read} notes and {report.transcripts_read} transcripts read,"
        f" {report.unchanged} unchanged, {report.removed} removed,"
        f" {report.entries_written} entries and {report.vectors_made} vectors written"
    )
    if report.vector_error:
        yield f"Vectors are missing: {report.vector_error}"
    for title, sources in (("not indexed", report.skipped), ("indexed in part", report.problems)):
        yield from (f"{path}: {title}, {reason}" for path, reason in sorted(sources.items()))
    for title, counts in (("faults", report.faults), ("files left aside", report.ignored)):
        if counts:
            yield f"{title}: {', '.join(f'{number} {kind}' for kind, number in sorted(counts.items()))}"
    if report.vectors_refused:
        yield f"vectors refused: {', '.join(f'{number} {kind}' for kind, number in report.vectors_refused.items())}"


def search(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Answer a question of the operator, who sees all, or of a session, which sees what it may."""
    from recall_runtime.index.search import search as find
    from recall_runtime.vocabulary import Corpus

    agent = invocation.open()
    answer = find(
        agent,
        arguments.query,
        max_results=arguments.max_results,
        min_score=arguments.min_score,
        corpus=Corpus(arguments.corpus),
        sessions=_readable_by(agent, arguments),
    )
    exit_code = 1 if answer.error else 0
    return Reply(plain(answer), _hits(answer), exit_code, _recording(agent, arguments, answer))


def _readable_by(agent: "Agent", arguments: argparse.Namespace) -> frozenset[str] | None:
    """Return the sessions whose transcripts the asking session may see; ``None``, all of them, without one.

    Raises:
        RefusedError: the session may not see memory.
    """
    if arguments.session is None:
        return None
    from recall_runtime.recall.visibility import access_of, readable_sessions, require_may_ask
    from recall_runtime.storage.binding import read_own_index

    require_may_ask(access_of(agent, arguments.session, arguments.sender))
    with contextlib.closing(read_own_index(agent.folders)) as reader:
        return readable_sessions(agent, reader)[0]


def _recording(agent: "Agent", arguments: argparse.Namespace, answer: "SearchAnswer") -> Callable[[], object] | None:
    """Return what writes the recall down, after the answer was shown; only an interactive session's is recorded."""
    if arguments.session is None:
        return None
    from recall_runtime.provenance.sessions import parse_session_key
    from recall_runtime.signals.recalls import record_recall
    from recall_runtime.vocabulary import SessionKind

    if parse_session_key(arguments.session).kind is not SessionKind.INTERACTIVE:
        return None

    return functools.partial(
        record_recall,
        agent,
        query=arguments.query,
        hits=answer.hits,
        session_key=arguments.session,
        lane="search",
        now_ms=agent.clock.now_ms(),
    )


def _hits(answer: "SearchAnswer") -> Iterator[str]:
    for hit in answer.hits:
        entry = hit.entry
        keyword = "-" if hit.keyword_score is None else f"{hit.keyword_score:.2f}"
        vector = "-" if hit.vector_score is None else f"{hit.vector_score:.2f}"
        status = "" if entry.status == "active" else f", {entry.status}"
        yield (
            f"{hit.citation}  relevance {hit.relevance:.2f} (keyword {keyword}, vector {vector})"
            f"  {entry.provenance.origin_class}{status}"
        )
        yield from framed(hit.snippet, entry.provenance.origin_class)
    if answer.notice:
        yield answer.notice
    if answer.error:
        yield f"Error: {answer.error}"
    for name, lane in answer.lanes.items():
        if lane.state != "ok":
            yield f"{name} lane {lane.state}: {lane.reason}"


def get(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Show a window of a memory file."""
    from recall_runtime.index.reading import get as read

    window = read(invocation.open(), arguments.path, arguments.from_line, arguments.lines, arguments.from_character)
    return Reply(plain(window), _window(window))


def _window(window: "Window") -> Iterator[str]:
    for number, line in enumerate(window.text.split("\n"), start=window.start_line):
        yield f"{number:>5}  {line}"
    if window.next_line:
        inside = f" --from-character {window.next_character}" if window.cut else ""
        yield f"… {window.total_lines} lines; go on with --from {window.next_line}{inside}"
