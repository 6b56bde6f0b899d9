"""Taking one write out of a file that was changed since."""

import datetime as dt
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.curated.compose import NewEntry, append_entries, entry_line, remove_lines, section_heading
from recall_runtime.curated.merge import Merged, take_out
from recall_runtime.notes.curated import parse_curated
from recall_runtime.records import Anchor, Annotations
from recall_runtime.user_model.update import set_directive

HAND = b"# Memory\n\n- By hand.\n"
DAY = dt.date(2026, 3, 1)


def entry(name: str, day: int = 0, project: str | None = None) -> NewEntry:
    """A promoted entry."""
    source = Anchor(f"memory/2026-03-{day + 1:02d}.md", 1, 1)
    return NewEntry(f"memory:claim:{name}", entry_line(f"Fact {name}.", source, Annotations()), project)


def add(content: bytes | None, *entries: NewEntry, day: int = 0) -> bytes:
    """A night that promotes ``entries``."""
    return append_entries(content, section_heading(DAY + dt.timedelta(days=day), consolidated=False), entries)


def drop(content: bytes, name: str) -> bytes:
    """A night that takes an entry out."""
    found = [e for e in parse_curated(content).entries if e.entry_key == f"memory:claim:{name}"]
    return remove_lines(content, [(e.first_line, e.end_line) for e in found])


def merged(before: bytes | None, after: bytes, present: bytes, *, user_file: bool = False) -> bytes | None:
    """The content of the merge; fails when there is none."""
    made = take_out(before, after, present, user_file=user_file)
    assert made is not None
    return made.content


def test_a_later_night_stays() -> None:
    first = add(HAND, entry("a"))
    assert merged(HAND, first, add(first, entry("b"), day=1)) == add(HAND, entry("b"), day=1)


def test_a_later_entry_of_the_same_day_keeps_the_heading() -> None:
    first = add(HAND, entry("a"))
    assert merged(HAND, first, add(first, entry("b"))) == add(HAND, entry("b"))


def test_the_title_of_a_file_that_did_not_exist_stays_while_something_is_below_it() -> None:
    first = add(None, entry("a"))
    assert merged(None, first, add(first, entry("b"), day=1)) == add(None, entry("b"), day=1)
    assert take_out(None, first, first, user_file=False) == Merged(None)


def test_a_project_heading_goes_with_its_only_entry() -> None:
    first = add(HAND, entry("a"), entry("b", project="git.example/x/y"))
    later = add(first, entry("c"))
    left = merged(HAND, first, later)
    assert left is not None
    assert b"git.example/x/y" not in left
    assert [e.text for e in parse_curated(left).entries] == ["By hand.", "Fact c."]


def test_what_it_retired_comes_back_where_it_stood() -> None:
    base = add(HAND, entry("a"), entry("b"), entry("c"))
    after = add(drop(base, "b"), entry("d"), day=1)
    later = add(after, entry("e"), day=2)
    left = merged(base, after, later)
    assert left is not None
    assert left == add(base, entry("e"), day=2)


def test_a_retired_entry_does_not_come_between_an_entry_and_its_child() -> None:
    base = add(HAND, entry("a"), entry("b"))
    after = drop(base, "b")
    edited = after.rstrip(b"\n") + b"\n  - a child typed by hand\n"
    left = merged(base, after, edited)
    assert left is not None
    assert left.index(b"child typed") < left.index(b"Fact b.")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"Fact a.", b"Fact A.", id="its text was edited"),
        pytest.param(b"<!-- openclaw-memory-promotion:memory:claim:a -->\n", b"", id="its mark was taken away"),
        pytest.param(b"#L1-L1", b"#L1-L1\n  - more", id="a child was typed below it"),
        pytest.param(b"- Fact a. Source: memory/2026-03-01.md#L1-L1\n", b"", id="it was taken out"),
        pytest.param(b"## Promoted", b"## My own", id="its heading was renamed"),
        pytest.param(b"- Fact a.", b"<<<<<<< one\n- Fact a.", id="a merge conflict"),
        pytest.param(b"- Fact a.", b"```\n- Fact a.", id="a fence above it"),
    ],
)
def test_nothing_is_merged_when_the_entry_was_touched(old: bytes, new: bytes) -> None:
    first = add(HAND, entry("a"))
    assert old in first
    assert take_out(HAND, first, first.replace(old, new), user_file=False) is None


