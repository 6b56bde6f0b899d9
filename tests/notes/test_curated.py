"""Curated files: entries, marks, metadata, sections, and that nothing is lost."""

import datetime as dt
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.blocks import BlockKind
from recall_runtime.notes.curated import CuratedEntry, parse_curated
from recall_runtime.records import Anchor
from recall_runtime.vocabulary import EntryStatus

CASES = Path(__file__).parent.parent / "cases"
REAL = Path(__file__).parent.parent / "cases_real"


def _expected(case: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    return loaded


def _entries(path: Path) -> dict[int, CuratedEntry]:
    return {e.start_line: e for e in parse_curated(path.read_bytes(), user_file=path.name == "USER.md").entries}


def test_windows_line_ends_of_case_01() -> None:
    parsed = parse_curated((CASES / "01-crlf-no-final-newline/MEMORY.md").read_bytes())
    wanted = _expected("01-crlf-no-final-newline")["entries"]
    assert [
        {
            "line": entry.start_line,
            "text": entry.text,
            "triggers": list(entry.annotations.triggers) or None,
            "importance": entry.annotations.importance,
        }
        for entry in parsed.entries
    ] == wanted
    assert parsed.newline == "\r\n"
    assert not [entry for entry in parsed.entries if "\r" in entry.text]


def test_front_matter_of_case_02_is_no_entry() -> None:
    wanted = _expected("02-bom-front-matter")
    memory = parse_curated((CASES / "02-bom-front-matter/MEMORY.md").read_bytes())
    assert [entry.text for entry in memory.entries] == wanted["MEMORY.md"]["entries"]  # type: ignore[index] # JSON
    assert memory.bom
    user = parse_curated((CASES / "02-bom-front-matter/USER.md").read_bytes(), user_file=True)
    assert [entry.text for entry in user.entries] == wanted["USER.md"]["directives"]  # type: ignore[index] # JSON
    assert user.problems == {"broken_front_matter": 1}


def test_an_entry_of_case_08_owns_its_children() -> None:
    wanted = _expected("08-nested-bullets")["top_level_entries"]
    entries = _entries(CASES / "08-nested-bullets/MEMORY.md")
    bullets = {line: entry for line, entry in entries.items() if entry.kind is BlockKind.BULLET}
    assert [
        {"line": line, "owns_lines": list(range(entry.start_line, entry.end_line + 1))}
        for line, entry in bullets.items()
    ] == [{"line": item["line"], "owns_lines": item["owns_lines"]} for item in wanted]  # type: ignore[attr-defined]
    assert bullets[11].annotations.importance == 7
    assert bullets[3].raw.split("\n")[2] == "    - Ask for the blue one."


def test_hand_written_text_of_case_17_is_never_ours() -> None:
    data = (CASES / "17-managed-blocks/MEMORY.md").read_bytes().replace(b"<!-- memory-", b"<!-- openclaw-memory-")
    parsed = parse_curated(data)
    assert [(entry.start_line, entry.generated) for entry in parsed.entries] == [
        (3, False),
        (8, True),
        (10, False),
        (14, False),
    ]
    assert not [section for section in parsed.sections if section.generated]


def test_metadata_of_case_20() -> None:
    entries = _entries(CASES / "20-user-model/USER.md")
    by_text = {entry.text: entry for entry in entries.values()}
    assert by_text["Prefer long explanations."].status is EntryStatus.SUPERSEDED
    assert by_text["Always give prices in euro."].observed == dt.date(2026, 2, 20)
    assert by_text["Never book flights before seven in the morning."].observed == dt.date(2026, 2, 21)
    window = by_text["Prefer window seats."]
    assert (window.status, window.observed) == (EntryStatus.ACTIVE, None)
    assert window.damage == "observed '2026-02-30' is no date"
    assert by_text["Always sign letters with initials."].status is EntryStatus.SUPERSEDED
    assert "maybe" in str(by_text["Always sign letters with initials."].damage)
    tea = by_text["Prefer tea."]
    assert (tea.status, tea.damage, tea.raw) == (EntryStatus.ACTIVE, None, "- Prefer tea. ")


THREE = parse_curated((REAL / "03-memory-three-generations.md").read_bytes())
BY_LINE = {entry.start_line: entry for entry in THREE.entries}


@pytest.mark.parametrize(
    ("line", "text", "source"),
    [
        (16, "Garden plan 42104 agreed. - Hose bib moved. - **Next**: ask Teun.", Anchor("memory/2026-04-15.md", 4, 7)),
        (37, "The roof job needs permit 42106.", Anchor("memory/2026-08-25.md", 190, 193)),
        (45, "Boiler code is 42108 since September.", Anchor("memory/2026-09-16.md", 31, 31)),
    ],
)
def test_each_generation_of_promoted_lines(line: int, text: str, source: Anchor) -> None:
    entry = BY_LINE[line]
    assert (entry.text, entry.source, entry.generated) == (text, source, True)


def test_marks_above_an_entry_belong_to_it() -> None:
    assert BY_LINE[45].lineage_key == "house:boiler-code"
    assert BY_LINE[45].first_line == 43
    assert BY_LINE[48].entry_keys == ("memory:memory/2026-09-16.md:40:40", "memory:memory/2026-09-17.md:3:3")
    assert BY_LINE[48].entry_key == "memory:memory/2026-09-17.md:3:3"


def test_a_fenced_line_is_no_entry_and_a_mixed_section_is_not_ours() -> None:
    assert 51 not in BY_LINE
    generated = [(section.start_line, section.generated) for section in THREE.sections if section.day]
    assert generated == [(13, True), (22, True), (27, False), (41, False)]


def test_importance_of_each_generation() -> None:
    wanted = json.loads((REAL / "expectations.json").read_text(encoding="utf-8"))[2]
    for needle, importance in wanted["importance"].items():
        assert [e.annotations.importance for e in THREE.entries if needle in e.text] == [importance]
    for needle in wanted["no_importance"]:
        assert [e.annotations.importance for e in THREE.entries if needle in e.text] == [None]


def test_a_conflicted_file_says_so_for_file_and_entries() -> None:
    parsed = parse_curated((REAL / "15-merge-conflict-memory.md").read_bytes())
    assert parsed.conflicted
    assert {entry.start_line for entry in parsed.entries if not entry.conflicted} == {22, 35}


@pytest.mark.parametrize(
    ("metadata", "observed", "damaged"),
    [
        ("observed: 2026-07-01..2026-07-27 | status: active", dt.date(2026, 7, 27), False),
        ("status: active | observed: 2026-07-01 to 2026-07-27", dt.date(2026, 7, 27), False),
        ("observed: soon | status: active", None, True),
        ("status: active", None, False),
    ],
)
def test_observed_may_be_a_range(metadata: str, observed: dt.date | None, damaged: bool) -> None:
    (entry,) = parse_curated(f"<!-- {metadata} -->\n\n- Prefer tea.\n".encode(), user_file=True).entries
    assert entry.observed == observed
    assert (entry.damage is not None) is damaged


def test_metadata_belongs_to_the_next_bullet_only() -> None:
    data = b"<!-- observed: 2026-01-01 | status: superseded -->\n\ntext between\n\n- Prefer tea.\n"
    assert [entry.status for entry in parse_curated(data, user_file=True).entries] == [EntryStatus.ACTIVE] * 2


def test_a_promotion_mark_apart_from_its_entry_is_no_mark() -> None:
    data = b"<!-- openclaw-memory-promotion:k -->\n\n- The port is 5432.\n"
    assert parse_curated(data).entries[0].entry_keys == ()


def test_a_user_entry_has_no_project_scope() -> None:
    data = b"- Prefer tea. <!-- project: a/b -->\n"
    assert parse_curated(data, user_file=True).entries[0].annotations.project_key is None
    assert parse_curated(data).entries[0].annotations.project_key == "a/b"


def test_an_entry_whose_line_was_edited_by_hand_is_not_ours() -> None:
    mark = "<!-- openclaw-memory-promotion:k -->\n"
    assert parse_curated(f"{mark}- A fact here. Source: memory/a.md#L1-L2\n".encode()).entries[0].generated
    assert not parse_curated(f"{mark}- A fact here, edited.\n".encode()).entries[0].generated
    assert (
        not parse_curated(f"{mark}- A fact here. Source: memory/a.md#L1-L2\n  - my remark\n".encode())
        .entries[0]
        .generated
    )


PIECES = st.sampled_from(
    [
        *("# H\n", "## Promoted From Short-Term Memory (2026-01-01)\n", "<!-- openclaw-memory-promotion:k -->\n", "\n"),
        *("- a fact\n", "  - child\n", "- x Source: m.md#L1-L2\n", "```\n", "text\n", "| a | b |\n", "\r\n", "\t- t\n"),
        *(
            "<!-- observed: 2026-01-01 | status: active -->\n",
            "<<<<<<< a\n",
            "=======\n",
            ">>>>>>> b\n",
            "\xff",
            "<!--",
        ),
    ]
)


@given(st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=25).map(lambda p: "".join(p).encode("latin-1"))))
def test_any_file_parses_and_its_lines_give_it_back(data: bytes) -> None:
    parsed = parse_curated(data)
    if parsed.reading.undecodable:
        return
    assert b"".join(data[line.start : line.end] for line in parsed.reading.lines) == data
    taken: set[int] = set()
    for entry in parsed.entries:
        own = set(range(entry.first_line, entry.end_line + 1))
        assert not own & taken
        taken |= own
        assert entry.raw.encode("utf-8", errors="surrogateescape") in data


