"""The HTTP API: one POST a tool, JSON in and out, on loopback, behind a bearer token.

Belongs here: reading requests, the codes of answers.
Does not belong here: the tools (``hosts.tools``), the document (``hosts.openapi``).

The server is the standard library's: the base install serves it, and what it needs is little. It listens on 127.0.0.1
only, answers no other origin (no CORS), and reads at most 4 MiB.
"""

import functools
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from recall_runtime.errors import (
    ConfigError,
    ConflictError,
    DreamlineError,
    RefusedError,
    SourceError,
    StoreError,
)
from recall_runtime.hosts.identity import BadCallerError, Caller, caller_of
from recall_runtime.hosts.openapi import PREFIX, document
from recall_runtime.hosts.token import is_authorised
from recall_runtime.hosts.tools import BadArgumentsError, Service, UnknownToolError

LOOPBACK = "127.0.0.1"
MAX_BODY = 4 * 1024 * 1024
READ_SECONDS = 30.0
_CODES: tuple[tuple[type[DreamlineError], int], ...] = (
    (BadArgumentsError, 400),
    (BadCallerError, 400),
    (UnknownToolError, 404),
    (SourceError, 404),
    (RefusedError, 403),
    (ConflictError, 409),
    (StoreError, 503),
)


def code_of(error: DreamlineError) -> int:
    """Return the HTTP code for ``error``."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 500)


def make_http_server(service: Service, token: str, port: int, default: Caller | None = None) -> ThreadingHTTPServer:
    """Return a server bound to loopback; ``serve_forever`` runs it, ``server_close`` frees the port.

    Args:
        service: What answers.
        token: The bearer token every call needs.
        port: Port, 0 for any.
        default: The caller where a request's headers name none.

    Raises:
        ConfigError: the port is taken.
    """
    handler = functools.partial(_Handler, service, token, default or Caller())
    try:
        server = ThreadingHTTPServer((LOOPBACK, port), handler)
    except OSError as error:
        raise ConfigError(f"Port {port} can't be used ({error.strerror})", "Give another with --port.") from error
    server.daemon_threads = True
    return server


def serve_http(
    service: Service, token: str, port: int, started: Callable[[str], None], default: Caller | None = None
) -> None:
    """Serve until the process is told to stop; ``started`` gets the address.

    Raises:
        ConfigError: the port is taken.
    """
    with make_http_server(service, token, port, default) as server:
        started(f"http://{LOOPBACK}:{server.server_port}")
        server.serve_forever(poll_interval=0.2)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "dreamline"
    sys_version = ""
    timeout = READ_SECONDS

    def __init__(self, service: Service, token: str, default: Caller, *connection: Any) -> None:
        """Serve one connection until it ends; see :func:`make_http_server`."""
        self._service, self._token, self._default = service, token, default
        super().__init__(*connection)

    def do_GET(self) -> None:
        """Serve the document; nothing else is read without a call."""
        if self.path == "/openapi.json":
            self._send(200, document())
        else:
            self._fail(404, "NotFound", f"There is nothing here. POST to {PREFIX}NAME; see /openapi.json.")

    def do_POST(self) -> None:
        """Run one tool."""
        if not is_authorised(self.headers.get("authorization"), self._token):
            self.close_connection = True  # the body stays unread
            self._fail(401, "Unauthorised", "Send the bearer token of this server.")
            return
        body = self._body()
        if body is None:
            return
        if not self.path.startswith(PREFIX):
            self._fail(404, "NotFound", f"There is nothing here. POST to {PREFIX}NAME; see /openapi.json.")
            return
        try:
            headers = {key.lower(): value for key, value in self.headers.items()}
            answer = self._service.call(self.path.removeprefix(PREFIX), caller_of(headers, self._default), body)
        except DreamlineError as error:
            self._fail(code_of(error), type(error).__name__, str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours answers 500 and never ends the server
            self._fail(500, type(error).__name__, "The call failed inside the server; see `dreamline doctor`.")
        else:
            self._send(502 if answer.get("error") else 200, answer)  # what was found goes along

    def log_message(self, *args: object) -> None:
        """Keep no access log: it would tell what is asked, and when."""

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit():
            self.close_connection = True
            self._fail(400, "BadRequest", "Send a JSON object with its Content-Length.")
            return None
        if int(length) > MAX_BODY:
            self.close_connection = True
            self._fail(413, "TooLarge", f"The body is larger than {MAX_BODY} bytes.")
            return None
        try:
            tree = json.loads(self.rfile.read(int(length)) or b"{}")
        except (ValueError, RecursionError):
            tree = None
        if not isinstance(tree, dict):
            self._fail(400, "BadRequest", "The body is no JSON object.")
            return None
        return tree

    def _fail(self, code: int, kind: str, message: str) -> None:
        self._send(code, {"error": {"type": kind, "message": message}})

    def _send(self, code: int, tree: dict[str, Any]) -> None:
        data = json.dumps(tree, default=str).encode("ascii")
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        if code == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
