"""Which tools bring in outside text."""

import pytest

from recall_runtime.config import SourceSettings
from recall_runtime.provenance.tools import ToolSource, TranscriptHost, tool_table

HOST = TranscriptHost


@pytest.mark.parametrize(
    ("host", "tool", "source"),
    [
        (HOST.OPENCLAW, "exec", ToolSource.LOCAL),
        (HOST.OPENCLAW, "web_fetch", ToolSource.NETWORK),
        (HOST.OPENCLAW, "calendar", ToolSource.NETWORK),
        (HOST.OPENCLAW, "", ToolSource.NETWORK),
        (HOST.OPENCLAW, "memory_search", ToolSource.RECALLED),
        (HOST.CLAUDE_CODE, "Bash", ToolSource.LOCAL),
        (HOST.CLAUDE_CODE, "WebFetch", ToolSource.NETWORK),
        (HOST.CLAUDE_CODE, "Task", ToolSource.NETWORK),
        (HOST.CLAUDE_CODE, "mcp__dreamline__memory_search", ToolSource.RECALLED),
        (HOST.CLAUDE_CODE, "mcp__stranger__memory_search", ToolSource.NETWORK),
        (HOST.CLAUDE_CODE, "bash", ToolSource.NETWORK),
        (HOST.CODEX, "apply_patch", ToolSource.LOCAL),
        (HOST.CODEX, "web_search", ToolSource.NETWORK),
    ],
)
def test_a_tool_outside_the_tables_counts_as_network(host: HOST, tool: str, source: ToolSource) -> None:
    assert tool_table(host, SourceSettings()).source_of(tool) is source


def test_settings_extend_the_table_of_one_host() -> None:
    settings = SourceSettings(local_tools={"openclaw": ("calendar",)}, network_tools={"openclaw": ("exec",)})
    table = tool_table(HOST.OPENCLAW, settings)
    assert (table.source_of("calendar"), table.source_of("exec")) == (ToolSource.LOCAL, ToolSource.NETWORK)
    assert tool_table(HOST.CODEX, settings).source_of("calendar") is ToolSource.NETWORK


def test_network_wins_when_the_settings_name_a_tool_twice() -> None:
    settings = SourceSettings(local_tools={"openclaw": ("x",)}, network_tools={"openclaw": ("x",)})
    assert tool_table(HOST.OPENCLAW, settings).source_of("x") is ToolSource.NETWORK
