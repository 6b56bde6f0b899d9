"""Which words of a message match which keyword entry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.intents.terms import entry_matches, lookup_choices, message_words

MATCHES = [
    ("release candidate", "The candidate release is ready.", "any order"),
    ("c", "plan c it is", "one letter"),
    ("red\nblue", "blue and red", "a line end separates words"),
    ("sign-off", "please sign-off today", "hyphenated"),
    ("sign-off", "please sign off today", "hyphenated against blank"),
    ("sign-off", "please signoff today", "hyphenated against joined"),
    ("signoff", "please sign-off today", "joined against hyphenated"),
    ("launch", "we are launching", "inflected"),
    ("launch", "LAUNCHED!", "inflected and upper case"),
    ("release candidates", "the release candidate is out", "one inflected word of two"),
    ("rechnung", "Die Rechnungen sind da", "German plural"),
    ("hotel", "los hoteles de Lisboa", "Spanish plural"),
    ("hotel", "c'est l'hôtel", "elided article"),
    ("hôtel", "HOTEL", "accent folded"),
    ("ada", "Ada's parcel", "possessive"),
    ("счёт", "где счёта нет", "Russian case ending"),
    ("锅炉 保养", "下周给锅炉做保养", "inside a run without blanks"),
    ("発売日", "次の発売日はいつ", "longer than a pair"),
    ("雨", "明日は雨だ", "one sign"),
    ("wifi密码", "请把 WiFi 密码 发我", "two scripts in one keyword"),
    ("ＡＢＣ", "abc", "full width"),
    ("보일러 점검", "보일러를 점검했다 점검", "Hangul particle"),
    ("ราคา", "เช็คราคาด้วย", "Thai"),
    ("c++ build", "Does the C++ build pass?", "signs belong to the word"),
    ("the who", "who is the", "stop words alone"),
    ("🚀", "go 🚀 now", "symbol"),
    ("node.js", "is Node.js up?", "dotted name"),
    ("v1.2", "tag v1.2 now", "version"),
]
MISSES = [
    ("release candidate", "release notes", "one word missing"),
    ("sign-off", "off the sign", "parts not side by side"),
    ("boiler service", "boilers were serviced", "two inflected words"),
    ("c++ build", "Does the C build pass?", "C is not C++"),
    ("rain", "the train", "inside a word"),
    ("art", "This party starts at eight", "inside a word"),
    ("锅炉 保养", "锅炉坏了", "one of two"),
    ("list", "listen", "another word"),
    ("invoice", "", "empty message"),
]


@pytest.mark.parametrize(("entry", "text"), [pytest.param(*row[:2], id=row[2]) for row in MATCHES])
def test_entry_matches(entry: str, text: str) -> None:
    assert entry_matches(entry.lower(), message_words(text))


@pytest.mark.parametrize(("entry", "text"), [pytest.param(*row[:2], id=row[2]) for row in MISSES])
def test_entry_does_not_match(entry: str, text: str) -> None:
    assert not entry_matches(entry.lower(), message_words(text))


def prefilter_finds(entry: str, text: str) -> bool:
    """Whether the message holds a form of each word by which the entry may be stored."""
    held = message_words(text).lookup
    choices = lookup_choices(entry)
    return bool(choices) and all(forms & held for forms in choices)


@pytest.mark.parametrize(("entry", "text"), [pytest.param(*row[:2], id=row[2]) for row in MATCHES])
def test_prefilter_never_loses_a_match_of_the_table(entry: str, text: str) -> None:
    assert prefilter_finds(entry.lower(), text)


WORDS = (
    "boiler",
    "boilers",
    "sign-off",
    "sign",
    "off",
    "signoff",
    "c++",
    "c",
    "c#",
    "锅炉",
    "锅炉保养",
    "wifi密码",
    "보일러를",
    "l'hôtel",
    "hotel",
    "the",
    "v1.2",
    "a.b/c",
    "données",
    "rain+",
    "ada's",
    "ราคา",
    "x-",
    "🚀",
    "=",
)


@given(st.lists(st.sampled_from(WORDS), max_size=3), st.lists(st.sampled_from(WORDS), max_size=6))
def test_prefilter_never_loses_a_match(entry: list[str], text: list[str]) -> None:
    joined, message = " ".join(entry), " ".join(text)
    if entry_matches(joined, message_words(message)):
        assert prefilter_finds(joined, message)


@given(st.text(max_size=40))
def test_an_entry_with_words_matches_its_own_text(entry: str) -> None:
    if lookup_choices(entry):
        assert entry_matches(entry, message_words(entry))
