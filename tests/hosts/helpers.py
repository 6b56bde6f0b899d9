"""A private workspace on disk, and real servers of it in processes of their own.

Belongs here: making the workspace, starting and ending a server, speaking HTTP to it.
Does not belong here: what the servers should answer.
"""

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recall_runtime.agent import Agent, open_agent
from recall_runtime.clock import FixedClock, parse_instant
from recall_runtime.index.sync import sync
from tests.support.index_agents import write_files, write_session

NOW = "2026-03-20T12:00:00Z"
MAIN = "agent:main:main"
GROUP = "agent:main:telegram:group:7"
PRIVATE = "The gate code of the shed is 4711."
OWNER = {"x-dreamline-session": MAIN, "x-dreamline-sender": "owner"}
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """\
workspace = {workspace!r}
[embedder]
name = "none"
[sources]
owner_ids = ["owner"]
session_folders = [{sessions!r}]
"""


@dataclass(frozen=True)
class Place:
    """Folders of one installation."""

    home: Path
    workspace: Path
    sessions: Path

    def agent(self) -> Agent:
        """Open its agent."""
        return open_agent(home=self.home, clock=FixedClock(parse_instant(NOW)))

    @property
    def options(self) -> list[str]:
        """Options before the command."""
        return ["--home", str(self.home), "--now", NOW]

    @property
    def command(self) -> list[str]:
        """Start of the command line."""
        return [sys.executable, "-m", "recall_runtime.cli.main", *self.options]


def make_place(folder: Path) -> Place:
    """Make a workspace with a private fact, a directive, a note and one private conversation, and index it."""
    place = Place(folder / "home", folder / "workspace", folder / "sessions")
    write_files(
        place.workspace,
        {
            "MEMORY.md": f"# Memory\n\n- {PRIVATE} <!-- trigger: gate code -->\n",
            "USER.md": "## Directives\n\n<!-- observed: 2026-03-01 | status: active -->\n\n- Prefer short answers.\n",
            "memory/2026-03-19.md": "- The ram is called Otto.\n- Deploys are frozen. <!-- expires: 2026-03-31 -->\n",
        },
    )
    write_session(place.sessions, "s1", [("user", "The zebra crossing is painted blue."), ("assistant", "Noted.")])
    place.home.mkdir(parents=True)
    settings = SETTINGS.format(workspace=str(place.workspace), sessions=str(place.sessions))
    (place.home / "dreamline.toml").write_text(settings, encoding="utf-8")
    sync(place.agent())
    return place


@contextlib.contextmanager
def running(place: Place, *command: str, token: str | None = None) -> Iterator[str]:
    """Run ``dreamline serve …`` for the body; give its address."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DREAMLINE_")}
    if token:
        environment["DREAMLINE_HTTP_TOKEN"] = token
    process = subprocess.Popen(
        [*place.command, "serve", *command, "--port", "0"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.match(r"Serving on (http://127\.0\.0\.1:\d+\S*) ", line)
        assert found, line + process.stderr.read()
        yield found[1]
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def post(
    url: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, *, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    """Send one request; return the code and the JSON of the answer."""
    host = url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        connection.request(method, path, data if method == "POST" else None, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()
