"""USER.md over nights: case 20 and the bounds of the file."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.config import DeepSettings, DreamingSettings, Settings
from recall_runtime.notes.markers import promotion_marker
from recall_runtime.user_model.contract import directives
from recall_runtime.vocabulary import Gate, Operation
from tests.support.night import Night

CASE = Path(__file__).parents[1] / "cases" / "20-user-model"


def user(night: Night) -> str:
    """Content of USER.md."""
    return (night.agent.workspace / "USER.md").read_text(encoding="utf-8")


def active(night: Night) -> list[str]:
    """Active directives of the file."""
    return [one.text for one in directives(user(night).encode()) if one.is_active]


@pytest.fixture
def case(night: Night) -> Night:
    """The case's USER.md in place."""
    shutil.copyfile(CASE / "USER.md", night.agent.workspace / "USER.md")
    return night


FRANCS = "Always give prices in Swiss francs, not euro."


def test_a_change_of_mind_supersedes_in_place(case: Night) -> None:
    """Case 20, first update: superseded and successor adjacent, no other line changed."""
    before = user(case).splitlines()
    report = case.sweep(case.note(FRANCS, "2026-03-15"))
    after = user(case).splitlines()
    at = before.index("<!--observed:2026-02-20|status:active-->")
    assert after[at] == "<!--observed:2026-02-20|status:superseded-->"
    assert after[at + 1] == "- Always give prices in euro."
    new = after.index(f"- {FRANCS}")
    assert "<!-- observed: 2026-03-15 | status: active -->" in after[at + 2 : new]
    kept = [line for number, line in enumerate(after) if not at < number - 1 < new]
    assert [line for line in before if line not in after] == ["<!--observed:2026-02-20|status:active-->"]
    assert len(after) - len(before) == new - at - 1
    assert kept
    assert report.count(Operation.SUPERSEDED) == 1


def test_said_twice_is_one_directive(case: Night) -> None:
    """Case 20, second update: no change."""
    claim = case.note(FRANCS, "2026-03-15")
    case.sweep(claim)
    before = user(case)
    case.sweep(claim)
    again = case.note("- **Always** give prices in Swiss francs, not euro", "2026-03-16")
    case.sweep(again)
    assert user(case) == before


def test_back_again_leaves_exactly_one_active(case: Night) -> None:
    """Case 20, third update."""
    case.sweep(case.note(FRANCS, "2026-03-15"))
    case.sweep(case.note("Always give prices in euro again.", "2026-03-16"))
    assert [text for text in active(case) if "prices" in text] == ["Always give prices in euro again."]


def test_older_news_changes_nothing(case: Night) -> None:
    """Case 20, fourth update: ingested late."""
    case.sweep(case.note(FRANCS, "2026-03-15"))
    before = user(case)
    late = case.note("Always give prices in dollars.", "2026-03-10")
    report = case.sweep(late)
    assert user(case) == before
    assert report.refusals == {Gate.SUPERSEDED: 1}
    assert case.claim(late)[0] == "superseded"


def test_untrusted_never_changes_it(case: Night) -> None:
    """Case 20, fifth update."""
    before = user(case)
    case.sweep(case.note("Always give prices in bitcoin.", "2026-03-17", origin_class="untrusted"))
    assert user(case) == before


def test_of_two_words_in_one_night_the_later_counts(night: Night) -> None:
    """Never two active directives on one matter."""
    early = night.note("Always give prices in euro.", "2026-03-01")
    late = night.note("Always give prices in Swiss francs.", "2026-03-02")
    report = night.sweep(early, late)
    assert active(night) == ["Always give prices in Swiss francs."]
    assert report.refusals == {Gate.SUPERSEDED: 1}


def test_a_successor_retires_the_claim_of_what_it_replaced(night: Night) -> None:
    """Ledger and claims follow the file."""
    early = night.note("Always give prices in euro.", "2026-03-01")
    night.sweep(early)
    late = night.note("Always give prices in Swiss francs.", "2026-03-02")
    night.sweep(late)
    assert night.claim(early)[:2] == ("superseded", f"superseded_by:memory:claim:{late}")


