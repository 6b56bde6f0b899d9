"""Directives of the owner that apply to the message at hand, restated next to it.

Belongs here: scoring directives against a message, the block. Does not belong here: which directives hold, the bounds
(``user_model.injection``), classes of lines (``recall.views``).

A preference that is only somewhere in a long context is soon ignored. Directives
that the cap left out of the copy of ``USER.md`` are nowhere in it: the nearest of them are said here as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recall_runtime.errors import EmbedderError
from recall_runtime.index.candidates import Floats, Integers
from recall_runtime.index.embedders.protocol import Calibration, Embedder, Vectors, plain
from recall_runtime.index.ranking import relevances
from recall_runtime.index.vectors import dots
from recall_runtime.recall.bootstrap import neutral
from recall_runtime.recall.views import CuratedView
from recall_runtime.text.words import query_terms
from recall_runtime.user_model.contract import Directive, contradictions, standing
from recall_runtime.user_model.injection import best_within
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
        self._settled = not contradictions(self.directives)  # then no part of them contradicts itself either
        self._known_copy: tuple[str, NDArray[np.int64]] | None = None
        self._embedder = embedder
        texts = [directive.text for directive in self.directives]
        self._words = _Sets([query_terms(text) for text in texts])
        self._matters = _Sets([directive.matter for directive in self.directives])
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
        terms = frozenset(query_terms(message))
        scores = self._scores(message, terms)
        said = best_within(self._standing(np.flatnonzero(scores >= THRESHOLD), scores), threshold=THRESHOLD)
        if copy is None or len(terms) < FURTHER_FROM:  # a message of a single word gets no further ones
            return Applying(said)
        lines = {directive.start_line for directive in said}
        rest = [place for place in self._left_out(copy).tolist() if self.directives[place].start_line not in lines]
        further = best_within(
            self._standing(rest, scores), max_directives=FURTHER_MAX, max_characters=FURTHER_CHARACTERS, threshold=0.0
        )
        return Applying(said, further)

    def _standing(self, places: Iterable[int], scores: Floats) -> list[tuple[float, Directive]]:
        """Return the directives at ``places`` that stand among themselves, each behind its score."""
        scored = [(float(scores[place]), self.directives[place]) for place in places]
        if self._settled:
            return scored
        kept = {directive.start_line for directive in standing([directive for _, directive in scored])}
        return [pair for pair in scored if pair[1].start_line in kept]

    def _left_out(self, copy: str) -> NDArray[np.int64]:
        """Return the places of those that are not in ``copy``; far ones count too, for nothing else brings them."""
        known = self._known_copy
        if known is None or known[0] is not copy:
            lines = f"\n{copy}\n"
            gone = [f"\n- {neutral(one.text)}\n" not in lines for one in self.directives]
            known = self._known_copy = copy, np.flatnonzero(gone)
        return known[1]

    def _scores(self, message: str, terms: frozenset[str]) -> Floats:
        """Return how well each directive applies to ``message``, 0..1."""
        about = matter_of(message)
        words = self._words.shared(terms) / np.maximum(1, np.minimum(self._words.sizes, len(terms)))
        covered = np.maximum(words, self._matters.shared(about) / np.maximum(1, self._matters.sizes))
        meaning = self._meanings(message)
        return covered if meaning is None else relevances(covered, meaning)

    def _meanings(self, message: str) -> Floats | None:
        if self._embedder is None or self._vectors is None:
            return None
        try:
            cosines = dots(self._vectors, np.asarray(self._embedder.embed_query(message), dtype=np.float32))
        except EmbedderError:
            return None
        return (self._embedder.calibration or Calibration(0.0, 1.0)).all_scaled(cosines)


class _Sets:
    """Sets of tokens, found by their tokens."""

    def __init__(self, sets: Sequence[Iterable[str]]) -> None:
        holders: dict[str, list[int]] = {}
        for place, tokens in enumerate(sets):
            for token in set(tokens):
                holders.setdefault(token, []).append(place)
        self._holders = {token: np.array(places, dtype=np.int64) for token, places in holders.items()}
        self.sizes = np.array([len(set(tokens)) for tokens in sets], dtype=np.int64)

    def shared(self, tokens: Iterable[str]) -> Integers:
        """Return how many of the distinct ``tokens`` each set holds."""
        counts = np.zeros(len(self.sizes), dtype=np.int64)
        for token in tokens:
            if token in self._holders:
                counts[self._holders[token]] += 1
        return counts


def applies_block(applying: Applying) -> str:
    """Return the block, or nothing without directives."""
    lines: list[str] = []
    for heading, directives in ((HEADING, applying.near), (FURTHER_HEADING, applying.further)):
        if directives:
            lines += [heading, *(f"- {' '.join(directive.text.split())}" for directive in directives)]
    return "\n".join(lines)
