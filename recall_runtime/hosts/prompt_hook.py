"""Prompt hooks of Claude Code and Codex: their JSON on standard input, their JSON back.

Belongs here: reading the hook's record, choosing what belongs to which event, the answer's form.
Does not belong here: the lanes (``recall.turn``), the command line.

Both hosts keep what a hook adds in the conversation. So what stays the same goes in once, when a session starts (and
again after it was compacted or cleared), and each prompt adds only what belongs to this prompt. A record that can't
be read adds nothing: a hook never stands between a person and the agent.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError
from recall_runtime.paths import note_day
from recall_runtime.recall.bootstrap import render
from recall_runtime.recall.projects import enter_folder, kept_projects
from recall_runtime.recall.turn import TurnResult, memory_frame
from recall_runtime.text.escaping import clip

MAX_CONTEXT = 9_500  # characters; Claude Code shows only the start of a longer context
BOOTSTRAP_CONTEXT = 7_000  # of them for the curated files; the rest is for project memory, notes, names and frames
MAX_TEXT = 4_096  # of a session id or a folder
MAX_NAMES = 200  # characters for the names of what is left out
_BETWEEN = "\n\n"


class HookEvent(StrEnum):
    """Events that add context; other events are answered with nothing."""

    SESSION_START = "SessionStart"
    PROMPT = "UserPromptSubmit"


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook: the event, the prompt (empty at the start of a session), the host's session, its folder."""

    event: HookEvent
    prompt: str = ""
    session_id: str = ""
    folder: str = ""

    @property
    def starts_session(self) -> bool:
        """Whether the conversation has just begun."""
        return self.event is HookEvent.SESSION_START


def read_call(data: str) -> HookCall | None:
    """Return the call in a hook's record, or ``None`` when it is none of ours or can't be read. Never raises."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    event, prompt = record.get("hook_event_name"), record.get("prompt", "")
    if event not in tuple(HookEvent) or not isinstance(prompt, str):
        return None
    session_id, folder = (_text(record.get(name)) for name in ("session_id", "cwd"))
    return HookCall(HookEvent(event), prompt if event == HookEvent.PROMPT else "", session_id, folder)


def projects_of(agent: Agent, call: HookCall) -> tuple[str, ...]:
    """Return the repositories the host's session is in: looked up when it starts, kept for its prompts."""
    home = agent.folders.agent_home
    if call.starts_session and call.session_id and call.folder:
        with contextlib.suppress(DreamlineError, OSError):  # without it the project memory is missing, no more
            return enter_folder(home, call.session_id, Path(call.folder))
    return kept_projects(home, call.session_id)


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_TEXT and "\x00" not in value else ""


def fitted(agent: Agent) -> Agent:
    """Return ``agent`` with budgets for the curated files that fit a hook's answer."""
    bootstrap = agent.settings.bootstrap
    most = min(BOOTSTRAP_CONTEXT, max(bootstrap.total_max_chars, bootstrap.max_chars))
    fitting = bootstrap.model_copy(
        update={"max_chars": min(most, bootstrap.max_chars), "total_max_chars": min(most, bootstrap.total_max_chars)}
    )
    return replace(agent, settings=agent.settings.model_copy(update={"bootstrap": fitting}))


def answer(call: HookCall, result: TurnResult) -> dict[str, Any]:
    """Return the hook's answer: the blocks of this event as additional context, or an empty record for nothing.

    Where the host would cut, whole blocks are left out and named; the first ones count most. Of the files, the notes
    of the days go first.
    """
    blocks = _of_the_start(result) if call.starts_session else _of_the_prompt(result)
    context = _joined(blocks)
    if len(context) > MAX_CONTEXT:
        context = _in_room(blocks)
    if not context:
        return {}
    return {"hookSpecificOutput": {"hookEventName": call.event.value, "additionalContext": context}}


def _of_the_prompt(result: TurnResult) -> dict[str, str]:
    return {
        "what applies now": result.applies_now,
        "triggered memory": result.triggers,
        "standing intents": result.intents,
        "recalled memory": result.deep,
    }


def _of_the_start(result: TurnResult) -> dict[str, str]:
    """Return the curated files, the memory of the project, and each note of the days as a block of its own."""
    curated = tuple(file for file in result.files if note_day(file.name) is None)
    notes = {file.name: memory_frame(render((file,))) for file in result.files if note_day(file.name) is not None}
    return {"curated memory": memory_frame(render(curated)), "project memory": result.project, **notes}


def _in_room(blocks: Mapping[str, str]) -> str:
    """Return the blocks that fit, and a line that names the others."""
    kept: dict[str, str] = {}
    gone: list[str] = []
    room = MAX_CONTEXT - len(_left_out("x" * MAX_NAMES)) - len(_BETWEEN)
    for name, block in blocks.items():
        needed = len(block) + len(_BETWEEN) if block else 0
        if needed <= room:
            kept[name] = block
            room -= needed
        else:
            gone.append(name)
    return _joined({**kept, "": _left_out(clip(", ".join(gone), MAX_NAMES))})


def _left_out(names: str) -> str:
    return memory_frame(f"[left out here for want of room: {names}]")


def _joined(blocks: Mapping[str, str]) -> str:
    return _BETWEEN.join(block for block in blocks.values() if block)
