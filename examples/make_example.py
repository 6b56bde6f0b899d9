"""Write the example workspace from ``story.toml``: notes, transcripts and a recall log in the layout of OpenClaw.

Belongs here: rendering the story. The same story gives the same bytes.
Does not belong here: Dreamline itself. Nothing is imported from it, so the example can't flatter it.

    python examples/make_example.py            # writes examples/workspace and examples/sessions
    python examples/make_example.py --out DIR  # writes below DIR instead
"""

import argparse
import datetime as dt
import hashlib
import json
import random
import re
import shutil
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

HERE = Path(__file__).resolve().parent
_NAME = re.compile(r"\{#([a-z0-9]+)\}")
_SESSION = re.compile(r"\{session:([a-z0-9]+)\}")


@dataclass(slots=True)
class Rendered:
    """Everything the story becomes: files by path, and where each named line stands."""

    files: dict[str, str] = field(default_factory=dict)
    places: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict)  # name: (path, line, text)


def stable_id(name: str) -> str:
    """Return a UUID that depends on ``name`` only."""
    return str(uuid.UUID(hashlib.sha256(f"lomvi:{name}".encode()).hexdigest()[:32], version=4))


def render_notes(story: dict[str, Any]) -> Rendered:
    """Cut the names out of the notes and remember their lines."""
    out = Rendered()
    texts = dict(story["files"]) | {f"memory/{name}.md": text for name, text in story["notes"].items()}
    for path, text in texts.items():
        lines = []
        for number, line in enumerate(text.strip("\n").split("\n"), start=1):
            plain = _SESSION.sub(lambda match: stable_id(match[1]), _NAME.sub("", line))
            for name in _NAME.findall(line):
                out.places.setdefault(name, []).append((path, number, plain))
            lines.append(plain)
        out.files[path] = "\n".join(lines) + "\n"
    return out


