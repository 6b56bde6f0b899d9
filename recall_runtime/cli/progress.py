"""Progress of long work: a bar on a terminal, plain lines elsewhere.

Belongs here: drawing on standard error.
Does not belong here: counting the work (the room that does it calls ``step``).
"""

import sys
from typing import TextIO

_BAR = 30
_PLAIN_STEPS = 4  # without a terminal: a line at each quarter, so that a log stays short


class Progress:
    """Shows how far a piece of work is. Call it with (done, total) as often as you like."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._bar = self._stream.isatty()
        self._shown = -1

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` pieces are ready."""
        if total <= 0:
            return
        steps = 100 if self._bar else _PLAIN_STEPS
        reached = min(done, total) * steps // total
        if reached == self._shown:
            return
        self._shown = reached
        if self._bar:
            filled = _BAR * min(done, total) // total
            end = "\n" if done >= total else ""
            self._stream.write(f"\r{self._what} [{'#' * filled}{' ' * (_BAR - filled)}] {done}/{total}{end}")
        elif reached:
            self._stream.write(f"{self._what}: {done} of {total}\n")
        self._stream.flush()


class Stages:
    """Progress of work in named stages, one bar each."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._bars: dict[str, Progress] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` pieces of ``stage`` are ready."""
        self._bars.setdefault(stage, Progress(stage, self._stream))(done, total)
