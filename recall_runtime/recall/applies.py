"""Directives of the owner that apply to the message at hand, restated next to it.

Belongs here: scoring directives against a message, the block. Does not belong here: which directives hold, the bounds
(``user_model.injection``), classes of lines (``recall.views``).

A preference that is only somewhere in a long context is soon ignored. Directives
that the cap left out of the copy of ``USER.md`` are nowhere in it: the nearest of them are said here as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Embedder, Vectors, plain
from recall_runtime.index.ranking import relevance
from recall_runtime.recall.bootstrap import neutral
from recall_runtime.recall.views import CuratedView
from recall_runtime.text.words import query_terms
from recall_runtime.user_model.contract import Directive, standing
from recall_runtime.user_model.injection import applies_now
from recall_runtime.user_model.matter import matter_of
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS

HEADING = "Standing directives of the user that apply to this message:"
MAX_MESSAGE = 1_000
THRESHOLD = 0.3  # one of the three words a directive is about is enough
FURTHER_HEADING = "Further standing directives of the user, the nearest to this message first:"
FURTHER_MAX = 8
FURTHER_FROM = 2  # terms of a message that says something
FURTHER_CHARACTERS = 800


@dataclass(frozen=True, slots=True)
class Applying:
    """Directives to say next to a message, best first. ``further`` are nowhere else in the prompt."""

    near: tuple[Directive, ...] = ()
    further: tuple[Directive, ...] = ()


class DirectiveScorer:
    """Scores the directives of one state of ``USER.md``; their words and vectors are kept."""

    def __init__(self, view: CuratedView, embedder: Embedder | None) -> None:
        self.view = view
        self.directives = standing(
            [
                directive
                for directive in view.directives
                if view.origin_of(directive.first_line, directive.end_line) in ELIGIBLE_ORIGINS
            ]
        )
        self._known_copy: tuple[str, tuple[Directive, ...]] | None = None
        self._embedder = embedder
        texts = [directive.text for directive in self.directives]
        self._terms = [frozenset(query_terms(text)) for text in texts]
        self._vectors: Vectors | None = None
        if embedder is not None and texts:
            try:
                self._vectors = embedder.embed_documents(texts)
            except EmbedderError:
                self._embedder = None

    def applying(self, message: str, copy: str | None = None) -> Applying:
        """Return the directives to say next to ``message``.

        Args:
            message: The owner's message.
            copy: What the prompt holds of ``USER.md``; ``None``: all of it.
        """
        if not self.directives or not message.strip():
            return Applying()
        message = plain(message)[:MAX_MESSAGE]
        scores = dict(zip(self.directives, self._scores(message), strict=True))
        near = [directive for directive, score in scores.items() if score >= THRESHOLD]
        by_text = {directive.text: scores[directive] for directive in near}
        said = applies_now(near, message, lambda text, _: by_text[text], threshold=THRESHOLD)
        return Applying(said, self._further(message, scores, said, copy))

    def _further(
        self, message: str, scores: Mapping[Directive, float], said: Sequence[Directive], copy: str | None
    ) -> tuple[Directive, ...]:
        """Return the best of those that are not in ``copy``, also far ones, for nothing else brings them.

        A message of a single word gets none.
        """
        if copy is None or len(query_terms(message)) < FURTHER_FROM:
            return ()
        rest = [directive for directive in self._left_out(copy) if directive not in said]
        by_text = {directive.text: scores[directive] for directive in rest}
        return applies_now(
            rest,
            message,
            lambda text, _: by_text[text],
            max_directives=FURTHER_MAX,
            max_characters=FURTHER_CHARACTERS,
            threshold=0.0,
        )

    def _left_out(self, copy: str) -> tuple[Directive, ...]:
        known = self._known_copy
        if known is None or known[0] is not copy:
            lines = f"\n{copy}\n"
            gone = tuple(one for one in self.directives if f"\n- {neutral(one.text)}\n" not in lines)
            known = self._known_copy = copy, gone
        return known[1]

    def _scores(self, message: str) -> Sequence[float]:
        asked, about = frozenset(query_terms(message)), matter_of(message)
        meanings = self._meanings(message)
        return [
            relevance(
                max(_share(asked & terms, asked, terms), _share(about & directive.matter, directive.matter)), meaning
            )
            for directive, terms, meaning in zip(self.directives, self._terms, meanings, strict=True)
        ]

    def _meanings(self, message: str) -> list[float | None]:
        nothing: list[float | None] = [None] * len(self._terms)
        if self._embedder is None or self._vectors is None:
            return nothing
        try:
            cosines = self._vectors @ np.asarray(self._embedder.embed_query(message), dtype=np.float32)
        except EmbedderError:
            return nothing
        calibration = self._embedder.calibration or Calibration(0.0, 1.0)
        return [calibration.scaled(float(cosine)) for cosine in cosines]


def _share(common: frozenset[str], *wholes: frozenset[str]) -> float:
    """Return how much of the smallest of ``wholes`` is in ``common``, 0..1."""
    size = min(len(whole) for whole in wholes)
    return len(common) / size if size else 0.0


def applies_block(applying: Applying) -> str:
    """Return the block, or nothing without directives."""
    lines: list[str] = []
    for heading, directives in ((HEADING, applying.near), (FURTHER_HEADING, applying.further)):
        if directives:
            lines += [heading, *(f"- {' '.join(directive.text.split())}" for directive in directives)]
    return "\n".join(lines)