@pytest.mark.parametrize("name", ["crlf", "no-final-newline", "byte-order-mark"])
def test_shapes_of_a_file_are_kept(name: str) -> None:
    base = {
        "crlf": b"# Memory\r\n\r\n- By hand.\r\n",
        "no-final-newline": b"# Memory\n\n- By hand.",
        "byte-order-mark": b"\xef\xbb\xbf# Memory\n\n- By hand.\n",
    }[name]
    first = add(base, entry("a"))
    assert merged(base, first, add(first, entry("b"), day=1)) == add(base, entry("b"), day=1)


def test_a_file_taken_away_is_not_written_again() -> None:
    first = add(HAND, entry("a"))
    assert take_out(HAND, first, None, user_file=False) is None


def test_a_directive_is_taken_back_from_under_a_later_one() -> None:
    base = set_directive(b"", "Prefer window seats.", DAY).data
    first = set_directive(base, "Prefer aisle seats.", DAY + dt.timedelta(days=1)).data
    later = set_directive(first, "Answer in German.", DAY + dt.timedelta(days=2)).data
    expected = set_directive(base, "Answer in German.", DAY + dt.timedelta(days=2)).data
    assert merged(base, first, later, user_file=True) == expected


def test_the_first_directive_is_taken_back_from_above_a_later_one() -> None:
    first = set_directive(b"", "Prefer window seats.", DAY).data
    later = set_directive(first, "Answer in German.", DAY).data
    assert merged(None, first, later, user_file=True) == set_directive(b"", "Answer in German.", DAY).data


def test_a_directive_that_was_retired_since_is_not_taken_back() -> None:
    first = set_directive(b"", "Prefer window seats.", DAY).data
    later = set_directive(first, "Prefer aisle seats.", DAY).data
    assert take_out(None, first, later, user_file=True) is None


@dataclass
class Past:
    """A file with all that was done to it, so that it can be replayed without one of the writes."""

    steps: list[tuple[str, str]] = field(default_factory=list)  # (kind, name)
    images: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)


def act(content: bytes, kind: str, name: str) -> bytes:
    """One step: a night adds or replaces an entry (each name once), or a person types or strikes a line."""
    day = int(name[1:]) // 2  # two writes share a day
    if kind == "add":
        return add(content, entry(name), day=day)
    if kind == "replace":
        return add(drop(content, f"a{int(name[1:]) - 1}"), entry(name), day=day)
    if kind == "type":
        return content + f"- Typed {name}.\n".encode()
    if kind == "top":
        return content.replace(b"- By hand.\n", b"- By hand.\n" + f"- On top {name}.\n".encode(), 1)
    assert kind == "strike"
    return content.replace(f"- Typed a{int(name[1:]) - 2}.\n".encode(), b"")


def spoken(content: bytes) -> list[bytes]:
    """What is neither blank nor a heading, in order."""
    return [line for line in content.split(b"\n") if line.strip() and not line.startswith(b"#")]


STEP = st.tuples(st.sampled_from(["add", "add", "replace", "type", "top", "strike", "undo", "undo"]), st.integers(0, 9))


@settings(max_examples=300)
@given(st.lists(STEP, min_size=3, max_size=14))
def test_undo_equals_the_replay_without_the_write_or_changes_nothing(plan: list[tuple[str, int]]) -> None:
    """Nights, a person and undo in any order; a write that a later one builds on is never taken from under it."""
    content, done, images = HAND, [], {}
    for number, (kind, pick) in enumerate(plan):
        name = f"a{number}"
        if kind != "undo":
            after = act(content, kind, name)
            if kind in ("add", "replace"):
                images[name] = (content, after)
            content = after
            done.append((kind, name))
            continue
        if not images:
            continue
        chosen = sorted(images)[pick % len(images)]
        made = take_out(*images[chosen], content, user_file=False)
        used = any(k == "replace" and int(n[1:]) == int(chosen[1:]) + 1 for k, n in done)
        if made is None:
            assert used  # only what was built upon, or touched, stays
            continue
        del images[chosen]
        done = [step for step in done if step[1] != chosen]
        replay = HAND
        for step in done:
            replay = act(replay, *step)
        content = made.content or b""
        assert sorted(spoken(content)) == sorted(spoken(replay))
        assert [line for line in spoken(content) if b"Typed" in line or b"On top" in line or b"By hand" in line] == [
            line for line in spoken(replay) if b"Typed" in line or b"On top" in line or b"By hand" in line
        ]
        headings = [line for line in content.split(b"\n") if line.startswith(b"## ")]
        assert len(headings) == len(set(headings))
