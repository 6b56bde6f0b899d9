"""Prompt hooks of Claude Code and Codex: their JSON on standard input, their JSON back.

Belongs here: reading the hook's record, choosing what belongs to which event, the answer's form.
Does not belong here: the lanes (``recall.turn``), the command line.

Both hosts keep what a hook adds in the conversation. So what stays the same goes in once, when a session starts (and
again after it was compacted or cleared), and each prompt adds only what belongs to this prompt. A record that can't
be read adds nothing: a hook never stands between a person and the agent.
"""

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from recall_runtime.agent import Agent
from recall_runtime.recall.turn import TurnResult

MAX_CONTEXT = 9_500  # characters; Claude Code shows only the start of a longer context
BOOTSTRAP_CONTEXT = 7_000  # of them for the curated files; the rest is for project memory, names and frames


class HookEvent(StrEnum):
    """Events that add context; other events are answered with nothing."""

    SESSION_START = "SessionStart"
    PROMPT = "UserPromptSubmit"


@dataclass(frozen=True, slots=True)
class HookCall:
    """One call of a hook: the event and the prompt (empty at the start of a session)."""

    event: HookEvent
    prompt: str = ""

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
    return HookCall(HookEvent(event), prompt if event == HookEvent.PROMPT else "")


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

    Whole blocks are left out where the host would cut; the first ones count most.
    """
    blocks: tuple[str, ...]
    if call.starts_session:
        blocks = (result.bootstrap, result.project)
    else:
        blocks = (result.applies_now, result.triggers, result.intents, result.deep)
    kept: list[str] = []
    room = MAX_CONTEXT
    for block in blocks:
        if block and len(block) + 2 <= room:
            kept.append(block)
            room -= len(block) + 2
    if not kept:
        return {}
    context = "\n\n".join(kept)
    return {"hookSpecificOutput": {"hookEventName": call.event.value, "additionalContext": context}}
