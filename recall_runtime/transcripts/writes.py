"""Writes to memory files, as tool calls report them.

Belongs here: reading path and new lines out of the arguments of edit tools, patches and shell commands.
Does not belong here: the class of the turn (``reader``). The text itself is hashed and forgotten.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recall_runtime.paths import MEMORY_FILE, NOTES_FOLDER, USER_FILE, PathKind, kind_of, note_day
from recall_runtime.provenance.segments import line_hash, part_hash
from recall_runtime.transcripts.protocol import ToolCall
from recall_runtime.transcripts.values import mapping

_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "notebook_path")
_TEXT_KEYS = (
    "content", "text", "append", "newText", "new_text", "new_string", "newString", "new_str", "file_text",
    "insert_text", "insertText",
)  # fmt: skip
_OLD_KEYS = ("oldText", "old_text", "old_string", "oldString", "old_str")
_NEW_KEYS = ("newText", "new_text", "new_string", "newString", "new_str")
_COMMAND_KEYS = ("command", "cmd", "input", "patch", "script")
_MEMORY_KINDS = frozenset({PathKind.MEMORY, PathKind.USER, PathKind.DAILY_NOTE, PathKind.TOPIC_NOTE, PathKind.IMPORT})
_PATCH_FILE = re.compile(r"\*\*\* (?:Update|Add) File: (.+)")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_REDIRECT = re.compile(r">>?[ \t]*(\"[^\"\n]+\"|'[^'\n]+'|[^\s<>|;&]+)")
_TEE = re.compile(r"\btee[ \t]+(?:-a[ \t]+)?(\"[^\"\n]+\"|'[^'\n]+'|[^\s<>|;&]+)")
# Programs that write files without a redirection that names them.
_SCRIPTED = re.compile(
    r"\b(?:sed|perl)[ \t]+(?:-\w+[ \t]+)*-\w*i"
    r"|\b(?:python[\d.]*|node|ruby|perl|php|deno|bun)\b[^\n|;&]*[ \t]-(?:\w*[ce]\b|[ \t]*<<)"
    r"|\bpython[\d.]*[ \t]+-?[ \t]*<<|\b(?:cp|mv|install|rsync|dd|ln)[ \t]"
)
_MEMORY_NAME = re.compile(r"[^\s'\"=<>|;&()]*\b(?:memory/[^\s'\"=<>|;&()]+\.md|MEMORY\.md|USER\.md)", re.IGNORECASE)
_MAX_COMMAND = 200_000


def memory_path(path: str, cwd: str | None) -> str | None:
    """Return ``path`` relative to the workspace when it names a memory file, else ``None``.

    Transcripts name files by absolute paths of the machine they were made on, so a path below the session's folder is
    taken as it stands, and of any other one the part from its first folder ``memory`` on. A curated file counts in any
    folder and a bare dated name as a note: to report a write too many only takes trust away.
    """
    name = path.strip().replace("\\", "/")
    while name.startswith("./"):
        name = name[2:]
    root = (cwd or "").replace("\\", "/").rstrip("/")
    if root and name.startswith(root + "/"):
        name = name[len(root) + 1 :]
    if ".." in name.split("/"):
        return None
    if kind_of(name) in _MEMORY_KINDS:
        return name
    at = name.find("/memory/")
    if at >= 0 and kind_of(name[at + 1 :]) in _MEMORY_KINDS:
        return name[at + 1 :]
    base = name.rpartition("/")[2]
    if base in (MEMORY_FILE, USER_FILE):
        return base
    return f"{NOTES_FOLDER}/{base}" if base == name and note_day(base) else None


@dataclass(frozen=True, slots=True)
class Written:
    """What one tool call put into one memory file: hashes of whole lines, of parts of lines, or nothing readable.

    ``by_edit_tool``: the call fails as a whole or not at all; a shell command may fail half-way.
    """

    path: str
    lines: tuple[str, ...] = ()
    parts: tuple[tuple[int, str], ...] = ()
    unreadable: bool = False
    by_edit_tool: bool = False


def note_writes(call: ToolCall, cwd: str | None) -> Iterator[Written]:
    """Yield what a tool call wrote into memory files; best effort for shells.

    A replacement inside a line gives the part it put there, because the line as a whole is in no argument. A shell
    command that writes in a way we can't follow is unreadable.
    """
    arguments = _as_mapping(call.arguments)
    path = next((arguments[key] for key in _PATH_KEYS if isinstance(arguments.get(key), str)), None)
    target = memory_path(path, cwd) if path is not None else None
    if target is not None:
        texts = list(_texts(arguments))
        lines = _line_hashes("\n".join(texts))
        parts = [part_hash(line) for text in _replacements(arguments) for line in text.split("\n") if line.strip()]
        if lines or parts:
            yield Written(target, lines, tuple(dict.fromkeys(parts)), by_edit_tool=True)
    for command in _commands(call.arguments, arguments):
        for written, text in [*_patched(command), *_redirected(command)]:
            target = memory_path(written, cwd)
            if target is not None:
                lines = _line_hashes(text)
                yield Written(target, lines, unreadable=not lines)
        if _SCRIPTED.search(command):
            named = (memory_path(match[0], cwd) for match in _MEMORY_NAME.finditer(command))
            yield from (Written(target, unreadable=True) for target in dict.fromkeys(named) if target is not None)


def _as_mapping(arguments: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            return mapping(json.loads(arguments))
        except (ValueError, RecursionError):
            return {}
    return arguments


def _texts(arguments: Mapping[str, Any]) -> Iterator[str]:
    for key in _TEXT_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield value
    for edit in _edits(arguments):
        yield from (edit[key] for key in _TEXT_KEYS if isinstance(edit.get(key), str))


def _edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    edits = arguments.get("edits")
    return [mapping(edit) for edit in edits] if isinstance(edits, list) else []


def _commands(raw: Mapping[str, Any] | str, arguments: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(raw, str) and not arguments:
        yield raw[:_MAX_COMMAND]
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield value[:_MAX_COMMAND]
        elif isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield from (part[:_MAX_COMMAND] for part in value if "\n" in part or ">" in part)


def _patched(command: str) -> Iterator[tuple[str, str]]:
    """Yield (path, added lines) of each file in an ``apply_patch`` envelope."""
    path: str | None = None
    added: list[str] = []
    for line in command.split("\n"):
        opening = _PATCH_FILE.fullmatch(line.rstrip())
        if opening or line.startswith("*** "):
            if path is not None:
                yield path, "\n".join(added)
            path, added = (opening[1] if opening else None), []
        elif path is not None and line.startswith("+"):
            added.append(line[1:])
    if path is not None:
        yield path, "\n".join(added)


def _redirected(command: str) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of here-documents and of ``echo``/``printf`` that a shell command sends into a file."""
    lines = command.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        targets = [match[1].strip("\"'") for match in (*_REDIRECT.finditer(line), *_TEE.finditer(line))]
        heredoc = _HEREDOC.search(line)
        if heredoc:
            start = at
            while at < len(lines) and lines[at].strip() != heredoc[2]:
                at += 1
            text = "\n".join(lines[start:at])
            at += 1
        else:
            text = _echoed(line)
        yield from ((target, text) for target in targets)


def _echoed(line: str) -> str:
    head = line.split(">", 1)[0].split("|", 1)[0].strip()
    if not head.startswith(("echo ", "printf ")) or "$" in head or "`" in head:
        return ""
    if head.startswith("printf") and "%" in head:
        return ""
    try:
        words = shlex.split(head)[1:]
    except ValueError:
        return ""
    return " ".join(word for word in words if word not in ("-e", "-n")).replace("\\n", "\n")


def _replacements(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the new texts of replacements: calls, or parts of calls, that also name an old text."""
    for edit in (arguments, *_edits(arguments)):
        if any(isinstance(edit.get(key), str) for key in _OLD_KEYS):
            yield from (edit[key] for key in _NEW_KEYS if isinstance(edit.get(key), str))


def _line_hashes(text: str) -> tuple[str, ...]:
    """Return the hashes of the lines that say something: rules and blanks belong to nobody."""
    lines = (line for line in text.split("\n") if any(sign.isalnum() for sign in line))
    return tuple(dict.fromkeys(line_hash(line) for line in lines))
