"""The protocol every embedder fulfils, and what they share: unit vectors, calibration, clean text.

Belongs here: ``Embedder``, ``Calibration``, scaling to unit length, removing what no tokenizer takes.
Does not belong here: any model, any request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
Vectors = NDArray[np.float32]  # shape (n, dimensions)
Vector = NDArray[np.float32]  # shape (dimensions,)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Two measured cosine levels of one embedder: they map its cosines to a scale all embedders share.

    ``unrelated`` is the mean cosine of sentences about different things, ``paraphrase`` the mean of sentences that
    say the same in other words (``benchmarks/calibrate.py`` measures both).
    """

    unrelated: float
    paraphrase: float

    def scaled(self, cosine: float) -> float:
        """Return ``cosine`` on the common scale 0..1: unrelated text at 0, a paraphrase at 1, linear between."""
        span = self.paraphrase - self.unrelated
        if not np.isfinite(cosine) or span <= 0:
            return 0.0
        return float(min(1.0, max(0.0, (cosine - self.unrelated) / span)))

    def all_scaled(self, cosines: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return :meth:`scaled` of each of ``cosines``."""
        span = self.paraphrase - self.unrelated
        if span <= 0:
            return np.zeros(len(cosines))
        levels = (cosines.astype(np.float64) - self.unrelated) / span
        return np.where(np.isfinite(levels), np.clip(levels, 0.0, 1.0), 0.0)


class Embedder(Protocol):
    """Turns text into vectors of length 1 (a text without any known token gives the zero vector)."""

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def identity(self) -> str:
        """Name that changes whenever the same text would get another vector."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """Measured cosine levels, or ``None`` when they have to be measured first (remote models)."""
        ...

    @property
    def worth_caching(self) -> bool:
        """Whether the index keeps its vectors by text, so that a moved or restored text isn't embedded again."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, float32 of shape ``(dimensions,)``.

        Raises:
            EmbedderError: the embedder failed.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be found, float32 of shape ``(len(texts), dimensions)``.

        Raises:
            EmbedderError: the embedder failed.
        """
        ...


def unit_rows(matrix: Vectors) -> Vectors:
    """Return ``matrix`` with every row scaled to length 1; rows that have no finite length stay as they are."""
    matrix = np.ascontiguousarray(matrix, dtype=np.float32)
    if not matrix.size:
        return matrix
    peak = np.abs(matrix).max(axis=1, keepdims=True)  # scale first: squares of 1e30 leave the range of float32
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        scaled = np.where((peak > 0) & np.isfinite(peak), matrix / peak, matrix)
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        return np.where((norms > 0) & np.isfinite(norms), scaled / norms, scaled).astype(np.float32)


def plain(text: str) -> str:
    """Return ``text`` without NUL and lone surrogates, which no tokenizer and no request can carry."""
    return text.translate(_SURROGATES).replace("\x00", " ")
