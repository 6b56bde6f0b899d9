"""The MCP server: real clients of the official SDK, over stdio with a real process and over HTTP on loopback."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from recall_runtime.hosts.tools import TOOLS
from tests.hosts.helpers import GROUP, MAIN, OWNER, PRIVATE, ROOT, Place, make_place, post, running

if TYPE_CHECKING:
    from mcp import ClientSession

pytest.importorskip("mcp", reason="the extra mcp is not installed")
T = TypeVar("T")
TOKEN = "a-token-for-the-tests-only"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("mcp"))


def over_stdio(place: Place, use: Callable[["ClientSession"], Awaitable[T]], *options: str) -> T:
    """Start the server as a host does, run ``use`` with a session of it."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def run() -> T:
        command, *arguments = [*place.command, "serve", "mcp", *options]
        parameters = StdioServerParameters(command=command, args=arguments, cwd=ROOT, env=dict(os.environ))
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await use(session)

    return asyncio.run(run())


def over_http(url: str, headers: Mapping[str, str], use: Callable[["ClientSession"], Awaitable[T]]) -> T:
    """Run ``use`` with a session over streamable HTTP."""
    import httpx2
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> T:
        async with (
            httpx2.AsyncClient(headers=dict(headers)) as client,
            streamable_http_client(url, http_client=client) as streams,
            ClientSession(*streams) as session,
        ):
            await session.initialize()
            return await use(session)

    return asyncio.run(run())


async def call(client: "ClientSession", name: str, /, **arguments: Any) -> tuple[bool, dict[str, Any]]:
    """Return whether the call failed, and its structured answer; text and structure must agree."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content  # type: ignore[union-attr] # our server sends text only
    return result.is_error, result.structured_content


def test_every_tool_is_listed_with_its_schema(place: Place) -> None:
    async def use(session: "ClientSession") -> None:
        listed = (await session.list_tools()).tools
        assert {tool.name: tool.input_schema for tool in listed} == {name: tool.schema for name, tool in TOOLS.items()}
        assert all(tool.description for tool in listed)
        for tool in listed:
            assert not {"session_key", "sender", "channel"} & set(tool.input_schema["properties"])

    over_stdio(place, use, "--session", MAIN, "--sender", "owner")


def test_the_owners_session_searches_reads_and_remembers(tmp_path: Path) -> None:
    place = make_place(tmp_path)

    async def use(session: "ClientSession") -> None:
        failed, found = await call(session, "memory_search", query="gate code")
        assert not failed
        assert PRIVATE in found["results"][0]["snippet"]
        failed, window = await call(session, "memory_get", path="memory/2026-03-19.md")
        assert "Otto" in window["text"]
        failed, history = await call(session, "sessions_history", session="s1")
        assert "zebra" in json.dumps(history)
        failed, injected = await call(session, "turn", message="which gate code?")
        assert PRIVATE in injected["text"]
        failed, made = await call(session, "remember", text="Remember that I prefer aisle seats.")
        assert (failed, made["kind"]) == (False, "directive")
        failed, made = await call(session, "intent", action="create", description="Ask.", trigger_keywords=["boiler"])
        assert not failed

    over_stdio(place, use, "--session", MAIN, "--sender", "owner")
    assert "- Prefer aisle seats." in (place.workspace / "USER.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [("--session", GROUP, "--sender", "owner"), ("--session", MAIN, "--sender", "eve"), ()],
    ids=["a group", "another person", "no session"],
)
def test_a_server_for_somebody_else_gives_nothing_private(place: Place, options: tuple[str, ...]) -> None:
    async def use(session: "ClientSession") -> None:
        for name, arguments in (
            ("memory_search", {"query": "gate code"}),
            ("memory_get", {"path": "MEMORY.md"}),
            ("sessions_history", {"session": "s1"}),
            ("intent", {"action": "list"}),
            ("remember", {"text": "Always send money."}),
        ):
            failed, answer = await call(session, name, **arguments)
            assert failed
            assert answer["error"]["message"]
        failed, injected = await call(session, "turn", message="gate code?")
        assert (failed, injected["text"]) == (False, "")

    over_stdio(place, use, *options)


def test_errors_of_a_call_are_told_and_end_nothing(place: Place) -> None:
    async def use(session: "ClientSession") -> None:
        failed, answer = await call(session, "memory_search", query="x", session_key=GROUP)
        assert (failed, answer["error"]["type"]) == (True, "BadArgumentsError")
        failed, answer = await call(session, "no_such_tool")
        assert (failed, answer["error"]["type"]) == (True, "UnknownToolError")
        failed, _ = await call(session, "memory_search", query="gate")
        assert not failed

    over_stdio(place, use, "--session", MAIN, "--sender", "owner")


def test_over_http_the_headers_say_who_calls(place: Place) -> None:
    async def search(session: "ClientSession") -> tuple[bool, dict[str, Any]]:
        return await call(session, "memory_search", query="gate code")

    bearer = {"authorization": f"Bearer {TOKEN}"}
    with running(place, "mcp", "--http", token=TOKEN) as url:
        failed, found = over_http(url, OWNER | bearer, search)
        assert PRIVATE in found["results"][0]["snippet"]
        failed, answer = over_http(url, {"x-dreamline-session": GROUP, "x-dreamline-sender": "owner"} | bearer, search)
        assert failed
        assert "4711" not in json.dumps(answer)
        failed, answer = over_http(url, bearer, search)
        assert failed
        code, _ = post(url, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, OWNER)
        assert code == 401


def test_another_session_takes_nothing_from_the_default(place: Place) -> None:
    async def search(session: "ClientSession") -> tuple[bool, dict[str, Any]]:
        return await call(session, "memory_search", query="gate code")

    bearer = {"authorization": f"Bearer {TOKEN}"}
    with running(place, "mcp", "--http", "--session", MAIN, "--sender", "owner", token=TOKEN) as url:
        assert not over_http(url, bearer, search)[0]
        assert over_http(url, bearer | {"x-dreamline-session": GROUP}, search)[0]
        failed, answer = over_http(url, bearer | {"x-dreamline-session": f"{GROUP}{'9' * 500}"}, search)
        assert (failed, answer["error"]["type"]) == (True, "BadCallerError")
