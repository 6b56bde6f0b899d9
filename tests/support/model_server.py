"""A real HTTP server on loopback that plays a model endpoint from a script.

Belongs here: serving scripted answers, keeping what was asked.
Does not belong here: any knowledge of prompts or of the product.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One scripted answer. ``hang`` keeps the connection open without a byte; ``drip`` sends one byte at a time."""

    body: bytes | dict[str, Any] = b"{}"
    status: int = 200
    content_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drip_seconds: float = 0.0
    promised_length: int | None = None

    def payload(self) -> bytes:
        """Return the bytes of the body."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    payload: dict[str, Any]


class ModelServer:
    """Answers requests with ``replies`` in order; the last one repeats."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self.arrived = threading.Event()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                server.answer(self, self.rfile.read(length))

            def log_message(self, *args: object) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Serve the next scripted reply."""
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(Asked(handler.path, headers, json.loads(body)))
        self.arrived.set()
        with contextlib.suppress(OSError):
            if reply.hang:
                self._closing.wait()
                return
            payload = reply.payload()
            handler.send_response(reply.status)
            if reply.content_type is not None:
                handler.send_header("content-type", reply.content_type)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(reply.promised_length or len(payload)))
            handler.end_headers()
            if not reply.drip_seconds:
                handler.wfile.write(payload)
                return
            for byte in payload:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if self._closing.wait(reply.drip_seconds):
                    return

    def close(self) -> None:
        """Stop serving."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextlib.contextmanager
def model_server(*replies: Reply) -> Iterator[ModelServer]:
    """Serve ``replies`` for the body."""
    server = ModelServer(*replies)
    try:
        yield server
    finally:
        server.close()


def openai_reply(text: str, **choice: Any) -> Reply:
    """Return a chat completion that says ``text``."""
    return Reply(
        {
            "model": "small",
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"} | choice],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5},
        }
    )
