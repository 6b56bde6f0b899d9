"""The command ``serve``: the tools for agents, over MCP or HTTP.

Belongs here: its arguments, starting and stopping.
Does not belong here: the servers (``recall_runtime.hosts``).
"""

import argparse
import contextlib
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from recall_runtime.cli.command import Commands, Invocation, Reply, add_command, add_group, count

if TYPE_CHECKING:
    from recall_runtime.hosts.identity import Caller

MCP_PORT = 8764
HTTP_PORT = 8765


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the commands of this group."""
    serve = add_group(commands, "serve", "serve the tools to agents on this machine")
    parser = add_command(serve, after, "mcp", serve_mcp, "serve MCP over standard input and output")
    parser.add_argument("--http", action="store_true", help="streamable HTTP on 127.0.0.1 instead, behind a token")
    parser.add_argument("--port", type=count, default=MCP_PORT, metavar="N", help="port of --http; 0 for any")
    _caller(parser)
    parser = add_command(serve, after, "http", serve_http, "serve the HTTP API on 127.0.0.1, behind a token")
    parser.add_argument("--port", type=count, default=HTTP_PORT, metavar="N", help="port; 0 for any")
    _caller(parser)


def _caller(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="KEY", help="session that calls, where no header names one")
    parser.add_argument("--sender", metavar="ID", help="who speaks in it, where no header says")
    parser.add_argument("--channel", metavar="ID", help="chat or channel of the session")
    parser.add_argument("--project", action="append", default=[], metavar="KEY", help="repository of the session")


def serve_mcp(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Serve one session on stdio, or many over HTTP, until the host is done."""
    from recall_runtime.hosts.mcp_server import serve_http as serve_over_http
    from recall_runtime.hosts.mcp_server import serve_stdio
    from recall_runtime.hosts.token import load_token
    from recall_runtime.hosts.tools import Service

    agent = invocation.open()
    with contextlib.closing(Service(agent, keep_fresh=True)) as service:
        if arguments.http:
            token, where = load_token(agent.folders.home)
            serve_over_http(
                service, _caller_of(arguments), token, arguments.port, lambda url: _started(url, f"token: {where}")
            )
        else:
            serve_stdio(service, _caller_of(arguments))
    return Reply()


def serve_http(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Serve the HTTP API until the process is told to stop."""
    from recall_runtime.hosts.http_api import serve_http as serve
    from recall_runtime.hosts.token import load_token
    from recall_runtime.hosts.tools import Service

    agent = invocation.open()
    token, where = load_token(agent.folders.home)
    signal.signal(signal.SIGTERM, _stop)
    with contextlib.closing(Service(agent, keep_fresh=True)) as service:
        serve(service, token, arguments.port, lambda url: _started(url, f"token: {where}"), _caller_of(arguments))
    return Reply()


def _caller_of(arguments: argparse.Namespace) -> "Caller":
    from recall_runtime.hosts.identity import Caller

    return Caller(arguments.session, arguments.sender, arguments.channel, tuple(arguments.project))


def _started(url: str, detail: str) -> None:
    """Say where the server listens; on standard error, since standard output may be the protocol's."""
    sys.stderr.write(f"Serving on {url} ({detail})\n")
    sys.stderr.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
