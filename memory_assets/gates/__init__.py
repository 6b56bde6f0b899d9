"""Deep phase, first half: six components, phase boost and gates of every candidate, computed in DuckDB.

Belongs here: the SQL of scores and gates, loading candidates into it, keeping the verdicts, explaining them.
Does not belong here: what counts as a signal (``memory_assets.staging``), looking the source up again, writing files.
"""

from memory_assets.gates.explain import EvidenceView, Explanation, GateView, SignalView, explain
from memory_assets.gates.loading import eligible
from memory_assets.gates.scoring import GateRow, score

__all__ = ["EvidenceView", "Explanation", "GateRow", "GateView", "SignalView", "eligible", "explain", "score"]
