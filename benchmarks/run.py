"""Run benchmarks and collect their figures: ``make bench [ONLY=name]``.

Belongs here: finding the modules, collecting figures in ``results.jsonl``, writing the table ``docs/benchmarks.md``.
Does not belong here: measuring (each module has ``main(argv) -> int`` and prints figures as JSON lines).
"""

import argparse
import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
TABLE = HERE.parent / "docs" / "benchmarks.md"
NOT_BENCHMARKS = {"run", "inputs", "figures", "replay", "grading", "scripted_models", "retrieval", "calibrate"}
INPUTS = {
    "locomo": "data",
    "beam": "data",
    "prefeval": "data",
    "rivals": "data",
    "rivals_beam": "data",
    "poisoning": "data",
    "ingest": "corpus",
    "questions": "corpus",
    "nightly": "corpus",
}  # what a benchmark reads from outside the repository
_PLAIN = frozenset({"share", "entries"})  # units that a column's head goes without


def main(argv: list[str] | None = None) -> int:
    """Run the chosen benchmarks one after the other; return 0 when all of them ended well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names separated by | or commas; default: all")
    parser.add_argument("--data", type=Path, help="folder of public data sets; what needs one is skipped without it")
    parser.add_argument("--corpus", type=Path, help="a generated corpus; what needs one is skipped without it")
    options = parser.parse_args(argv)
    failed = [name for name in _chosen(options.only) if not _run(name, vars(options))]
    _write_table()
    for name in failed:
        sys.stderr.write(f"benchmark {name} failed\n")
    return 1 if failed else 0


def _chosen(only: str) -> list[str]:
    every = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_BENCHMARKS)
    wanted = [name for name in only.replace("|", ",").split(",") if name]
    unknown = [name for name in wanted if name not in every]
    if unknown:
        raise SystemExit(f"No benchmark {unknown[0]!r}. There are: {', '.join(every)}.")
    return wanted or every


def _run(name: str, options: dict[str, Any]) -> bool:
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    wanted = INPUTS.get(name)
    if wanted and options[wanted]:
        command += [f"--{wanted}", str(options[wanted].resolve())]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    rows = [row for row in rows if "value" in row]
    kept = [row for row in _results() if row["benchmark"] != name]
    lines = [json.dumps(row, ensure_ascii=False) for row in [*kept, *({"benchmark": name, **row} for row in rows)]]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return done.returncode == 0


def _results() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines() if line]


def _write_table() -> None:
    rows = sorted(_results(), key=lambda item: item["benchmark"])
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; two cores, one run each. A ratio is value over floor (the least possible work in the",
        "same run) or over a peer measured in the same run.",
        "",
        "| benchmark | figure | value | unit | floor or peer | ratio | asked for |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if "system" in row:
            continue
        other = row.get("floor", row.get("peer", ""))
        cells = [
            row["benchmark"],
            row["name"],
            _number(row["value"]),
            row["unit"],
            _number(other),
            row.get("ratio", ""),
        ]
        lines.append("| " + " | ".join(str(cell) for cell in [*cells, row.get("target", "")]) + " |")
    for name in dict.fromkeys(row["benchmark"] for row in rows if "system" in row):
        lines += [
            "",
            f"## {name}",
            "",
            *_summary(name),
            "",
            *matrix([row for row in rows if row["benchmark"] == name]),
        ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _summary(name: str) -> list[str]:
    """Return what the module of a benchmark says of itself, its first line and what belongs where left out."""
    text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or ""
    parts = text.split("\n\n")
    told = [part for part in parts[1:] if not part.startswith("Belongs here:")]
    return "\n\n".join([parts[0], *told]).replace("``", "`").splitlines()


def matrix(rows: list[dict[str, Any]]) -> list[str]:
    """Return the figures that name a system as a table: a row a system, a column a figure, both in their order."""
    rows = [row for row in rows if "system" in row]
    columns = list(dict.fromkeys(row["name"] for row in rows))
    units = {row["name"]: row["unit"] for row in rows}
    heads = [name if units[name] in _PLAIN else f"{name} {units[name]}" for name in columns]
    lines = ["| " + " | ".join(["system", *heads]) + " |", "| --- |" + " --- |" * len(columns)]
    for system in dict.fromkeys(row["system"] for row in rows):
        own = {row["name"]: row for row in rows if row["system"] == system}
        cells = [_cell(own[name]) if name in own else "" for name in columns]
        lines.append("| " + " | ".join([system, *cells]) + " |")
    return lines


def _cell(row: dict[str, Any]) -> str:
    """Return a value, or the note where a figure stands for a failure; what was asked for follows in brackets."""
    if "note" in row:
        return str(row["note"]).replace("|", "/")
    asked = f" ({row['target']})" if "target" in row else ""
    return _number(row["value"]) + asked


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
