"""The cursor of the file sensors: nothing is missed, nothing is sent twice, the cursor stays small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensors.changes import SETTLED_NS, Cursor, FileStamp, changes_since, signature_of

SECOND = 1_000_000_000
NOW = 1_000 * SECOND
A = FileStamp("memory/a.md", 10 * SECOND, 5)
B = FileStamp("memory/b.md", 20 * SECOND, 5)


def _seen(*stamps: FileStamp) -> Cursor:
    return changes_since(Cursor(), stamps, now_ns=NOW, cap=100).cursor


@pytest.mark.parametrize(
    ("cursor", "present", "batch"),
    [
        pytest.param(Cursor(), (A, B), (A, B), id="first tick sees all, oldest first"),
        pytest.param(_seen(A, B), (A, B), (), id="nothing new"),
        pytest.param(_seen(A), (A, B), (B,), id="a new file"),
        pytest.param(
            _seen(A, B),
            (FileStamp(A.path, 30 * SECOND, 5), B),
            (FileStamp(A.path, 30 * SECOND, 5),),
            id="touched later",
        ),
        pytest.param(
            _seen(A, B), (FileStamp(A.path, A.mtime_ns, 6), B), (FileStamp(A.path, A.mtime_ns, 6),), id="other size"
        ),
        pytest.param(
            _seen(A, B), (FileStamp(A.path, 1, 5), B), (FileStamp(A.path, 1, 5),), id="an older version put back"
        ),
        pytest.param(_seen(A, B), (B,), (), id="a file went away"),
    ],
)
def test_the_batch_is_what_differs(
    cursor: Cursor, present: tuple[FileStamp, ...], batch: tuple[FileStamp, ...]
) -> None:
    assert changes_since(cursor, present, now_ns=NOW, cap=100).batch == batch


@pytest.mark.parametrize("ahead", [1 - SETTLED_NS, 0, SETTLED_NS - 1], ids=["before", "at", "after the clock was read"])
def test_a_half_written_file_waits_and_comes_with_a_later_tick(ahead: int) -> None:
    fresh = FileStamp("memory/a.md", NOW + ahead, 5)
    first = changes_since(Cursor(), [fresh], now_ns=NOW, cap=100)
    assert (first.batch, first.unsettled) == ((), 1)
    assert changes_since(first.cursor, [fresh], now_ns=NOW + 2 * SETTLED_NS, cap=100).batch == (fresh,)


def test_a_time_in_the_future_hides_no_file() -> None:
    future = FileStamp("memory/a.md", NOW + 3_600 * SECOND, 5)
    assert changes_since(Cursor(), [future], now_ns=NOW, cap=100).batch == (future,)


def test_a_burst_over_the_cap_comes_in_pieces() -> None:
    burst = [FileStamp(f"memory/{number}.md", number * SECOND, 1) for number in range(10)]
    cursor, batches = Cursor(), []
    for _ in range(4):
        changes = changes_since(cursor, burst, now_ns=NOW, cap=4)
        cursor = changes.cursor
        batches.append([len(changes.batch), changes.left])
    assert batches == [[4, 6], [4, 2], [2, 0], [0, 0]]


def test_a_file_that_changes_twice_has_two_signatures() -> None:
    assert signature_of([A]) != signature_of([FileStamp(A.path, A.mtime_ns + 1, A.size)])


def test_a_reset_cursor_makes_the_same_signature_again() -> None:
    first = changes_since(Cursor(), [A, B], now_ns=NOW, cap=100)
    assert changes_since(Cursor(), [B, A], now_ns=NOW + SECOND, cap=100).signature == first.signature


def test_the_cursor_survives_being_text() -> None:
    cursor = _seen(A, B)
    assert Cursor.loads(cursor.dumps()) == cursor


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '{"marks": 3}', '{"forgotten_to_ns": "x"}'])
def test_a_cursor_that_cannot_be_read_is_a_new_one(text: str | None) -> None:
    assert Cursor.loads(text).is_new


def test_the_cursor_of_very_many_files_stays_small_and_loses_no_change() -> None:
    files = [FileStamp(f"memory/{number}.md", number, 1) for number in range(5_000)]
    cursor = changes_since(Cursor(), files, now_ns=NOW, cap=10_000).cursor
    assert len(cursor.dumps()) < 100_000
    assert changes_since(cursor, files, now_ns=NOW, cap=10).batch == ()
    files[3] = FileStamp("memory/3.md", 9_000, 2)
    assert changes_since(cursor, files, now_ns=NOW, cap=10).batch == (files[3],)


_EDITS = st.lists(
    st.tuples(st.integers(0, 7), st.booleans()),  # which file, and whether a tick follows
    max_size=40,
)


@given(_EDITS, st.integers(1, 3), st.integers(1, 4))
def test_every_state_a_file_ends_in_was_in_a_batch_once(edits: list[tuple[int, bool]], cap: int, most: int) -> None:
    files: dict[str, FileStamp] = {}
    cursor, sent = Cursor(), []
    now = NOW
    for number, tick in [*edits, *[(-1, True)] * 12]:
        now += 10 * SECOND
        if number >= 0:
            path = f"memory/{number}.md"
            files[path] = FileStamp(path, now - 5 * SECOND, number)
        if tick:
            changes = changes_since(cursor, files.values(), now_ns=now, cap=cap, most_remembered=most)
            cursor = Cursor.loads(changes.cursor.dumps())
            sent += changes.batch
    assert set(files.values()) <= set(sent)
    assert len(sent) == len(set(sent))
