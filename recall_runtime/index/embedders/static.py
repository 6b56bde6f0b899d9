"""The default embedder: static token vectors of the package ``wordllama``, averaged. No network, no model runtime.

Belongs here: reading the package's weights and tokenizer files and pooling them.
Does not belong here: the package's own wrapper; importing it takes longer than a whole turn may, and its result is
the same (a test compares them).
"""

import functools
import hashlib
import importlib.util
import json
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
        version = _version(self._folder)
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
        try:
            encoded = self._tokenizer.encode_batch_fast([plain(text) for text in texts], add_special_tokens=False)
        except Exception as error:  # the library raises bare Exceptions of its own
            raise EmbedderError(f"Embedder static failed ({error})", "Reinstall the package wordllama.") from error
        for row, item in enumerate(encoded):
            ids = item.ids
            if ids:
                out[row] = self._weights[np.minimum(ids, len(self._weights) - 1)].mean(axis=0, dtype=np.float32)
        return unit_rows(out)

    def _load(self) -> None:
        if self._tokenizer is None:
            self._tokenizer, self._weights = _files_in(self._folder)


@functools.lru_cache(maxsize=1)
def _files_in(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and weights, opened once a process: that takes longer than a small sync does."""
    from tokenizers import Tokenizer

    try:
        weights = _weights_in(folder / _WEIGHTS)
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # the library raises bare Exceptions of its own
        raise EmbedderError(
            f"The files of embedder static can't be read ({error})", "Reinstall the package wordllama."
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, weights


def _weights_in(path: Path) -> Any:
    """Return the matrix of a safetensors file where it lies: a question needs 30 of its 32,000 rows.

    The file begins with the length of a JSON header in 8 bytes; places in the header count from its end.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))["embedding.weight"]
    if header["dtype"] != "F16":
        raise ValueError(f"weights of type {header['dtype']}")
    begin = 8 + length + header["data_offsets"][0]
    return np.asarray(np.memmap(path, dtype="<f2", mode="r", offset=begin, shape=tuple(header["shape"])))


def _version(folder: Path) -> str:
    """Return the version of the installed package; ``importlib.metadata`` alone takes longer than the look-up."""
    found = list(folder.parent.glob("wordllama-*.dist-info/METADATA"))
    if len(found) == 1:
        for line in found[0].read_text(encoding="utf-8").splitlines():
            if line.startswith("Version: "):
                return line.removeprefix("Version: ").strip()
    import importlib.metadata

    return importlib.metadata.version("wordllama")


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderError(
            "Embedder static needs the package wordllama", "Run `pip install wordllama`, or set embedder.name."
        )
    return Path(spec.submodule_search_locations[0])
