"""What benchmarks share in reading their command line."""

import json
from pathlib import Path

import pytest

from benchmarks.inputs import corpus_folder, data_file, fusion_weights
from recall_runtime.index.ranking import FusionWeights


def test_a_data_set_is_named_itself_or_by_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    file.write_text("[]", encoding="utf-8")
    assert data_file(file, "set.json", "bench") == file
    assert data_file(tmp_path, "set.json", "bench") == file


@pytest.mark.parametrize("given", [None, Path("no-such-folder"), Path("no-such-file.json")])
def test_without_its_data_set_a_benchmark_says_that_it_is_skipped(
    given: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data_file(given, "set.json", "bench") is None
    said = json.loads(capsys.readouterr().out)
    assert said["name"] == "bench"
    assert "set.json" in said["skipped"]


def test_a_corpus_is_a_folder_that_holds_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "timeline.jsonl").touch()
    assert corpus_folder(tmp_path, "timeline.jsonl", "bench") == tmp_path


@pytest.mark.parametrize("given", [None, Path("no-such-folder")])
def test_without_its_corpus_a_benchmark_says_that_it_is_skipped(
    given: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert corpus_folder(given, "timeline.jsonl", "bench") is None
    said = json.loads(capsys.readouterr().out)
    assert said["name"] == "bench"
    assert "timeline.jsonl" in said["skipped"]


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        pytest.param("", None, id="nothing named: the measured ones"),
        pytest.param("vector=0.5,keyword=0.5", FusionWeights(vector=0.5, keyword=0.5), id="numbers"),
        pytest.param("neighbours=0.4/0.2", FusionWeights(neighbours=(0.4, 0.2)), id="one value a step"),
        pytest.param("neighbours=/", FusionWeights(neighbours=()), id="no neighbours"),
    ],
)
def test_weights_are_read_by_name(text: str, weights: FusionWeights | None) -> None:
    assert fusion_weights(text) == weights
