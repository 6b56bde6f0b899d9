"""Writes to memory files in tool calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.provenance.segments import line_hash, part_hash
from recall_runtime.transcripts.protocol import ToolCall
from recall_runtime.transcripts.writes import memory_path, note_writes

CWD = "/home/a/ws"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory/2026-03-04.md", "memory/2026-03-04.md"),
        ("./memory/a.md", "memory/a.md"),
        ("/home/a/ws/memory/a.md", "memory/a.md"),
        ("/home/a/ws/MEMORY.md", "MEMORY.md"),
        ("~/.openclaw/workspace/memory/deep/a.md", "memory/deep/a.md"),
        ("C:\\ws\\memory\\a.md", "memory/a.md"),
        ("/home/b/MEMORY.md", "MEMORY.md"),
        ("2026-03-04.md", "memory/2026-03-04.md"),
        ("topic.md", None),
        ("memory/../secret.md", None),
        ("memory/dreaming/deep/a.md", None),
        ("src/main.py", None),
        ("", None),
    ],
)
def test_only_memory_files_of_the_workspace_count(path: str, expected: str | None) -> None:
    assert memory_path(path, CWD) == expected


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param({"path": "memory/a.md", "content": "- one\n\n---\n- two"}, ["- one", "- two"], id="write"),
        pytest.param({"path": "memory/a.md", "append": "- one"}, ["- one"], id="append"),
        pytest.param({"path": "memory/a.md", "oldText": "x", "newText": "- one"}, ["- one"], id="edit"),
        pytest.param(
            {"path": "memory/a.md", "edits": [{"newText": "- one"}, {"newText": "- two"}, 5]},
            ["- one", "- two"],
            id="several edits",
        ),
        pytest.param('{"path": "memory/a.md", "content": "- one"}', ["- one"], id="arguments as text"),
        pytest.param({"command": "echo '- one' >> memory/a.md"}, ["- one"], id="echo"),
        pytest.param({"command": "cat <<E | tee -a memory/a.md\n- one\n- two\nE\nls"}, ["- one", "- two"], id="tee"),
        pytest.param({"command": ["bash", "-lc", "cat > memory/a.md <<'E'\n- one\nE"]}, ["- one"], id="argument list"),
        pytest.param(
            {"input": "*** Begin Patch\n*** Add File: memory/a.md\n+- one\n+- two\n*** End Patch"},
            ["- one", "- two"],
            id="patch",
        ),
        pytest.param({"path": "memory/a.md"}, None, id="a read"),
        pytest.param({"command": "grep -c key memory/a.md"}, None, id="a read by a shell"),
        pytest.param({"path": 5, "command": None}, None, id="nonsense"),
        pytest.param("not json", None, id="text"),
    ],
)
def test_new_lines_are_hashed_by_path(arguments: Any, lines: list[str] | None) -> None:
    found = [(written.path, written.lines) for written in note_writes(ToolCall("1", "tool", arguments), CWD)]
    expected = [] if lines is None else [("memory/a.md", tuple(line_hash(line) for line in lines))]
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        pytest.param({"path": "memory/a.md", "old_string": "8443", "new_string": "99 99"}, ["99 99"], id="one"),
        pytest.param({"path": "memory/a.md", "edits": [{"oldText": "a", "newText": "b"}]}, ["b"], id="in a list"),
        pytest.param({"path": "memory/a.md", "oldText": "a", "newText": "b\n\nc"}, ["b", "c"], id="over lines"),
        pytest.param({"path": "memory/a.md", "oldText": "a", "newText": ""}, None, id="a deletion"),
        pytest.param({"path": "memory/a.md", "content": "b"}, [], id="a write replaces nothing"),
    ],
)
def test_replacements_give_the_part_they_put_into_a_line(arguments: Any, parts: list[str] | None) -> None:
    found = [written.parts for written in note_writes(ToolCall("1", "edit", arguments), CWD)]
    assert found == ([] if parts is None else [tuple(part_hash(part) for part in parts)])


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/8443/9999/' memory/a.md",
        "perl -pi -e 's/a/b/' memory/a.md",
        "curl -s https://x.example >> memory/a.md",
        "printf '%s' \"$x\" > memory/a.md",
        "python3 -c \"open('memory/a.md', 'a').write('- pay')\"",
        "python3 - <<'E'\nopen('memory/a.md', 'a').write('- pay')\nE",
        "cp /srv/page.md memory/a.md",
        "mv page.md /home/a/ws/memory/a.md",
    ],
)
def test_a_shell_write_we_cannot_follow_is_unreadable(command: str) -> None:
    found = list(note_writes(ToolCall("1", "exec", {"command": command}), CWD))
    assert ("memory/a.md", True) in {(written.path, written.unreadable) for written in found}


@pytest.mark.parametrize(
    "command", ["cat memory/a.md", "grep x memory/a.md | head", "ls memory", "git diff memory/a.md"]
)
def test_reading_a_note_in_a_shell_is_no_write(command: str) -> None:
    assert list(note_writes(ToolCall("1", "exec", {"command": command}), CWD)) == []


@given(st.text(alphabet="<>'\"\\ -|&;\nEOFechoteca memory/a.md", max_size=80))
def test_no_command_raises(command: str) -> None:
    assert all(write.path for write in note_writes(ToolCall("1", "exec", {"command": command}), CWD))
