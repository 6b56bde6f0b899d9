"""Claude Code and Codex behind the same protocol."""

from pathlib import Path
from typing import Any

import pytest

from recall_runtime.provenance.tools import TranscriptHost
from recall_runtime.transcripts.protocol import TranscriptReading
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.vocabulary import SessionKind
from tests.support.sessions import save_rows


def said(reading: TranscriptReading) -> list[tuple[str, str]]:
    return [(message.text, message.provenance.origin_class.value) for message in reading.messages]


def read(folder: Path, rows: list[dict[str, Any]]) -> TranscriptReading:
    return read_transcript(save_rows(folder / "x.jsonl", rows), "sessions/main/x.jsonl")


def claude(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "c-1",
        "cwd": "/home/a/ferry",
        "userType": "external",
        "isSidechain": False,
        "timestamp": f"2026-01-20T08:{number:02d}:00.000Z",
        "message": {"role": kind, "content": content},
    } | more


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def given(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def test_claude_code_rows_give_owner_agent_and_taint(tmp_path: Path) -> None:
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
    reading = read(
        tmp_path,
        [
            snapshot,
            claude(0, "user", "the test target is check-7"),
            claude(1, "assistant", [{"type": "text", "text": "Noted."}, use("t1", "Bash", command="ls")]),
            claude(2, "user", [given("t1", "a b c")]),
            claude(3, "assistant", [{"type": "text", "text": "Three files."}, use("t2", "WebFetch", url="u")]),
            claude(4, "user", [given("t2", "page")]),
            claude(5, "assistant", [{"type": "text", "text": "The page says x."}]),
            claude(6, "user", "thanks"),
        ],
    )
    assert reading.host is TranscriptHost.CLAUDE_CODE
    assert (reading.facts.session_id, reading.facts.kind) == ("c-1", SessionKind.INTERACTIVE)
    assert said(reading) == [
        ("the test target is check-7", "owner"),
        ("Noted.", "agent"),
        ("Three files.", "agent"),
        ("The page says x.", "untrusted"),
        ("thanks", "owner"),
    ]


def test_claude_code_search_on_the_providers_side_taints_its_own_message(tmp_path: Path) -> None:
    content = [{"type": "server_tool_use", "id": "s", "name": "web_search"}, {"type": "text", "text": "It says y."}]
    reading = read(tmp_path, [claude(0, "user", "search"), claude(1, "assistant", content)])
    assert said(reading)[1] == ("It says y.", "untrusted")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"isSidechain": True}, [("done", "system")], id="a side chain is a sub-agent's"),
        pytest.param({"isMeta": True}, [("work", "system"), ("done", "system")], id="a meta row is the host's"),
        pytest.param({"isCompactSummary": True}, [("work", "system"), ("done", "system")], id="summary of the host"),
        pytest.param({"userType": "sdk"}, [("work", "untrusted"), ("done", "untrusted")], id="unknown is no owner"),
    ],
)  # fmt: skip
def test_claude_code_rows_that_no_person_typed(
    tmp_path: Path, more: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    rows = [claude(0, "user", "work", **more), claude(1, "assistant", [{"type": "text", "text": "done"}])]
    assert said(read(tmp_path, rows)) == expected


def test_claude_code_edits_of_memory_are_reported(tmp_path: Path) -> None:
    calls = [
        use("1", "Write", file_path="/home/a/ferry/memory/topic.md", content="- one\n- two"),
        use("2", "Edit", file_path="/home/a/ferry/memory/topic.md", old_string="x", new_string="- three"),
        use("3", "Write", file_path="/home/a/ferry/src/main.py", content="code"),
        use("4", "Bash", command="cat >> memory/2026-01-20.md <<'EOF'\n- four\nEOF"),
    ]
    reading = read(tmp_path, [claude(0, "user", "note it"), claude(1, "assistant", calls)])
    assert [(w.path, len(w.line_hashes)) for w in reading.writes] == [
        ("memory/topic.md", 2),
        ("memory/topic.md", 1),
        ("memory/2026-01-20.md", 1),
    ]


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-18T09:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return codex("response_item", type=kind, **payload)


def test_codex_rollouts_give_owner_agent_and_taint(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: memory/topic.md\n@@\n-old\n+- new fact\n*** End Patch"
    reading = read(
        tmp_path,
        [
            codex("session_meta", id="0199", cwd="/home/a/ferry", originator="codex_cli_rs"),
            item("message", role="user", content="<environment_context>x</environment_context>"),
            item("message", role="user", content=[{"type": "input_text", "text": "fix row 7"}]),
            item("function_call", name="shell", call_id="1", arguments='{"command": ["ls"]}'),
            item("function_call_output", call_id="1", output="a"),
            item("custom_tool_call", name="apply_patch", call_id="2", input=patch),
            item("message", role="assistant", content=[{"type": "output_text", "text": "Row 7 is fixed."}]),
            item("web_search_call", id="w", action={"query": "x"}),
            item("message", role="assistant", content=[{"type": "output_text", "text": "They say z."}]),
            codex("event_msg", type="agent_message", message="They say z."),
        ],
    )  # fmt: skip
    assert reading.host is TranscriptHost.CODEX
    assert reading.facts.session_id == "0199"
    assert said(reading) == [("fix row 7", "owner"), ("Row 7 is fixed.", "agent"), ("They say z.", "untrusted")]
    assert [(w.path, w.provenance.origin_class.value) for w in reading.writes] == [("memory/topic.md", "agent")]


@pytest.mark.parametrize(
    ("meta", "kind", "origin"),
    [
        pytest.param({"originator": "codex_cli_rs"}, SessionKind.INTERACTIVE, "owner", id="terminal"),
        pytest.param({"originator": "codex_exec"}, SessionKind.UNKNOWN, "untrusted", id="script"),
        pytest.param({"source": "exec", "originator": "x"}, SessionKind.UNKNOWN, "untrusted", id="script by source"),
        pytest.param({}, SessionKind.UNKNOWN, "untrusted", id="nothing said"),
    ],
)
def test_codex_says_who_drives_the_session(
    tmp_path: Path, meta: dict[str, str], kind: SessionKind, origin: str
) -> None:
    rows = [codex("session_meta", id="1", **meta), item("message", role="user", content="hello")]
    reading = read(tmp_path, rows)
    assert (reading.facts.kind, said(reading)) == (kind, [("hello", origin)])


def test_a_codex_subagents_task_is_no_ones_words(tmp_path: Path) -> None:
    meta = codex("session_meta", id="1", source={"subagent": "review"})
    rows = [meta, item("message", role="user", content="review it"), item("message", role="assistant", content="fine")]
    reading = read(tmp_path, rows)
    assert (reading.facts.kind, said(reading)) == (SessionKind.SUBAGENT, [("fine", "system")])


def test_a_file_that_is_no_transcript_says_so(tmp_path: Path) -> None:
    assert read(tmp_path, [{"a": 1}, {"type": "log"}]).excluded_reason == "not_a_transcript"
