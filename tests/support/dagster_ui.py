"""The real UI over a state folder, in its own process on a free port."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_SERVE = """
import sys
from pathlib import Path
from memory_assets.ui import run_ui

sys.exit(run_ui(Path(sys.argv[1]), port=int(sys.argv[2])))
"""


@contextlib.contextmanager
def serve(home: Path, log: Path) -> Iterator[int]:
    """Serve the UI of ``home`` for the body; give its port once both locations have loaded or failed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    command = [sys.executable, "-c", _SERVE, os.fspath(home), str(port)]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as process,
    ):
        try:
            _wait(process, port, log)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def graphql(port: int, query: str) -> dict[str, Any]:
    """Return the data the UI answers ``query`` with."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"content-type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        data: dict[str, Any] = json.load(answer)["data"]
    return data


def locations(port: int) -> dict[str, str]:
    """Return what became of every code location: ``RepositoryLocation`` or ``PythonError``."""
    query = "{workspaceOrError{...on Workspace{locationEntries{name locationOrLoadError{__typename}}}}}"
    entries = graphql(port, query)["workspaceOrError"]["locationEntries"]
    return {entry["name"]: entry["locationOrLoadError"]["__typename"] for entry in entries}


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    give_up_at = time.monotonic() + 120
    while time.monotonic() < give_up_at:
        assert process.poll() is None, log.read_text(errors="replace")
        with contextlib.suppress(OSError, KeyError, TypeError):
            if len(locations(port)) == 2:
                return
        time.sleep(0.5)
    raise AssertionError(log.read_text(errors="replace"))
