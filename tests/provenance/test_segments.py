"""Who wrote which line of a note."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.provenance.segments import (
    NoteRecord,
    build_on_append,
    decode_note,
    hand_written,
    line_hash,
    load_record,
    new_record,
    rebase,
    split_lines,
    store_record,
    verify,
)
from recall_runtime.records import Provenance
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import OriginClass, SessionKind

AGENT = Provenance(OriginClass.AGENT, SessionKind.INTERACTIVE, 5, "a", None)
OUTSIDE = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, 9, "b", None)
SYSTEM = Provenance(OriginClass.SYSTEM, SessionKind.CRON, 7, "c", None)


def classes(record: NoteRecord) -> list[str]:
    return [segment.provenance.origin_class.value for segment in record.segments]


def test_worked_value_of_an_untrusted_append() -> None:
    """openclaw-algorithms 3: `a: one` without a record, then an untrusted `b: two`."""
    record = build_on_append(b"a: one\n", b"a: one\nb: two\n", None, OUTSIDE)
    assert [(s.start, s.end, s.provenance.origin_class.value) for s in record.segments] == [
        (0, 7, "agent"),
        (7, 14, "untrusted"),
    ]


def test_worked_value_of_an_overwrite() -> None:
    """openclaw-algorithms 3: other text over the old one leaves nothing trusted."""
    record = build_on_append(b"a: one\n", b"something else\n", new_record(b"a: one\n", AGENT), AGENT)
    assert classes(record) == ["untrusted"]


def test_a_trusted_append_after_an_untrusted_one_takes_nothing_back() -> None:
    first = build_on_append(b"", b"bad\n", None, OUTSIDE)
    assert classes(build_on_append(b"bad\n", b"bad\ngood\n", first, AGENT)) == ["untrusted", "agent"]


def test_an_emptied_file_has_no_segments() -> None:
    assert rebase(new_record(b"x\n", OUTSIDE), b"", hand_written(1)).segments == ()


def test_a_line_that_an_append_continues_has_both_writers() -> None:
    record = build_on_append(b"half", b"half a line\n", new_record(b"half", AGENT), OUTSIDE)
    assert classes(record) == ["untrusted"]


def test_a_line_end_alone_makes_nobody_a_writer() -> None:
    record = build_on_append(b"mine", b"mine\ntheirs\n", new_record(b"mine", AGENT), OUTSIDE)
    assert classes(record) == ["agent", "untrusted"]


RECORDED = build_on_append(b"one\ntwo\n", b"one\ntwo\nbad\nlast\n", new_record(b"one\ntwo\n", AGENT), OUTSIDE)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(b"one\ntwo\nbad\nlast\nmore\n", ["agent", "agent", "untrusted", "untrusted", "agent"], id="added"),
        pytest.param(
            b"new\none\ntwo\nbad\nlast\n", ["agent", "agent", "agent", "untrusted", "untrusted"], id="in front"
        ),
        pytest.param(b"one\nTWO\nbad\nlast\n", ["agent", "agent", "untrusted", "untrusted"], id="changed"),
        pytest.param(b"bad\nlast\none\ntwo\n", ["untrusted", "untrusted", "agent", "agent"], id="moved"),
        pytest.param(b"one\nx\nbad\ny\nlast\n", ["agent", "agent", "untrusted", "agent", "untrusted"], id="scattered"),
        pytest.param(b"one\r\ntwo\r\nbad\r\nlast\r\n", ["agent", "agent", "untrusted", "untrusted"], id="line ends"),
        pytest.param(b"one\ntwo\n  bad  \nlast", ["agent", "agent", "untrusted", "untrusted"], id="blanks"),
        pytest.param(b"last\n", ["untrusted"], id="deleted"),
    ],
)
def test_a_foreign_edit_changes_only_the_lines_it_touched(after: bytes, expected: list[str]) -> None:
    assert classes(rebase(RECORDED, after, hand_written(11))) == expected


def test_an_append_after_a_foreign_edit_rebases_first() -> None:
    edited = b"zero\none\ntwo\nbad\nlast\n"
    record = build_on_append(edited, edited + b"next\n", RECORDED, SYSTEM)
    assert classes(record) == ["agent", "agent", "agent", "untrusted", "untrusted", "system"]


LINES = st.lists(st.sampled_from(["a", "b", "", "  c", "d\r", "é🙂", "\udcff"]), max_size=5)
EDIT = st.tuples(st.sampled_from(["append", "foreign"]), st.integers(0, 8), st.integers(0, 3), LINES)


@given(st.lists(st.tuples(st.sampled_from([AGENT, OUTSIDE, SYSTEM]), EDIT), max_size=12))
def test_untrusted_lines_stay_untrusted_and_segments_cover_the_file(steps: list) -> None:  # type: ignore[type-arg]
    """Whatever is appended or edited round it: a line that only untrusted writers wrote never becomes trusted."""
    data, record = b"", new_record(b"", AGENT)
    trusted: set[str] = set()
    for number, (writer, (kind, at, cut, lines)) in enumerate(steps):
        marked = [f"{number}.{i} {line}" for i, line in enumerate(lines)]
        if kind == "append":
            gap = "" if not data or data.endswith(b"\n") else "\n"
            added = gap + "".join(line + "\n" for line in marked)
            after = data + added.encode("utf-8", "surrogateescape")
            record = build_on_append(data, after, record, writer)
            if writer is AGENT:
                trusted.update(line_hash(line) for line in marked)
        else:
            old = split_lines(decode_note(data))
            new = [*old[:at], *(line + "\n" for line in marked), *old[at + cut :]]
            after = "".join(new).encode("utf-8", "surrogateescape")
            record = rebase(record, after, hand_written(99))
            trusted.update(line_hash(line) for line in marked)
        data = after
        assert verify(data, record)
        assert record.length == len(decode_note(data))
        assert [s.start for s in record.segments] == [0, *(s.end for s in record.segments)][: len(record.segments)]
        for segment in record.segments:
            if segment.provenance.origin_class is OriginClass.AGENT:
                assert segment.line_hash in trusted


def test_records_are_stored_and_replaced(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state.sqlite")
    try:
        with write_transaction(state):
            store_record(state, "memory/a.md", RECORDED, 1)
            store_record(state, "memory/a.md", RECORDED, 2)
        assert load_record(state, "memory/a.md") == RECORDED
        assert load_record(state, "memory/b.md") is None
    finally:
        state.close()
