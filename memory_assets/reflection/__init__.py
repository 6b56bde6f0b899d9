"""REM phase: recurring themes and candidate truths among what was lately staged (openclaw-algorithms 22, 23).

Belongs here: strength of themes, confidence of truths, the marks the phase leaves.
Does not belong here: any write to a curated file (there is none), the report's text (``memory_assets.review``).
"""

from memory_assets.reflection.formulas import CandidateTruth, Theme, Trace, find_themes, find_truths
from memory_assets.reflection.phase import Reflection, reflect

__all__ = ["CandidateTruth", "Reflection", "Theme", "Trace", "find_themes", "find_truths", "reflect"]
