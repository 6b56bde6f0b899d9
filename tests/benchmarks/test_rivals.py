"""The side-by-side run: one protocol for all, a failing system is a row with its reason, one table in the docs."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import Figure
from benchmarks.locomo import conversations
from benchmarks.results import matrix
from benchmarks.rivals import COLUMNS, Run, System, Talk, figures_of, side_by_side

TALK: dict[str, Any] = {
    "sample_id": "conv-99",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "The sailing course in Kiel begins on Monday."},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "I keep bees behind the greenhouse."},
        ],
        "session_2_date_time": "2:00 pm on 9 May, 2023",
        "session_2": [{"speaker": "Ada", "dia_id": "D2:1", "text": "My violin needs new strings."}],
    },
    "qa": [
        {"question": "Where does Bo keep bees?", "evidence": ["D1:2"], "category": 4},
        {"question": "What does the violin need?", "evidence": ["D2:1"], "category": 4},
    ],
}
KEYWORDS = System("dreamline-none", {"": "keywords", "openclaw": "the original's rule"})


@pytest.fixture
def talks(tmp_path: Path) -> list[Talk]:
    """One conversation, read from the form of the data set."""
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([TALK]), encoding="utf-8")
    return list(conversations(file))


@pytest.fixture
def runs(talks: list[Talk], tmp_path: Path) -> list[Run]:
    """A system that works beside one whose process can't be started as asked."""
    systems = (System("no-such-system", {"": "broken"}), KEYWORDS)
    return side_by_side(talks, systems, tmp_path / "cache", tmp_path / "work")


@pytest.mark.slow
def test_a_failing_system_is_a_row_with_its_reason_and_the_others_go_on(runs: list[Run]) -> None:
    broken, keywords = runs
    assert "no-such-system" in broken.failure
    (row,) = figures_of(broken, COLUMNS)
    assert row.system == "broken"
    assert row.note == broken.failure
    assert not keywords.failure


@pytest.mark.slow
def test_every_way_of_asking_is_a_row_with_the_same_columns(runs: list[Run]) -> None:
    figures = list(figures_of(runs[1], COLUMNS))
    first = [figure.name for figure in figures if figure.system == "keywords"]
    second = [figure.name for figure in figures if figure.system == "the original's rule"]
    assert first == second
    assert first[:2] == ["turn R@5", "turn R@10"]
    for name in ("turn hit@10", "session hit@5"):
        assert {figure.value for figure in figures if figure.name == name} == {1.0}
    assert {"ingest", "p50", "p95", "disk"} <= set(first)


@pytest.mark.slow
def test_what_can_not_be_installed_is_a_reason_as_well(talks: list[Talk], tmp_path: Path) -> None:
    nothing = System("bm25s", {"": "bm25s"}, (str(tmp_path / "no-such-wheel.whl"),))
    (run,) = side_by_side(talks, (nothing,), tmp_path / "cache", tmp_path / "work")
    assert run.failure.startswith("not installable: ")


def test_the_table_has_a_row_a_system_and_a_column_a_figure() -> None:
    own = {"benchmark": "b", "day": "2026-01-02"}
    rows = [
        {**own, "name": "R@10", "value": 0.75, "unit": "share", "system": "one", "target": ">= 0.7"},
        {**own, "name": "p50", "value": 1.5, "unit": "ms", "system": "one"},
        {**own, "name": "R@10", "value": 0.0, "unit": "share", "system": "two", "note": "no | network"},
        {**own, "name": "alone", "value": 3, "unit": "s"},
    ]
    assert matrix(rows) == [
        "| system | R@10 | p50 ms | measured |",
        "| --- | --- | --- | --- |",
        "| one | 0.75 (>= 0.7) | 1.5 | 2026-01-02 |",
        "| two | no / network |  | 2026-01-02 |",
    ]


def test_a_figure_without_a_system_prints_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.figures import emit

    emit([Figure("p50", 1.0, "ms"), Figure("p50", 2.0, "ms", system="one")])
    first, second = capsys.readouterr().out.splitlines()
    assert "system" not in json.loads(first)
    assert json.loads(second)["system"] == "one"


def test_a_conversation_that_weights_were_tuned_on_counts_in_the_figures_of_all_only(
    talks: list[Talk], tmp_path: Path
) -> None:
    (run,) = side_by_side(talks, (KEYWORDS,), tmp_path / "cache", tmp_path / "work", tuned={"conv-99"})
    scores = run.rows[""].scores
    assert (scores["all"].count, scores["turn"].count, scores["session"].count) == (2, 0, 0)
