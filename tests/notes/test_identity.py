"""Identity: what makes a new fact and what does not."""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.identity import (
    claim_id,
    normalise,
    pattern,
    query_hash,
    same_claim,
    value_tokens,
)

CASE = Path(__file__).parent.parent / "cases/07-duplicate-bullets"
EXPECTED = json.loads((CASE / "expected.json").read_text(encoding="utf-8"))
LINES = dict(enumerate((CASE / "MEMORY.md").read_text(encoding="utf-8").split("\n"), start=1))
PAIRS = [pair for group in EXPECTED["same_fact"] for pair in itertools.combinations(group, 2)]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_spellings_of_case_07_are_one_claim(pair: tuple[int, int]) -> None:
    assert claim_id(LINES[pair[0]]) == claim_id(LINES[pair[1]])


@pytest.mark.parametrize("pair", EXPECTED["never_the_same"], ids=str)
def test_facts_of_case_07_that_differ_by_a_sign_stay_apart(pair: list[int]) -> None:
    assert claim_id(LINES[pair[0]]) != claim_id(LINES[pair[1]])
    assert not same_claim(LINES[pair[0]], LINES[pair[1]])


@pytest.mark.parametrize(
    ("dressed", "plain"),
    [
        ("**Update:** The port is 5432.", "The port is 5432"),
        ("Correction: the port is 5432", "The port is 5432."),
        ("(recalled) The port is 5432.", "The port is 5432."),
        ("From memory: > The port is 5432.", "The port is 5432."),
        ("(recalled) 08:10 - The port is 5432.", "The port is 5432."),
        ("Note:** Now: The port is 5432.", "The port is 5432."),
        ("**Korrektur 2026-03-14:** Der Port ist 5432", "Der Port ist 5432"),
        ("更正：端口是 5432。", "端口是 5432"),
        ("- [x] ✅ The port is 5432.", "The port is 5432."),
        ("Noted: the port is 5432.", "The port is 5432."),
        ("The owner said: the port is 5432.", "The port is 5432."),
        ("Der Nutzer sagte: Der Port ist 5432.", "Der Port ist 5432."),
        ("Пользователь сказал: порт 5432.", "Порт 5432."),
        ("用户说：端口是 5432。", "端口是 5432"),
    ],
)
def test_leads_are_no_part_of_a_claim(dressed: str, plain: str) -> None:
    assert claim_id(dressed) == claim_id(plain)


@pytest.mark.parametrize(
    ("query", "digest"),
    [
        ("Gateway setup", "e9dc9a1bbc5c"),
        (" gateway setup ", "e9dc9a1bbc5c"),
        ("__dreaming_daily__:2026-04-01", "0171df7581a6"),
    ],
)
def test_worked_query_hashes(query: str, digest: str) -> None:
    assert query_hash(query) == digest


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Backups of x land in s3://keep-11206.", {"s3://keep-11206"}),
        ("New checkout hides behind ff_beta.", {"ff_beta"}),
        ("It fails without --shards=37112.", {"--shards=37112"}),
        ("Logs go to /var/log/app/44908.log.", {"/var/log/app/44908.log"}),
        ("Read build.cfg and `tide-sync`.", {"build.cfg", "tide-sync"}),
        ("数据库端口是 47245。", {"47245"}),
        ("Copper pipes freeze.", set()),
        ("this and/or that, e.g. now", set()),
    ],
)
def test_value_tokens_are_what_is_specific(text: str, values: set[str]) -> None:
    assert value_tokens(text) == values


SAME = [
    ("Postgres for cedarvane is on 47245, not the default port.", "The cedarvane database listens on port 47245."),
    ("cedarvane 数据库端口是 47245。", "Die Datenbank von cedarvane hört auf Port 47245."),
    ("Vendor contact for ambereasel is Tomasz, ext. 43432.", "Tomasz, ext. 43432 handles the ambereasel contract."),
    ("sablenook is cut from release/59965, never from main.", "Hotfixes for sablenook branch from release/59965."),
    ("Deploy target is the blue cluster", "The deploy target is the blue cluster"),
]
OTHER = [
    pytest.param("The willowloom database is on 47245.", "The cedarvane database is on 47245.", id="another project"),
    pytest.param("The willowloom database is on 47245.", "The willowloom database is on 47246.", id="another digit"),
    pytest.param("willowloom runs on box-12345.", "willowloom runs not on box-12345.", id="negated value"),
    pytest.param("Vendor of x-ray is Hana, ext. 40550.", "Vendor of x-ray is Rosa, ext. 40550.", id="another person"),
    pytest.param("The north gate is painted in blue", "The north gate is painted in green", id="another colour"),
    pytest.param("部署目标是蓝色主机", "部署目标是绿色主机", id="another colour in Chinese"),
    pytest.param("We never ship on the first Friday", "We ship on the first Friday", id="negation"),
    pytest.param("jobs listens on 5432 and lamps", "port 5432 of the printer", id="a shared number is no shared fact"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_fact_in_other_words_is_one_claim(a: str, b: str) -> None:
    assert same_claim(a, b)
    assert same_claim(b, a)


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_what_differs_in_a_sign_that_counts_is_another_claim(a: str, b: str) -> None:
    assert not same_claim(a, b)
    assert not same_claim(b, a)


def test_lines_of_a_routine_share_their_pattern() -> None:
    lines = [
        "Ran cron job `tide-sync`, fetched 304 rows.",
        "Ran cron job `tide-sync`, fetched 1,422 rows.",
    ]
    assert pattern(lines[0]) == pattern(lines[1])
    assert pattern("Waiting for Rosa to send 3 slides") == pattern("Waiting for Hana to send 14 slides")
    assert pattern("The lamp is blue") != pattern("The lamp is green")


@given(st.text(max_size=120))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_same_claim_is_symmetric_and_never_ignores_a_digit(a: str, b: str) -> None:
    assert same_claim(a, b) == same_claim(b, a)
    assert same_claim(a, a)
    assert not same_claim(f"{a} 1234", f"{a} 1235")
