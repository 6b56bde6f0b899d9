"""Printing: tables, widths, progress."""

import io

import pytest

from recall_runtime.cli.output import shorten, table, width
from recall_runtime.cli.progress import Progress, Stages


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        pytest.param("abc", 3, id="one column a letter"),
        pytest.param("桟橋", 4, id="wide letters take two"),
        pytest.param("e\u0301", 1, id="a combining accent takes none"),
    ],
)
def test_width_is_what_a_terminal_shows(text: str, columns: int) -> None:
    assert width(text) == columns


def test_a_long_cell_is_cut_to_its_columns_with_an_ellipsis() -> None:
    assert shorten("3番桟橋から乗船する", 8) == "3番桟橋…"


def test_a_cell_holds_no_line_break() -> None:
    assert shorten("one\ntwo", 20) == "one two"


def test_columns_line_up_and_numbers_stand_right() -> None:
    lines = list(table(("what", "count"), [("promoted", 7), ("refused", 120)]))
    assert lines == ["what      count", "--------  -----", "promoted      7", "refused     120"]


def test_a_table_without_rows_shows_its_head_alone() -> None:
    assert list(table(("what", "count"), [])) == ["what  count", "----  -----"]


def test_an_unknown_number_does_not_turn_the_column_to_the_left() -> None:
    assert list(table(("n",), [(1.5,), (None,)]))[2:] == ["1.500", "    -"]


def test_progress_draws_one_bar_on_a_terminal_and_ends_its_line() -> None:
    stream = Terminal()
    show = Progress("index", stream)
    for done in range(5):
        show(done, 4)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().endswith("] 4/4\n")


def test_progress_writes_a_line_a_quarter_elsewhere() -> None:
    stream = io.StringIO()
    show = Progress("index", stream)
    for done in range(401):
        show(done, 400)
    assert stream.getvalue().splitlines() == [f"index: {done} of 400" for done in (100, 200, 300, 400)]


def test_progress_of_nothing_says_nothing() -> None:
    stream = io.StringIO()
    Progress("index", stream)(0, 0)
    assert stream.getvalue() == ""


def test_each_stage_has_its_own_progress() -> None:
    stream = io.StringIO()
    show = Stages(stream)
    show("notes", 2, 2)
    show("vectors", 1, 2)
    assert stream.getvalue().splitlines() == ["notes: 2 of 2", "vectors: 1 of 2"]
