"""Lines of a file: what ends one, what can be decoded, and that byte ranges give the file back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.text.lines import ByteFault, read_lines, without_controls

CASES = Path(__file__).parent.parent / "cases"


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        pytest.param(b"", [], id="nothing is no line"),
        pytest.param(b"a\nb\n", ["a", "b"], id="a last line feed opens no line"),
        pytest.param(b"a\nb", ["a", "b"], id="a last line needs no line feed"),
        pytest.param(b"a\r\nb\r\n", ["a", "b"], id="carriage return before a line feed belongs to the line end"),
        pytest.param(b"a\rb\n", ["a\rb"], id="a lone carriage return is text"),
        pytest.param(
            "a\x0bb\x0cc\x85d\u2028e\x1cf\n".encode(), ["a\x0bb\x0cc\x85d\u2028e\x1cf"], id="other breaks are text"
        ),
        pytest.param(b"\xef\xbb\xbfa\n", ["a"], id="the byte order mark is no text"),
        pytest.param(b"\n\n", ["", ""], id="blank lines count"),
    ],
)
def test_only_lf_and_crlf_end_a_line(data: bytes, texts: list[str]) -> None:
    assert [line.text for line in read_lines(data).lines] == texts


def test_control_signs_keep_every_anchor_of_case_11() -> None:
    data = (CASES / "11-nul-control-bytes/memory/2026-03-06.md").read_bytes()
    reading = read_lines(data)
    assert len(reading.lines) == 10
    assert reading.lines[2].text.startswith("- The shed\x00")
    assert "hose is coiled" in reading.lines[9].text


def test_bad_bytes_are_faults_of_their_lines_only() -> None:
    reading = read_lines((CASES / "12-invalid-utf8/memory/2026-03-07.md").read_bytes())
    assert sorted(reading.faulty_lines) == [3, 4, 5]
    assert reading.lines[5].text == "- Plain line: the bus pass renews in June."
    assert reading.faults[0] == ByteFault(3, 23)


def test_the_fault_offset_is_the_first_bad_byte() -> None:
    data = b"ok\n\xe9clair\n"
    fault = read_lines(data).faults[0]
    assert data[fault.offset : fault.offset + 1] == b"\xe9"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param((CASES / "12-invalid-utf8/memory/2026-03-07-utf16.md").read_bytes(), id="UTF-16 of case 12"),
        pytest.param("plain".encode("utf-16-le") * 9, id="UTF-16 without a mark"),
        pytest.param(bytes(range(256)) * 4, id="binary"),
    ],
)
def test_a_file_that_is_no_text_is_refused_as_a_whole(data: bytes) -> None:
    reading = read_lines(data)
    assert reading.undecodable
    assert reading.lines == ()
    assert len(reading.faults) == 1


@pytest.mark.parametrize(("data", "newline"), [(b"a\r\nb\r\nc\n", "\r\n"), (b"a\nb\r\nc\n", "\n"), (b"a", "\n")])
def test_the_newline_style_is_that_of_most_lines(data: bytes, newline: str) -> None:
    assert read_lines(data).newline == newline


@given(st.binary(max_size=400))
def test_byte_ranges_cover_any_file_in_order(data: bytes) -> None:
    reading = read_lines(data)
    if not reading.undecodable:
        assert b"".join(data[line.start : line.end] for line in reading.lines) == data
        assert [line.number for line in reading.lines] == list(range(1, len(reading.lines) + 1))


@given(
    st.lists(
        st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=20), min_size=1
    )
)
def test_decodable_text_comes_back_line_by_line(texts: list[str]) -> None:
    reading = read_lines(("\n".join(texts) + "\n").encode())
    if not reading.undecodable:
        assert [line.text for line in reading.lines] == [texts[0].removeprefix("\ufeff"), *texts[1:]]
        assert reading.faults == ()


def test_control_signs_are_blanks_in_stored_text_one_for_one() -> None:
    """Tab and LF stay: the one is layout, the other ends lines; lengths stay, so that offsets hold."""
    assert without_controls("a\x00b\x1b[31mc\x0bd\x85e\u2028f\tg\nh\x7f") == "a b [31mc d e f\tg\nh "
