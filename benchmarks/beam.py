"""BEAM (100K): are the messages that hold the answer found? Retrieval only, no model judges anything.

Belongs here: reading the data set, its figures. Does not belong here: the data; ``--data`` names the file
(``beam_100k.jsonl.gz``, one chat a line). One weight was tuned on it, for no other data has long messages: how much
less one of many pieces counts (docs/decisions.md).
"""

import argparse
import datetime as dt
import gzip
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from benchmarks.inputs import data_file, fusion_weights
from benchmarks.retrieval import Question, Scores, Turn, agent_with, asker_for, metrics
from recall_runtime.index.ranking import FusionWeights

TARGETS = {("minilm", "hit@10"): 0.71}


def chats(path: Path) -> Iterator[tuple[str, list[Turn], list[Question]]]:
    """Yield (id, messages, probes that name their messages) of each chat."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            chat = json.loads(line)
            turns = list(_turns(chat["messages"]))
            known = {turn.unit for turn in turns}
            probes = []
            for kind, items in chat["probes"].items():
                for item in items:
                    evidence = frozenset(str(number) for number in _numbers(item.get("source_chat_ids"))) & known
                    if evidence:
                        probes.append(Question(item["question"], evidence, kind))
            yield str(chat["chat"]), turns, probes


def _turns(messages: list[dict[str, Any]]) -> Iterator[Turn]:
    at = int(dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp() * 1000)
    for message in messages:
        if message.get("when"):
            at = _instant(message["when"]) or at
        at += 1_000
        role = "user" if message["role"] == "user" else "assistant"
        yield Turn(str(message["id"]), message["batch"], at, role, message["content"])


def _instant(text: str) -> int | None:
    try:
        return int(dt.datetime.strptime(text, "%B-%d-%Y").replace(tzinfo=dt.UTC).timestamp() * 1000)
    except ValueError:
        return None


def _numbers(value: Any) -> Iterator[int]:
    """Yield the message numbers in ``value``, which is a list, or a mapping of lists."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value


def evaluate(
    data: Path, *, embedder: str, mode: str, weights: FusionWeights | None
) -> tuple[Scores, dict[str, Scores], float]:
    """Return the scores of all probes, by ability, and seconds of ingest."""
    total, kinds, ingest = Scores(), defaultdict[str, Scores](Scores), 0.0
    for name, turns, probes in chats(data):
        with tempfile.TemporaryDirectory() as folder:
            agent = agent_with(Path(folder) / name, turns, embedder=embedder, mode=mode)
            asker, seconds = asker_for(agent, weights)
            ingest += seconds
            for probe in probes:
                start = time.perf_counter()
                units = asker.units(probe.text)
                total.times.append(time.perf_counter() - start)
                found = metrics([unit for unit, _ in units], probe.evidence)
                total.add(found)
                kinds[probe.kind].add(found)
            asker.close()
    return total, kinds, ingest


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="beam_100k.jsonl.gz, or its folder")
    parser.add_argument("--embedder", action="append", help="static, minilm, e5, none; may be repeated")
    parser.add_argument("--mode", default="dreamline", choices=["dreamline", "openclaw"])
    parser.add_argument("--weights", default="", help="fusion weights such as vector=0.5,neighbours=0.4/0.2")
    options = parser.parse_args(argv)
    data = data_file(options.data, "beam_100k.jsonl.gz", "beam")
    if data is None:
        return 0
    weights = fusion_weights(options.weights)
    for embedder in options.embedder or ["none", "static", "minilm"]:
        total, kinds, ingest = evaluate(data, embedder=embedder, mode=options.mode, weights=weights)
        name = f"beam.{embedder}" + ("" if options.mode == "dreamline" else f".{options.mode}")
        figures = [
            Figure(f"{name}.{metric}", round(total.mean(metric), 4), "share", target=_target(embedder, metric))
            for metric in ("recall@5", "recall@10", "hit@5", "hit@10", "mrr")
        ]
        figures += [
            Figure(f"{name}.{kind}.hit@10", round(part.mean("hit@10"), 4), "share") for kind, part in kinds.items()
        ]
        figures += [
            Figure(f"{name}.p50", round(total.p50_ms, 2), "ms"),
            Figure(f"{name}.ingest", round(ingest, 2), "s"),
        ]
        emit(figures)
    return 0


def _target(embedder: str, metric: str) -> str | None:
    wanted = TARGETS.get((embedder, metric))
    return f">= {wanted}" if wanted else None


if __name__ == "__main__":
    sys.exit(main())