def iso(moment: dt.datetime) -> str:
    """Return ``moment`` as transcripts write it."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Transcript:
    """One session file under construction: a chain of rows, each pointing at the one before."""

    def __init__(self, session: dict[str, Any], places: dict[str, list[tuple[str, int, str]]]) -> None:
        self.session = session
        self.places = places
        self.now = dt.datetime.fromisoformat(session["at"])
        self.last: str | None = None
        self.rows: list[dict[str, Any]] = [
            {
                "type": "session",
                "version": 3,
                "id": stable_id(session["id"]),
                "timestamp": iso(self.now),
                "cwd": "/home/signe/.openclaw/workspace",
            }
        ]

    def message(self, role: str, content: list[dict[str, Any]], **more: Any) -> None:
        """Append one message row, twenty seconds after the last."""
        self.now += dt.timedelta(seconds=20)
        row_id = hashlib.sha256(f"{self.session['id']}:{len(self.rows)}".encode()).hexdigest()[:8]
        body = {"role": role, "content": content, "timestamp": int(self.now.timestamp() * 1000)} | more
        self.rows.append(
            {"type": "message", "id": row_id, "parentId": self.last, "timestamp": iso(self.now), "message": body}
        )
        self.last = row_id

    def text(self, role: str, text: str, **more: Any) -> None:
        """Append a message that holds only text."""
        self.message(role, [{"type": "text", "text": text}], **more)

    def tool(self, name: str, arguments: dict[str, Any], result: str, **more: Any) -> None:
        """Append a tool call and its result."""
        call = f"call_{len(self.rows):04d}"
        content = [{"type": "toolCall", "id": call, "name": name, "arguments": arguments}]
        self.message("assistant", content, stopReason="toolUse")
        self.text("toolResult", result, toolCallId=call, toolName=name, isError=False, **more)

    def turn(self, line: str) -> None:
        """Append what one line of the story says."""
        who, _, text = line.partition(": ")
        channel = self.session.get("channel", "webchat")
        stamp = self.now.strftime("[%a %Y-%m-%d %H:%M GMT+2] ")
        if who == "owner":
            origin = {"kind": "external_user", "sourceChannel": channel}
            self.text("user", stamp + text, provenance=origin, __openclaw={"senderIsOwner": True})
        elif who.startswith("guest "):
            origin = {"kind": "external_user", "sourceChannel": channel}
            sender = {"label": who.removeprefix("guest "), "id": "petter-47"}
            envelope = f"Sender (untrusted metadata):\n```json\n{json.dumps(sender, indent=2)}\n```\n\n"
            self.text("user", envelope + text, provenance=origin, __openclaw={"senderIsOwner": False})
        elif who == "system":
            self.text("user", text, provenance={"kind": "internal_system", "sourceTool": "scheduler"})
        elif who == "agent":
            self.text("assistant", text, stopReason="stop")
        elif who == "web":
            self._web(*text.split(" | ", 1))
        elif who == "run":
            command, output = text.split(" | ", 1)
            self.tool("exec", {"command": command}, output, details={"status": "completed", "exitCode": 0})
        elif who == "search":
            self._search(text)
        elif who == "write":
            path, *names = text.split(" #")
            self._write(path, names)
        else:
            raise ValueError(f"unknown turn {line!r}")

    def _web(self, url: str, page: str) -> None:
        wrapped = (
            'SECURITY NOTICE: external content.\n<<<EXTERNAL_UNTRUSTED_CONTENT id="e1">>>\n'
            f'{page}\n<<<END_EXTERNAL_UNTRUSTED_CONTENT id="e1">>>'
        )
        facts = {"untrusted": True, "source": "web_fetch", "wrapped": True}
        body = {"url": url, "status": 200, "contentType": "text/html", "externalContent": facts, "text": wrapped}
        self.tool("web_fetch", {"url": url}, json.dumps(body), details={"externalContent": facts})

    def _search(self, words: str) -> None:
        path, line, text = self.places["licence"][0]
        hit = {"path": path, "startLine": line, "endLine": line, "snippet": text.removeprefix("- "), "score": 0.88}
        self.tool("memory_search", {"query": words}, json.dumps({"results": [hit]}))

    def _write(self, path: str, names: list[str]) -> None:
        lines = [text for name in names for where, _, text in self.places[name] if where == path]
        added = "\n".join(lines)
        self.tool("edit", {"path": path, "append": f"\n{added}\n"}, f"Successfully wrote {len(added)} bytes to {path}")


def render_sessions(story: dict[str, Any], notes: Rendered) -> dict[str, str]:
    """Return the transcripts and their register, by file name."""
    files: dict[str, str] = {}
    register: dict[str, Any] = {}
    for session in story["session"]:
        transcript = Transcript(session, notes.places)
        for line in session["turns"]:
            transcript.turn(line)
        name = f"{stable_id(session['id'])}.jsonl"
        files[name] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in transcript.rows)
        # several sessions share a key over time; the register holds the newest, as a gateway does
        register[session["key"]] = {
            "sessionId": stable_id(session["id"]),
            "updatedAt": int(transcript.now.timestamp() * 1000),
            "chatType": session.get("chat", "direct"),
            "lastChannel": session.get("channel", "webchat"),
            "sessionFile": name,
        } | ({"label": session["label"]} if "label" in session else {})
    files["sessions.json"] = json.dumps(register, indent=2) + "\n"
    return files


def render_recalls(story: dict[str, Any], notes: Rendered) -> str:
    """Return the recall log: every question once or twice on days after its line was written."""
    draw = random.Random(story["seed"])  # noqa: S311  variety, nothing secret
    zone = ZoneInfo(story["zone"])
    last = dt.date.fromisoformat(story["first_day"]) + dt.timedelta(days=story["days"] - 1)
    events: list[tuple[dt.datetime, dict[str, Any]]] = []
    for name, queries in story["recalls"].items():
        path, line, _ = notes.places[name][0]
        written = dt.date.fromisoformat(path.removeprefix("memory/")[:10])
        for index, query in enumerate(queries):
            room = (last - written).days
            # spread over the time that is left, the last question close to the end
            day = written + dt.timedelta(days=1 + (room - 1) * (index + 1) // len(queries))
            moment = dt.datetime.combine(day, dt.time(draw.randint(7, 21), draw.randint(0, 59)), tzinfo=zone)
            score = round(draw.uniform(0.82, 0.95), 3)
            hit = {"path": path, "startLine": line, "endLine": line, "score": score}
            events.append((moment, {"query": query, "results": [hit]}))
    events.sort(key=lambda event: event[0])
    return "".join(
        json.dumps(
            {"type": "memory.recall.recorded", "timestamp": iso(moment), "query": event["query"]}
            | {"resultCount": len(event["results"]), "results": event["results"]},
            ensure_ascii=False,
        )
        + "\n"
        for moment, event in events
    )


def everything(story: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (path below the target folder, content) of every file."""
    notes = render_notes(story)
    for path, text in notes.files.items():
        yield f"workspace/{path}", text
    yield "workspace/memory/.dreams/events.jsonl", render_recalls(story, notes)
    for name, text in render_sessions(story, notes).items():
        yield f"sessions/{name}", text


def main() -> None:
    """Write the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE)
    out: Path = parser.parse_args().out
    story = tomllib.loads((HERE / "story.toml").read_text(encoding="utf-8"))
    for folder in ("workspace", "sessions"):
        shutil.rmtree(out / folder, ignore_errors=True)
    for path, text in everything(story):
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
