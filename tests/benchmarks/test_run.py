"""Kept figures: a benchmark's rows change only when it ran to its end and had some."""

import datetime as dt
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.run import main

OLD_DAY = "2026-01-02"
FIGURE = '{"name": "%s", "value": %s, "unit": "ms", "target": "<= 1 ms"}'
MODULES = {
    "good": f"print('{FIGURE % ('p50', 2)}'); return 0",
    "missed": f"print('{FIGURE % ('p50', 3)}'); return 1",
    "skipped": """print('{"name": "skipped", "skipped": "no data"}'); return 0""",
    "crashed": f"print('{FIGURE % ('p50', 4)}'); raise ValueError('broken half way')",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of four benchmarks, each with a figure of an earlier day."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "docs").mkdir()
    for name, body in MODULES.items():
        (tmp_path / "benchmarks" / f"{name}.py").write_text(f"def main(argv):\n    {body}\n", encoding="utf-8")
        earlier = {"name": "p50", "value": 9, "unit": "ms", "target": "<= 1 ms"}
        results.replace(tmp_path, name, [earlier], OLD_DAY)
    return tmp_path


def lines_of(repository: Path, name: str) -> list[str]:
    page = results.table_file(repository).read_text(encoding="utf-8")
    return [line for line in page.splitlines() if line.startswith(f"| {name} |")]


@pytest.mark.parametrize(
    ("name", "code", "value"),
    [
        pytest.param("good", 0, 2, id="finished"),
        pytest.param("missed", 1, 3, id="finished below a bound: the figure is true all the same"),
    ],
)
def test_what_finished_replaces_its_earlier_row_and_says_the_day(
    repository: Path, name: str, code: int, value: int
) -> None:
    before = dt.datetime.now(tz=dt.UTC).date()
    assert main(["--only", name], root=repository) == code
    after = dt.datetime.now(tz=dt.UTC).date()
    assert lines_of(repository, name) in [
        [f"| {name} | p50 | {value} | ms |  |  | <= 1 ms | {day} |"] for day in (before, after)
    ]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("skipped", 0, id="its data is missing"),
        pytest.param("crashed", 1, id="it printed a figure and crashed"),
    ],
)
def test_what_did_not_finish_with_figures_keeps_its_earlier_row(repository: Path, name: str, code: int) -> None:
    assert main(["--only", name], root=repository) == code
    assert lines_of(repository, name) == [f"| {name} | p50 | 9 | ms |  |  | <= 1 ms | {OLD_DAY} |"]


def test_a_run_of_one_benchmark_leaves_the_rows_of_all_others(repository: Path) -> None:
    others = [lines_of(repository, name) for name in MODULES if name != "good"]
    main(["--only", "good"], root=repository)
    assert [lines_of(repository, name) for name in MODULES if name != "good"] == others


def test_a_crash_is_named_with_what_became_of_its_figures(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--only", "crashed|missed"], root=repository)
    assert capsys.readouterr().err.splitlines() == [
        "benchmark crashed ended with code 1; its earlier figures were kept",
        "benchmark missed missed a bound",
    ]


def test_an_unknown_name_is_refused_with_the_known_ones(repository: Path) -> None:
    with pytest.raises(SystemExit, match=r"No benchmark 'best'. There are: crashed, good, missed, skipped."):
        main(["--only", "best"], root=repository)
