"""Starting Dagster's UI and daemon over the two code locations.

Belongs here: the command line and the environment of that process.
Does not belong here: what the locations show (``definitions``, ``lineage_location``).

The UI has no accounts, so it listens on this machine only. Others reach it through a reverse proxy of their own.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_assets.dagster_home import WORKSPACE_FILE, prepare
from recall_runtime.errors import ConfigError
from resources.lineage_reload import DEFAULT_UI_PORT, UI_HOST, UI_PORT_VARIABLE


def ui_command(folder: Path, port: int) -> list[str]:
    """Return the command that serves the workspace file in ``folder`` on ``port``.

    Raises:
        ConfigError: the command ``dg`` is not installed.
    """
    beside = Path(sys.executable).with_name("dg")
    program = os.fspath(beside) if beside.exists() else shutil.which("dg")
    if program is None:
        raise ConfigError("The command dg is missing", "Install the pipeline: pip install 'dreamline[assets]'.")
    workspace = os.fspath(folder / WORKSPACE_FILE)
    return [program, "dev", "-w", workspace, "-h", UI_HOST, "-p", str(port), "--log-level", "warning"]


def ui_environment(
    home: Path, *, port: int, workspace: Path | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of the UI: this one's, with the state folder, Dagster's folder and the port set."""
    environment = dict(os.environ if environ is None else environ)
    environment["DREAMLINE_HOME"] = os.fspath(home)
    environment["DAGSTER_HOME"] = os.fspath(prepare(home))
    environment[UI_PORT_VARIABLE] = str(port)
    environment["DAGSTER_DG_UPDATE_CHECK_ENABLED"] = "0"
    # The code servers import our packages from wherever this process did: an installed package or a checkout.
    ours = os.fspath(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [ours, environment.get("PYTHONPATH")]))
    if workspace is not None:
        environment["DREAMLINE_WORKSPACE"] = os.fspath(workspace)
    return environment


def run_ui(home: Path, *, port: int = DEFAULT_UI_PORT, workspace: Path | None = None) -> int:
    """Serve the UI and the daemon until they end or Ctrl-C; return the exit code."""
    environment = ui_environment(home, port=port, workspace=workspace)
    folder = Path(environment["DAGSTER_HOME"])
    # A shell starts background jobs with Ctrl-C ignored, and Dagster then can't be stopped; so it is set again here,
    # where the child takes it over. A service manager's SIGTERM ends the UI the same way.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with subprocess.Popen(ui_command(folder, port), env=environment, cwd=folder) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            return 0
