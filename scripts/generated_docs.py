"""Write what the documentation can take from the code: command line, published tables, settings, kept figures.

Belongs here: rendering. ``make docs`` writes the files, ``tests/docs`` compares them with this output.
Does not belong here: prose about them.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import results
from memory_assets.warehouse.tables import ALL_TABLES
from recall_runtime.cli.main import build_parser
from recall_runtime.config import Settings
from recall_runtime.sections import Range, Section

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->\n)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the whole text of every page that has generated parts."""
    blocks = {"tables": "\n".join(_tables()), "settings": "\n".join(_settings())}
    result = {
        DOCS / "cli.md": "\n".join(_command_line()).rstrip() + "\n",
        results.table_file(): results.table(results.read()),
    }
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if _BLOCK.search(text):
            result[path] = _BLOCK.sub(lambda match: f"{match[1]}{blocks[match[2]]}\n{match[3]}", text)
    return result


def _command_line() -> Iterator[str]:
    parser = build_parser()
    yield from (
        "# Command line",
        "",
        "Written by `make docs` from the parser; a test compares the two.",
        "An error is one line that says the cure, with exit code 1; a usage error has exit code 2.",
        "",
        "Options before the command (`--json` is accepted after it as well):",
        "",
        *_arguments(parser),
    )
    for name, command, summary in _commands(parser):
        yield from ("", f"## {name}", "", summary, "", *_arguments(command))
        for inner, sub, what in _commands(command):
            yield from ("", f"### {name} {inner}", "", what, "", *_arguments(sub))


def _commands(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser, str]]:
    return [
        (name, command, (command.description or "").strip())
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, command in action.choices.items()
    ]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "VALUE")
        takes_value = action.nargs != 0
        if action.option_strings:
            name = " ".join([", ".join(action.option_strings), *([str(value)] if takes_value else [])])
        else:
            name = str(action.metavar or action.dest)
        yield f"- `{name}`: {action.help}"


def _tables() -> Iterator[str]:
    for table in ALL_TABLES:
        yield from (f"### {table.name}", "", table.comment, "", "| column | type | meaning |", "| --- | --- | --- |")
        yield from (f"| `{column.name}` | {column.kind.duckdb_type} | {column.comment} |" for column in table.columns)
        yield ""


def _settings() -> Iterator[str]:
    yield from ("| key | default | allowed |", "| --- | --- | --- |")
    yield from _keys(Settings, "")


def _keys(section: type[Section], prefix: str) -> Iterator[str]:
    kinds = get_type_hints(section, include_extras=True)
    for field in fields(section):
        default, kind = getattr(section(), field.name), kinds[field.name]
        if isinstance(default, Section):
            yield from _keys(type(default), f"{prefix}{field.name}.")
        else:
            yield f"| `{prefix}{field.name}` | {_plain(default)} | {_bounds(kind) or _kind(kind)} |"


def _bounds(kind: object) -> str:
    ranges = [part for part in getattr(kind, "__metadata__", ()) if isinstance(part, Range)]
    signs = (("gt", ">"), ("ge", "≥"), ("le", "≤"))
    bounds = [
        f"{sign} {getattr(item, name)}" for item in ranges for name, sign in signs if getattr(item, name) is not None
    ]
    return ", ".join(bounds) or next(filter(None, map(_bounds, get_args(kind))), "")


def _plain(value: object) -> str:
    if value in (None, "", (), {}):
        return "not set" if value is None else "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _kind(kind: object) -> str:
    if kind is str:
        return "text"
    if kind is bool:
        return "`true`, `false`"
    choices = re.findall(r"'([^']*)'", str(kind))
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    plain = str(kind)
    if "Path" in plain:
        return "list of folders" if "tuple" in plain else "folder"
    if "dict" in plain:
        return "table of lists"
    return "list" if "tuple" in plain else "number"


if __name__ == "__main__":
    for target, content in pages().items():
        target.write_text(content, encoding="utf-8")
