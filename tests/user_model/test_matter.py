"""Which directives are about one matter."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.user_model.matter import matter_of, same_matter, value_class_of

# Versions of one preference of one made-up owner; rows of different names are different matters.
PREFERENCES = {
    "summary": ["Prefer summaries as a short bullet list.", "Prefer summaries as one plain paragraph."],
    "language": ["Always answer in German unless asked otherwise.", "Always answer in English unless asked otherwise."],
    "units": ["Always use metric units."],
    "clock": ["Always write times in 24-hour form."],
    "commits": [
        "Prefer commit subjects in the imperative, under 60 characters.",
        "Prefer conventional commit prefixes in every subject.",
    ],
    "calls": ["Never schedule calls before 10:30.", "Never schedule calls after 16:15."],
    "greeting": ["Never open a reply with praise or thanks."],
    "tests": ["Always write the failing test before the fix."],
    "quiet": ["Never send notices between 22:00 and 07:00.", "Never send notices between 20:30 and 08:15."],
    "currency": ["Prefer prices in euros.", "Always give prices in Swiss francs, not euro."],
    "links": ["Always give the source link next to a claim."],
    "tables": ["Prefer tables only for more than four rows."],
    "tone": ["Prefer dry humour over exclamation marks."],
    "drafts": [
        "Always show a draft before sending mail.",
        "Prefer sending routine mail at once and showing a copy after.",
    ],
}
PREFERENCE_PAIRS = [
    (first, second, name == other)
    for name, versions in PREFERENCES.items()
    for first in versions
    for other, others in PREFERENCES.items()
    for second in others
    if first != second
]

SAME = [
    ("Always call me Noor.", "Call me Nour from now on."),
    ("Nenn mich Noor.", "Nenne mich Frau Haddad."),
    ("叫我小林。", "以后请叫我林老师。"),
    ("Prefer long explanations.", "Prefer short explanations unless asked."),
    ("Prefer window seats.", "Prefer aisle seats."),
    ("Always give prices in euro.", "Give prices in Swiss francs, not euro."),
    ("Always give prices in euro.", "Prices in dollars please."),
    ("Always give prices in euro.", "Prefer prices in bitcoin."),
    ("Never use tables.", "Always use tables."),
    ("Prefer tables for more than four rows.", "Prefer tables for more than six rows."),
    ("Prefer green tea.", "Prefer black tea."),
    ("Never call before 9.", "Never call before 10:30."),
    ("Always use metric units.", "Use imperial units."),
    ("Always answer in German.", "Reply in French."),
    ("Keep answers short.", "Prefer longer answers."),
    ("Never schedule meetings on Mondays.", "Never schedule meetings on Fridays."),
    ("Prefer the dark theme.", "Prefer the light theme."),
    ("Always sign letters with initials.", "Sign letters with the full name."),
    ("Write times in 24-hour form.", "Write times in 12-hour form."),
    ("Prefer code comments in English.", "Prefer code comments in German."),
    ("Prefer temperatures in Celsius.", "Always give temperatures in Fahrenheit."),
    ("Antworte immer auf Deutsch.", "Antworte immer auf Englisch."),
    ("Antworte immer auf Deutsch.", "Always answer in English."),
    ("Bevorzuge Fensterplätze.", "Bevorzuge Fensterplätze, nie Gang."),
    ("Nenne Preise immer in Euro.", "Nenne Preise in Franken."),
    ("Plane nie Anrufe vor 9 Uhr.", "Plane nie Anrufe nach 16 Uhr."),
    ("Responde siempre en alemán.", "Responde siempre en inglés."),
    ("Da los precios en euros.", "Da los precios en dólares."),
    ("Réponds toujours en allemand.", "Réponds toujours en anglais."),
    ("Donne les prix en euros.", "Donne les prix en francs."),
    ("Responde sempre em alemão.", "Responde sempre em inglês."),
    ("Dá os preços em euros.", "Dá os preços em dólares."),
    ("Всегда отвечай по-немецки.", "Всегда отвечай по-английски."),
    ("Всегда указывай цены в евро.", "Указывай цены в долларах."),
    ("总是用德语回答。", "总是用英语回答。"),
    ("价格用欧元。", "价格用美元。"),
    ("いつもドイツ語で返信して。", "いつも英語で返信して。"),
    ("価格はユーロで。", "価格はドルで。"),
]
DIFFERENT = [
    ("Always call me Noor.", "Never schedule calls before 10:30."),  # a name, and a time
    ("Always call me Noor.", "Never call me before 9."),
    ("Always call me Noor.", "Always call me back at once."),
    ("Always call me Noor.", "Prefer calls to mails."),
    ("叫我小林。", "不要在十点前打电话。"),
    ("Prefer tea.", "Prefer coffee."),
    ("Never book flights before seven in the morning.", "Prefer window seats."),
    ("Always give prices in euro.", "Always give the source link next to a claim."),
    ("Always answer in German.", "Translate menus from German to English."),
    ("Always answer in German.", "Answer in English when reviewing code."),
    ("Prefer tables for numbers.", "Prefer tables for timelines."),
    ("Never send mail after 18:00.", "Always sign mail with initials."),
    ("Always use metric units.", "Always use the staging host."),
    ("Keep answers short.", "Always answer in German."),
    ("Never schedule calls before 9.", "Never send notices before 9."),
    ("Write times in 24-hour form.", "Write the failing test before the fix."),
    ("Prefer the dark theme.", "Prefer dark chocolate."),
    ("Always run the linter before a commit.", "Prefer commit subjects in the imperative."),
    ("Prefer Python for scripts.", "Prefer German for mails."),
    ("Never share the home address.", "Never share the phone number."),
    ("Always use spaces, never tabs.", "Never open more than five browser tabs."),
    ("Give dates as ISO 8601.", "Give prices in euro."),
    ("Antworte immer auf Deutsch.", "Nenne Preise immer in Euro."),
    ("Plane nie Anrufe vor 9 Uhr.", "Sende nie Meldungen vor 9 Uhr."),
    ("Responde siempre en alemán.", "Da los precios en euros."),
    ("Réponds toujours en allemand.", "Donne les prix en euros."),
    ("Всегда отвечай по-немецки.", "Всегда указывай цены в евро."),
    ("总是用德语回答。", "价格用欧元。"),
    ("总是用德语回答。", "会议不要安排在早上。"),
    ("いつもドイツ語で返信して。", "価格はユーロで。"),
    ("Address guests by first name, also in German.", "Always keep replies to guests under 80 words."),
    ("Call suppliers by surname.", "Never send suppliers a price list."),
    ("Prefer short explanations.", ""),
    ("", ""),
    ("Always.", "Never."),
    ("Never before 9:00.", "Never after 18:00."),
]


@pytest.mark.parametrize(("first", "second", "same"), PREFERENCE_PAIRS)
def test_versions_of_one_preference_meet_and_others_do_not(first: str, second: str, same: bool) -> None:
    assert same_matter(first, second) is same


@pytest.mark.parametrize(("first", "second"), SAME)
def test_a_change_of_mind_is_the_same_matter(first: str, second: str) -> None:
    assert same_matter(first, second)
    assert same_matter(second, first)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_another_subject_is_another_matter(first: str, second: str) -> None:
    assert not same_matter(first, second)
    assert not same_matter(second, first)


def test_numbers_and_times_are_masked() -> None:
    assert matter_of("Never schedule calls before 10:30.") == matter_of("Never schedule calls before 11.")


def test_values_stand_for_their_class() -> None:
    assert value_class_of("Always give prices in euro.") == {"<currency>"}
    assert matter_of("Always answer in German.") == {"<answer>", "<language>"}


@given(st.text(max_size=200), st.text(max_size=200))
def test_comparing_never_raises_and_is_symmetric(first: str, second: str) -> None:
    assert same_matter(first, second) == same_matter(second, first)


LABELLED = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "data" / "matters.tsv").read_text(encoding="utf-8").splitlines()[1:]
]


@pytest.mark.parametrize(("same", "allowed"), [("yes", 3), ("no", 1)])
def test_a_labelled_table_of_changes_of_mind_and_of_wishes_side_by_side(same: str, allowed: int) -> None:
    """85 pairs in eight languages; before exclusions were told from wishes 32 of the 46 "no" were wrong."""
    wrong = [row for row in LABELLED if row[1] == same and same_matter(row[2], row[3]) != (same == "yes")]
    assert len(wrong) <= allowed, wrong


def test_the_labelled_table_is_as_broad_as_said() -> None:
    assert len(LABELLED) >= 80
    assert {row[0] for row in LABELLED} == {"en", "de", "es", "fr", "pt", "ru", "zh", "ja"}


@pytest.mark.parametrize("text", ["I dislike games with pixel graphics.", "Ich mag keine Filme mit Untertiteln."])
def test_how_somebody_stands_to_a_thing_is_not_what_the_directive_is_about(text: str) -> None:
    assert not matter_of(text) & {"dislik", "mag"}
