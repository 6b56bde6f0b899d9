"""The OpenAPI document of the HTTP API, made from the table of tools.

Belongs here: the document.
Does not belong here: serving it (``hosts.http_api``).
"""

from typing import Any

from recall_runtime import __version__
from recall_runtime.hosts.identity import CHANNEL_HEADER, PROJECTS_HEADER, SENDER_HEADER, SESSION_HEADER
from recall_runtime.hosts.tools import TOOLS

PREFIX = "/v1/"
_HEADERS = {
    SESSION_HEADER: "key of the session, as the host knows it; decides what may be shown; empty or too long is refused",
    SENDER_HEADER: "who speaks, as authenticated by the host",
    CHANNEL_HEADER: "chat or channel id",
    PROJECTS_HEADER: "keys of the session's repositories, joined by ;",
}
_PROBLEMS = {
    "400": "the body, its arguments or a header that names the caller is wrong",
    "401": "the bearer token is missing or wrong",
    "403": "refused: identity, scope, bounds or provenance",
    "404": "no such tool or memory file",
    "409": "a file kept changing; nothing was written",
    "413": "the body is too large",
    "500": "a setting or the workspace is wrong, or the call failed inside the server",
    "502": "the embedder that the settings name failed; what words alone found stands beside the error",
    "503": "a database is missing, locked or too slow",
}


def document() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document."""
    schemas: dict[str, Any] = {"Error": _error()}
    paths: dict[str, Any] = {}
    for tool in TOOLS.values():
        schema = tool.schema
        schemas.update(schema.pop("$defs", {}))
        schemas[tool.arguments.__name__] = schema
        paths[PREFIX + tool.name] = {"post": _operation(tool.name, tool.description, tool.arguments.__name__)}
    tree = {
        "openapi": "3.1.0",
        "info": {"title": "Dreamline", "version": __version__, "description": "Long-term agent memory on loopback."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
    moved = _moved(tree)
    assert isinstance(moved, dict)  # noqa: S101 - a mapping goes in
    return moved


def _operation(name: str, description: str, schema: str) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": {"description": "the answer", "content": _json({"type": "object"})}}
    problem = _json({"$ref": "#/components/schemas/Error"})
    answers.update({code: {"description": text, "content": problem} for code, text in _PROBLEMS.items()})
    return {
        "operationId": name,
        "description": description,
        "parameters": [
            {"name": header, "in": "header", "description": text, "schema": {"type": "string"}}
            for header, text in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": _json({"$ref": f"#/components/schemas/{schema}"})},
        "responses": answers,
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _error() -> dict[str, Any]:
    text = {"type": "string"}
    inner = {"type": "object", "properties": {"type": text, "message": text}, "required": ["type", "message"]}
    return {"type": "object", "properties": {"error": inner}, "required": ["error"]}


def _moved(tree: Any) -> Any:
    """Point references of the tools' own schemas at the document's components."""
    if isinstance(tree, dict):
        return {
            key: value.replace("#/$defs/", "#/components/schemas/") if key == "$ref" else _moved(value)
            for key, value in tree.items()
        }
    return [_moved(item) for item in tree] if isinstance(tree, list) else tree
