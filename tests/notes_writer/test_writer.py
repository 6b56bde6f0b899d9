"""The guarded writer of notes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.clock import parse_instant
from recall_runtime.errors import RefusedError
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.writer import CLOCK_SKEW_MS, append_note
from recall_runtime.provenance.note_lines import classify_note
from recall_runtime.provenance.segments import load_record, verify
from recall_runtime.records import Provenance
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import OriginClass, SessionKind
from tests.support.sessions import START, SessionBuilder, agent_at

ROOT = Path(__file__).resolve().parents[2]
TODAY = "memory/2026-03-04.md"
MAIN = "agent:main:main"
GROUP = "agent:main:discord:group:1"


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return agent_at(tmp_path)


@pytest.fixture
def state(agent: Agent) -> Iterator[apsw.Connection]:
    connection = open_state(agent.folders.state_db)
    yield connection
    connection.close()


def note(agent: Agent, path: str = TODAY) -> bytes:
    return (agent.workspace / path).read_bytes()


def classes(agent: Agent, state: apsw.Connection, path: str = TODAY) -> list[str]:
    data = note(agent, path)
    return [line.origin_class.value for line in classify_note(state, path, data, read_note(data), observed_at=1).lines]


def test_a_first_note_makes_todays_file(agent: Agent) -> None:
    written = append_note(agent, "- the key hangs left", session_key=MAIN)
    assert (written.path, written.start_line, written.end_line, written.created) == (TODAY, 1, 1, True)
    assert note(agent) == b"- the key hangs left\n"


@pytest.mark.parametrize(("zone", "day"), [("UTC", "2026-03-04"), ("Pacific/Auckland", "2026-03-05")])
def test_today_is_the_day_of_the_agents_zone(tmp_path: Path, zone: str, day: str) -> None:
    agent = agent_at(tmp_path, zone=zone, now=parse_instant("2026-03-04T20:00:00Z"))
    assert append_note(agent, "x", session_key=MAIN).path == f"memory/{day}.md"


def test_an_append_adds_the_missing_line_end_and_keeps_the_files_own(agent: Agent) -> None:
    """Case 01: Windows line ends stay, the new line is not glued to the old one."""
    (agent.workspace / TODAY).write_bytes(b"\xef\xbb\xbf# Day\r\n\r\n- port 8443.")
    written = append_note(agent, "- one\n- two", session_key=MAIN)
    assert note(agent) == b"\xef\xbb\xbf# Day\r\n\r\n- port 8443.\r\n- one\r\n- two\r\n"
    assert (written.start_line, written.end_line) == (4, 5)


def test_bytes_that_stood_there_are_never_changed(agent: Agent) -> None:
    before = b"ok\n\xff\xfe bad \x00 bytes\n"
    (agent.workspace / TODAY).write_bytes(before)
    append_note(agent, "- more", session_key=MAIN)
    assert note(agent) == before + b"- more\n"


def test_a_link_stays_a_link_and_its_target_is_written(agent: Agent) -> None:
    target = agent.workspace / "memory" / "real.md"
    target.write_text("- old\n")
    target.chmod(0o640)
    (agent.workspace / TODAY).symlink_to("real.md")
    append_note(agent, "- new", session_key=MAIN)
    assert (agent.workspace / TODAY).is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("- old\n- new\n", 0o640)


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "USER.md",
        "DREAMS.md",
        "memory/dreaming/light/2026-03-04.md",
        "memory/.dreams/x.md",
        "memory/imports/codex/MEMORY.md",
        "memory/../MEMORY.md",
        "memory/../../x.md",
        "/etc/x.md",
        "memory/x.txt",
        "notes.md",
    ],
)
def test_only_notes_can_be_written(agent: Agent, path: str) -> None:
    with pytest.raises(RefusedError):
        append_note(agent, "x", session_key=MAIN, path=path)


def test_a_link_out_of_the_workspace_is_refused(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("x\n")
    (agent.workspace / "memory" / "a.md").symlink_to(tmp_path / "outside.md")
    (agent.workspace / "memory" / "gone.md").symlink_to("nowhere.md")
    (agent.workspace / "memory" / "out").symlink_to(tmp_path)
    for path in ("memory/a.md", "memory/gone.md", "memory/out/new.md"):
        with pytest.raises(RefusedError):
            append_note(agent, "x", session_key=MAIN, path=path)
    assert (tmp_path / "outside.md").read_text() == "x\n"


@pytest.mark.parametrize("text", ["", " \n\n", "\r\n"])
def test_an_empty_note_is_refused(agent: Agent, text: str) -> None:
    with pytest.raises(RefusedError):
        append_note(agent, text, session_key=MAIN)
    assert not (agent.workspace / TODAY).exists()


def test_a_file_that_is_no_utf8_text_is_refused(agent: Agent) -> None:
    before = "- täglich\n".encode("utf-16")
    (agent.workspace / TODAY).write_bytes(before)
    with pytest.raises(RefusedError):
        append_note(agent, "x", session_key=MAIN)
    assert note(agent) == before


def test_secrets_are_masked_before_they_reach_the_file(agent: Agent) -> None:
    append_note(agent, "- API_KEY=sk-example-0000000000000000000000000000NOTREAL for Hill Top", session_key=MAIN)
    assert b"NOTREAL" not in note(agent).replace(b"TREAL", b"")
    assert b"Hill Top" in note(agent)


@pytest.mark.parametrize(
    ("key", "origin", "kind"),
    [
        (None, OriginClass.AGENT, SessionKind.INTERACTIVE),
        (MAIN, OriginClass.AGENT, SessionKind.INTERACTIVE),
        ("agent:main:telegram:direct:42", OriginClass.AGENT, SessionKind.INTERACTIVE),
        (GROUP, OriginClass.UNTRUSTED, SessionKind.INTERACTIVE),
        ("agent:main:cron:1", OriginClass.SYSTEM, SessionKind.CRON),
        ("agent:main:main:heartbeat", OriginClass.SYSTEM, SessionKind.HEARTBEAT),
        ("agent:main:subagent:1", OriginClass.SYSTEM, SessionKind.SUBAGENT),
        ("hook:1", OriginClass.UNTRUSTED, SessionKind.UNKNOWN),
        ("my-own-key", OriginClass.UNTRUSTED, SessionKind.UNKNOWN),
    ],
)
def test_the_form_of_the_session_key_classes_a_write(
    agent: Agent, key: str | None, origin: OriginClass, kind: SessionKind
) -> None:
    provenance = append_note(agent, "x", session_key=key).provenance
    assert (provenance.origin_class, provenance.session_kind) == (origin, kind)


def live(agent: Agent, *, tool: str | None = None, owner: bool = True) -> SessionBuilder:
    session = SessionBuilder("s-1", start=START - 100_000)
    session.user("look at it", owner=owner)
    if tool is not None:
        session.tool(tool, {}, "text")
    session.save(agent.folders.sessions[0])
    return session


@pytest.mark.parametrize(
    ("key", "tool", "owner", "origin"),
    [
        pytest.param(MAIN, None, True, "agent", id="owner's turn"),
        pytest.param(MAIN, "read", True, "agent", id="local tool"),
        pytest.param(MAIN, "web_fetch", True, "untrusted", id="the turn read the web"),
        pytest.param(MAIN, None, False, "untrusted", id="somebody else's turn"),
        pytest.param(GROUP, None, True, "untrusted", id="group"),
        pytest.param("my-own-key", None, True, "agent", id="the transcript knows what the key does not say"),
        pytest.param("my-own-key", "web_fetch", True, "untrusted", id="and its taint"),
    ],
)
def test_the_live_transcript_tells_what_the_turn_took_in(
    agent: Agent, key: str, tool: str | None, origin: str, *, owner: bool
) -> None:
    live(agent, tool=tool, owner=owner)
    provenance = append_note(agent, "x", session_key=key, session_id="s-1").provenance
    assert (provenance.origin_class.value, provenance.session_id) == (origin, "s-1")


def test_only_the_turn_of_that_moment_counts(agent: Agent) -> None:
    session = live(agent, tool="web_fetch")
    tainted_until = session.now
    session.user("next")
    session.save(agent.folders.sessions[0])
    before = append_note(agent, "x", session_key=MAIN, session_id="s-1", now_ms=tainted_until)
    after = append_note(agent, "y", session_key=MAIN, session_id="s-1", now_ms=session.now)
    assert [n.provenance.origin_class.value for n in (before, after)] == ["untrusted", "agent"]


@pytest.mark.parametrize(
    ("ahead_ms", "origin"),
    [
        pytest.param(2_000, "untrusted", id="the host's clock is two seconds ahead"),
        pytest.param(CLOCK_SKEW_MS, "untrusted", id="as far ahead as clocks are taken to be"),
        pytest.param(CLOCK_SKEW_MS + 1, "agent", id="a later turn of a replayed session"),
    ],
)
def test_what_a_host_stamps_ahead_of_our_clock_still_taints(agent: Agent, ahead_ms: int, origin: str) -> None:
    session = live(agent)
    written_at = session.now
    session.tool("web_fetch", {}, "text of a page")
    for row in session.rows[-2:]:
        row["timestamp"] = written_at + ahead_ms
    session.save(agent.folders.sessions[0])
    provenance = append_note(agent, "x", session_key=MAIN, session_id="s-1", now_ms=written_at).provenance
    assert provenance.origin_class.value == origin


@pytest.mark.parametrize(
    ("given", "expected"),
    [(OriginClass.OWNER, "agent"), (OriginClass.SYSTEM, "system"), (OriginClass.UNTRUSTED, "untrusted")],
)
def test_a_caller_can_only_lower_the_class(agent: Agent, given: OriginClass, expected: str) -> None:
    stated = Provenance(given, SessionKind.INTERACTIVE, 1)
    assert append_note(agent, "x", session_key=MAIN, provenance=stated).provenance.origin_class.value == expected


def test_segments_and_supersession_key_are_recorded(agent: Agent, state: apsw.Connection) -> None:
    (agent.workspace / TODAY).write_text("- by hand\n")
    append_note(agent, "- one", session_key=MAIN, session_id="s-9", supersedes_key="shed:key")
    append_note(agent, "- two", session_key=GROUP)
    record = load_record(state, TODAY)
    assert record is not None
    assert verify(note(agent), record)
    assert [
        (s.provenance.origin_class.value, s.session_key, s.provenance.session_id, s.provenance.supersedes_key)
        for s in record.segments
    ] == [
        ("agent", None, None, None),
        ("agent", MAIN, "s-9", "shed:key"),
        ("untrusted", GROUP, GROUP, None),
    ]


def test_an_untrusted_append_leaves_its_neighbours_alone(agent: Agent, state: apsw.Connection) -> None:
    append_note(agent, "- mine", session_key=MAIN)
    append_note(agent, "- theirs", session_key=GROUP)
    append_note(agent, "- mine again", session_key=MAIN)
    assert classes(agent, state) == ["agent", "untrusted", "agent"]


def test_a_foreign_edit_between_two_appends_is_taken_in(agent: Agent, state: apsw.Connection) -> None:
    append_note(agent, "- theirs", session_key=GROUP)
    (agent.workspace / TODAY).write_text("# Day\n\n- theirs\n- by hand\n")
    append_note(agent, "- mine", session_key=MAIN)
    assert classes(agent, state) == ["agent", "agent", "untrusted", "agent", "agent"]


def test_a_write_that_never_reached_the_file_leaves_nothing_trusted_behind(
    agent: Agent, state: apsw.Connection
) -> None:
    """The record comes first: after a crash between record and file, lines written later by hand are by hand."""
    append_note(agent, "- theirs", session_key=GROUP)
    before = note(agent)
    append_note(agent, "- lost", session_key=GROUP)
    (agent.workspace / TODAY).write_bytes(before)
    assert classes(agent, state) == ["untrusted"]
    append_note(agent, "- mine", session_key=MAIN)
    assert classes(agent, state) == ["untrusted", "agent"]


WRITER = """
import sys
from pathlib import Path
from recall_runtime.notes.writer import append_note
from tests.support.sessions import agent_at
agent = agent_at(Path(sys.argv[1]))
for number in range(50):
    append_note(agent, f"- process {sys.argv[2]} line {number}", session_key="agent:main:main")
"""


@pytest.mark.slow
def test_eight_processes_lose_no_line(tmp_path: Path, agent: Agent, state: apsw.Connection) -> None:
    """Eight real processes append fifty lines each to one file."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(number)], cwd=ROOT) for number in range(8)]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 8
    lines = note(agent).decode().splitlines()
    assert sorted(lines) == sorted(f"- process {p} line {n}" for p in range(8) for n in range(50))
    record = load_record(state, TODAY)
    assert record is not None
    assert verify(note(agent), record)
    assert len(record.segments) == 400
