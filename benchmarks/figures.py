"""The one form in which benchmarks report: a JSON line a figure.

Belongs here: the record, printing it, percentiles, the time and the memory that something took.
Does not belong here: what is measured (one module a benchmark), keeping figures (``benchmarks.results``).

A figure stands beside a floor (the least possible work) or a peer of the same run; absolute times alone say little,
because machines differ.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number.

    ``floor`` or ``peer`` is the number it is compared with, in the same unit and run; ``target`` is what was asked for.
    ``system`` names who was measured where several are compared: figures that have it are shown as one table, a row a
    system and a column a name.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    peer: float | None = None
    target: str | None = None
    note: str = ""
    system: str = ""

    @property
    def ratio(self) -> float | None:
        """Value over floor or peer, or ``None`` without one."""
        other = self.floor if self.floor is not None else self.peer
        return self.value / other if other else None


def emit(figures: Iterable[Figure]) -> None:
    """Print each figure as one JSON line on standard output, without the empty fields."""
    for figure in figures:
        row = {key: value for key, value in asdict(figure).items() if value not in (None, "")}
        if figure.ratio is not None:
            row["ratio"] = round(figure.ratio, 4)
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` (0..1) of ``values`` lie, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))]


def time_each(action: Callable[[], object], times: int) -> list[float]:
    """Return the wall time of each of ``times`` calls, in milliseconds."""
    taken: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def peak_memory() -> float:
    """Return the most memory that this process has held so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6
