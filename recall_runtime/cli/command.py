"""What a command is handed and what it gives back.

Belongs here: the invocation (global options), the reply, argument types and the helper that adds a command.
Does not belong here: printing (``output``), the commands.
"""

import argparse
import dataclasses
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recall_runtime.agent import Agent

Commands = Any  # argparse gives its registry of commands no public type


@dataclass(frozen=True, slots=True)
class Invocation:
    """The options before the command."""

    home: Path | None
    agent_id: str | None
    workspace: Path | None
    now_ms: int | None
    as_json: bool

    def open(self) -> "Agent":
        """Open the agent the options name.

        Raises:
            ConfigError: the settings or the time zone are wrong.
            WorkspaceError: no workspace is set, or it can't be read.
        """
        from recall_runtime.agent import open_agent
        from recall_runtime.clock import FixedClock

        clock = None if self.now_ms is None else FixedClock(self.now_ms)
        return open_agent(home=self.home, agent_id=self.agent_id, workspace=self.workspace, clock=clock)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says: ``data`` for ``--json``, ``lines`` for people; ``afterwards`` runs when it was shown."""

    data: Mapping[str, Any] = field(default_factory=dict)
    lines: Iterable[str] = ()
    exit_code: int = 0
    afterwards: Callable[[], object] | None = None


Run = Callable[[Invocation, argparse.Namespace], Reply]


def add_command(
    commands: Commands, after: argparse.ArgumentParser, name: str, run: Run, summary: str
) -> argparse.ArgumentParser:
    """Add the command ``name`` and return its parser, for its arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, parents=[after], help=summary, description=summary[:1].upper() + summary[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, summary: str) -> Commands:
    """Add the command ``name`` that has commands of its own; return their registry."""
    parser = commands.add_parser(name, help=summary, description=summary[:1].upper() + summary[1:] + ".")
    return parser.add_subparsers(dest=f"{name}_command", metavar="COMMAND", required=True)


def instant(text: str) -> int:
    """Argument type: an ISO 8601 instant as milliseconds UTC."""
    from recall_runtime.clock import parse_instant

    try:
        return parse_instant(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no ISO 8601 time such as 2026-05-31T03:00:00+02:00") from None


def day(text: str) -> dt.date:
    """Argument type: a calendar day."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day such as 2026-05-31") from None


def positive(text: str) -> int:
    """Argument type: a whole number from 1."""
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def count(text: str) -> int:
    """Argument type: a whole number from 0."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0")
    return int(text)


def share(text: str) -> float:
    """Argument type: a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1")
    return value


def plain(value: object) -> Any:
    """Return ``value`` as plain data for ``--json``: records as mappings, tuples and sets as lists, paths as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    return str(value) if isinstance(value, Path) else value
