"""Case 20: a damaged ``USER.md`` and six things said."""

import datetime as dt
import json
from pathlib import Path

from recall_runtime.user_model.contract import contradictions, directives, standing
from recall_runtime.user_model.injection import injectable
from recall_runtime.user_model.lint import LintRule, lint
from recall_runtime.user_model.matter import value_class_of
from recall_runtime.user_model.requests import directive_from
from recall_runtime.user_model.update import Outcome, set_directive
from recall_runtime.vocabulary import EntryStatus, OriginClass

CASE = Path(__file__).parents[1] / "cases" / "20-user-model"
START = (CASE / "USER.md").read_bytes()
EXPECTED = json.loads((CASE / "expected.json").read_text(encoding="utf-8"))
UPDATES = json.loads((CASE / "updates.json").read_text(encoding="utf-8"))


def say(data: bytes, number: int) -> bytes:
    """Do with one update what a host does: the origin is checked first, by its column."""
    update = UPDATES[number]
    if OriginClass(update["origin"]) is not OriginClass.OWNER:
        return data
    text = directive_from(update["says"], directives(data))
    return data if text is None else set_directive(data, text, dt.date.fromisoformat(update["at"][:10])).data


def after(count: int) -> bytes:
    data = START
    for number in range(count):
        data = say(data, number)
    return data


def currencies(data: bytes) -> list[str]:
    return [d.text for d in directives(data) if d.is_active and "<currency>" in value_class_of(d.text)]


def test_active_at_start_beside_the_hand_written_one() -> None:
    held = [directive for directive in standing(directives(START)) if not directive.is_hand_written]
    assert [directive.text for directive in held] == EXPECTED["active_at_start"]


def test_contradiction_is_reported_and_neither_side_is_injected() -> None:
    assert [[d.text for d in group] for group in contradictions(directives(START))] == [
        EXPECTED["contradiction_to_report"]
    ]
    assert LintRule.CONTRADICTION in {finding.rule for finding in lint(START)}
    assert "seats" not in injectable(START, 4_000).text


def test_damaged_metadata_is_kept_reported_and_never_silently_active() -> None:
    found = {directive.text: directive for directive in directives(START)}
    assert found["Prefer window seats."].observed is None
    assert found["Prefer window seats."].problems
    assert found["Always sign letters with initials."].status is EntryStatus.SUPERSEDED
    assert found["Prefer tea."].is_hand_written


def test_francs_supersede_euro_in_place_and_no_other_line_changes() -> None:
    before, now = START.decode().split("\n"), after(1).decode().split("\n")
    place = before.index("- Always give prices in euro.")
    assert now[place - 1] == "<!--observed:2026-02-20|status:superseded-->"
    assert now[place + 1 : place + 5] == [
        "",
        "<!-- observed: 2026-03-15 | status: active -->",
        "",
        "- Give prices in Swiss francs, not euro.",
    ]
    assert now[: place - 1] + now[place + 5 :] == before[: place - 1] + before[place + 1 :]


def test_said_twice_is_one_directive() -> None:
    assert after(2) == after(1)


def test_euro_again_supersedes_the_franc() -> None:
    assert currencies(after(3)) == ["Always give prices in euro."]
    assert directives(after(3))[4].observed == dt.date(2026, 3, 16)


def test_late_news_untrusted_words_and_one_trip_change_nothing() -> None:
    assert after(6) == after(3)
    late = directive_from(UPDATES[3]["says"], directives(after(3)))
    assert late is not None
    assert set_directive(after(3), late, dt.date(2026, 3, 10)).outcome is Outcome.LATE


def test_trailing_space_of_an_untouched_line_is_kept() -> None:
    assert b"- Prefer tea. \n" in after(6)
