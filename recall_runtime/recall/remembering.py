"""An embedder that remembers its last questions: the lanes of one turn ask for the vector of the same message.

Belongs here: this one memory. Does not belong here: making vectors (``index.embedders``).
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from recall_runtime.index.embedders.protocol import Calibration, Embedder, Vector, Vectors

MOST_QUESTIONS = 16


class RememberingEmbedder:
    """``embedder``, whose last questions are answered from memory. Nobody may write into the vectors it gives."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Vector] = OrderedDict()

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._embedder.dimensions

    @property
    def identity(self) -> str:
        """Name of the embedder."""
        return self._embedder.identity

    @property
    def calibration(self) -> Calibration | None:
        """Measured cosine levels of the embedder."""
        return self._embedder.calibration

    @property
    def worth_caching(self) -> bool:
        """Whether the index keeps its vectors by text."""
        return self._embedder.worth_caching

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            EmbedderError: the embedder failed.
        """
        with self._lock:
            known = self._known.get(text)
        if known is None:
            known = self._embedder.embed_query(text)
            with self._lock:
                self._known[text] = known
                while len(self._known) > MOST_QUESTIONS:
                    self._known.popitem(last=False)
        return known

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to be found.

        Raises:
            EmbedderError: the embedder failed.
        """
        return self._embedder.embed_documents(texts)
