"""One agent, opened: its folders, settings, zone and clock. Handed to every room instead of globals.

Belongs here: putting these four together, once, at the edge (command line, Dagster resource, server).
Does not belong here: connections (each room opens and closes its own), any work.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from recall_runtime.clock import Clock, SystemClock, zone_of
from recall_runtime.config import Settings, load_settings
from recall_runtime.errors import WorkspaceError
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.binding import require_own_state

DEFAULT_AGENT = "main"


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything a room needs to know about whom it works for."""

    folders: AgentFolders
    settings: Settings
    zone: ZoneInfo
    clock: Clock

    @property
    def workspace(self) -> Path:
        """Root of the workspace."""
        return self.folders.workspace


def default_home() -> Path:
    """Return ``$DREAMLINE_HOME``, or ``~/.dreamline``."""
    return Path(os.environ.get("DREAMLINE_HOME") or Path.home() / ".dreamline")


def open_agent(
    *,
    home: Path | None = None,
    agent_id: str | None = None,
    workspace: Path | None = None,
    clock: Clock | None = None,
) -> Agent:
    """Open the agent ``agent_id`` below ``home``.

    Raises:
        ConfigError: the settings or the time zone are wrong.
        WorkspaceError: no workspace is set, it is no readable folder, or the agent's memory is of another one.
    """
    home = (home or default_home()).expanduser().resolve()
    agent_id = agent_id or os.environ.get("DREAMLINE_AGENT") or DEFAULT_AGENT
    settings = load_settings(home, agent_id)
    root = workspace or settings.workspace
    if root is None:
        raise WorkspaceError("No workspace is set", "Run `dreamline --workspace DIR init` once.")
    root = root.expanduser().resolve()
    if not root.is_dir() or not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceError(
            f"Workspace {root} is missing or can't be read",
            "Create it or give this user access; if it was moved, run `dreamline --workspace DIR init --moved`.",
        )
    folders = AgentFolders(home=home, agent_id=agent_id, workspace=root, sessions=settings.sources.session_folders)
    require_own_state(folders)
    return Agent(folders=folders, settings=settings, zone=zone_of(settings.timezone), clock=clock or SystemClock())
