"""The tools as every server offers them: name, arguments, and one call that gives plain data.

Belongs here: the table of tools, validation of arguments, running a call on the warm state.
Does not belong here: transports (``mcp_server``, ``http_api``), what a tool does.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from recall_runtime.agent import Agent
from recall_runtime.errors import DreamlineError, RefusedError, StoreLockedError
from recall_runtime.hosts.arguments import (
    Arguments,
    GetArguments,
    HistoryArguments,
    IntentArguments,
    RememberArguments,
    SearchArguments,
    TurnArguments,
)
from recall_runtime.hosts.identity import Caller
from recall_runtime.hosts.intent_tool import intent
from recall_runtime.index.freshness import sync_in_background
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.workers import LaneHangsError, LaneTimeoutError
from recall_runtime.remember.request import remember

CALL_SECONDS = 30.0
REFRESH_SECONDS = 5.0  # between two looks at the disk


class BadArgumentsError(DreamlineError):
    """The arguments of a call are not what the tool takes."""


class UnknownToolError(DreamlineError):
    """There is no tool of that name."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``run`` takes the warm state, the caller and the arguments; ``writes``: it changes something."""

    name: str
    arguments: type[Arguments]
    run: Callable[["Service", Caller, Any], dict[str, Any]]
    writes: bool = False

    @property
    def description(self) -> str:
        """What the tool is for."""
        return " ".join((self.arguments.__doc__ or "").split())

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return self.arguments.model_json_schema()


class Service:
    """Answers calls for one agent from warm state; used from any number of threads. Close it when done.

    Args:
        agent: Whose memory it is.
        keep_fresh: Whether to start a sync in the background, after an answer, when the files are newer than the index.
    """

    def __init__(self, agent: Agent, *, keep_fresh: bool = False) -> None:
        self.agent = agent
        self.runtime = Runtime(agent)
        self._keep_fresh = keep_fresh
        self._looked_at = -REFRESH_SECONDS

    def close(self) -> None:
        """Finish what is to be recorded and close everything."""
        self.runtime.close()

    def call(self, name: str, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run one tool for ``caller``; who may see what is decided anew on each call.

        Raises:
            DreamlineError: one line that says what is wrong and the cure.
        """
        tool = TOOLS.get(name)
        if tool is None:
            raise UnknownToolError(f"There is no tool {name[:60]!r}", f"Use one of: {', '.join(TOOLS)}.")
        try:
            asked = tool.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "arguments"
            raise BadArgumentsError(f"{name}: {where}: {first['msg']}", "Correct the arguments.") from error
        answer = tool.run(self, caller, asked)
        if self._keep_fresh:
            self.runtime.afterwards(self._refresh)
        return answer

    def in_worker(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run ``work`` of the tool ``name`` in a worker of the warm state: its connections outlive a request's thread.

        Raises:
            StoreLockedError: it took too long, or an earlier call of that tool still hangs.
        """
        try:
            return self.runtime.workers.run(work, CALL_SECONDS, name)
        except LaneHangsError as error:
            raise StoreLockedError(f"An earlier call of {name} still hangs", "Try again later.") from error
        except LaneTimeoutError as error:
            raise StoreLockedError(f"It took longer than {CALL_SECONDS:.0f} s", "Try again later.") from error

    def _refresh(self) -> None:
        if time.monotonic() - self._looked_at >= REFRESH_SECONDS:
            self._looked_at = time.monotonic()
            sync_in_background(self.agent)


def _search(service: Service, caller: Caller, asked: SearchArguments) -> dict[str, Any]:
    from recall_runtime.recall.tools import memory_search

    return service.in_worker(
        "memory_search",
        lambda: memory_search(
            service.agent,
            service.runtime,
            asked.query,
            session_key=caller.session_key,
            sender=caller.sender,
            max_results=asked.max_results,
            min_score=asked.min_score,
            corpus=asked.corpus,
            active_projects=caller.projects,
        ),
    )


def _get(service: Service, caller: Caller, asked: GetArguments) -> dict[str, Any]:
    from recall_runtime.recall.tools import memory_get

    return service.in_worker(
        "memory_get",
        lambda: memory_get(
            service.agent,
            service.runtime,
            asked.path,
            session_key=caller.session_key,
            sender=caller.sender,
            from_line=asked.from_line,
            lines=asked.lines,
            from_character=asked.from_character,
        ),
    )


def _history(service: Service, caller: Caller, asked: HistoryArguments) -> dict[str, Any]:
    from recall_runtime.recall.tools import sessions_history

    return service.in_worker(
        "sessions_history",
        lambda: sessions_history(
            service.agent,
            service.runtime,
            asked.session,
            session_key=caller.session_key,
            sender=caller.sender,
            message_id=asked.message_id,
            before=asked.before,
            after=asked.after,
        ),
    )


def _intent(service: Service, caller: Caller, asked: IntentArguments) -> dict[str, Any]:
    return intent(service.agent, caller, asked)


def _remember(service: Service, caller: Caller, asked: RememberArguments) -> dict[str, Any]:
    if caller.session_key is None:
        raise RefusedError("The host did not say which session this is", "Set the session in the host's configuration.")
    made = remember(
        service.agent,
        asked.text,
        session_key=caller.session_key,
        sender=caller.sender,
        channel=caller.channel,
        supersedes=asked.supersedes,
    )
    return {
        "kind": made.kind.value,
        "where": made.where,
        "entry_key": made.entry_key,
        "undo": made.undo,
        "superseded": list(made.superseded),
        "unchanged": made.unchanged,
        "answer": made.answer,
    }


def _turn(service: Service, caller: Caller, asked: TurnArguments) -> dict[str, Any]:
    from recall_runtime.recall.turn import turn

    made = turn(
        service.agent,
        asked.message,
        session_key=caller.session_key,
        channel=caller.channel,
        sender=caller.sender,
        active_projects=caller.projects,
        runtime=service.runtime,
        fresh_start=asked.fresh_start,
    )
    return {
        "text": made.text,
        "audience": made.audience.value,
        "lanes": {
            name: {"decision": lane.decision, "elapsed_ms": round(lane.elapsed_ms, 3), "detail": lane.detail}
            for name, lane in made.lanes.items()
        },
        "omissions": [{"what": one.what, "reason": one.reason, "count": one.count} for one in made.omissions],
        "fired": made.fires,
        "elapsed_ms": round(made.elapsed_ms, 3),
    }


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("memory_search", SearchArguments, _search),
        Tool("memory_get", GetArguments, _get),
        Tool("sessions_history", HistoryArguments, _history),
        Tool("intent", IntentArguments, _intent, writes=True),
        Tool("remember", RememberArguments, _remember, writes=True),
        Tool("turn", TurnArguments, _turn),
    )
}
