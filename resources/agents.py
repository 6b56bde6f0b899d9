"""The agents a deployment serves, opened on demand.

Belongs here: where the state folder is, and opening one agent in it.
Does not belong here: settings (``recall_runtime.config``), the clock (``resources.clock``).
"""

from pathlib import Path

import dagster as dg
from pydantic import Field

from recall_runtime.agent import Agent, default_home, open_agent
from recall_runtime.clock import Clock


class AgentsResource(dg.ConfigurableResource["AgentsResource"]):
    """Opens agents below one state folder."""

    home: str = Field(default="", description="State folder. Empty: $DREAMLINE_HOME, or ~/.dreamline.")
    workspace: str = Field(default="", description="Workspace of every agent. Empty: the one in dreamline.toml.")

    def open(self, agent_id: str, clock: Clock | None = None) -> Agent:
        """Open ``agent_id``.

        Raises:
            ConfigError: the settings or the time zone are wrong.
            WorkspaceError: no workspace is set, or it can't be read.
        """
        workspace = Path(self.workspace) if self.workspace else None
        return open_agent(home=self.home_path, agent_id=agent_id, workspace=workspace, clock=clock)

    @property
    def home_path(self) -> Path:
        """The state folder."""
        return Path(self.home) if self.home else default_home()
