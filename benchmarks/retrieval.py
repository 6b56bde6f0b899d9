"""What the retrieval benchmarks share: a conversation as the transcripts of an agent, metrics over ranked units.

Belongs here: building a workspace from messages through the public sync, hit rates.
Does not belong here: reading a data set (one module each).
"""

import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, format_instant, zone_of
from recall_runtime.config import EmbedderSettings, SearchSettings, Settings
from recall_runtime.index import image
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.image import IndexImage
from recall_runtime.index.ranking import FusionWeights
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.connection import open_reader
from recall_runtime.vocabulary import Corpus

RESULTS = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``unit`` is the id that questions cite."""

    unit: str
    session: int
    at: int
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the units that hold its evidence, and its kind."""

    text: str
    evidence: frozenset[str]
    kind: str


@dataclass(slots=True)
class Scores:
    """Sums of metrics over questions."""

    sums: dict[str, float] = field(default_factory=dict)
    count: int = 0
    times: list[float] = field(default_factory=list)

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add the metrics of one question."""
        self.count += 1
        for name, value in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def mean(self, name: str) -> float:
        """Return the mean of a metric."""
        return self.sums.get(name, 0.0) / max(1, self.count)

    @property
    def p50_ms(self) -> float:
        """Median time of a question, embedding included."""
        return statistics.median(self.times) * 1000 if self.times else 0.0


def agent_with(folder: Path, turns: Sequence[Turn], *, embedder: str, mode: str = "dreamline") -> Agent:
    """Write ``turns`` as session files below ``folder`` and return the agent whose transcripts they are."""
    sessions = folder / "sessions"
    sessions.mkdir(parents=True)
    (folder / "workspace").mkdir()
    by_session: dict[int, list[Turn]] = {}
    for turn in turns:
        by_session.setdefault(turn.session, []).append(turn)
    store = {}
    for number, part in by_session.items():
        session_id = f"s{number:04d}"
        store[f"agent:main:explicit:{session_id}"] = {"sessionId": session_id}
        rows: list[object] = [{"type": "session", "id": session_id, "timestamp": format_instant(part[0].at)}]
        for turn in part:
            message = {"role": turn.role, "content": [{"type": "text", "text": turn.text}]}
            stamp = format_instant(turn.at)
            rows.append({"type": "message", "id": turn.unit, "timestamp": stamp, "message": message})
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (sessions / f"{session_id}.jsonl").write_text(text, encoding="utf-8")
    (sessions / "sessions.json").write_text(json.dumps(store), encoding="utf-8")
    settings = Settings.model_validate(
        {"embedder": EmbedderSettings.model_validate({"name": embedder}), "search": SearchSettings(mode=mode)}
    )
    folders = AgentFolders(folder / "home", "main", folder / "workspace", (sessions,))
    return Agent(folders, settings, zone_of("UTC"), FixedClock(max(turn.at for turn in turns)))


@dataclass(slots=True)
class Asker:
    """Asks questions of one agent as a server does: over a warm reader and the image of the index."""

    agent: Agent
    reader: apsw.Connection
    embedder: Embedder | None
    image: IndexImage | None
    weights: FusionWeights | None

    def units(self, question: str) -> list[tuple[str, float]]:
        """Return the cited units with their scores, best first, each once."""
        answer = search(
            self.agent,
            question,
            max_results=RESULTS,
            corpus=Corpus.SESSIONS,
            connection=self.reader,
            embedder=self.embedder,
            image=lambda _: self.image,
            weights=self.weights,
        )
        found: dict[str, float] = {}
        for hit in answer.hits:
            found.setdefault(hit.entry.message_id or "", hit.score)
        return list(found.items())

    def close(self) -> None:
        """Close the reader."""
        self.reader.close()


def asker_for(agent: Agent, weights: FusionWeights | None = None) -> tuple[Asker, float]:
    """Sync ``agent``; return an asker and the seconds it took."""
    start = time.perf_counter()
    report = sync(agent)
    seconds = time.perf_counter() - start
    assert report.vector_error is None, report.vector_error
    reader = open_reader(agent.folders.index_db, vectors=True)
    embedder = resolve(agent.settings.embedder)
    return Asker(agent, reader, embedder, image.load(reader), weights), seconds


def metrics(ranked: Sequence[str], evidence: frozenset[str]) -> dict[str, float]:
    """Return recall, hit rate and reciprocal rank of ``evidence`` in ``ranked``."""
    places = [place for place, unit in enumerate(ranked) if unit in evidence]
    out = {"mrr": 1 / (places[0] + 1) if places else 0.0}
    for k in (1, 5, 10):
        inside = sum(place < k for place in places)
        out[f"recall@{k}"] = inside / len(evidence)
        out[f"hit@{k}"] = float(inside > 0)
    return out


def pooled(units: Iterable[tuple[str, float]], group_of: Callable[[str], str]) -> list[str]:
    """Return groups by their four best units, weighted 1, 1/2, 1/3, 1/4."""
    best: dict[str, list[float]] = {}
    for unit, score in units:
        scores = best.setdefault(group_of(unit), [])
        if len(scores) < 4:
            scores.append(score)
    totals = {group: sum(score / (place + 1) for place, score in enumerate(scores)) for group, scores in best.items()}
    return sorted(totals, key=lambda group: -totals[group])
