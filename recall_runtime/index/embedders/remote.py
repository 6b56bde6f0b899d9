"""Embedders behind an HTTP endpoint, opt-in by configuration.

Belongs here: the request and answer shapes of the providers, splitting a refused batch, waiting when rate limited.
Does not belong here: keys (the settings name an environment variable), caching (``index.embedding`` stores each
vector as it arrives, so an interrupted run goes on where it stopped).
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors, plain, unit_rows

if TYPE_CHECKING:
    import httpx

_WAITING = frozenset({429, 500, 502, 503, 504})
_TOO_MUCH = frozenset({400, 413, 422})
_MAX_WAITS = 4


@dataclass(frozen=True, slots=True)
class Provider:
    """What is peculiar to one provider.

    ``body`` makes the request from (model, texts, is_query, dimensions); ``vectors`` reads the answer.
    """

    base_url: str
    path: str
    model: str
    key_env: str
    body: Callable[[str, list[str], bool, int | None], dict[str, Any]]
    vectors: Callable[[Any], list[list[float]]]
    key_header: str = "Authorization"


def _openai_body(model: str, texts: list[str], is_query: bool, dimensions: int | None) -> dict[str, Any]:
    del is_query
    body: dict[str, Any] = {"model": model, "input": texts, "encoding_format": "float"}
    return body | ({"dimensions": dimensions} if dimensions else {})


def _mistral_body(model: str, texts: list[str], is_query: bool, dimensions: int | None) -> dict[str, Any]:
    del is_query
    return {"model": model, "input": texts} | ({"output_dimension": dimensions} if dimensions else {})


def _voyage_body(model: str, texts: list[str], is_query: bool, dimensions: int | None) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "input": texts, "input_type": "query" if is_query else "document"}
    return body | ({"output_dimension": dimensions} if dimensions else {})


def _ollama_body(model: str, texts: list[str], is_query: bool, dimensions: int | None) -> dict[str, Any]:
    del is_query
    return {"model": model, "input": texts, "truncate": True} | ({"dimensions": dimensions} if dimensions else {})


def _gemini_body(model: str, texts: list[str], is_query: bool, dimensions: int | None) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": f"models/{model}",
        "taskType": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT",
    }
    if dimensions:
        request["outputDimensionality"] = dimensions
    return {"requests": [request | {"content": {"parts": [{"text": text}]}} for text in texts]}


def _openai_vectors(answer: Any) -> list[list[float]]:
    return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item.get("index", 0))]


def _ollama_vectors(answer: Any) -> list[list[float]]:
    vectors: list[list[float]] = answer["embeddings"]
    return vectors


def _gemini_vectors(answer: Any) -> list[list[float]]:
    return [item["values"] for item in answer["embeddings"]]


def _openai_like(base_url: str, model: str, key_env: str, body: Any = _openai_body) -> Provider:
    return Provider(base_url, "/embeddings", model, key_env, body, _openai_vectors)


PROVIDERS = {
    "openai": _openai_like("https://api.openai.com/v1", "text-embedding-3-small", "OPENAI_API_KEY"),
    "openai-compatible": _openai_like("", "", ""),
    "lmstudio": _openai_like("http://127.0.0.1:1234/v1", "text-embedding-nomic-embed-text-v1.5", ""),
    "deepinfra": _openai_like("https://api.deepinfra.com/v1/openai", "BAAI/bge-m3", "DEEPINFRA_API_KEY"),
    "mistral": _openai_like("https://api.mistral.ai/v1", "mistral-embed", "MISTRAL_API_KEY", _mistral_body),
    "voyage": _openai_like("https://api.voyageai.com/v1", "voyage-3.5-lite", "VOYAGE_API_KEY", _voyage_body),
    "ollama": Provider("http://127.0.0.1:11434", "/api/embed", "nomic-embed-text", "", _ollama_body, _ollama_vectors),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta",
        "/models/{model}:batchEmbedContents",
        "gemini-embedding-001",
        "GEMINI_API_KEY",
        _gemini_body,
        _gemini_vectors,
        key_header="x-goog-api-key",
    ),
}


class _RefusedTextError(Exception):
    """The endpoint refused one text, not the whole run."""


class RemoteEmbedder:
    """Vectors from an endpoint. ``dimensions`` is asked of it once when the settings don't say."""

    def __init__(self, settings: EmbedderSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
        provider = PROVIDERS[settings.name]
        self._settings, self._provider, self._sleep = settings, provider, sleep
        self._model = settings.model or provider.model
        self._base = (settings.base_url or provider.base_url).rstrip("/")
        if not self._base or not self._model:
            raise EmbedderError(
                f"Embedder {settings.name} needs a model and a base_url", "Set both in [embedder] of dreamline.toml."
            )
        self._dimensions = settings.dimensions
        self._client: httpx.Client | None = None

    @property
    def dimensions(self) -> int:
        """Length of every vector; the first call may ask the endpoint."""
        if self._dimensions is None:
            self._dimensions = len(self.embed_query("dimension"))
        return self._dimensions

    @property
    def identity(self) -> str:
        """Provider, endpoint, model and the dimensions asked for."""
        return f"{self._settings.name}:{self._base}:{self._model}:{self._settings.dimensions or 'own'}"

    @property
    def calibration(self) -> Calibration | None:
        """Unknown: it is measured at the first sync and kept in the index."""
        return None

    @property
    def worth_caching(self) -> bool:
        """Making a vector costs more than keeping it."""
        return True

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            EmbedderError: the endpoint failed, refused the text, or answered something else.
        """
        try:
            vector: Vector = unit_rows(self._request([plain(text)], is_query=True))[0]
        except _RefusedTextError as error:
            raise self._failed(str(error)) from error
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text; a text that the endpoint refuses alone gets a row of NaN, so it is counted.

        Raises:
            EmbedderError: the endpoint failed for another reason than one text.
        """
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[Vectors] = []
        size = self._settings.batch_size
        for start in range(0, len(texts), size):
            rows.extend(self._split([plain(text) for text in texts[start : start + size]]))
        width = max(row.shape[1] for row in rows)
        if self._dimensions is None and width > 1:
            self._dimensions = width
        filled = [row if row.shape[1] == width else np.full((len(row), width), np.nan, np.float32) for row in rows]
        return unit_rows(np.concatenate(filled))

    def _split(self, texts: list[str]) -> list[Vectors]:
        """Embed ``texts``; a refused batch is halved until the refused text stands alone."""
        try:
            return [self._request(texts, is_query=False)]
        except _RefusedTextError:
            if len(texts) == 1:
                return [np.full((1, self._dimensions or 1), np.nan, dtype=np.float32)]
        half = len(texts) // 2
        return self._split(texts[:half]) + self._split(texts[half:])

    def _request(self, texts: list[str], *, is_query: bool) -> Vectors:
        import httpx

        body = self._provider.body(self._model, texts, is_query, self._settings.dimensions)
        url = self._base + self._provider.path.format(model=self._model)
        waits = 0 if is_query else _MAX_WAITS  # somebody waits for the answer to a question: words alone are quicker
        for attempt in range(waits + 1):
            try:
                answer = self._open().post(url, json=body, headers=self._headers())
            except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError) as error:
                # InvalidURL is no HTTPError; a proxy of the environment or a key may be what no request can carry
                raise self._failed(f"{type(error).__name__}: {error}") from error
            if answer.status_code in _WAITING and attempt < waits:
                self._sleep(_wait_seconds(answer.headers.get("retry-after"), attempt))
                continue
            break
        if answer.status_code in _TOO_MUCH:
            raise _RefusedTextError(f"HTTP {answer.status_code}")
        if answer.status_code != httpx.codes.OK:
            raise self._failed(f"HTTP {answer.status_code}")
        try:
            matrix = np.array(self._provider.vectors(answer.json()), dtype=np.float32)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise self._failed(f"unexpected answer ({type(error).__name__})") from error
        if matrix.ndim != 2 or len(matrix) != len(texts):
            raise self._failed(f"{len(texts)} texts, answer of shape {matrix.shape}")
        return matrix

    def _open(self) -> "httpx.Client":
        import httpx

        if self._client is None:
            self._client = httpx.Client(timeout=self._settings.timeout_seconds)
        return self._client

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _headers(self) -> dict[str, str]:
        name = self._settings.api_key_env or self._provider.key_env
        key = os.environ.get(name, "") if name else ""
        if name and not key:
            raise EmbedderError(
                f"Embedder {self._settings.name} needs a key in the environment variable {name}",
                "Set it, or name another variable in embedder.api_key_env.",
            )
        if not key:
            return {}
        header = self._provider.key_header
        return {header: f"Bearer {key}" if header == "Authorization" else key}

    def _failed(self, why: str) -> EmbedderError:
        return EmbedderError(
            f"Embedder {self._settings.name} at {self._base} failed ({why})",
            "Check that the endpoint runs and the model is there, or set embedder.name to static.",
        )


def _wait_seconds(retry_after: str | None, attempt: int) -> float:
    try:
        return min(30.0, max(0.0, float(retry_after or "")))
    except ValueError:
        return 0.5 * 2.0**attempt
