"""Reading ``USER.md``: metadata in every shape, which directives stand, what the linter says."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.user_model.contract import directives, standing
from recall_runtime.user_model.lint import LintRule, lint
from recall_runtime.vocabulary import EntryStatus

DAY = dt.date(2026, 2, 18)


@pytest.mark.parametrize(
    "comment",
    [
        "<!-- observed: 2026-02-18 | status: active -->",
        "<!-- status: active | observed: 2026-02-18 -->",
        "<!--observed:2026-02-18|status:active-->",
        "<!-- Observed: 2026-02-18 | Status: ACTIVE -->",
        "<!-- observed: 2026-01-02..2026-02-18 | status: active -->",
        "<!-- observed: 2026-01-02 to 2026-02-18 | status: active -->",
    ],
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"], ids=["flush", "blank line"])
def test_metadata_is_read_in_every_shape(comment: str, gap: str) -> None:
    (found,) = directives(f"# User\n\n{comment}{gap}- Prefer tea.\n".encode())
    assert (found.text, found.observed, found.status, found.problems) == ("Prefer tea.", DAY, EntryStatus.ACTIVE, ())


def test_a_date_range_keeps_its_first_day() -> None:
    (found,) = directives(b"<!-- observed: 2026-01-02..2026-02-18 | status: active -->\n- Prefer tea.\n")
    assert (found.since, found.observed) == (dt.date(2026, 1, 2), DAY)


@pytest.mark.parametrize(
    ("comment", "problem"),
    [
        ("<!-- observed: 2026-02-30 | status: active -->", "no date"),
        ("<!-- observed: yesterday | status: active -->", "no date"),
        ("<!-- observed: 2026-02-18 | status: maybe -->", "neither active nor superseded"),
        ("<!-- observed: 2026-02-18 | status: superseded | by: x -->", "can't be read"),
        ("<!-- observed: 2026-02-18 -->", "no status"),
        ("<!-- status: active -->", "no date"),
    ],
)
def test_damaged_metadata_is_kept_and_reported(comment: str, problem: str) -> None:
    data = f"{comment}\n\n- Prefer tea.\n".encode()
    (found,) = directives(data)
    assert found.text == "Prefer tea."
    assert problem in "; ".join(found.problems)
    assert LintRule.DAMAGED_METADATA in {finding.rule for finding in lint(data)}


@pytest.mark.parametrize("status", ["maybe", "superseded | by: x", ""])
def test_a_status_outside_the_closed_set_is_never_silently_active(status: str) -> None:
    data = f"<!-- observed: 2026-02-18 | status: {status} -->\n- Prefer tea.\n".encode()
    assert standing(directives(data)) == ()


@pytest.mark.parametrize(
    "line",
    [
        "- **Name:**",
        "- **Name:** Robin",
        "- _(what should the agent call you?)_",
        "- Timezone: Europe/Berlin",
        "text",
        "* * *",
    ],
)
def test_profile_lines_and_template_slots_are_no_directives(line: str) -> None:
    assert directives(f"# User\n\n{line}\n".encode()) == ()


def test_trigger_and_importance_on_the_bullet_still_parse() -> None:
    (found,) = directives(
        b"<!-- observed: 2026-02-18 | status: active -->\n- Prefer tea. <!-- trigger: tea --> <!-- importance: 7 -->\n"
    )
    assert found.text == "Prefer tea."


def test_fenced_examples_are_no_directives() -> None:
    assert directives(b"```\n<!-- observed: 2026-02-18 | status: active -->\n- Prefer tea.\n```\n") == ()


def test_newest_of_two_active_ones_holds() -> None:
    data = (
        b"<!-- observed: 2026-02-18 | status: active -->\n- Prefer window seats.\n\n"
        b"<!-- observed: 2026-03-18 | status: active -->\n- Prefer aisle seats.\n"
    )
    assert [directive.text for directive in standing(directives(data))] == ["Prefer aisle seats."]


def test_two_of_the_same_day_hold_neither_and_are_reported() -> None:
    data = (
        b"<!-- observed: 2026-02-18 | status: active -->\n- Prefer window seats.\n\n"
        b"<!-- observed: 2026-02-18 | status: active -->\n- Prefer aisle seats.\n"
    )
    assert standing(directives(data)) == ()
    assert [finding.rule for finding in lint(data)] == [LintRule.CONTRADICTION]


def test_lint_names_what_is_no_imperative_or_holds_two() -> None:
    meta = "<!-- observed: 2026-02-18 | status: active -->\n"
    data = f"{meta}- Robin drinks tea.\n\n{meta}- Always sign letters. Never use red ink.\n".encode()
    assert [finding.rule for finding in lint(data)] == [LintRule.NOT_IMPERATIVE, LintRule.TWO_INSTRUCTIONS]


def test_lint_reports_length_merge_and_encoding() -> None:
    assert [finding.rule for finding in lint(b"# User\n" + b"x" * 4_100)] == [LintRule.OVER_CAP]
    assert LintRule.CONFLICT in {f.rule for f in lint(b"<<<<<<< a\n- Prefer tea.\n=======\n- Prefer ale.\n>>>>>>> b\n")}
    assert [finding.rule for finding in lint(b"\xff\xfeU\x00")] == [LintRule.UNDECODABLE]


@given(st.binary(max_size=300))
def test_reading_and_linting_never_raise(data: bytes) -> None:
    found = directives(data)
    assert set(standing(found)) <= set(found)
    assert all(finding.rule in LintRule for finding in lint(data))


@pytest.mark.parametrize(
    ("first", "second", "held"),
    [
        pytest.param("I dislike theme parks.", "I strongly dislike theme parks.", 1, id="the same in other words"),
        pytest.param("I dislike theme parks.", "I dislike theme parks.", 1, id="twice"),
        pytest.param("我不喜欢主题公园。", "我不喜欢主题公园。", 1, id="twice, in a script without blanks"),
        pytest.param("Prefer long answers.", "Prefer short answers.", 0, id="another size"),
        pytest.param("Never call before 9.", "Never call before 10.", 0, id="another limit"),
        pytest.param("Always use tables.", "Never use tables.", 0, id="the opposite"),
        pytest.param("I dislike loud restaurants.", "I dislike dark restaurants.", 2, id="two exclusions"),
    ],
)
def test_undated_ones_on_one_matter_hold_only_when_they_say_the_same(first: str, second: str, held: int) -> None:
    data = f"# User\n\n## Directives\n\n- {first}\n- {second}\n".encode()
    assert len(standing(directives(data))) == held
