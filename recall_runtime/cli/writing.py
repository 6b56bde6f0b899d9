"""Commands that write below ``memory/``: ``note``, ``flush``, ``import``.

Belongs here: their arguments and answers.
Does not belong here: who is behind a text (``provenance``), the writing itself (``notes.writer``, ``flush``,
``imports``).
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recall_runtime.cli.command import Commands, Invocation, Reply, add_command, add_group, count, plain, positive

if TYPE_CHECKING:
    from recall_runtime.imports.copies import ImportReport
    from recall_runtime.imports.openclaw import AdoptionReport

IMPORT_SOURCES = ("openclaw", "codex", "claude-code", "hermes")


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the commands of this group."""
    parser = add_command(commands, after, "note", note, "append a line to today's note, with its provenance")
    parser.add_argument("text", metavar="TEXT", help="what to append; - reads standard input")
    parser.add_argument("--session", required=True, metavar="KEY", help="session that writes; its class is recorded")
    parser.add_argument("--session-id", metavar="ID", help="id of the session, when the key has had several")
    parser.add_argument("--supersedes", metavar="KEY", help="lineage key of what this line replaces")
    parser.add_argument("--path", metavar="PATH", help="note below memory/ (default: today's)")

    flush = add_group(commands, "flush", "save what a conversation holds before it is compacted")
    parser = add_command(flush, after, "plan", flush_plan, "say whether a flush is due, and how it is done")
    _session(parser)
    parser.add_argument("--context-window", type=positive, default=200_000, metavar="N", help="tokens of the model")
    parser.add_argument("--total-tokens", type=count, default=0, metavar="N", help="tokens of the conversation now")
    parser.add_argument("--transcript-bytes", type=count, default=0, metavar="N", help="size of the session file")
    parser.add_argument("--read-only", action="store_true", help="the host may not write into the workspace")
    parser = add_command(flush, after, "write", flush_write, "append what the flush turn produced, once per compaction")
    _session(parser)
    parser.add_argument("text", nargs="?", default="-", metavar="TEXT", help="the text; - or nothing: standard input")

    parser = add_command(commands, after, "import", import_, "adopt the memory of another tool")
    parser.add_argument("source", choices=IMPORT_SOURCES, metavar="|".join(IMPORT_SOURCES), help="the tool")
    parser.add_argument("path", type=Path, metavar="PATH", help="its folder; only read")
    parser.add_argument("--replace", action="store_true", help="replace copies that differ, with a verified backup")
    parser.add_argument("--dry-run", action="store_true", help="only say what would happen")


def _session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", required=True, metavar="KEY", help="session to flush")
    parser.add_argument("--session-id", metavar="ID", help="its id")
    parser.add_argument("--compaction", type=count, default=0, metavar="N", help="compactions so far; one flush each")


def text_of(argument: str) -> str:
    """Return the text of an argument, reading standard input for ``-``."""
    return sys.stdin.read() if argument == "-" else argument


def note(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Append to a note and say where it stands and as whose."""
    from recall_runtime.notes.writer import append_note

    written = append_note(
        invocation.open(),
        text_of(arguments.text),
        session_key=arguments.session,
        session_id=arguments.session_id,
        supersedes_key=arguments.supersedes,
        path=arguments.path,
    )
    who = written.provenance
    lines = [f"{written.path}:{written.start_line}-{written.end_line}  {who.origin_class}, {who.session_kind}"]
    return Reply(plain(written), lines)


def flush_plan(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Tell a host whether to flush, with prompt, target and tool."""
    from recall_runtime.flush.plan import plan_flush

    plan = plan_flush(
        invocation.open(),
        session_key=arguments.session,
        session_id=arguments.session_id,
        context_window=arguments.context_window,
        total_tokens=arguments.total_tokens,
        compaction_count=arguments.compaction,
        transcript_bytes=arguments.transcript_bytes,
        read_only=arguments.read_only,
    )
    head = f"{'due' if plan.due else 'not due'}: {plan.reason.replace('_', ' ')}"
    return Reply(plain(plan), [head, *(plan.prompt.split("\n") if plan.due else ())])


def flush_write(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Write a flush. It never fails a compaction: the outcome says what happened."""
    from recall_runtime.flush.write import write_flush

    result = write_flush(
        invocation.open(),
        text_of(arguments.text),
        session_key=arguments.session,
        session_id=arguments.session_id,
        compaction_count=arguments.compaction,
    )
    where = f" {result.appended.path}:{result.appended.start_line}" if result.appended else ""
    return Reply(plain(result), [f"{result.outcome}{where}"])


def import_(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Adopt an OpenClaw workspace's history, or copy the memory files of another tool."""
    agent = invocation.open()
    if arguments.source == "openclaw":
        from recall_runtime.imports.openclaw import adopt_openclaw

        adopted = adopt_openclaw(agent, arguments.path, dry_run=arguments.dry_run)
        return Reply(plain(adopted), _adopted(adopted, agent.settings.sources.session_folders))
    from recall_runtime.imports.copies import ImportStatus, ImportTool, import_memory

    report = import_memory(
        agent, ImportTool(arguments.source), arguments.path, replace=arguments.replace, dry_run=arguments.dry_run
    )
    failed = report.count(ImportStatus.FAILED) + report.count(ImportStatus.CONFLICT)
    return Reply(plain(report), _imported(report), exit_code=1 if failed else 0)


def _adopted(report: "AdoptionReport", configured: tuple[Path, ...]) -> Iterator[str]:
    yield f"From {report.home.workspace}"
    yield f"  {report.recall_events} questions with {report.recall_hits} answers, {report.intents} standing intents"
    yield f"  {report.promotions} promoted entries stay where they are, in MEMORY.md"
    if report.skipped:
        yield f"  left aside: {', '.join(f'{number} {reason}' for reason, number in sorted(report.skipped.items()))}"
    for folder in report.home.session_folders:
        if folder.resolve() not in {known.expanduser().resolve() for known in configured}:
            yield f"  transcripts lie in {folder}; they are read once [sources] session_folders names it"


def _imported(report: "ImportReport") -> Iterator[str]:
    for file in report.files:
        yield f"{file.status}: {file.path}{f' ({file.reason})' if file.reason else ''}"
        if file.backup:
            yield f"  backup {file.backup}"
