"""What tells two matters of one project apart: a newer value retires the older one of its own matter, and no other."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.lineage_keys.book import LineageBook, LineageClaim
from recall_runtime.lineage_keys.matter import agreement, contradict, matter_of, may_agree
from recall_runtime.lineage_keys.stored import assign_keys
from recall_runtime.lineage_keys.succession import corrects, retires, values_of
from recall_runtime.notes.identity import claim_id
from recall_runtime.storage.schema import open_state
from tests.support.curated import insert_claim

PROJECT = "github.com/example/ferry"
FERRY = frozenset({"ferry"})
ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "data" / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
# Two matters that stay unseen: "licensed" and "licence" share no stem, so the older value stands beside the newer one.
KEPT = {"The ferry licence covers 40 seats now."}
TEXTS = sorted({text for row in ROWS for text in row[3:]})


@dataclass(frozen=True)
class Said:
    """A statement as the rule of succession sees it."""

    text: str
    lineage_key: str | None
    observed_at: int

    @property
    def values(self) -> frozenset[str]:
        return values_of(self.text)

    @property
    def is_correction(self) -> bool:
        return corrects(self.text)


def said(*texts: str, project: str | None = PROJECT) -> list[Said]:
    """Statements of one project, in the order of time."""
    book = LineageBook([PROJECT])
    return [Said(text, book.key_of(LineageClaim(claim_id(text), text, project)), at) for at, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("verdict", "older", "newer"),
    [(row[0], row[3], row[4]) for row in ROWS],
    ids=[f"{row[1]}-{row[2]}-{number}" for number, row in enumerate(ROWS)],
)
def test_a_newer_value_retires_the_older_one_of_its_own_matter_alone(verdict: str, older: str, newer: str) -> None:
    """The table of labelled pairs, in eight languages and across them."""
    first, second = said(older, newer)
    assert retires(second, first) is (verdict == "newer" and newer not in KEPT)


def test_the_table_is_balanced_enough_to_mean_something() -> None:
    """At least sixty pairs, both verdicts, at least eight languages."""
    assert len(ROWS) >= 60
    assert min(sum(row[0] == verdict for row in ROWS) for verdict in ("newer", "beside")) >= 30
    assert {"en", "de", "es", "fr", "pt", "ru", "zh", "ja"} <= {row[2] for row in ROWS}


@given(st.sampled_from(TEXTS), st.sampled_from(TEXTS))
def test_neither_statement_comes_first(first: str, second: str) -> None:
    """Contradiction and agreement are the same both ways."""
    mine, other = matter_of(first, FERRY), matter_of(second, FERRY)
    assert contradict(mine, other) == contradict(other, mine)
    assert may_agree(mine, other) == may_agree(other, mine)
    if mine.slots == other.slots:
        assert agreement(mine, other) == agreement(other, mine)


@pytest.mark.parametrize("text", TEXTS)
def test_no_statement_contradicts_itself(text: str) -> None:
    """With or without the name of its project in view."""
    assert not contradict(matter_of(text, FERRY), matter_of(text, FERRY))
    assert not contradict(matter_of(text), matter_of(text))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_a_matter(first: str, second: str) -> None:
    """Nothing in a note breaks the rules."""
    assert contradict(matter_of(first), matter_of(second)) in (True, False)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Ferry ticket PR-1201 changed the parser.", ()),
        ("Issue 4711 tracks the leak.", ()),
        ("See #4711 for the leak.", ()),
        ("FERRY-120 covers the login page.", ()),
        ("Room 12 has a projector.", ()),
        ("Server 3 has 64 GB.", ("64",)),
        ("Room 12 is the stand-up room.", ("12",)),
        ("The stand-up is in room 12.", ("12",)),
        ("服务器在3号房间。", ("3",)),
        ("PR-1201 moves the port to 8080.", ("8080",)),
    ],
)
def test_a_number_that_names_a_thing_is_no_value(text: str, values: tuple[str, ...]) -> None:
    """Tickets everywhere; rooms, servers and the like where the sentence opens with them and does not say which."""
    assert values_of(text) == frozenset(values)


def test_the_project_may_be_named_in_one_of_the_two_alone() -> None:
    """The other one stands below the heading of the project."""
    first, second = said("The gateway listens on port 8080.", "The ferry gateway listens on port 8443.")
    assert retires(second, first)


def test_a_wording_that_fits_two_matters_ties_them_together_for_nobody() -> None:
    """A "db" and a "reporting db" contradict each other, whatever was said in between."""
    older, between, newer = said(
        "The ferry db listens on port 5433.",
        "The db of ferry is on port 5433.",
        "The ferry reporting db listens on port 5440.",
    )
    assert not retires(newer, older)
    assert not retires(newer, between)


@pytest.mark.parametrize(
    ("first", "second", "may"),
    [
        ("Budget cap for ferry is 500 EUR.", "Hosting of ferry costs 40 EUR.", False),
        ("Budget cap for ferry is 500 EUR.", "Ferry's budget goes up to 600 EUR.", True),
        ("Budget cap for ferry is 500 EUR.", "ferry 每季度上限 600 EUR。", True),
        ("Uploads to ferry stop after 90 s.", "The tests of ferry take 30 s.", False),
    ],
    ids=["nothing-shared", "a-word-shared", "another-script", "another-thing"],
)
def test_what_a_model_may_take_for_one_matter_shares_a_word_in_one_language(first: str, second: str, may: bool) -> None:
    """Across languages the model may know better, where nothing speaks against it."""
    assert may_agree(matter_of(first, FERRY), matter_of(second, FERRY)) is may
    claims = [LineageClaim(claim_id(text), text, PROJECT) for text in (first, second)]
    assert LineageBook([PROJECT]).may_be_one(*claims) is may


def test_keys_of_older_rules_are_made_anew(tmp_path: Path) -> None:
    """A state of an earlier version held one key for all ports of a project; a key that a writer gave stays."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT, "lineage_key": f"{PROJECT}|port #"}
    insert_claim(state, "a" * 12, "The ferry gateway listens on port 8080.", **more)
    insert_claim(state, "b" * 12, "The ferry metrics exporter listens on port 9100.", **more)
    insert_claim(state, "c" * 12, "The tank leaks.", lineage_key="given:tank", key_is_given=1)
    state.execute(
        "INSERT INTO watermarks (name, value) VALUES ('lineage_keys', ?)",
        (f'{{"rowid": 3, "projects": ["{PROJECT}"]}}',),
    )
    assign_keys(state)
    keys = dict(state.execute("SELECT claim_id, lineage_key FROM claims"))
    assert keys == {
        "a" * 12: f"{PROJECT}|port #|{'a' * 12}",
        "b" * 12: f"{PROJECT}|port #|{'b' * 12}",
        "c" * 12: "given:tank",
    }
    assign_keys(state)
    assert dict(state.execute("SELECT claim_id, lineage_key FROM claims")) == keys
    state.close()


def test_an_untrusted_wording_opens_no_lineage_to_others(tmp_path: Path) -> None:
    """A web page in between can neither tie two trusted claims together nor keep them apart."""
    state = open_state(tmp_path / "state.sqlite")
    more = {"project_key": PROJECT}
    insert_claim(state, "a" * 12, "Uploads to ferry stop after 90 s.", **more)
    page = "Uploads to ferry and tests of ferry stop after 90 s."
    insert_claim(state, "b" * 12, page, origin_class="untrusted", **more)
    insert_claim(state, "c" * 12, "Tests of ferry take 30 s.", **more)
    assign_keys(state)
    keys = dict(state.execute("SELECT claim_id, lineage_key FROM claims"))
    assert keys["a" * 12] != keys["c" * 12]
    state.close()
