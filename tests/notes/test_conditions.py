"""Conditions and expiry: the grammar, the rules for prose, and that no reader loses one."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.curated.compose import cap_snippet, entry_line
from recall_runtime.notes.annotations import strip_annotations
from recall_runtime.notes.blocks import BlockKind, read_note
from recall_runtime.notes.conditions import ActionSense, conditions_of, mark_of, split_marks
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.statements import statements_of
from recall_runtime.records import Anchor, Annotations

DAY = dt.date(2026, 4, 30)


def texts(line: str) -> list[str]:
    """Return the statements of a note of one line."""
    (block,) = read_note(line.encode(), path="memory/2026-03-01.md").blocks
    return [
        statement.text
        for statement in statements_of(block.text, block=block.kind, start_line=1, end_line=1)
        if statement.refusal is None
    ]


@pytest.mark.parametrize(
    ("comment", "mark"),
    [
        (" condition: only on the staging host ", "(condition: only on the staging host)"),
        (" EXPIRES: 2026-04-30 ", "(expires: 2026-04-30)"),
        (" condition: (mostly) on weekdays ", "(condition: [mostly] on weekdays)"),
        (" expires: after the release ", "(condition: until after the release)"),
        (" expires: 2026-02-30 ", "(condition: until 2026-02-30)"),
        (" condition: ", None),
        (" trigger: a ", None),
        (" a condition: b ", None),
    ],
)
def test_a_comment_is_a_mark_or_nothing(comment: str, mark: str | None) -> None:
    assert mark_of(comment) == mark


def test_a_line_keeps_its_condition_when_its_comments_are_stripped() -> None:
    line = "- Deploys are frozen. <!-- trigger: deploy --> <!-- expires: 2026-04-30 --> <!-- condition: prod only -->"
    assert strip_annotations(line) == "- Deploys are frozen. (expires: 2026-04-30) (condition: prod only)"


def test_a_condition_alone_on_its_line_or_in_code_is_none() -> None:
    assert strip_annotations("<!-- expires: 2026-04-30 -->") == ""
    assert strip_annotations("- Write `<!-- expires: 2026-04-30 -->` behind it.").startswith("- Write `<!--")


def test_every_statement_of_a_line_has_its_condition() -> None:
    found = texts("- The gate stands open. The dog is in the yard. <!-- condition: while Robin is here -->\n")
    assert found == [
        "The gate stands open. (condition: while Robin is here)",
        "The dog is in the yard. (condition: while Robin is here)",
    ]


def test_a_long_condition_does_not_come_off() -> None:
    condition = "only after a written approval of the owner " * 5
    (text,) = texts(f"- The archive may be deleted. <!-- condition: {condition.strip()} -->\n")
    assert conditions_of(text).condition == condition.strip()


@pytest.mark.parametrize(
    "text",
    [
        "Deploy with the blue script. Only with approval by Robin.",
        "The ladder may be used. Only until 2026-04-30.",
        "Deploy with the blue script. Ask Robin first.",
        "Das blaue Skript darf laufen. Nur mit Freigabe von Robin.",
        "Se puede usar la escalera. Solo con permiso de Robin.",
    ],
)
def test_a_sentence_that_is_only_a_condition_stays_with_its_rule(text: str) -> None:
    assert texts(f"- {text}\n") == [text]


def test_another_condition_is_another_claim() -> None:
    one = statements_of("The gate is open. (condition: a)", block=BlockKind.BULLET, start_line=1, end_line=1)
    two = statements_of("The gate is open. (condition: b)", block=BlockKind.BULLET, start_line=1, end_line=1)
    assert one[0].claim_id != two[0].claim_id


def test_a_promoted_entry_is_written_and_read_with_its_condition() -> None:
    (text,) = texts("- Deploys of the shop are frozen. <!-- expires: 2026-04-30 -->\n")
    line = entry_line(text, Anchor("memory/2026-03-01.md", 1, 1), Annotations(importance=5))
    marker = "<!-- openclaw-memory-promotion:memory:claim:aaaaaaaaaaaa -->"
    (entry,) = parse_curated(f"{marker}\n{line}\n".encode()).entries
    assert entry.generated
    assert entry.text == text
    assert conditions_of(entry.text).expires == DAY


def test_a_condition_put_behind_a_promoted_entry_by_hand_changes_its_text_alone() -> None:
    data = (
        b"<!-- openclaw-memory-promotion:memory:claim:aaaaaaaaaaaa -->\n"
        b"- The gate is open. Source: memory/2026-03-01.md#L1-L1 <!-- condition: by day -->\n"
    )
    (entry,) = parse_curated(data).entries
    assert (entry.generated, entry.text) == (True, "The gate is open. (condition: by day)")
    assert entry.source == Anchor("memory/2026-03-01.md", 1, 1)


@pytest.mark.parametrize("tokens", [10, 40, 160])
def test_cutting_never_cuts_a_condition_off(tokens: int) -> None:
    marked = f"{'The boiler is serviced in spring. ' * 30}(condition: only by Otto) (expires: 2026-04-30)"
    assert conditions_of(cap_snippet(marked, tokens)) == conditions_of(marked)
    prose = f"{'The boiler is serviced in spring. ' * 30}It is frozen until 2026-04-30."
    assert conditions_of(cap_snippet(prose, tokens)) == conditions_of(prose)


@pytest.mark.parametrize(
    "text",
    [
        "Deploys are frozen until 2026-04-30.",
        "Die Regel gilt bis zum 30.04.2026.",
        "Se permite hasta el 30.4.2026.",
        "C'est permis jusqu'au 30.04.2026.",
        "Vale até 2026-04-30.",
        "Действует до 30.04.2026.",
        "有效期至2026年4月30日。",
        "2026年4月30日まで使えます。",
        "Deploys are frozen. (expires: 2026-04-30)",
        "Frozen through 2026-04-30, then until 2026-05-10.",
    ],
)
def test_the_last_day_is_read(text: str) -> None:
    found = conditions_of(text)
    assert found.expires == DAY
    assert not found.over(DAY)
    assert found.over(DAY + dt.timedelta(days=1))


@pytest.mark.parametrize(
    "text",
    [
        "The museum was closed until 2026-04-30.",
        "Das Museum war bis zum 30.04.2026 zu.",
        "The invoice of 2026-04-30 is paid.",
        "Deploys are frozen until 30 April.",
        "Closed until 2026-13-45.",
        "The meeting on 2026-04-30 lasts until noon.",
    ],
)
def test_what_is_no_clear_last_day_never_expires(text: str) -> None:
    assert conditions_of(text).expires is None


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("Deleting backups needs Robin's approval.", ActionSense.APPROVAL),
        ("Vor dem Löschen Freigabe einholen.", ActionSense.APPROVAL),
        ("删除前需要批准。", ActionSense.APPROVAL),
        ("Do not edit config.toml on vega.", ActionSense.HANDS_OFF),
        ("Die Datei nicht löschen.", ActionSense.HANDS_OFF),
        ("Не удаляй этот каталог.", ActionSense.HANDS_OFF),
        ("请勿修改这个文件。", ActionSense.HANDS_OFF),
        ("The limit is raised temporarily.", ActionSense.TEMPORARY),
        ("Das Limit gilt vorläufig.", ActionSense.TEMPORARY),
        ("Mia hands over the release to Otto.", ActionSense.HANDOFF),
    ],
)
def test_action_sensitive_wording_is_seen(text: str, sense: ActionSense) -> None:
    assert sense in conditions_of(text).senses


@pytest.mark.parametrize(
    "text", ["The ram is called Otto.", "Prefer short answers.", "The server stands in room 12.", "Otto mag Tee."]
)
def test_plain_facts_have_no_conditions(text: str) -> None:
    found = conditions_of(text)
    assert (found.condition, found.expires, found.senses) == (None, None, ())


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error_and_splitting_loses_nothing(text: str) -> None:
    bare, marks = split_marks(text)
    assert conditions_of(bare + marks).condition == conditions_of(text).condition
    assert strip_annotations(text).count("\n") <= text.count("\n")


@given(
    st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=80).filter(
        lambda text: text.strip()
    ),
    st.dates(),
)
def test_marks_are_read_back(condition: str, expires: dt.date) -> None:
    mark = mark_of(f"condition: {condition}")
    found = conditions_of(f"The gate is open. {mark} (expires: {expires.isoformat()})")
    assert found.expires == expires
    assert found.condition is not None
