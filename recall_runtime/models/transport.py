"""One JSON request over HTTP under one hard deadline.

Belongs here: sending, the limits of time and size, turning every failure into a ``ModelError`` with its cure.
Does not belong here: what the JSON means (one module a provider).

The call runs on its own event loop in its own thread, so the deadline cuts it wherever it hangs (name lookup,
connection, headers that drip, a body that never ends) and works inside hosts that already run a loop.
"""

import asyncio
import ipaddress
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from recall_runtime.errors import ModelError, ModelTimeoutError

if TYPE_CHECKING:
    import httpx

MAX_ANSWER_BYTES = 8 * 1024 * 1024
_CANCEL_POLL_SECONDS = 0.02
_GRACE_SECONDS = 0.2  # for closing the connection after the deadline; then the thread is left to itself
_DETAIL_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model listens. ``secret`` is masked in every message; ``label`` names the endpoint for people."""

    label: str
    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(default="", repr=False)
    transport: "httpx.AsyncBaseTransport | None" = None


class HttpStatusError(ModelError):
    """The endpoint answered with an error status; ``status`` and the raw ``detail`` let a client adapt."""

    def __init__(self, problem: str, cure: str, *, status: int, detail: str) -> None:
        super().__init__(problem, cure)
        self.status = status
        self.detail = detail


def post_json(
    endpoint: Endpoint,
    path: str,
    payload: Mapping[str, Any],
    *,
    timeout_seconds: float,
    cancel: threading.Event | None = None,
) -> dict[str, Any]:
    """Send ``payload`` and return the JSON object of the answer.

    Raises:
        ModelTimeoutError: no complete answer within ``timeout_seconds``, or ``cancel`` was set.
        HttpStatusError: an error status.
        ModelError: no connection, no JSON, or more than ``MAX_ANSWER_BYTES``.
    """
    outcome: list[dict[str, Any] | BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(_bounded(endpoint, path, payload, timeout_seconds, cancel)))
        except BaseException as error:  # noqa: BLE001 - carried to the caller's thread and raised there
            outcome.append(error)

    thread = threading.Thread(target=run, name="dreamline-model-call", daemon=True)
    thread.start()
    thread.join(timeout_seconds + _GRACE_SECONDS)
    if not outcome:
        raise _timeout(endpoint, timeout_seconds)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def _bounded(
    endpoint: Endpoint, path: str, payload: Mapping[str, Any], limit: float, cancel: threading.Event | None
) -> dict[str, Any]:
    call = asyncio.ensure_future(_exchange(endpoint, path, payload, limit))
    waiting = {call} if cancel is None else {call, asyncio.ensure_future(_until_set(cancel))}
    done, open_tasks = await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    for task in open_tasks:
        task.cancel()
    await asyncio.gather(*open_tasks, return_exceptions=True)
    if call in done:
        return call.result()
    if cancel is not None and cancel.is_set():
        raise ModelTimeoutError(f"The call to {endpoint.label} was cancelled", "Nothing was taken from it.")
    raise _timeout(endpoint, limit)


async def _until_set(event: threading.Event) -> dict[str, Any]:
    while not event.is_set():
        await asyncio.sleep(_CANCEL_POLL_SECONDS)
    return {}


async def _exchange(endpoint: Endpoint, path: str, payload: Mapping[str, Any], limit: float) -> dict[str, Any]:
    import httpx

    url = endpoint.base_url.rstrip("/") + path
    try:
        async with (
            httpx.AsyncClient(
                transport=endpoint.transport, timeout=limit, trust_env=not _is_loopback(endpoint.base_url)
            ) as client,
            client.stream("POST", url, json=payload, headers=dict(endpoint.headers)) as response,
        ):
            body = await _read(endpoint, response)
            return _decode(endpoint, response.status_code, response.headers, body)
    except httpx.TimeoutException as error:
        raise _timeout(endpoint, limit) from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise ModelError(
            f"{endpoint.label} can't be reached ({_clean(str(error), endpoint.secret) or type(error).__name__})",
            "Start the server, or correct model.base_url.",
        ) from None  # the cause may hold the headers, and so the key


async def _read(endpoint: Endpoint, response: "httpx.Response") -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise ModelError(
                f"{endpoint.label} answered more than {MAX_ANSWER_BYTES} bytes", "Check that it is a chat model."
            )
        parts.append(part)
    return b"".join(parts)


def _decode(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    if status >= 300:
        raise _status_error(endpoint, status, headers, body)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise ModelError(
            f"{endpoint.label} answered {_clean(kind, endpoint.secret)} instead of JSON",
            "Set model.base_url to the API, not to a web page.",
        )
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{endpoint.label} answered broken JSON", "Try again, or look at the server's log.") from error
    if not isinstance(answer, dict):
        raise ModelError(f"{endpoint.label} answered JSON that is no object", "Check model.provider.")
    return answer


_CURES = {
    400: "Check model.model and what the server supports.",
    401: "Check the key in the environment variable named by model.api_key_env.",
    403: "Check that the key may use this model.",
    404: "Check model.base_url and model.model.",
    413: "The request is too long for this model; choose one with a larger context.",
    429: "Wait, or raise the limit with the provider.",
}


def _status_error(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes) -> HttpStatusError:
    detail = _server_message(body)
    shown = _clean(detail, endpoint.secret)
    cure = _CURES.get(status) or (
        "Try again later, or look at the server's log." if status >= 500 else "Check model.base_url and model.provider."
    )
    wait = headers.get("retry-after", "").strip()
    if status == 429 and wait.isascii() and wait.isdigit():
        cure = f"Wait {int(wait[:9])} seconds, or raise the limit with the provider."
    return HttpStatusError(
        f"{endpoint.label} answered status {status}{f' ({shown})' if shown else ''}", cure, status=status, detail=detail
    )


def _server_message(body: bytes) -> str:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = tree.get("error") if isinstance(tree, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _clean(text: str, secret: str) -> str:
    """Fit foreign text into one line of ours: no secret, no control characters, bounded."""
    if secret:
        text = text.replace(secret, "***")
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(printable.split())[:_DETAIL_CHARACTERS]


def _timeout(endpoint: Endpoint, limit: float) -> ModelTimeoutError:
    return ModelTimeoutError(
        f"{endpoint.label} gave no complete answer within {limit:.3g} s",
        "Raise model.timeout_seconds, or use a faster model.",
    )


def _is_loopback(base_url: str) -> bool:
    """A server on this machine is never asked through a proxy."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
