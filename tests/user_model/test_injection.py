"""What reaches a prompt, and how owners' words become directives."""

import datetime as dt
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.similarity import containment
from recall_runtime.user_model.contract import directives, standing
from recall_runtime.user_model.injection import best_within, injectable
from recall_runtime.user_model.requests import directive_from, is_one_off
from recall_runtime.user_model.update import set_directive

DAY = dt.date(2026, 3, 1)


def user_file(*texts: str) -> bytes:
    data = b""
    for number, text in enumerate(texts):
        data = set_directive(data, text, DAY + dt.timedelta(number)).data
    return data


def test_superseded_ones_comments_and_template_slots_never_reach_the_prompt() -> None:
    data = user_file("Prefer window seats.", "Prefer aisle seats.")
    data += b"\n- **Name:** Robin\n- **Pronouns:**\n- _(anything else?)_\n"
    assert injectable(data, 4_000).text == "- Prefer aisle seats.\n- **Name:** Robin"


@given(st.integers(0, 400))
def test_directives_are_whole_or_absent_within_the_cap(cap: int) -> None:
    texts = ["Prefer window seats.", "Always answer in German.", "Never schedule calls before 9.", "Prefer green tea."]
    shown = injectable(user_file(*texts), cap)
    lines = shown.text.splitlines()
    assert len(shown.text) <= cap
    assert set(lines) <= {f"- {text}" for text in texts}
    assert len(lines) + shown.left_out == len(texts)


def test_the_newest_come_first_when_not_all_fit() -> None:
    data = user_file("Prefer window seats.", "Always answer in German.")
    assert injectable(data, 30).text == "- Always answer in German."


def test_what_applies_now_is_bounded_and_chosen_by_the_scores() -> None:
    data = user_file("Prefer window seats.", "Always answer in German.", "Never schedule calls before 9.")
    found = standing(directives(data))
    scored = [(containment(directive.text, "please schedule calls for Monday"), directive) for directive in found]
    assert [directive.text for directive in best_within(scored)] == ["Never schedule calls before 9."]
    everything = [(1.0, directive) for directive in found]
    assert len(best_within(everything, max_directives=2)) == 2
    assert best_within(everything, max_characters=10) == ()
    assert best_within((0.0, directive) for directive in found) == ()


VERSIONS = [
    ["Prefer window seats.", "Prefer aisle seats.", "Prefer seats at the exit."],
    ["Always answer in German.", "Always answer in English.", "Always answer in French."],
    ["Always give prices in euro.", "Prefer prices in dollars.", "Give prices in yen."],
    ["Never schedule calls before 9.", "Never schedule calls before 10:30.", "Never schedule calls after 16:00."],
    ["Prefer summaries as a list.", "Prefer summaries as one paragraph.", "Prefer summaries as a table."],
]


@pytest.mark.parametrize("seed", range(50))
def test_after_two_changes_exactly_the_newest_directive_is_injected(seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311 - a reproducible dialogue
    matters = generator.sample(VERSIONS, generator.randint(1, len(VERSIONS)))
    said = [(version, matter[version]) for version in range(3) for matter in generator.sample(matters, len(matters))]
    text = injectable(user_file(*(directive for _, directive in said)), 4_000).text
    assert sorted(text.splitlines()) == sorted(f"- {matter[2]}" for matter in matters)


@pytest.mark.parametrize(
    "text",
    [
        "For this one trip, dollars are fine.",
        "Just this once, answer in English.",
        "Nur heute auf Englisch.",
        "Solo por esta vez en inglés.",
        "Cette fois-ci en anglais.",
        "Só desta vez em inglês.",
        "На этот раз по-английски.",
        "这次用英语回答。",
        "今回だけ英語で。",
    ],
)
def test_one_off_words_are_told_apart(text: str) -> None:
    assert is_one_off(text)
    assert directive_from(text, directives(user_file("Always answer in German.", "Prefer prices in euro."))) is None


@pytest.mark.parametrize(
    "text", ["From now on answer in English.", "Always answer in German.", "Prefer window seats on trips."]
)
def test_lasting_words_are_no_one_off(text: str) -> None:
    assert not is_one_off(text)


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ("From now on give prices in Swiss francs, not euro.", "Give prices in Swiss francs, not euro."),
        ("Prices in dollars please.", "Prefer prices in dollars."),
        ("Actually dollars.", "Prefer prices in dollars."),
        ("I prefer aisle seats", "Prefer aisle seats."),
        ("Please always sign letters with initials", "Always sign letters with initials."),
        ("The train leaves at nine.", None),
        ("Euro German.", None),
    ],
)
def test_owners_words_become_an_imperative(text: str, directive: str | None) -> None:
    assert directive_from(text, directives(user_file("Prefer prices in euro."))) == directive


def test_a_value_that_was_there_before_is_taken_up_word_for_word() -> None:
    data = user_file("Always give prices in euro.", "Prefer prices in dollars.")
    assert directive_from("euro again", directives(data)) == "Always give prices in euro."
    assert len(standing(directives(data))) == 1
