"""Every twin of a real file: what must come through, what must not, as far as reading decides."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from recall_runtime.notes.blocks import Note, read_note
from recall_runtime.notes.identity import pattern, same_claim
from recall_runtime.notes.statements import statements_of
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import Refusal

REAL = Path(__file__).parent.parent / "cases_real"
FILES = json.loads((REAL / "expectations.json").read_text(encoding="utf-8"))
# What another room decides: by session (04), by a lineage key (03), by supersession (14), and the sentence that
# names old and new value at once and is kept whole (08).
ELSEWHERE = {("04", "53307"), ("03", "42102"), ("14", "15902"), ("08", "raised from 40 to 60")}
# Promoted lines of MEMORY.md are read as curated entries (test_curated), not as statements of a note.
PROMOTED = {"42104", "42105", "42106"}


@dataclass(frozen=True)
class Found:
    """A statement or refused block as the pipeline would see it."""

    start: int
    end: int
    text: str
    refusal: Refusal | None


def _read(name: str, place: str) -> tuple[Note, list[Found]]:
    note = read_note((REAL / name).read_bytes(), path=place)
    found: list[Found] = []
    for block in note.blocks:
        text = redact(block.text)
        if block.refusal:
            found.append(Found(block.start_line, block.end_line, text, block.refusal))
            continue
        for s in statements_of(
            text,
            block=block.kind,
            start_line=block.start_line,
            end_line=block.end_line,
            heading_path=block.heading_path,
            ancestors=block.ancestors,
        ):
            found.append(Found(s.start_line, s.end_line, s.text, s.refusal))
    return note, found


READ = {entry["file"]: _read(entry["file"], entry["place_as"]) for entry in FILES}


def _rows(*kinds: str) -> list[object]:
    rows = []
    for entry in FILES:
        for kind in kinds:
            for item in entry.get(kind, []):
                if (entry["file"][:2], item["needle"]) not in ELSEWHERE and item["needle"] not in PROMOTED:
                    rows.append(pytest.param(entry["file"], item, id=f"{entry['file'][:2]}-{item['needle'][:30]}"))
    return rows


def _on_line(name: str, item: dict[str, object]) -> list[Found]:
    line = int(str(item["line"]))
    return [f for f in READ[name][1] if str(item["needle"]) in f.text and f.start <= line <= f.end]


@pytest.mark.parametrize(("name", "item"), _rows("content"))
def test_content_is_a_fit_statement_on_its_line(name: str, item: dict[str, object]) -> None:
    assert [found for found in _on_line(name, item) if found.refusal is None]


@pytest.mark.parametrize(("name", "item"), _rows("stale", "scaffold", "conflict"))
def test_dead_text_scaffolding_and_conflicts_are_never_fit(name: str, item: dict[str, object]) -> None:
    assert not [found for found in READ[name][1] if str(item["needle"]) in found.text and found.refusal is None]


@pytest.mark.parametrize(("name", "item"), _rows("conflict", "untrusted"))
def test_both_sides_of_a_conflict_and_a_guest_stay_readable(name: str, item: dict[str, object]) -> None:
    assert _on_line(name, item)


@pytest.mark.parametrize(("name", "item"), _rows("secret"))
def test_no_secret_is_in_any_block(name: str, item: dict[str, object]) -> None:
    assert str(item["needle"]) in (REAL / name).read_text(encoding="utf-8")
    assert not [found for found in READ[name][1] if str(item["needle"]) in found.text]


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["file"][:2])
def test_every_line_is_accounted_for(entry: dict[str, object]) -> None:
    note, found = READ[str(entry["file"])]
    assert len(note.reading.lines) == entry["lines"]
    seen = {line for one in found for line in range(one.start, one.end + 1)}
    assert seen >= {line.number for line in note.reading.lines if line.text.strip()}


def test_the_dump_of_a_subagent_names_its_session() -> None:
    dump = READ["04-base64-megaline.md"][0].dump
    assert dump is not None
    assert dump.session_key == "agent:main:subagent:0000"


def test_senders_of_a_dump_are_kept_apart() -> None:
    note = READ["01-session-dump-envelopes.md"][0]
    by_line = {block.start_line: block for block in note.blocks}
    assert (by_line[31].sender, by_line[87].sender) == ("owner-1", "guest-7")
    assert (by_line[31].speaker, by_line[63].speaker) == ("user", "assistant")


def test_the_repeated_table_row_stays_one_pattern() -> None:
    rows = [f.text for f in READ["05-status-tables-rollup-zh.md"][1] if "温室控制器升级" in f.text]
    assert len(rows) == 4
    assert len({pattern(row) for row in rows}) == 1


def test_job_lines_are_one_pattern() -> None:
    found = [f for f in READ["11-cron-heartbeat-day.md"][1] if "tide-sync" in f.text]
    assert len({pattern(one.text) for one in found}) == 1


def test_near_copies_with_other_numbers_are_other_claims() -> None:
    rows = [f.text for f in READ["14-near-identical-batches-ja.md"][1] if "チャンネル 159" in f.text]
    assert len(rows) == 8
    assert not [(a, b) for a in rows for b in rows if a is not b and same_claim(a, b)]


def test_the_giant_rule_keeps_exception_and_end() -> None:
    (rule,) = [f for f in READ["08-giant-bullets.md"][1] if "93303" in f.text]
    assert "Exception agreed" in rule.text
    assert "until 30 April" in rule.text
