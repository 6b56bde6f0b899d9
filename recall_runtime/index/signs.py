"""One bit a dimension of each vector, to choose which vectors are worth an exact comparison.

Belongs here: the bits, the entries that share most of them with a question.
Does not belong here: exact cosines and who may be found (``index.image``).

The vectors are centred first: text embeddings point into one cone, so most of their raw signs are equal.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recall_runtime.index.embedders.protocol import Vector, Vectors

_WORD = 64
_FAR = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of centred vectors; ``bits`` has shape (words of 64 bits, vectors)."""

    centre: Vector
    bits: NDArray[np.uint64]

    def shortlist(self, query: Vector, allowed: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
        """Return the positions, in order, of the ``size`` allowed vectors that share most signs with ``query``."""
        differing = np.zeros(self.bits.shape[1], dtype=np.uint16)
        for word, asked in zip(self.bits, _packed((query - self.centre)[None, :])[:, 0], strict=True):
            differing += np.bitwise_count(word ^ asked)
        differing[~allowed] = _FAR
        if size < len(differing):
            return np.sort(np.argpartition(differing, size)[:size])
        return np.arange(len(differing))

    def with_room(self, count: int) -> "Signs":
        """Return the signs with ``count`` vectors more, which are not known yet."""
        return replace(self, bits=np.pad(self.bits, ((0, 0), (0, count))))

    def with_vectors(self, places: NDArray[Any], vectors: Vectors) -> "Signs":
        """Return the signs with those of ``vectors`` at ``places``."""
        bits = self.bits.copy()
        bits[:, places] = _packed(vectors - self.centre)
        return replace(self, bits=bits)


def signs_of(vectors: Vectors, known: NDArray[np.bool_]) -> Signs:
    """Return the signs of ``vectors``, of which at least one is ``known``."""
    centre = vectors[known].mean(axis=0)
    return Signs(centre, _packed(vectors - centre))


def _packed(centred: Vectors) -> NDArray[np.uint64]:
    """Return the signs of rows as words, shape (words, rows)."""
    bits = np.packbits(centred > 0, axis=1)
    bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % (_WORD // 8))))
    return np.ascontiguousarray(bits.view(np.uint64).T)
