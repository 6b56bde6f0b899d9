"""The commands ``turn``, everything a host injects for one message, and ``project``, the key of a repository.

Belongs here: their arguments and answers.
Does not belong here: the lanes (``recall.turn``), keys (``recall.projects``).
"""

import argparse
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recall_runtime.cli.command import Commands, Invocation, Reply, add_command, plain
from recall_runtime.errors import WorkspaceError

if TYPE_CHECKING:
    from recall_runtime.agent import Agent
    from recall_runtime.recall.turn import TurnResult


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the command of this group."""
    parser = add_command(commands, after, "turn", turn, "everything a host injects for one message")
    parser.add_argument("message", metavar="MESSAGE", nargs="?", help="the message; standard input when left out")
    parser.add_argument("--session", metavar="KEY", required=True, help="key of the session it arrived in")
    parser.add_argument("--channel", metavar="C", help="chat or channel id, as the host knows it")
    parser.add_argument("--sender", metavar="S", help="id of the sender, authenticated by the host")
    parser.add_argument("--project", action="append", default=[], metavar="KEY", help="repository at hand; repeatable")
    parser.add_argument("--fresh", action="store_true", help="the conversation begins: add the notes of two days")
    parser.add_argument(
        "--hook", action="store_true", help="be a prompt hook of Claude Code or Codex: its JSON in, its JSON out"
    )
    parser = add_command(commands, after, "project", project, "the key of a repository, as annotations name it")
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=Path(), help="any folder in it; default ."
    )


def turn(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Run all lanes for one message; what was shown is recorded after it was printed."""
    from recall_runtime.recall.turn import turn as run_turn

    if arguments.hook:
        return _hook(invocation, arguments)
    agent = invocation.open()
    message = arguments.message if arguments.message is not None else sys.stdin.read()
    result = run_turn(
        agent,
        message,
        session_key=arguments.session,
        channel=arguments.channel,
        sender=arguments.sender,
        active_projects=tuple(arguments.project),
        fresh_start=arguments.fresh,
        record=False,
    )
    afterwards = functools.partial(_afterwards, agent, result, sync=invocation.now_ms is None)
    return Reply(_data(result), _lines(result), afterwards=afterwards)


def _afterwards(agent: "Agent", result: "TurnResult", *, sync: bool) -> None:
    """Record what was shown; start a sync that nobody waits for when the files are newer than the index."""
    from recall_runtime.index.freshness import sync_in_background
    from recall_runtime.recall.turn import record_turn

    record_turn(agent, result)
    if sync:
        sync_in_background(agent)


def project(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Print the key of a repository, for ``--project`` and for annotations; exit 1 outside any."""
    from recall_runtime.recall.projects import repository_key

    key = repository_key(arguments.folder.absolute())
    if key is None:
        raise WorkspaceError(f"{arguments.folder} is in no Git repository", "Name a folder inside one.")
    return Reply({"project_key": key}, [key])


def _hook(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Answer a host's prompt hook. Whatever goes wrong, the prompt passes: the reason stands on standard error."""
    import json

    from recall_runtime.errors import DreamlineError
    from recall_runtime.hosts.prompt_hook import answer, fitted, projects_of, read_call
    from recall_runtime.recall.turn import turn as run_turn

    call = read_call(sys.stdin.read())
    if call is None:
        return Reply(lines=("{}",))
    try:
        agent = fitted(invocation.open())
    except DreamlineError as error:
        sys.stderr.write(f"dreamline: {error}\n")
        return Reply(lines=("{}",))
    result = run_turn(
        agent,
        call.prompt,
        session_key=arguments.session,
        channel=arguments.channel,
        sender=arguments.sender,
        active_projects=(*arguments.project, *projects_of(agent, call)),
        fresh_start=call.starts_session,
        record=False,
    )
    afterwards = functools.partial(_afterwards, agent, result, sync=invocation.now_ms is None)
    return Reply(lines=(json.dumps(answer(call, result)),), afterwards=afterwards)


def _data(result: "TurnResult") -> dict[str, object]:
    return {
        "text": result.text,
        "blocks": {
            name: getattr(result, name)
            for name in ("bootstrap", "project", "deep", "triggers", "intents", "applies_now")
        },
        "audience": result.audience.value,
        "lanes": plain(result.lanes),
        "omissions": plain(result.omissions),
        "files": [
            {
                "name": file.name,
                "raw_chars": file.raw_chars,
                "injected_chars": file.injected_chars,
                "left_out": dict(file.left_out),
                "cut": file.cut,
                "omitted": file.omitted,
            }
            for file in result.files
        ],
        "fired": result.fires,
        "elapsed_ms": round(result.elapsed_ms, 3),
    }


def _lines(result: "TurnResult") -> Iterator[str]:
    yield from result.text.split("\n") if result.text else ("(nothing to inject)",)
    yield ""
    for name, report in result.lanes.items():
        detail = f" ({report.detail})" if report.detail else ""
        yield f"# {name}: {report.decision} in {report.elapsed_ms:.1f} ms{detail}"
    for omission in result.omissions:
        yield f"# left out: {omission.what}, {omission.reason}, {omission.count}"
