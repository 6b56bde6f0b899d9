"""The clock of a run: the machine's, or a fixed one for replays.

Belongs here: choosing the clock.
Does not belong here: what a day is (``recall_runtime.clock``).
"""

import dagster as dg
from pydantic import Field

from recall_runtime.clock import Clock, FixedClock, SystemClock, parse_instant


class ClockResource(dg.ConfigurableResource["ClockResource"]):
    """Tells every step of a run what time it is."""

    now: str = Field(default="", description="ISO 8601 instant the run takes for now. Empty: the machine's time.")

    def clock(self) -> Clock:
        """Return the clock.

        Raises:
            ValueError: ``now`` is no ISO 8601 time.
        """
        return FixedClock(parse_instant(self.now)) if self.now else SystemClock()
