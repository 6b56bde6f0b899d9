"""Which tools bring in text from outside.

Belongs here: the tables of tools for each host, extended by settings, and the class of one tool call.
Does not belong here: reading tool results (``recall_runtime.transcripts``).

A tool that is in no table counts as network-sourced. A result that declares untrusted external content counts as
network-sourced whatever its tool is called; the reader of transcripts checks that.
"""

from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.config import SourceSettings


class TranscriptHost(StrEnum):
    """Tools whose transcripts we read. The values are the keys of ``sources.network_tools`` in the settings."""

    OPENCLAW = "openclaw"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"


class ToolSource(StrEnum):
    """Where the result of a tool comes from."""

    LOCAL = "local"
    NETWORK = "network"
    RECALLED = "recalled"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RECALLED = frozenset({"memory_search", "memory_get"})
_OWN_SERVER = "mcp__dreamline__"

_LOCAL = {
    TranscriptHost.OPENCLAW: _words("""
        read write edit multi_edit append apply_patch exec bash process grep find ls glob tree todo update_plan
        session_status agents_list sessions_list cron gateway nodes canvas image image_generate tts think
        note remember memory_write memory_append memory_flush standing_intent intent flush skill view
        """),
    TranscriptHost.CLAUDE_CODE: _words("""
        Read Write Edit MultiEdit NotebookRead NotebookEdit Glob Grep LS Bash BashOutput KillBash KillShell TodoRead
        TodoWrite TaskCreate TaskUpdate TaskList TaskGet TaskStop ExitPlanMode EnterPlanMode AskUserQuestion Skill
        SlashCommand ToolSearch EnterWorktree ExitWorktree LSP
        """),
    TranscriptHost.CODEX: _words("""
        shell local_shell shell_command container.exec exec_command write_stdin apply_patch update_plan view_image
        read_file list_dir grep_files request_user_input
        """),
}
# Named although an unknown tool counts as network anyway: the table is the documentation, and no setting for
# local tools may turn one of them round by accident.
_NETWORK = {
    TranscriptHost.OPENCLAW: _words("""
        web_fetch web_search browser x_search fetch http_request sessions_history sessions_send sessions_spawn
        subagents message gmail email mail
        """),
    TranscriptHost.CLAUDE_CODE: frozenset({"WebFetch", "WebSearch", "Task", "Agent"}),
    TranscriptHost.CODEX: frozenset({"web_search", "web_search_call", "web_run", "spawn_agent", "wait"}),
}


@dataclass(frozen=True, slots=True)
class ToolTable:
    """The tables of one host with the settings taken in. Build it with ``tool_table``."""

    local: frozenset[str]
    network: frozenset[str]

    def source_of(self, name: str) -> ToolSource:
        """Return where the results of the tool ``name`` come from; network wins over local, unknown is network."""
        if name in self.network:
            return ToolSource.NETWORK
        if _unqualified(name) in _RECALLED:
            return ToolSource.RECALLED
        return ToolSource.LOCAL if name in self.local else ToolSource.NETWORK


def tool_table(host: TranscriptHost, settings: SourceSettings) -> ToolTable:
    """Return the table of ``host``: a name in ``sources.network_tools`` is network even where we call it local."""
    added_network = frozenset(settings.network_tools.get(host.value, ()))
    added_local = frozenset(settings.local_tools.get(host.value, ()))
    return ToolTable(
        local=(_LOCAL[host] | added_local) - added_network,
        network=(_NETWORK[host] - added_local) | added_network,
    )


def _unqualified(name: str) -> str:
    """Return the tool's own name where a host puts our server's name before it; no other server's."""
    return name.removeprefix(_OWN_SERVER)