def limited(night: Night, characters: int) -> None:
    """Give USER.md another cap."""
    settings = Settings(dreaming=DreamingSettings(deep=DeepSettings(user_budget_characters=characters)))
    night.agent = replace(night.agent, settings=settings)


def test_a_directive_without_room_waits(night: Night) -> None:
    """Whole directives only, within the cap."""
    night.write("# User\n\n" + "By hand. " * 40 + "\n", "USER.md")
    limited(night, 300)
    claim = night.note("Always use metric units.")
    before = user(night)
    report = night.sweep(claim)
    assert user(night) == before
    assert report.refusals == {Gate.BUDGET: 1}
    assert night.claim(claim)[0] == "waiting"


STALE = "<!-- observed: 2025-01-0{0} | status: superseded -->\n\n- Prefer stale matter number {0} of long ago.\n\n"


def test_stale_superseded_directives_of_ours_make_room(night: Night) -> None:
    """Pruned first, oldest first, and each with its row in the ledger."""
    ours = [promotion_marker(f"memory:claim:{number}") + "\n" + STALE.format(number) for number in (1, 2)]
    night.write("# User\n\n" + "".join(ours), "USER.md")
    limited(night, 430)
    night.sweep(night.note("Always use metric units."))
    assert "- Always use metric units." in user(night)
    assert "number 1 of" not in user(night)
    assert "number 2 of" in user(night)
    assert len(user(night)) <= 430
    rows = night.state.execute("SELECT operation, entry_key, text FROM ledger ORDER BY ledger_id").fetchall()
    assert rows[0] == ("dropped", "memory:claim:1", "- Prefer stale matter number 1 of long ago.")
    assert [row[0] for row in rows] == ["dropped", "added"]


def test_what_a_person_typed_never_makes_room(night: Night) -> None:
    night.write("# User\n\n" + STALE.format(1) + STALE.format(2), "USER.md")
    limited(night, 230)
    before = user(night)
    report = night.sweep(night.note("Always use metric units."))
    assert user(night) == before
    assert report.refusals == {Gate.BUDGET: 1}


def observe(night: Night, claim: str, instant: str) -> None:
    """Set the instant at which ``claim`` was last stated."""
    night.state.execute("UPDATE evidence SET observed_at = ? WHERE claim_id = ?", (parse_instant(instant), claim))


def test_of_two_words_of_one_day_the_later_counts_in_whatever_order_they_pass(night: Night) -> None:
    late = night.note("Always give prices in dollars.", "2026-03-18")
    observe(night, late, "2026-03-18T18:00:00Z")
    night.sweep(late)
    early = night.note("Always give prices in euro.", "2026-03-18")
    observe(night, early, "2026-03-18T09:00:00Z")
    report = night.sweep(early)
    assert active(night) == ["Always give prices in dollars."]
    assert report.refusals == {Gate.SUPERSEDED: 1}


def test_a_preference_that_returns_is_active_again(night: Night) -> None:
    """It stands in the file as superseded already: that is not said yet."""
    for day, currency in enumerate(("euro", "dollars", "euro"), start=1):
        claim = night.note(f"Always give prices in {currency}.", f"2026-03-0{day}")
        observe(night, claim, f"2026-03-0{day}T09:00:00Z")
        night.state.execute("UPDATE claims SET status = 'waiting' WHERE claim_id = ?", (claim,))  # as staging does
        night.sweep(claim)
    assert active(night) == ["Always give prices in euro."]


def test_an_unresolved_merge_in_the_file_is_left_alone_and_named(night: Night) -> None:
    """Nothing is written into either side."""
    merge = "# User\n\n<<<<<<< HEAD\n- Prefer tea.\n=======\n- Prefer coffee.\n>>>>>>> 3c47\n"
    night.write(merge, "USER.md")
    claim = night.note("Always use metric units.")
    report = night.sweep(claim)
    assert user(night) == merge
    assert report.refusals == {Gate.WRITE: 1}
    assert "unresolved merge" in report.problems[0]
    assert night.claim(claim)[0] == "waiting"
