"""The command ``dreamline``: global options, dispatch, exit codes.

Belongs here: the parser's frame, turning one error into one line with exit 1; usage errors exit 2 (argparse).
Does not belong here: the commands (one module a group), importing a room before its command runs.
"""

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from recall_runtime import __version__
from recall_runtime.cli import hosting, memory, people, pipeline, setup, turning, writing
from recall_runtime.cli.command import Invocation, Reply, instant
from recall_runtime.cli.output import fail, show
from recall_runtime.errors import DreamlineError, StoreLockedError, WorkspaceError

_GROUPS = (setup, memory, turning, writing, people, hosting, pipeline)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    parser = argparse.ArgumentParser(
        prog="dreamline",
        description="Long-term agent memory: search it, write notes, dream, explain and undo.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dreamline {__version__}")
    parser.add_argument(
        "--home", type=Path, metavar="DIR", help="state folder (else $DREAMLINE_HOME, else ~/.dreamline)"
    )
    parser.add_argument("--agent", metavar="ID", help="agent (else $DREAMLINE_AGENT, else main)")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="workspace, instead of the configured one")
    parser.add_argument("--now", type=instant, metavar="ISO", help="the clock, for replays; also after the command")
    parser.add_argument("--json", action="store_true", help="print one JSON object; also accepted after the command")
    after = argparse.ArgumentParser(add_help=False)
    # SUPPRESS: a command that isn't given one of these must not overwrite the one before it
    after.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    after.add_argument("--now", type=instant, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for group in _GROUPS:
        group.add_commands(commands, after)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # a terminal that can't show a letter gets its escape, never a crash
            reconfigure(errors="backslashreplace")
    arguments = build_parser().parse_args(argv)
    invocation = Invocation(
        home=arguments.home,
        agent_id=arguments.agent,
        workspace=arguments.workspace,
        now_ms=arguments.now,
        as_json=arguments.json,
    )
    try:
        reply: Reply = arguments.run(invocation, arguments)
        show(reply, as_json=invocation.as_json)
        if reply.afterwards:
            _afterwards(reply.afterwards)
    except DreamlineError as error:
        fail(error, as_json=invocation.as_json)
        return 1
    except BrokenPipeError:  # the reader of a pipe went away, such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return 130
    except Exception as error:
        known = _as_dreamline_error(error)
        if known is None:
            raise
        fail(known, as_json=invocation.as_json)
        return 1
    return reply.exit_code


def _afterwards(work: Callable[[], object]) -> None:
    """Do what comes after an answer. The answer stands and so does the exit code, whatever happens now."""
    try:
        work()
    except DreamlineError as error:
        fail(error, as_json=False)
    except Exception as error:  # noqa: BLE001 - a fault after the answer never turns it into a failure
        unknown = DreamlineError(f"The answer stands, but {type(error).__name__}: {error}", "")
        fail(_as_dreamline_error(error) or unknown, as_json=False)


def _as_dreamline_error(error: Exception) -> DreamlineError | None:
    """Return what the machine's own errors mean to a user; ``None`` for a fault of ours."""
    if isinstance(error, json.JSONDecodeError | UnicodeError):
        return None
    if isinstance(error, OSError):
        return WorkspaceError(
            f"{error.filename or 'A file'} can't be used ({error.strerror or error})", "Check access and free space."
        )
    if type(error).__module__ == "apsw" and type(error).__name__ in ("BusyError", "LockedError"):
        return StoreLockedError("A database is locked by another process", "Wait for it to end, then run again.")
    return None


def run() -> None:
    """Run one command as a process of its own and end it.

    Taking numpy and the tokenizer down again costs 60 ms a command, as much as an answer; nothing of ours waits for it:
    files and connections are closed by then. Dagster has exit handlers of its own, so where it is loaded they run.
    Cycles are looked for less often than by default: while modules are imported there are none to be found.
    """
    gc.set_threshold(50_000, 20, 20)
    code = main()
    if "dagster" in sys.modules:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
