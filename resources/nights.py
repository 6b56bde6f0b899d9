"""The sweep that the steps of one run share.

Belongs here: opening the sweep when a step first needs it, closing it when the run ends.
Does not belong here: what the steps do (``memory_assets.sweep``).

The steps of a run are executed in one process, so that one lock is held from the first step that needs it to the end
of the run. A step that is materialised alone opens a sweep of its own and closes it with what it did.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import dagster as dg
from pydantic import Field, PrivateAttr

from memory_assets.jobs import SWEEP_JOB, name_for
from memory_assets.sweep import Sweep, open_sweep
from recall_runtime.agent import Agent
from recall_runtime.errors import StoreError

Result = TypeVar("Result")


class NightsResource(dg.ConfigurableResource["NightsResource"]):
    """Hands every step of a run the same sweep of an agent."""

    sweep_id: str = Field(default="", description="Identity of the sweep. Empty: the instant it starts at.")

    _stack: contextlib.ExitStack = PrivateAttr(default_factory=contextlib.ExitStack)
    _open: dict[str, Sweep] = PrivateAttr(default_factory=dict)
    _finished: set[str] = PrivateAttr(default_factory=set)
    _job: str | None = PrivateAttr(default=None)

    @contextlib.contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["NightsResource"]:
        """Serve one run; whatever sweep is still open at its end is closed."""
        self._job = context.run.job_name if context.run else None
        with self._stack:
            try:
                yield self
            finally:
                for agent_id in list(self._open):
                    self._close(agent_id)

    def is_sweep(self, agent_id: str) -> bool:
        """Whether the run is a whole sweep of the agent."""
        return self._job == name_for(SWEEP_JOB, agent_id)

    def step(self, agent: Agent, work: Callable[[Sweep], Result]) -> Result:
        """Run ``work`` on the sweep of ``agent`` in this run; a step that raises closes it as failed.

        Raises:
            StoreLockedError: another sweep of the agent is running.
        """
        agent_id = agent.folders.agent_id
        sweep = self._open.get(agent_id)
        if sweep is None:
            sweep = self._stack.enter_context(open_sweep(agent, sweep_id=self.sweep_id or None))
            self._open[agent_id] = sweep
        try:
            return work(sweep)
        except BaseException as error:
            sweep.fail(error)
            self._finished.add(agent_id)
            raise

    def finish(self, agent: Agent) -> None:
        """Close the row of the sweep with what it did."""
        self.step(agent, Sweep.finish)
        self._finished.add(agent.folders.agent_id)

    def _close(self, agent_id: str) -> None:
        """Close a sweep that no step has finished: cut off within the sweep's own job, complete in any other."""
        sweep = self._open.pop(agent_id)
        if agent_id in self._finished:
            return
        if self.is_sweep(agent_id):
            sweep.fail(StoreError("The run ended before the sweep was finished", "Its steps and checks say why."))
        else:
            sweep.finish()
