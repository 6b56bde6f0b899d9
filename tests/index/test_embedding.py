"""Giving entries their vectors: every entry once, and an endpoint that breaks off costs nothing that was made."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors, unit_rows
from recall_runtime.index.embedding import Embedded, embed_missing
from recall_runtime.index.sync import sync
from recall_runtime.index.vectors import load_matrix
from recall_runtime.storage.schema import open_index
from tests.support.index_agents import agent_over, write_files

NOTES = {f"memory/topic-{n}.md": f"# Topic {n}\n\n" + "".join(f"- Line {n} {k}.\n" for k in range(7)) for n in range(5)}
ENTRIES = 5 * (1 + 7)  # a heading is one too


class HashEmbedder:
    """A model at the edge of the machine: a vector of the text's hash, and it breaks off after so many requests."""

    dimensions = 4
    identity = "hash:4"
    calibration = Calibration(0.0, 1.0)

    def __init__(self, *, worth_caching: bool = False, requests: int | None = None) -> None:
        self.worth_caching = worth_caching
        self.requests = requests
        self.texts: list[str] = []

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.requests is not None:
            if not self.requests:
                raise EmbedderError("The endpoint refuses", "Wait.")
            self.requests -= 1
        self.texts += texts
        raw = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:4], dtype=np.uint8) for text in texts]
        return unit_rows(np.array(raw, dtype=np.float32) + 1)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    agent = agent_over(write_files(tmp_path / "ws", NOTES), tmp_path / "home")
    sync(agent, vectors=False)
    return agent


def embed(agent: Agent, embedder: HashEmbedder, batch_size: int = 8) -> Embedded:
    with contextlib.closing(open_index(agent.folders.index_db)) as index:
        return embed_missing(index, embedder, now_ms=0, cache_entries=1_000, batch_size=batch_size)


def rounded(vector: Vector) -> tuple[float, ...]:
    return tuple(np.round(vector, 5).tolist())


def stored(agent: Agent) -> dict[int, tuple[float, ...]]:
    with contextlib.closing(open_index(agent.folders.index_db)) as index:
        matrix = load_matrix(index)
    return {int(entry): rounded(row) for entry, row in zip(matrix.entry_ids, matrix.vectors, strict=True)}


@pytest.mark.parametrize("worth_caching", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 39, 40, 41, 500])
def test_every_batch_size_gives_each_entry_the_vector_of_its_own_text(
    agent: Agent, tmp_path: Path, batch_size: int, worth_caching: bool
) -> None:
    embedder = HashEmbedder(worth_caching=worth_caching)
    assert embed(agent, embedder, batch_size) == Embedded(made=ENTRIES)
    assert len(embedder.texts) == len(set(embedder.texts)) == ENTRIES
    with contextlib.closing(open_index(agent.folders.index_db)) as index:
        texts = index.execute("SELECT entry_id, heading_path, text FROM entries").fetchall()
    expected = {
        entry_id: rounded(HashEmbedder().embed_query(f"{json.loads(heading)[-1]}: {text}" if heading else text))
        for entry_id, heading, text in texts
    }
    assert stored(agent) == expected


@pytest.mark.parametrize("requests", [0, 1, 2, 4])
def test_an_endpoint_that_breaks_off_keeps_what_was_made_and_the_next_run_makes_only_the_rest(
    agent: Agent, requests: int
) -> None:
    broken = HashEmbedder(requests=requests)
    first = embed(agent, broken)
    assert first.made == len(stored(agent)) == requests * 8
    assert "The endpoint refuses" in (first.error or "")
    rest = HashEmbedder()
    assert embed(agent, rest) == Embedded(made=ENTRIES - requests * 8)
    assert sorted(broken.texts + rest.texts) == sorted(set(broken.texts + rest.texts))
    assert len(stored(agent)) == ENTRIES


def test_a_text_the_cache_has_is_not_made_again(agent: Agent) -> None:
    embed(agent, HashEmbedder(worth_caching=True))
    before = stored(agent)
    with contextlib.closing(open_index(agent.folders.index_db)) as index:
        index.execute("UPDATE entries SET embedded = 0 WHERE entry_id % 3 = 0")
    again = HashEmbedder(worth_caching=True)
    assert embed(agent, again).made == len([entry for entry in before if entry % 3 == 0])
    assert again.texts == []
    assert stored(agent) == before


def test_a_vector_that_is_refused_is_counted_and_never_tried_again(agent: Agent) -> None:
    class Zero(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            kept = np.array([["Line 3" not in text] for text in texts])
            return super().embed_documents(texts) * kept

    assert embed(agent, Zero()) == Embedded(made=ENTRIES - 7, refused={"zero": 7})
    assert embed(agent, HashEmbedder()) == Embedded()
    assert len(stored(agent)) == ENTRIES - 7
