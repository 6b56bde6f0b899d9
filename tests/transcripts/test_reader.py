"""Reading as such: any bytes, growing files, exactly once, bounds."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recall_runtime.config import SourceSettings
from recall_runtime.provenance.sessions import classify_session
from recall_runtime.transcripts import rows as rows_module
from recall_runtime.transcripts.claude_code import ClaudeCodeAdapter
from recall_runtime.transcripts.codex import CodexAdapter
from recall_runtime.transcripts.openclaw import OpenClawAdapter
from recall_runtime.transcripts.protocol import Adapter, TranscriptReading
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.transcripts.timestamps import instant_of
from recall_runtime.vocabulary import OriginClass, SessionKind
from tests.support.sessions import SessionBuilder, save_rows

WORDS = st.sampled_from(
    [
        "type", "message", "role", "user", "assistant", "toolResult", "content", "text", "id", "parentId", "session",
        "timestamp", "toolCall", "name", "arguments", "path", "memory/a.md", "provenance", "kind", "details", "payload",
        "response_item", "session_meta", "uuid", "parentUuid", "sessionId", "input", "tool_use", "tool_result",
        "\ud800",
        "memory_search", "function_call", "output", "__openclaw", "blocks", "edits", "command", "cat > memory/x.md <<E",
    ]
)  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=6)),
    max_leaves=20,
)
NO_LIMITS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@NO_LIMITS
@given(st.lists(JSON, max_size=6), st.binary(max_size=40))
def test_no_content_makes_the_reader_raise(tmp_path: Path, values: list[Any], tail: bytes) -> None:
    head = [{"type": "session", "id": "s"}]
    path = save_rows(tmp_path / "any.jsonl", [])
    lines = [json.dumps(value).encode() for value in [*head, *values]]
    path.write_bytes(b"\n".join(lines) + b"\n" + tail)
    reading = read_transcript(path, "any", facts=classify_session("s", "agent:main:main"))
    assert reading.read_to <= path.stat().st_size
    for message in reading.messages:
        message.text.encode("utf-8")


@NO_LIMITS
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_counted_and_never_trusted(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(data)
    reading = read_transcript(path, "any")
    assert all(message.provenance.origin_class is not OriginClass.OWNER for message in reading.messages)


@pytest.mark.parametrize("adapter", [OpenClawAdapter, ClaudeCodeAdapter, CodexAdapter])
def test_no_object_makes_an_adapter_raise(adapter: type[Adapter]) -> None:
    @given(st.dictionaries(WORDS, JSON, max_size=8), st.sampled_from(["message", "user", "assistant", "response_item"]))
    def check(row: dict[str, Any], kind: str) -> None:
        list(adapter().events(row | {"type": kind}))

    check()


def conversation() -> SessionBuilder:
    session = SessionBuilder()
    session.user("one")
    session.assistant("two")
    session.tool("web_fetch", {}, "page")
    session.assistant("three", ("w", "edit", {"path": "memory/a.md", "append": "- three"}))
    session.user("four")
    session.assistant("five")
    session.user("six", owner=False)
    session.assistant("seven")
    return session


@NO_LIMITS
@given(st.lists(st.integers(0, 4_000), max_size=5))
def test_reading_in_pieces_gives_each_message_once_and_as_a_whole(tmp_path: Path, cuts: list[int]) -> None:
    """Wherever the file is cut while it grows, classes and hashes are those of the whole file."""
    data = conversation().save(tmp_path, "whole.jsonl").read_bytes()
    whole = read_transcript(tmp_path / "whole.jsonl", "s")
    path = tmp_path / "s-1.jsonl"
    got: dict[str, tuple[str, str, bool]] = {}
    writes: list[str] = []
    offset, digest = 0, ""
    for end in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:end])
        reading = read_transcript(path, "s", from_offset=offset, expected_prefix_hash=digest)
        if reading.resumed_from == 0:
            got.clear()
            writes.clear()
        for message in reading.messages:
            assert message.message_hash not in got
            got[message.message_hash] = summary_of(message)
        writes += [write.provenance.origin_class.value for write in reading.writes]
        offset, digest = reading.read_to, reading.prefix_hash
    assert got == {m.message_hash: summary_of(m) for m in whole.messages}
    assert writes == ["untrusted"]


def summary_of(message: Any) -> tuple[str, str, bool]:
    return (message.text, message.provenance.origin_class.value, message.recalled_turn)


def resumed(path: Path, before: TranscriptReading) -> TranscriptReading:
    return read_transcript(path, "s", from_offset=before.read_to, expected_prefix_hash=before.prefix_hash)


def test_taint_reaches_over_the_point_of_resuming(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.user("look")
    session.tool("web_fetch", {}, "page")
    path = session.save(tmp_path)
    before = read_transcript(path, "s")
    session.assistant("what it says")
    session.save(tmp_path)
    after = resumed(path, before)
    assert after.resumed_from == before.read_to
    assert [m.provenance.origin_class for m in after.messages] == [OriginClass.UNTRUSTED]


def test_a_rewritten_file_is_read_anew_with_the_same_hashes(tmp_path: Path) -> None:
    session = conversation()
    path = session.save(tmp_path)
    before = read_transcript(path, "s")
    session.rows[0]["cwd"] = "/elsewhere"
    session.save(tmp_path)
    after = resumed(path, before)
    assert after.resumed_from == 0
    assert [m.message_hash for m in after.messages] == [m.message_hash for m in before.messages]


def test_a_shrunk_file_is_read_anew(tmp_path: Path) -> None:
    path = conversation().save(tmp_path)
    before = read_transcript(path, "s")
    path.write_bytes(path.read_bytes()[:600])
    assert resumed(path, before).resumed_from == 0


def test_a_session_whose_kind_becomes_known_is_given_out_anew(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.user("unmarked", owner=None)
    path = session.save(tmp_path)
    before = read_transcript(path, "s")
    session.user("marked")
    session.save(tmp_path)
    after = resumed(path, before)
    assert (before.facts.kind, after.facts.kind) == (SessionKind.UNKNOWN, SessionKind.INTERACTIVE)
    assert [m.text for m in after.messages] == ["unmarked", "marked"]


def test_a_message_copied_to_another_file_has_the_same_hash(tmp_path: Path) -> None:
    session = conversation()
    first = read_transcript(session.save(tmp_path), "a")
    session.rows.insert(3, {"type": "custom", "id": "x"})
    second = read_transcript(session.save(tmp_path, "s-1.jsonl.reset.2026-03-05"), "b")
    assert [m.message_hash for m in first.messages] == [m.message_hash for m in second.messages]


def test_a_row_written_twice_is_one_message(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.user("once")
    session.rows.append(session.rows[-1])
    reading = read_transcript(session.save(tmp_path), "s")
    assert ([m.text for m in reading.messages], reading.held_back) == (["once"], {"repeated": 1})


def test_a_complete_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = conversation().save(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    reading = read_transcript(path, "s")
    assert (len(reading.messages), reading.faults) == (7, {})


def test_line_and_bytes_lead_back_to_the_row(tmp_path: Path) -> None:
    path = conversation().save(tmp_path)
    data = path.read_bytes()
    for message in read_transcript(path, "s").messages:
        row = json.loads(data[message.start : message.end])
        assert row["id"] == message.message_id
        assert data.split(b"\n")[message.line - 1] == data[message.start : message.end].rstrip(b"\n")


def test_a_line_beyond_the_bound_is_skipped_and_counted(tmp_path: Path) -> None:
    session = SessionBuilder()
    session.user("x" * (rows_module.MAX_LINE_BYTES + 10))
    session.user("after")
    reading = read_transcript(session.save(tmp_path), "s")
    assert ([m.text for m in reading.messages], reading.faults) == (["after"], {"line_too_long": 1})


def test_a_file_beyond_the_size_limit_is_not_read(tmp_path: Path) -> None:
    path = conversation().save(tmp_path)
    reading = read_transcript(path, "s", settings=SourceSettings(max_file_bytes=100))
    assert (reading.excluded_reason, reading.messages, reading.read_to) == ("too_large", (), 0)


def test_deep_nesting_is_one_unreadable_line(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text('{"type":"session","id":"s"}\n' + "[" * 200_000 + "\n")
    assert read_transcript(path, "s").faults == {"unreadable_lines": 1}


def test_reading_can_stop_at_an_instant(tmp_path: Path) -> None:
    session = conversation()
    four = next(row for row in session.rows if "four" in json.dumps(row))
    reading = read_transcript(session.save(tmp_path), "s", until_ms=four["timestamp"] - 1)
    assert ([m.text for m in reading.messages], reading.turn_origin) == (["one", "two", "three"], OriginClass.UNTRUSTED)
    later = read_transcript(session.save(tmp_path), "s", until_ms=four["timestamp"])
    assert later.turn_origin is OriginClass.AGENT


def calls_of(work: Callable[[], object]) -> int:
    """Return how many calls, of Python and of C, ``work`` makes."""
    count = 0

    def step(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def long_session(turns: int) -> SessionBuilder:
    session = SessionBuilder()
    for number in range(turns):
        session.user(f"[Tue 2026-03-17 14:28 GMT+8] number {number}\n\nSystem: [x] y\n\n" + "line\n" * 20)
        session.tool("web_fetch", {}, "page")
        session.assistant(f"answer {number}", ("c", "edit", {"path": "memory/a.md", "append": f"- {number}"}))
    return session


def test_the_work_of_reading_grows_with_the_size(tmp_path: Path) -> None:
    small, large = (long_session(turns).save(tmp_path, f"{turns}.jsonl") for turns in (100, 400))
    read_transcript(small, "warm")
    counts = [calls_of(lambda path=path: read_transcript(path, "s")) for path in (small, large)]
    assert counts[1] <= counts[0] * 4.2


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (1_772_608_360, 1_772_608_360_000),
        (1_772_608_360_000, 1_772_608_360_000),
        (1_772_608_360.5, 1_772_608_360_500),
        ("1772608360000", 1_772_608_360_000),
        ("2026-03-04T07:12:40Z", 1_772_608_360_000),
        ("2026-03-04T08:12:40+01:00", 1_772_608_360_000),
        ("2026-03-04T07:12:40", 1_772_608_360_000),
        (99_999_999_999, 99_999_999_999_000),
        (True, None),
        (0, None),
        (-5, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("9" * 60, None),
        ("0001-01-01T00:00:00+14:00", None),
        ("not a time", None),
        ("", None),
        (None, None),
        ([], None),
    ],
)
def test_instants_of_any_type(value: object, instant: int | None) -> None:
    """openclaw-algorithms 2.4: numbers below 1e11 are seconds, what is no time is unknown."""
    assert instant_of(value) == instant


def test_the_first_usable_instant_counts() -> None:
    assert instant_of("nonsense", None, 1_772_608_360_000, 5) == 1_772_608_360_000
