"""The folder Dagster keeps its history in.

Belongs here: where it is, and what a new one contains.
Does not belong here: starting Dagster (``memory_assets.ui``, ``memory_assets.runner``).

Without a fixed folder ``dg dev`` uses one in the working directory and deletes it on exit, with all history.
"""

import os
from importlib import resources
from pathlib import Path

SETTINGS_FILE = "dagster.yaml"
WORKSPACE_FILE = "workspace.yaml"


def dagster_home(home: Path) -> Path:
    """Return ``$DAGSTER_HOME``, or the folder ``dagster`` of the state folder ``home``."""
    return Path(os.environ.get("DAGSTER_HOME") or home / "dagster").expanduser().resolve()


def prepare(home: Path) -> Path:
    """Create the folder of ``home`` with its settings and workspace file; return it.

    The settings are written once and then belong to the operator. The workspace file is ours and always written, so
    that an installed package works without a repository.
    """
    folder = dagster_home(home)
    folder.mkdir(parents=True, exist_ok=True)
    package = resources.files("memory_assets")
    settings = folder / SETTINGS_FILE
    if not settings.exists():
        settings.write_bytes((package / SETTINGS_FILE).read_bytes())
    (folder / WORKSPACE_FILE).write_bytes((package / WORKSPACE_FILE).read_bytes())
    return folder
