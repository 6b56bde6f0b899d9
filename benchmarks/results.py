"""The newest figures of every benchmark, and the table made of them, ``docs/benchmarks.md``.

Belongs here: the file ``results.jsonl`` (a row a figure, with the benchmark and the day it was measured), the table.
Does not belong here: running benchmarks (``benchmarks.run``), the form in which they report (``benchmarks.figures``).

The file is kept under version control, so that a run of one benchmark leaves the rows of all others as they are.
"""

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, Any]  # a figure as printed, with ``benchmark`` and ``day``
_PLAIN = frozenset({"share", "entries"})  # units that a column's head goes without


def results_file(root: Path = ROOT) -> Path:
    """Return the place of the rows below the repository ``root``."""
    return root / "benchmarks" / "results.jsonl"


def table_file(root: Path = ROOT) -> Path:
    """Return the place of the table below the repository ``root``."""
    return root / "docs" / "benchmarks.md"


def read(root: Path = ROOT) -> list[Row]:
    """Return the rows kept so far, in the order of the file."""
    file = results_file(root)
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def replace(root: Path, benchmark: str, figures: Sequence[Row], day: str) -> None:
    """Keep ``figures`` as the rows of ``benchmark`` in place of its earlier ones, and write the table anew.

    Args:
        root: The repository.
        benchmark: Name of its module.
        figures: What it printed; without any, everything stays as it is.
        day: The day they were measured, ISO 8601.
    """
    if not figures:
        return
    kept = [row for row in read(root) if row["benchmark"] != benchmark]
    rows = [*kept, *({"benchmark": benchmark, "day": day, **figure} for figure in figures)]
    rows.sort(key=lambda row: row["benchmark"])
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    results_file(root).write_text(text, encoding="utf-8")
    table_file(root).write_text(table(rows, root), encoding="utf-8")


def table(rows: Sequence[Row], root: Path = ROOT) -> str:
    """Return the page: one list of all figures, then a table for each benchmark that compares systems."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; two cores, one run each. A ratio is value over floor (the least possible work in the",
        "same run) or over a peer measured in the same run. A row stays until its benchmark is run again to the end.",
        "",
        "| benchmark | figure | value | unit | floor or peer | ratio | asked for | measured |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(row) for row in rows if "system" not in row]
    for name in dict.fromkeys(row["benchmark"] for row in rows if "system" in row):
        own = [row for row in rows if row["benchmark"] == name]
        lines += ["", f"## {name}", "", *_summary(root / "benchmarks" / f"{name}.py"), "", *matrix(own)]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    other = _number(row.get("floor", row.get("peer", "")))
    measured = [row["name"], _number(row["value"]), row["unit"], other, row.get("ratio", "")]
    cells = [row["benchmark"], *measured, row.get("target", ""), row["day"]]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _summary(module: Path) -> list[str]:
    """Return what the module of a benchmark says of itself, its first line and what belongs where left out."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    parts = text.split("\n\n")
    told = [part for part in parts[1:] if not part.startswith("Belongs here:")]
    return "\n\n".join([parts[0], *told]).replace("``", "`").splitlines()


def matrix(rows: Sequence[Row]) -> list[str]:
    """Return the figures that name a system as a table: a row a system, a column a figure, both in their order."""
    rows = [row for row in rows if "system" in row]
    columns = list(dict.fromkeys(row["name"] for row in rows))
    units = {row["name"]: row["unit"] for row in rows}
    heads = [name if units[name] in _PLAIN else f"{name} {units[name]}" for name in columns]
    return [
        "| " + " | ".join(["system", *heads, "measured"]) + " |",
        "| --- |" + " --- |" * (len(columns) + 1),
        *_systems(rows, columns),
    ]


def _systems(rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    for system in dict.fromkeys(row["system"] for row in rows):
        own = {row["name"]: row for row in rows if row["system"] == system}
        cells = [_cell(own[name]) if name in own else "" for name in columns]
        day = max(row["day"] for row in own.values())
        yield "| " + " | ".join([system, *cells, day]) + " |"


def _cell(row: Row) -> str:
    """Return a value, or the note where a figure stands for a failure; what was asked for follows in brackets."""
    if "note" in row:
        return str(row["note"]).replace("|", "/")
    asked = f" ({row['target']})" if "target" in row else ""
    return _number(row["value"]) + asked


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
