"""What a search gives: hits, the state of each lane, why there is nothing.

Belongs here: the records of an answer, which other rooms take.
Does not belong here: finding and ranking (``index.search``), recording an answer (``signals.recalls``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.records import IndexEntry


class LaneState(StrEnum):
    """How a lane did."""

    OK = "ok"
    OFF = "off"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Lane:
    """State of one lane, with the reason when it is anything but ``ok``.

    ``embedder_failed``: the reason is that the embedder is missing or did not answer.
    """

    state: LaneState
    reason: str = ""
    embedder_failed: bool = False


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One answer.

    ``score`` orders the hits of one answer (it may exceed 1 in mode ``openclaw``). ``relevance`` is 0..1 and
    comparable between questions and embedders; it is what a recall is recorded with. ``keyword_score`` and
    ``vector_score`` are the lanes' own (scaled BM25, cosine), ``None`` when the lane did not find the entry.
    ``framed`` marks untrusted text: whoever shows it must say so.
    """

    entry: IndexEntry
    score: float
    relevance: float
    keyword_score: float | None
    vector_score: float | None
    snippet: str
    framed: bool

    @property
    def citation(self) -> str:
        """``path#Lx-Ly``."""
        return f"{self.entry.path}#L{self.entry.start_line}-L{self.entry.end_line}"


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits, the state of each lane, and why there is nothing where there is nothing.

    ``error`` is one line with the cure when the embedder that the settings name failed at this question: whoever asked
    must be told so. The hits are those of the keyword lane then.
    """

    hits: tuple[SearchHit, ...]
    lanes: Mapping[str, Lane]
    notice: str | None = None
    error: str | None = None
