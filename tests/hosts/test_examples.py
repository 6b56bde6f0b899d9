"""Every configuration in examples/hosts is what docs/hosts.md shows, and works when a host runs it."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.cli.main import build_parser
from recall_runtime.config import Settings
from tests.hosts.helpers import MAIN, NOW, PRIVATE, ROOT, Place, make_place, running

EXAMPLES = ROOT / "examples" / "hosts"
PAGE = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
TOKEN = "a-token-for-the-tests-only"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def environment(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which ``dreamline`` is this code over the test's workspace."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "dreamline"
    command = shlex.join([sys.executable, "-m", "recall_runtime.cli.main", *place.options])
    script.write_text(f'#!/bin/sh\ncd {shlex.quote(str(ROOT))}\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DREAMLINE_")}
    return kept | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def shown_files() -> list[Path]:
    return sorted(path for path in EXAMPLES.rglob("*") if path.is_file())


def hook_commands() -> list[tuple[str, str, str]]:
    """Return (file, event, command) of every hook in the examples."""
    found = []
    for path in (EXAMPLES / "claude-code" / "settings.json", EXAMPLES / "codex" / "hooks.json"):
        for event, groups in json.loads(path.read_text(encoding="utf-8"))["hooks"].items():
            found += [(path.parent.name, event, hook["command"]) for group in groups for hook in group["hooks"]]
    return found


def servers() -> list[tuple[str, dict[str, Any]]]:
    """Return (file, server) of every MCP server in the examples."""
    claude = json.loads((EXAMPLES / "claude-code" / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    codex = tomllib.loads((EXAMPLES / "codex" / "config.toml").read_text(encoding="utf-8"))["mcp_servers"]
    openclaw = json.loads((EXAMPLES / "openclaw" / "openclaw.json").read_text(encoding="utf-8"))["mcp"]["servers"]
    return [("claude-code", claude["dreamline"]), ("codex", codex["dreamline"]), ("openclaw", openclaw["dreamline"])]


@pytest.mark.parametrize("path", shown_files(), ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_the_page_names_each_file_and_shows_its_configuration(path: Path) -> None:
    assert f"examples/hosts/{path.relative_to(EXAMPLES).as_posix()}" in PAGE
    if path.suffix in (".json", ".toml"):
        assert path.read_text(encoding="utf-8") in PAGE


@pytest.mark.parametrize(("host", "event", "command"), hook_commands(), ids=lambda part: str(part)[:20])
def test_a_hook_runs_as_the_host_runs_it(environment: dict[str, str], host: str, event: str, command: str) -> None:
    record = {"session_id": "s", "cwd": ".", "hook_event_name": event, "prompt": "which gate code?"}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(record),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert (answer["hookEventName"], PRIVATE in answer["additionalContext"]) == (event, True)


@pytest.mark.parametrize(("host", "server"), servers(), ids=lambda part: part if isinstance(part, str) else "")
def test_a_server_starts_as_the_host_starts_it(environment: dict[str, str], host: str, server: dict[str, Any]) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def run() -> Any:
        parameters = StdioServerParameters(command=server["command"], args=server["args"], env=environment)
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await session.call_tool("memory_search", {"query": "gate code"})

    result = asyncio.run(run())
    assert not result.is_error
    assert PRIVATE in result.structured_content["results"][0]["snippet"]


def test_the_settings_shown_for_openclaw_are_valid() -> None:
    tree = tomllib.loads((EXAMPLES / "openclaw" / "dreamline.toml").read_text(encoding="utf-8"))
    assert Settings.model_validate(tree).sources.owner_ids == ("owner",)


def test_the_script_for_http_gives_what_is_to_be_injected(place: Place) -> None:
    with running(place, "http", token=TOKEN) as url:
        done = subprocess.run(
            [EXAMPLES / "http" / "turn.sh", MAIN, "owner"],
            input='which "gate" code?',
            env=os.environ | {"DREAMLINE_URL": url, "DREAMLINE_HTTP_TOKEN": TOKEN},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert PRIVATE in json.loads(done.stdout)["text"]


def test_commands_in_the_examples_are_commands() -> None:
    for _, _, command in hook_commands():
        assert build_parser().parse_args(["--now", NOW, *shlex.split(command)[1:]]).command == "turn"
    for _, server in servers():
        assert build_parser().parse_args(["--now", NOW, *server["args"]]).command == "serve"
