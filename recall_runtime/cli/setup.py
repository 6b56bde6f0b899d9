"""``init``: adopt or create a workspace.

Belongs here: the one command that writes ``dreamline.toml``, and finding the pieces of an OpenClaw installation.
Does not belong here: importing history (``recall_runtime.imports``), changing anything inside existing files.
"""

import argparse
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from recall_runtime.cli.command import Commands, Invocation, Reply, add_command
from recall_runtime.errors import ConfigError, WorkspaceError
from recall_runtime.storage.atomic import content_hash, replace_file

_WORKSPACE = re.compile(r"\s*workspace\s*=[^#\n]*?(\s*(?:#[^\n]*)?\r?\n?)")


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add ``init``."""
    parser = add_command(commands, after, "init", init, "adopt or create a workspace")
    parser.add_argument("--from-openclaw", type=Path, metavar="DIR", help="state folder or workspace of OpenClaw")
    parser.add_argument("--timezone", default=None, metavar="ZONE", help="zone of the notes (default: this machine's)")
    parser.add_argument("--sessions", type=Path, action="append", default=[], metavar="DIR", help="transcript folder")
    parser.add_argument("--moved", action="store_true", help="the workspace's folder was moved: keep its memory")
    parser.add_argument(
        "--embedder",
        default="auto",
        choices=("auto", "static", "minilm", "e5", "none"),
        help="what makes the vectors; auto is resolved now, once",
    )


def init(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Write ``dreamline.toml``; create the workspace where there is none; adopt OpenClaw's history when asked."""
    from recall_runtime.agent import DEFAULT_AGENT, default_home, open_agent
    from recall_runtime.clock import zone_of
    from recall_runtime.config import CONFIG_FILE, load_settings
    from recall_runtime.paths import AgentFolders
    from recall_runtime.storage.binding import take_over

    home = (invocation.home or default_home()).expanduser().resolve()
    agent_id = invocation.agent_id or DEFAULT_AGENT
    workspace, sessions = _places(invocation.workspace, arguments.from_openclaw, arguments.sessions, agent_id)
    config = home / CONFIG_FILE
    zone = arguments.timezone or _machine_zone()
    zone_of(zone)  # refuse a wrong zone before anything is written
    if not config.exists():
        tree = {
            "workspace": str(workspace),
            "timezone": zone,
            "embedder": _embedder(arguments.embedder),
            "sources": {"session_folders": [str(folder) for folder in sessions]},
        }
        _create(workspace, config, tree)
        wrote = True
    else:
        wrote = False
        named = load_settings(home, agent_id).workspace
        if named is not None and named.expanduser().resolve() != workspace:
            if not (arguments.moved and _renamed(config, named, workspace)):
                raise ConfigError(
                    f"{config} names the workspace {named}, not {workspace}",
                    "Give this workspace a state folder of its own with --home DIR. If the folder was moved, correct"
                    " the file and run `init --moved`.",
                )
            wrote = True
    if arguments.moved:
        take_over(AgentFolders(home, agent_id, workspace))
    agent = open_agent(home=home, agent_id=invocation.agent_id)
    data: dict[str, Any] = {
        "workspace": str(workspace),
        "config": str(config),
        "written": wrote,
        "timezone": agent.settings.timezone,
        "embedder": agent.settings.embedder.name,
        "session_folders": [str(folder) for folder in agent.settings.sources.session_folders],
    }
    lines = [
        f"{'Wrote' if wrote else 'Kept'} {config}",
        f"workspace  {workspace}",
        f"sessions   {', '.join(data['session_folders']) or 'none (add them under [sources] session_folders)'}",
        f"timezone   {agent.settings.timezone}",
        f"embedder   {agent.settings.embedder.name}",
        "Next: dreamline index",
    ]
    return Reply(data, lines)


def _places(
    workspace: Path | None, openclaw: Path | None, sessions: list[Path], agent_id: str
) -> tuple[Path, list[Path]]:
    """Return the workspace and the transcript folders that the options mean."""
    folders = [_existing(folder) for folder in sessions]
    if openclaw is None:
        if workspace is None:
            raise WorkspaceError("No workspace is named", "Run `dreamline --workspace DIR init`.")
        return workspace.expanduser().resolve(), folders
    found, sessions_there = openclaw_places(_existing(openclaw), agent_id)
    return (workspace or found).expanduser().resolve(), folders or sessions_there


def openclaw_places(source: Path, agent_id: str) -> tuple[Path, list[Path]]:
    """Return the workspace and the transcript folders of an OpenClaw installation; a bare copy has them side by side.

    Raises:
        SourceError: there is no workspace in ``source``.
    """
    from recall_runtime.imports.openclaw import find_home

    home = find_home(source, agent_id)
    beside = home.workspace.parent / "sessions"
    return home.workspace, list(home.session_folders) or ([beside] if beside.is_dir() else [])


def _existing(folder: Path) -> Path:
    folder = folder.expanduser().resolve()
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        raise WorkspaceError(f"Folder {folder} is missing or can't be read", "Give the path of an existing folder.")
    return folder


def _embedder(wanted: str) -> dict[str, Any]:
    """Return the section of the embedder; a name chosen here is marked as nobody's wish."""
    if wanted != "auto":
        return {"name": wanted}
    from recall_runtime.index.embedders.registry import best_installed

    return {"name": best_installed(), "automatic": True}


def _machine_zone() -> str:
    """Return the machine's IANA zone, or UTC where it can't be told."""
    zone = os.environ.get("TZ", "")
    if "/" in zone:
        return zone.lstrip(":")
    link = Path("/etc/localtime")
    _, found, name = str(link.resolve()).partition("zoneinfo/") if link.is_symlink() else ("", "", "")
    return name if found and "/" in name and name != "Etc/UTC" else "UTC"


def _create(workspace: Path, config: Path, tree: dict[str, Any]) -> None:
    try:
        (workspace / "memory").mkdir(parents=True, exist_ok=True)
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(_toml(tree), encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"{error.filename} can't be created ({error.strerror})",
            "Give this user write access, or choose another folder.",
        ) from error


def _renamed(config: Path, old: Path, new: Path) -> bool:
    """Write the new place of a moved workspace into its line of ``config``; return whether there is such a line.

    Every other byte stays. A workspace that is named elsewhere, such as for one agent, is the owner's to correct.
    """
    content = config.read_bytes()
    lines = content.decode("utf-8").splitlines(keepends=True)
    for place, line in enumerate(lines):
        if line.lstrip().startswith("["):
            return False
        found = _WORKSPACE.fullmatch(line)
        if found and _says(line, old):
            lines[place] = f"{_line('workspace', str(new))}{found[1]}"
            replace_file(config, "".join(lines).encode(), expected_hash=content_hash(content))
            return True
    return False


def _says(line: str, workspace: Path) -> bool:
    try:
        return tomllib.loads(line) == {"workspace": str(workspace)}
    except tomllib.TOMLDecodeError:  # a text over several lines
        return False


def _toml(tree: dict[str, Any]) -> str:
    """Return ``tree`` as TOML. JSON's strings and lists are TOML's as well."""
    lines = ["# Settings of Dreamline. Every key with its default and range: docs/operators.md"]
    lines += [_line(key, value) for key, value in tree.items() if not isinstance(value, dict)]
    for name, section in tree.items():
        if isinstance(section, dict):
            lines += ["", f"[{name}]", *(_line(key, value) for key, value in section.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
