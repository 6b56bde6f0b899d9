"""The HTTP API: real requests on loopback to a real process."""

import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.errors import ConfigError, DreamlineError
from recall_runtime.hosts.http_api import MAX_BODY, code_of
from recall_runtime.hosts.openapi import document
from recall_runtime.hosts.token import is_authorised, load_token
from recall_runtime.hosts.tools import TOOLS
from tests.hosts.helpers import GROUP, MAIN, OWNER, PRIVATE, ROOT, Place, make_place, post, running

TOKEN = "a-token-for-the-tests-only"
BEARER = {"authorization": f"Bearer {TOKEN}"}
CALLS: dict[str, dict[str, Any]] = {
    "memory_search": {"query": "gate code of the shed"},
    "memory_get": {"path": "MEMORY.md"},
    "sessions_history": {"session": "s1"},
    "intent": {"action": "list"},
    "remember": {"text": "The spare key hangs in the hall."},
    "turn": {"message": "what is the gate code?"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("api"))


@pytest.fixture(scope="module")
def url(place: Place) -> Iterator[str]:
    with running(place, "http", token=TOKEN) as address:
        yield address


def test_every_tool_has_a_call_here() -> None:
    assert set(CALLS) == set(TOOLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"authorization": f"Basic {TOKEN}"}]
)
def test_without_the_token_nothing_is_answered(url: str, name: str, headers: dict[str, str]) -> None:
    code, answer = post(url, f"/v1/{name}", CALLS[name], OWNER | headers)
    assert code == 401
    assert set(answer) == {"error"}


def test_the_owner_finds_reads_and_is_given_what_is_private(url: str) -> None:
    code, found = post(url, "/v1/memory_search", CALLS["memory_search"], OWNER | BEARER)
    assert code == 200
    assert PRIVATE in found["results"][0]["snippet"]
    code, window = post(url, "/v1/memory_get", {"path": "MEMORY.md", "from_line": 3, "lines": 1}, OWNER | BEARER)
    assert (code, PRIVATE in window["text"]) == (200, True)
    code, injected = post(url, "/v1/turn", CALLS["turn"], OWNER | BEARER)
    assert (code, PRIVATE in injected["text"]) == (200, True)
    code, history = post(url, "/v1/sessions_history", CALLS["sessions_history"], OWNER | BEARER)
    assert (code, "zebra" in json.dumps(history)) == (200, True)


STRANGERS = {
    "a group": {"x-dreamline-session": GROUP, "x-dreamline-sender": "owner"},
    "a channel": {"x-dreamline-session": "agent:main:discord:channel:3", "x-dreamline-sender": "owner"},
    "another person": {"x-dreamline-session": "agent:main:telegram:direct:eve", "x-dreamline-sender": "eve"},
    "another person in the main session": {"x-dreamline-session": MAIN, "x-dreamline-sender": "eve"},
    "another agent": {"x-dreamline-session": "agent:other:main", "x-dreamline-sender": "owner"},
    "no session": {},
    "an unknown session": {"x-dreamline-session": "hello", "x-dreamline-sender": "owner"},
}


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("name", CALLS)
def test_nothing_private_reaches_anybody_else(url: str, place: Place, name: str, stranger: str) -> None:
    before = (place.workspace / "MEMORY.md").read_bytes()
    code, answer = post(url, f"/v1/{name}", CALLS[name], STRANGERS[stranger] | BEARER)
    text = json.dumps(answer)
    assert "4711" not in text
    assert "zebra" not in text
    assert "short answers" not in text
    assert code == (200 if name == "turn" else 403)
    assert (place.workspace / "MEMORY.md").read_bytes() == before


@pytest.mark.parametrize("session", ["", f"agent:main:telegram:group:{'9' * 500}"], ids=["empty", "endless"])
def test_a_session_that_can_not_be_taken_is_not_the_default_one(tmp_path: Path, session: str) -> None:
    place = make_place(tmp_path)
    with running(place, "http", "--session", MAIN, "--sender", "owner", token=TOKEN) as url:
        code, answer = post(url, "/v1/memory_search", CALLS["memory_search"], {"x-dreamline-session": session} | BEARER)
    assert (code, set(answer)) == (400, {"error"})


def test_an_argument_never_says_who_asks(url: str) -> None:
    for name, arguments in CALLS.items():
        for identity in ("session_key", "sender", "channel", "is_owner"):
            code, answer = post(url, f"/v1/{name}", arguments | {identity: MAIN}, STRANGERS["a group"] | BEARER)
            assert (code, identity in answer["error"]["message"]) == (400, True)


def test_what_is_remembered_can_be_found_and_taken_back(tmp_path: Path) -> None:
    place = make_place(tmp_path)
    with running(place, "http", token=TOKEN) as url:
        code, made = post(url, "/v1/remember", {"text": "The gate code of the shed is now 9023."}, OWNER | BEARER)
        assert (code, made["kind"], made["superseded"]) == (200, "fact", [PRIVATE])
        _, window = post(url, "/v1/memory_get", {"path": "MEMORY.md"}, OWNER | BEARER)
    assert "9023" in window["text"]
    assert "4711" not in window["text"]


