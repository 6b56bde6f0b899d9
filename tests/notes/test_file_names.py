"""Names of case 24: which notes are dated, undated, reports or none."""

import json
import unicodedata
from pathlib import Path

import pytest

from recall_runtime.paths import PathKind, kind_of, note_day

EXPECTED = json.loads(
    (Path(__file__).parent.parent / "cases/24-daily-file-names/expected.json").read_text(encoding="utf-8")
)
NAMES = {
    1: "memory/2026-03-01.md",
    2: "memory/2026-03-02-vendor-pitch.md",
    3: "memory/2026-03-02-1430.md",
    4: "memory/2026-03-02-1430-2.md",
    5: "memory/daily/2026-03-03.md",
    6: "memory/archive/2025/2025-03-03.md",
    7: "memory/2026-02-30.md",
    8: "memory/2026-13-01.md",
    9: "memory/20260304.md",
    10: "memory/notes.md",
    12: "memory/2026-03-06.MD",
    13: "memory/2026-03-07.md.bak",
    14: "memory/2026-03-08.md~",
    15: "memory/.2026-03-09.md.swp",
    16: "memory/2026-03-10.txt",
    17: "memory/dreaming/light/2026-03-11.md",
    18: "memory/2031-01-01.md",
    19: "memory/" + unicodedata.normalize("NFC", "2026-03-12-café.md"),
    20: "memory/" + unicodedata.normalize("NFD", "2026-03-12-café.md"),
    21: "memory/2026-03-13-会議.md",
    22: "memory/-2026-03-14.md",
    23: "memory/2026-03-15-" + "x" * 200 + ".md",
    24: "memory/2026-03-16.md/inside-a-folder.md",
}
DATED = {int(number): day for number, day in EXPECTED["dated_daily_notes"].items() if int(number) in NAMES}


@pytest.mark.parametrize("number", DATED)
def test_dated_notes(number: int) -> None:
    assert kind_of(NAMES[number]) is PathKind.DAILY_NOTE
    assert str(note_day(NAMES[number])) == DATED[number]


@pytest.mark.parametrize("number", EXPECTED["indexed_but_undated (no decay, never a daily note)"])
def test_undated_notes(number: int) -> None:
    assert kind_of(NAMES[number]) is PathKind.TOPIC_NOTE


@pytest.mark.parametrize("number", EXPECTED["never_indexed"])
def test_backups_are_no_notes(number: int) -> None:
    assert kind_of(NAMES[number]) is PathKind.OTHER


def test_a_report_is_no_source() -> None:
    assert kind_of(NAMES[17]) is PathKind.REPORT


def test_the_open_choices() -> None:
    assert kind_of(NAMES[12]) is PathKind.DAILY_NOTE
    assert kind_of(NAMES[22]) is PathKind.TOPIC_NOTE
