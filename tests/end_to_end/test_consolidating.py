"""Cases 07, 08, 17, 18, 20, 22 and 25 through the whole chain: what reaches the curated files and what it touches."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memory_assets.gates.explain import explain, refusals_at
from recall_runtime.clock import parse_instant
from recall_runtime.errors import SourceError
from recall_runtime.notes.markers import ManagedBlock, managed_blocks
from recall_runtime.user_model.contract import directives
from tests.end_to_end.chain import CASES, OPEN_GATES, Chain
from tests.support.model_server import Reply, model_server, openai_reply
from tests.support.sessions import SessionBuilder

OURS = (
    (b"<!-- dreaming:", b"<!-- openclaw:dreaming:"),
    (b"<!-- memory-promotion:", b"<!-- openclaw-memory-promotion:"),
)
NIGHT = "2026-03-20T03:00:00Z"
DAYS = ("2026-03-17", "2026-03-18", "2026-03-19")
QUESTIONS = ("where was that?", "which one was it?")


def expected(case: str, name: str = "expected.json") -> Any:
    """Return what the case says is right."""
    return json.loads((CASES / case / name).read_text(encoding="utf-8"))


def entries(chain: Chain, file: str = "MEMORY.md") -> list[str]:
    """Return the top-level bullets of a curated file."""
    return [line for line in chain.file(file).splitlines() if line.startswith("- ")]


def fact(chain: Chain, text: str, day: str = "2026-03-18", *, key: str | None = None, path: str | None = None) -> None:
    """Note one statement as the agent does in a session and let it be asked for on three days."""
    path = path or f"memory/{day}.md"
    chain.note(f"{day}T08:00:00Z", f"- {text}\n", f"s-{day}", supersedes_key=key)
    line = next(n for n, row in enumerate(chain.file(path).split("\n"), start=1) if text in row)
    chain.sync(f"{day}T12:00:00Z")
    for day_of_month in range(int(day[-2:]), int(day[-2:]) + 3):
        chain.recall(f"{day[:-2]}{day_of_month:02d}T13:00:00Z", f"{text} on {day_of_month}?", path, line, 1.0)


def test_07_one_entry_for_six_spellings_and_one_each_for_what_differs_by_a_sign(chain: Chain) -> None:
    chain.place(CASES / "07-duplicate-bullets" / "MEMORY.md", "memory/2026-03-16.md")
    chain.sync("2026-03-16T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    chain.sweep(NIGHT)
    lines = [int(line) for line in re.findall(r"Source: memory/2026-03-16\.md#L(\d+)", chain.file())]
    case = expected("07-duplicate-bullets")
    for group in case["same_fact"]:
        assert len(set(lines) & set(group)) == 1
    singles = {9, 10, 11, 12, 15, 16}
    assert singles <= set(lines)
    assert len(lines) == len(set(lines)) == len(singles) + 2
    chain.assert_second_run_changes_nothing(NIGHT)


def test_07_a_fact_that_stands_by_hand_in_another_spelling_gets_no_second_entry(chain: Chain) -> None:
    before = chain.place(CASES / "07-duplicate-bullets" / "MEMORY.md", "MEMORY.md")
    for text in ("the deploy target is HOST-BLUE", "Café hours are nine to five!", "部署目标是绿色主机"):
        fact(chain, text)
    chain.sweep(NIGHT)
    assert (chain.root / "MEMORY.md").read_bytes() == before
    assert chain.rows("SELECT count(*) FROM ledger WHERE operation = 'added'") == [(0,)]


def test_08_promoted_children_keep_their_parents_words_and_one_sign(chain: Chain) -> None:
    chain.place(CASES / "08-nested-bullets" / "MEMORY.md", "memory/2026-03-16.md")
    chain.sync("2026-03-16T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    chain.sweep(NIGHT)
    assert "- - " not in chain.file()
    for child in ("Boat hire opens at eight.", "Ask for the blue one.", "Parking is free on Mondays."):
        assert [line for line in entries(chain) if child in line and "Trip to the lake" in line]
    assert [line for line in entries(chain) if "Tabs used here" in line and "Guest wifi" in line]
    assert "Second numbered fact that runs over two lines." in chain.file()


def test_08_entries_of_a_hand_written_file_own_their_children_in_the_index(chain: Chain) -> None:
    before = chain.place(CASES / "08-nested-bullets" / "MEMORY.md", "MEMORY.md")
    fact(chain, "The ferry leaves from pier 41877.")
    chain.sweep(NIGHT)
    assert (chain.root / "MEMORY.md").read_bytes()[: len(before)] == before
    rows = chain.index_rows(
        "SELECT start_line, end_line FROM entries e JOIN sources s USING (source_id) WHERE s.path = 'MEMORY.md'"
        " AND e.start_line <= 18 ORDER BY ordinal"
    )
    wanted = [
        (entry["owns_lines"][0], entry["owns_lines"][-1])
        for entry in expected("08-nested-bullets")["top_level_entries"]
    ]
    assert [row for row in rows if row[0] != 17] == wanted


def place_17(chain: Chain) -> None:
    """Place the files of case 17 with the product's own markers."""
    for name in ("MEMORY.md", "DREAMS.md", "memory/2026-03-13.md", "memory/dreaming/light/2026-03-13.md"):
        chain.place(CASES / "17-managed-blocks" / name, name, replace=OURS)


