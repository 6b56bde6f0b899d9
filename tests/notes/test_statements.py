"""Statements: one claim each, with exact lines, and what must stay together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.notes.blocks import BlockKind
from recall_runtime.notes.identity import claim_id
from recall_runtime.notes.statements import (
    correction_lead,
    split_sentences,
    statements_of,
    struck_spans,
    without_struck,
)
from recall_runtime.records import Annotations, Statement
from recall_runtime.vocabulary import Refusal, StatementKind


def _of(text: str, block: BlockKind | None = BlockKind.BULLET, **more: object) -> tuple[Statement, ...]:
    end = 1 + text.count("\n")
    return statements_of(text, block=block, start_line=1, end_line=end, **more)  # type: ignore[arg-type] # test helper


def _fit(text: str, block: BlockKind | None = BlockKind.BULLET) -> list[str]:
    return [statement.text for statement in _of(text, block) if statement.refusal is None]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param("Call Hana, ext. 40550. Then wait.", ["Call Hana, ext. 40550.", "Then wait."], id="abbreviation"),
        pytest.param(
            "See a.example.net. Use v1.2.3. ok", ["See a.example.net.", "Use v1.2.3.", "ok"], id="hosts, versions"
        ),
        pytest.param("It took 31 ms. sablenook is up.", ["It took 31 ms.", "sablenook is up."], id="lower-case start"),
        pytest.param("Am 3. März geht es los. Gut.", ["Am 3. März geht es los.", "Gut."], id="German ordinal"),
        pytest.param("端口是 5432。另一个是 5433。", ["端口是 5432。", "另一个是 5433。"], id="Chinese"),
        pytest.param('He said "stop. now. go" twice. End.', ['He said "stop. now. go" twice.', "End."], id="quotation"),
        pytest.param("Run `a. b. c` first. End.", ["Run `a. b. c` first.", "End."], id="code span"),
        pytest.param("Keep it (see no. 4. or so). End.", ["Keep it (see no. 4. or so).", "End."], id="parentheses"),
        pytest.param("z. B. morgens. Dann nicht.", ["z. B. morgens.", "Dann nicht."], id="German abbreviation"),
    ],
)
def test_where_a_sentence_ends(text: str, sentences: list[str]) -> None:
    assert list(split_sentences(text)) == sentences


def test_facts_in_a_long_bullet_share_its_line() -> None:
    text = "Waiting for Rosa to send 3 slides. Vendor contact for x is Hana, ext. 40550. Rebooted the printer twice."
    found = _of(text)
    assert [statement.start_line for statement in found] == [1, 1, 1]
    assert found[1].text == "Vendor contact for x is Hana, ext. 40550."


def test_each_statement_of_a_paragraph_has_its_own_lines() -> None:
    found = _of("The first one\nwraps here. The second\none too.", BlockKind.PARAGRAPH)
    assert [(s.start_line, s.end_line) for s in found] == [(1, 2), (2, 3)]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**Note:** The port is 5432.", "The port is 5432."),
        ("**Done:** fallowvane bucket is s3://keep-1.", "fallowvane bucket is s3://keep-1."),
        ("08:10 - The port is 5432.", "The port is 5432."),
        ("22:05 UTC — The port is 5432.", "The port is 5432."),
        ("08:47 Noor decided it for good.", "Noor decided it for good."),
        ("🧠 The port is 5432.", "The port is 5432."),
        ("📌 确认：端口是 5432。", "确认：端口是 5432。"),
        ("**Key**: the value 5432", "**Key**: the value 5432"),
        ("10:30 is the earliest time", "10:30 is the earliest time"),
    ],
)
def test_leads_are_cut_and_keys_kept(text: str, plain: str) -> None:
    assert _fit(text) == [plain]


@pytest.mark.parametrize(
    "text",
    [
        "Use desk@a.example for vendors only. Exception: invoices may use either, until 30 April.",
        "Never restart it. Unless Noor asks for it by phone.",
        "The rule: two probes a day. After that the exception ends (rule 93303). Do not ask again before that day.",
        "Immer erst sichern. Ausnahme: der Testrechner im Keller.",
        "以后必须走内网。例外：周末可以走外网。",
    ],
)
def test_an_exception_stays_with_its_rule(text: str) -> None:
    assert len(_of(text)) == 1


def test_a_rule_with_its_own_condition_joins_nothing_before_it() -> None:
    found = _of("Rebooted the printer, took 51 minutes. Always answer in English unless asked otherwise.")
    assert [s.text for s in found][1] == "Always answer in English unless asked otherwise."


def test_a_struck_part_is_refused_and_the_correction_kept() -> None:
    found = _of("~~VPN runs on gate-72944.~~ Replaced in December by the mesh (node 41816).")
    assert [(s.refusal, s.text) for s in found] == [
        (Refusal.STRUCK, "VPN runs on gate-72944."),
        (None, "Replaced in December by the mesh (node 41816)."),
    ]
    assert struck_spans("a ~~b c~~ d") == ("b c",)
    assert without_struck("a ~~b c~~ d") == "a d"


def test_a_sentence_that_the_next_one_calls_wrong_is_dead() -> None:
    found = _of("Bis dahin stand hier „im Container 10401“. **Falsch.** Er läuft auf dem Gerät, Knoten 10402.")
    assert [s.refusal for s in found] == [Refusal.STRUCK, None]


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        (
            "| Postgres is on 47245, not the default port. | done | 10:12 |",
            ["Postgres is on 47245, not the default port."],
        ),
        ("| 主控端口 | 64205 | 只在内网开放 |", ["主控端口: 64205; 只在内网开放"]),
        ("| print port | 62990 |", ["print port: 62990"]),
        ("| ✅ | done | 10:12 |", []),
        ("| 9090 | open |", []),
    ],
)
def test_a_row_states_its_telling_cells(row: str, texts: list[str]) -> None:
    assert _fit(row, BlockKind.TABLE_ROW) == texts


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ("Robin asked: Prefer summaries as a list.", "Prefer summaries as a list."),
        ("**Note:** Update: Robin asked: Always answer in English.", "Always answer in English."),
        ("Never order slates from the first supplier again.", "Never order slates from the first supplier again."),
        ("Immer auf Deutsch antworten.", "Immer auf Deutsch antworten."),
        ("永远不要在周五发布新版本。", "永远不要在周五发布新版本。"),
    ],
)
def test_directives_are_told_by_their_form(text: str, directive: str) -> None:
    (found,) = _of(text)
    assert (found.kind, found.text, found.refusal) == (StatementKind.DIRECTIVE, directive, None)


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ("From now on give prices in Swiss francs, not euro.", "Give prices in Swiss francs, not euro."),
        ("Please never put calls before 10:30.", "Never put calls before 10:30."),
        ("Bitte antworte mir ab jetzt immer auf Deutsch.", "Antworte mir ab jetzt immer auf Deutsch."),
    ],
)
def test_a_lasting_wish_in_a_message_is_a_directive(text: str, directive: str) -> None:
    assert [(s.kind, s.text) for s in _of(text, None)] == [(StatementKind.DIRECTIVE, directive)]


@pytest.mark.parametrize(
    "text",
    [
        "Never migrate fallowvane in one go; use batch 39057 or the table locks.",
        "Use port 87015 when connecting to the db.",
        "Mateo said: Robin prefers that confirmations are skipped.",
        "Always look into /var/log/app first.",
    ],
)
def test_an_imperative_about_a_thing_is_a_fact(text: str) -> None:
    assert [s.kind for s in _of(text)] == [StatementKind.FACT]


def test_a_scoped_imperative_is_a_fact_of_its_project() -> None:
    (found,) = _of("Never merge on Friday evenings.", annotations=Annotations(project_key="a/b"))
    assert found.kind is StatementKind.FACT


def test_a_one_off_wish_states_nothing() -> None:
    assert _fit("For this one trip, dollars are fine.", None) == []


def test_a_child_never_loses_its_parents_words() -> None:
    found = _of("Boat hire opens at eight.", ancestors=("Trip to the lake",))
    assert found[0].text == "Trip to the lake: Boat hire opens at eight."
    alone = _of("Boat hire opens at eight.", ancestors=("HEARTBEAT_OK", "The shed was painted."))
    assert alone[0].text == "Boat hire opens at eight."


def test_the_identity_is_that_of_the_text() -> None:
    for statement in _of("The port is 5432. Update: The other one is 5433."):
        assert statement.claim_id == claim_id(statement.text)
    assert correction_lead("- Update: The other one is 5433.")
    assert not correction_lead("Updates arrive on Friday: be ready.")


PARTS = st.sampled_from(
    [
        "A fact. ",
        "~~",
        "`",
        "(",
        '"',
        "„",
        "。",
        "\n",
        "| a | b |",
        "Exception: ",
        "wrong. ",
        "- ",
        "Update: ",
        "10:00 — ",
        "NO_REPLY",
        "🚀",
        "x: ",
        "{",
        "\ufffd",
    ]
)


@given(
    st.one_of(st.text(max_size=200), st.lists(PARTS, max_size=20).map("".join)),
    st.sampled_from([*BlockKind, None]),
    st.lists(st.text(max_size=20), max_size=2),
)
def test_any_text_gives_statements_inside_its_lines(text: str, block: BlockKind | None, above: list[str]) -> None:
    last = 5 + text.count("\n")
    found = statements_of(text, block=block, start_line=5, end_line=last, ancestors=tuple(above))
    assert found
    for statement in found:
        assert 5 <= statement.start_line <= statement.end_line <= last
    assert [s.start_line for s in found] == sorted(s.start_line for s in found)


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        pytest.param("~~call the old vendor~~ not needed", [], id="a remark on what is struck"),
        pytest.param("~~联系旧供应商~~ 不再需要", [], id="the same without blanks"),
        pytest.param("~~Anna~~ Bob handles the invoices", ["Bob handles the invoices"], id="a statement of its own"),
        pytest.param("~~port 8001~~ port 8002", ["port 8002"], id="a new value"),
    ],
)
def test_a_struck_item_is_done_with_and_a_remark_on_it_is_no_fact(text: str, fit: list[str]) -> None:
    stated = statements_of(text, block=BlockKind.BULLET, start_line=1, end_line=1)
    assert [each.text for each in stated if each.refusal is None] == fit


@pytest.mark.parametrize(
    ("said", "directive"),
    [
        ("Prices in dollars please.", "Prefer prices in dollars."),
        ("All my answers without emoji, please", "Prefer all my answers without emoji"),
        ("Preise in Euro bitte.", "Bevorzuge Preise in Euro."),
        ("Precios en dólares, por favor.", "Prefiere precios en dólares."),
        ("Цены в долларах, пожалуйста.", "Предпочитай цены в долларах."),
        ("Please book the table for eight.", None),
        ("Keys in the drawer please.", None),
        ("Prices in dollars are wrong again, please.", None),
        ("Prices in dollars.", None),
    ],
)
def test_a_polite_wish_without_a_verb_is_a_directive(said: str, directive: str | None) -> None:
    """Only in a speaker's own words: in a note the same words are a remark."""
    (spoken,) = statements_of(said, block=None, start_line=1, end_line=1)
    (noted,) = statements_of(said, block=BlockKind.BULLET, start_line=1, end_line=1)
    assert (spoken.kind is StatementKind.DIRECTIVE) is (directive is not None)
    assert spoken.text == (directive or said)
    assert noted.kind is StatementKind.FACT
