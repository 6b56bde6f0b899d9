"""The default embedder: static token vectors of the package ``wordllama``, averaged. No network, no model runtime.

Belongs here: reading the package's weights and tokenizer files and pooling them.
Does not belong here: the package's own wrapper; importing it takes longer than a whole turn may, and its result is
the same (a test compares them).
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors, plain, unit_rows

DIMENSIONS = 256
CALIBRATION = Calibration(unrelated=-0.005, paraphrase=0.651)
_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"


class StaticEmbedder:
    """Mean of the token vectors (256 numbers, English best; about 0.04 ms a question)."""

    def __init__(self) -> None:
        self._folder = _package_folder()
        self._tokenizer: Any = None
        self._weights: Any = None

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return DIMENSIONS

    @functools.cached_property
    def identity(self) -> str:
        """Package, version and size of the weights; the wheel's version pins their content."""
        version = importlib.metadata.version("wordllama")
        size = (self._folder / _WEIGHTS).stat().st_size
        mark = hashlib.sha256(f"wordllama {version} {_WEIGHTS.name} {size}".encode()).hexdigest()[:12]
        return f"static:wordllama-{version}:{DIMENSIONS}:mean:{mark}"

    @property
    def calibration(self) -> Calibration:
        """Measured cosine levels."""
        return CALIBRATION

    @property
    def worth_caching(self) -> bool:
        """Making the vector again is cheaper than keeping it."""
        return False

    def embed_query(self, text: str) -> Vector:
        """Return the vector of ``text``."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text; texts without any token get the zero vector."""
        self._load()
        out = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, encoded in enumerate(
            self._tokenizer.encode_batch_fast([plain(text) for text in texts], add_special_tokens=False)
        ):
            ids = encoded.ids
            if ids:
                out[row] = self._weights[np.minimum(ids, len(self._weights) - 1)].mean(axis=0, dtype=np.float32)
        return unit_rows(out)

    def _load(self) -> None:
        if self._tokenizer is None:
            self._tokenizer, self._weights = _files_in(self._folder)


@functools.lru_cache(maxsize=1)
def _files_in(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and weights, read once a process: that takes longer than a small sync does."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    try:
        with safe_open(folder / _WEIGHTS, framework="numpy") as file:
            weights = file.get_tensor("embedding.weight")
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # both libraries raise bare Exceptions of their own
        raise EmbedderError(
            f"The files of embedder static can't be read ({error})", "Reinstall the package wordllama."
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, weights


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderError(
            "Embedder static needs the package wordllama", "Run `pip install wordllama`, or set embedder.name."
        )
    return Path(spec.submodule_search_locations[0])