def test_17_no_output_of_a_sweep_is_ever_a_source(chain: Chain) -> None:
    place_17(chain)
    before, sources = chain.file(), chain.sources()
    report = (chain.root / "memory/dreaming/light/2026-03-13.md").read_bytes()
    chain.sync("2026-03-16T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    swept = chain.sweep(NIGHT)
    added = chain.file().removeprefix(before)
    assert chain.file().startswith(before)
    sources_of = sorted(int(line) for line in re.findall(r"Source: memory/2026-03-13\.md#L(\d+)", added))
    assert sources_of == [3, 18, 24]  # 24 stands below a start marker without an end: docs/formats.md
    assert added.count("\n- ") == 3
    for needle in expected("17-managed-blocks")["no_entry_written_anywhere_contains"]:
        assert needle not in added
    assert swept.reflected
    tags = {theme.tag for theme in swept.reflected.themes}
    assert not tags & set(expected("17-managed-blocks")["themes_never_contain"])
    assert "I walked along the boathouse" in chain.file("DREAMS.md")
    assert (chain.root / "memory/dreaming/light/2026-03-13.md").read_bytes() == report
    assert chain.sources() == sources
    for night in ("2026-03-21T03:00:00Z", "2026-03-22T03:00:00Z"):
        chain.sync(night)
        chain.recall_all((night[:10],), QUESTIONS)
        chain.sweep(night)
    assert chain.file() == before + added
    chain.assert_second_run_changes_nothing("2026-03-22T03:00:00Z")


def test_17_budget_pressure_never_takes_what_a_person_typed(tmp_path: Path) -> None:
    deep = OPEN_GATES["deep"] | {"memory_budget_characters": 600}
    chain = Chain(tmp_path, dreaming=OPEN_GATES | {"deep": deep})
    place_17(chain)
    for number in range(1, 8):
        fact(chain, f"The ferry number {number} leaves from pier 4187{number}.", f"2026-03-{10 + number}")
    chain.sweep(NIGHT)
    assert "This paragraph was typed by hand under the generated heading and must stay." in chain.file()
    assert "- Buy a second life vest." in chain.file()
    assert "- The lake road floods in April." in chain.file()


DIARIES = sorted(path.name for path in (CASES / "18-damaged-diary").glob("*.md"))


@pytest.mark.parametrize("name", DIARIES)
def test_18_two_sweeps_keep_each_remark_of_the_owner_and_make_one_block(chain: Chain, name: str) -> None:
    data = chain.place(CASES / "18-damaged-diary" / name, "DREAMS.md", replace=OURS)
    own = [line for line in data.decode().splitlines() if line.strip()]
    for number, day in ((1, "14"), (2, "16")):
        fact(chain, f"The ferry number {number} leaves from pier 4187{number}.", f"2026-03-{day}")
        chain.sweep(f"2026-03-{int(day) + 2}T03:00:00Z")
        dreams = chain.file("DREAMS.md")
        kept = iter(dreams.splitlines())
        assert all(line in kept for line in own)
        blocks = [span.name for span in managed_blocks(dreams.splitlines()).spans]
        assert (blocks.count(ManagedBlock.DIARY), blocks.count(ManagedBlock.DEEP)) == (1, 1)
        assert dreams.count("<!-- dreamline:sweep ") == number
    chain.assert_second_run_changes_nothing("2026-03-18T03:00:00Z")


def currencies(chain: Chain) -> list[str]:
    """Return the active directives about prices."""
    held = directives((chain.root / "USER.md").read_bytes())
    return [each.text for each in held if each.is_active and ("euro" in each.text or "dollar" in each.text)]


def test_20_what_the_owner_says_in_sessions_keeps_one_active_directive_a_matter(chain: Chain) -> None:
    before = chain.place(CASES / "20-user-model" / "USER.md", "USER.md").decode()
    updates = expected("20-user-model", "updates.json")
    for number, update in enumerate(updates):
        if number == 2:  # "Actually euro again." means nothing without the talk: the tool that remembers takes it
            continue
        session = SessionBuilder(f"s-{number}", start=parse_instant(update["at"]))
        session.user(update["says"], owner=update["origin"] == "owner")
        chain.session(session)
    chain.sync("2026-03-18T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    chain.sweep(NIGHT)
    assert currencies(chain) == ["Give prices in Swiss francs, not euro."]
    assert "bitcoin" not in chain.file("USER.md") + chain.file()
    assert "dollar" not in chain.file()  # a wish is no fact
    after = chain.file("USER.md").split("\n")
    gone = [line for line in before.split("\n") if line not in after]
    assert gone == ["<!--observed:2026-02-20|status:active-->"]
    assert "- Prefer tea. " in after
    at = after.index("- Always give prices in euro.")
    assert after[at + 1 : at + 6].count("- Give prices in Swiss francs, not euro.") == 1
    chain.assert_second_run_changes_nothing(NIGHT)


def test_22_exactly_the_four_facts_are_promoted_and_every_other_line_says_why_not(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    path = "memory/2026-03-17.md"
    chain.place(CASES / "22-junk-candidates" / path, path)
    before = chain.sources()
    chain.sync("2026-03-17T12:00:00Z")
    for day, asked in (("15", "ab"), ("16", "ca"), ("17", "d")):
        chain.recall_all([f"2026-03-{day}"], [f"which one, {letter}?" for letter in asked])
    night = "2026-03-18T03:00:00Z"
    report = chain.sweep(night)
    sources = [json.loads(row[0]) for row in chain.rows("SELECT sources FROM ledger WHERE operation = 'added'")]
    assert sorted(source["start"] for row in sources for source in row) == expected("22-junk-candidates")["promote"]
    assert len(entries(chain)) + len(entries(chain, "USER.md")) == 4
    text = chain.sources()[path].decode().split("\n")
    held_back = [n for n, line in enumerate(text, 1) if line.strip() and n not in (30, 31, 32, 33)]
    for line in held_back:
        assert refusals_at(chain.root, f"{path}:{line}"), text[line - 1]
    with chain.state() as state, pytest.raises(SourceError, match="is no candidate: shell_line"):
        explain(
            state,
            f"{path}:{next(n for n, line in enumerate(text, 1) if 'git push' in line)}",
            settings=chain.agent.settings.dreaming.deep,
            now_ms=parse_instant(night),
            workspace=chain.root,
        )
    assert report.staged
    assert report.staged.seen == report.staged.totals.total()
    assert report.staged.totals["taken"] == 4
    assert chain.sources() == before
    chain.assert_second_run_changes_nothing(night)


def place_25(chain: Chain) -> str:
    """Place the file of case 25, and note and recall its two candidates; return the file."""
    before = chain.place(CASES / "25-consolidation-outputs" / "before.md", "MEMORY.md").decode()
    for candidate in expected("25-consolidation-outputs", "candidates.json"):
        day = candidate["observed"][:10]
        fact(chain, candidate["text"], day, key=candidate["supersedes"])
    return before


OUTPUTS = sorted(path.name for path in (CASES / "25-consolidation-outputs" / "outputs").iterdir())


@pytest.mark.parametrize("name", OUTPUTS)
def test_25_no_answer_of_a_model_loses_or_invents_a_line(tmp_path: Path, name: str) -> None:
    data = (CASES / "25-consolidation-outputs" / "outputs" / name).read_bytes()
    reply = openai_reply(data.decode()) if _is_utf8(data) else Reply(data)
    deep = OPEN_GATES["deep"] | {"memory_budget_characters": 2_400}
    with model_server(reply) as server:
        model = {"provider": "openai-compatible", "base_url": server.url + "/v1", "model": "small"}
        chain = Chain(tmp_path, dreaming=OPEN_GATES | {"deep": deep}, model=model)
        before = place_25(chain)
        report = chain.sweep(NIGHT)
        assert server.asked
        assert chain.file().startswith(before)
        added = chain.file().removeprefix(before)
        assert added.count("\n- ") == 2
        assert added.count("The ram is called Otto.") == added.count("Rainwater tank two was repaired.") == 1
        assert report.curated
        assert report.curated.why
        assert report.curated.why in chain.file("DREAMS.md")
        assert chain.sweep("2026-03-21T03:00:00Z").outcome == "nothing_to_do"
        assert chain.file() == before + added


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_25_an_edit_of_a_person_while_the_model_thinks_survives(tmp_path: Path) -> None:
    edited = (CASES / "25-consolidation-outputs" / "human-edit.md").read_bytes()

    class Editing(Reply):
        """An answer; while the first one is on its way, a person saves the file."""

        def payload(self) -> bytes:
            if len(server.asked) == 1:
                (chain.root / "MEMORY.md").write_bytes(edited)
            return super().payload()

    good = (CASES / "25-consolidation-outputs" / "outputs" / "a-good.md").read_text(encoding="utf-8")
    with model_server(Editing(openai_reply(good).body)) as server:
        model = {"provider": "openai-compatible", "base_url": server.url + "/v1", "model": "small"}
        chain = Chain(tmp_path, dreaming=OPEN_GATES, model=model)
        place_25(chain)
        chain.sweep(NIGHT)
    text = chain.file()
    assert text.encode().startswith(edited)
    assert "number twenty-three" in text
    assert "Typed by hand" in text
    assert text.removeprefix(edited.decode()).count("\n- ") == 2
