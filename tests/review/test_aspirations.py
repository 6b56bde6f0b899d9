"""Aspirations: lines with a review date."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_assets.review.aspirations import aspirations_in, collect_due, due_on
from tests.support.workspace_days import Days

TODAY = dt.date(2026, 12, 31)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- Learn to sail <!-- review: 2026-12-31 -->", "Learn to sail"),
        ("Learn to sail <!--review:2026-12-31-->", "Learn to sail"),
        ("1. [ ] Learn to sail <!-- REVIEW: 2026-12-31 --> ", "Learn to sail"),
        ("- いつかヨットを習う <!-- review: 2026-12-31 -->", "いつかヨットを習う"),
    ],
)
def test_the_grammar(line: str, text: str) -> None:
    (found,) = aspirations_in("memory/a.md", line.encode()).aspirations
    assert (found.text, found.review, found.expires) == (text, TODAY, TODAY + dt.timedelta(days=180))


def test_an_expiry_may_be_given() -> None:
    (found,) = aspirations_in("a.md", b"- x <!-- review: 2026-12-31 | expires: 2027-03-01 -->").aspirations
    assert found.expires == dt.date(2027, 3, 1)


@pytest.mark.parametrize(
    "line",
    [
        "- [x] Learn to sail <!-- review: 2026-12-31 -->",
        "- ~~Learn to sail~~ <!-- review: 2026-12-31 -->",
        "```\n- Learn to sail <!-- review: 2026-12-31 -->\n```",
        "<!-- review: 2026-12-31 -->",
        "- Learn <!-- review: 2026-12-31 --> to sail",
        "- preview: 2026-12-31",
    ],
    ids=["ticked", "struck", "code", "no text", "not at the end", "prose"],
)
def test_lines_that_are_none(line: str) -> None:
    assert aspirations_in("a.md", line.encode()).aspirations == ()


def test_a_day_that_does_not_exist_is_a_counted_fault() -> None:
    reading = aspirations_in("a.md", b"- x\n- Learn to sail <!-- review: 2026-02-30 -->\n")
    assert (reading.aspirations, reading.faulty_lines) == ((), (2,))


def test_due_from_the_review_day_on() -> None:
    found = aspirations_in("a.md", b"- a <!-- review: 2026-12-31 -->\n- b <!-- review: 2026-01-01 -->\n").aspirations
    assert [item.text for item in due_on(found, TODAY)] == ["b", "a"]
    assert [item.text for item in due_on(found, TODAY - dt.timedelta(days=1))] == ["b"]


def test_collecting_reads_notes_and_never_reports(tmp_path: Path) -> None:
    wish = b"- Learn to sail <!-- review: 2026-12-31 -->\n"
    for name in ("MEMORY.md", "memory/2026-01-01.md", "memory/topics/a.md", "memory/dreaming/light/x.md", "DREAMS.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(wish)
    (tmp_path / "memory" / "loop.md").symlink_to(tmp_path / "memory" / "loop.md")
    found = [item.path for item in collect_due(tmp_path, None, TODAY)]
    assert found == ["MEMORY.md", "memory/2026-01-01.md", "memory/topics/a.md"]
    assert (tmp_path / "MEMORY.md").read_bytes() == wish


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("agent:main:main", True),
        ("agent:main:telegram:direct:1", True),
        ("agent:main:telegram:group:99", False),
        ("agent:main:slack:channel:C1", False),
    ],
    ids=["the owner", "the owner's chat", "a group", "a channel"],
)
def test_a_line_that_others_can_have_said_is_no_wish_of_the_owner(tmp_path: Path, key: str, shown: bool) -> None:
    days = Days(tmp_path)
    days.note("2026-12-03T10:00:00Z", "- Learn to sail <!-- review: 2026-12-10 -->", "s1", key=key)
    days.sync("2026-12-04T10:00:00Z")
    with days.state() as state:
        found = collect_due(days.agent.workspace, state, TODAY)
    assert [item.text for item in found] == (["Learn to sail"] if shown else [])


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    found = aspirations_in("a.md", data + b"<!-- review: 9999-12-31 -->")
    lines = data.count(b"\n") + 1
    assert all(1 <= line <= lines for line in found.faulty_lines)
    assert len(found.aspirations) <= lines