def test_intents_are_made_listed_and_cancelled(tmp_path: Path) -> None:
    with running(make_place(tmp_path), "http", token=TOKEN) as url:
        asked = {"action": "create", "description": "Ask about the warranty.", "trigger_keywords": ["boiler"]}
        code, made = post(url, "/v1/intent", asked, OWNER | BEARER)
        assert (code, made["intent"]["status"], made["intent"]["anyone"]) == (200, "armed", False)
        _, injected = post(url, "/v1/turn", {"message": "The boiler is loud."}, OWNER | BEARER)
        assert "Ask about the warranty." in injected["text"]
        _, listed = post(url, "/v1/intent", {"action": "list", "status": "fired"}, OWNER | BEARER)
        assert [one["id"] for one in listed["intents"]] == [made["intent"]["id"]]
        code, _ = post(url, "/v1/intent", {"action": "cancel", "id": made["intent"]["id"]}, OWNER | BEARER)
        assert code == 200
        code, _ = post(url, "/v1/intent", {"action": "cancel", "id": made["intent"]["id"]}, OWNER | BEARER)
        assert code == 403
        clock = {"action": "create", "description": "Remind me at 9 o'clock.", "trigger_keywords": ["tea"]}
        code, answer = post(url, "/v1/intent", clock, OWNER | BEARER)
        assert (code, "scheduled task" in answer["error"]["message"]) == (403, True)


def test_a_condition_and_its_expiry_stand_in_the_result(url: str) -> None:
    _, found = post(url, "/v1/memory_search", {"query": "deploys frozen"}, OWNER | BEARER)
    hit = next(one for one in found["results"] if "Deploys" in one["snippet"])
    assert (hit["expires"], hit["expired"], hit["action_senses"]) == ("2026-03-31", False, ["temporary"])
    assert "(expires: 2026-03-31)" in hit["snippet"]


BAD = [
    ("/v1/memory_search", b"no json", 400),
    ("/v1/memory_search", b"[1]", 400),
    ("/v1/memory_search", b"{}", 400),
    ("/v1/memory_search", b'{"query": 5}', 400),
    ("/v1/memory_search", b'{"query": "x", "max_results": 0}', 400),
    ("/v1/memory_get", b'{"path": "../../etc/passwd"}', 403),
    ("/v1/memory_get", b'{"path": "memory/2020-01-01.md"}', 404),
    ("/v1/nothing", b"{}", 404),
    ("/", b"{}", 404),
    ("/v1/memory_search", b"[" * 100_000, 400),
]


@pytest.mark.parametrize(("path", "body", "code"), BAD, ids=[f"{row[2]} {row[0]} {row[1][:20]!r}" for row in BAD])
def test_bad_requests_are_named_and_end_nothing(url: str, path: str, body: bytes, code: int) -> None:
    got, answer = post(url, path, body, OWNER | BEARER)
    assert got == code
    assert answer["error"]["message"]
    assert post(url, "/v1/turn", CALLS["turn"], OWNER | BEARER)[0] == 200


def test_a_body_that_is_too_large_is_not_read(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        head = (
            "POST /v1/turn HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {TOKEN}",
            f"Content-Length: {MAX_BODY + 1}",
        )
        connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_the_server_listens_on_loopback_only(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")


def test_the_document_names_every_tool_and_needs_no_token(url: str) -> None:
    code, tree = post(url, "/openapi.json", method="GET")
    assert (code, tree) == (200, document())
    assert {path.removeprefix("/v1/") for path in tree["paths"]} == set(TOOLS)
    text = json.dumps(tree)
    assert "$defs" not in text
    for reference in {part.split('"')[0] for part in text.split('"$ref": "')[1:]}:
        assert reference.removeprefix("#/components/schemas/") in tree["components"]["schemas"]


def kinds_of(kind: type[DreamlineError]) -> Iterator[type[DreamlineError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from kinds_of(inner)


def test_every_code_of_an_error_stands_in_the_document_and_on_the_page() -> None:
    sent = {code_of(kind.__new__(kind, "what", "cure")) for kind in kinds_of(DreamlineError)} | {401, 413, 502}
    operation = document()["paths"]["/v1/memory_search"]["post"]
    assert {int(code) for code in operation["responses"]} == sent | {200}
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d{3}) \|", page, re.MULTILINE)} == sent


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    token, where = load_token(tmp_path, {})
    assert load_token(tmp_path, {}) == (token, where)
    assert stat.S_IMODE(Path(where).stat().st_mode) == 0o600
    assert is_authorised(f"Bearer {token}", token)
    assert not is_authorised(f"Bearer {token}x", token)
    assert not is_authorised(None, token)


@pytest.mark.skipif(os.name != "posix", reason="permissions of another kind")
def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    _, where = load_token(tmp_path, {})
    Path(where).chmod(0o644)
    with pytest.raises(ConfigError, match="others"):
        load_token(tmp_path, {})


def test_a_short_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too short"):
        load_token(tmp_path, {"DREAMLINE_HTTP_TOKEN": "short"})