def test_entries_in_every_direction_of_writing() -> None:
    wanted = _expected("10-emoji-rtl")
    entries = _entries(CASES / "10-emoji-rtl/MEMORY.md")
    assert len(entries) == wanted["entries"]
    assert entries[3].annotations.triggers == (
        "family dinner",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
    )
    assert entries[5].annotations.triggers == ("مفتاح المستودع",)
    assert "\u202e" in entries[8].text


LINEAGE = (
    "## House\n\n- Boiler code 42102\n- Boiler room door 42103\n- Boiler code of the cottage\n\n"
    "## Consolidated Memory (2026-09-21)\n\n"
    "<!-- openclaw-memory-lineage:{key} -->\n<!-- openclaw-memory-promotion:memory:claim:1 -->\n"
    "- Boiler code is 42108. Source: memory/2026-09-16.md#L31-L31\n"
)


@pytest.mark.parametrize(
    ("key", "retired"),
    [
        pytest.param("house:boiler-code", ["Boiler code 42102"], id="heading and text hold every word of the key"),
        pytest.param("given:house boiler code", [], id="a word the older entry lacks"),
        pytest.param("boiler", [], id="one word says too little"),
        pytest.param("barn:boiler-code", [], id="another place"),
        pytest.param("house|boiler code|1a2b", [], id="a key we made ourselves names shapes, not words"),
    ],
)
def test_an_entry_of_a_lineage_retires_the_hand_written_line_it_replaces(key: str, retired: list[str]) -> None:
    """The bytes stay; the older line no longer counts."""
    entries = parse_curated(LINEAGE.format(key=key).encode()).entries
    assert [entry.text for entry in entries if entry.status is EntryStatus.SUPERSEDED] == retired
