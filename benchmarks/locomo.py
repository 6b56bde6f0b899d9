"""LoCoMo: are the turns and sessions that hold the answer found? Retrieval only, no model judges anything.

Belongs here: reading the data set, the held-out split, its figures.
Does not belong here: the data; ``--data`` names the file (CC BY-NC, not shipped). Weights were tuned on conv-26 and
conv-30; the figures are of the other eight.
"""

import argparse
import datetime as dt
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from benchmarks.inputs import data_file, fusion_weights
from benchmarks.retrieval import Question, Scores, Turn, agent_with, asker_for, metrics, pooled
from recall_runtime.index.ranking import FusionWeights

TUNING = frozenset({"conv-26", "conv-30"})
_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
TARGETS = {
    ("minilm", "turn.recall@10"): 0.77,
    ("minilm", "turn.hit@10"): 0.83,
    ("minilm", "session.hit@5"): 0.93,
    ("minilm", "session.hit@1"): 0.74,
    ("static", "turn.recall@10"): 0.72,
    ("none", "session.hit@5"): 0.90,
}


def conversations(path: Path) -> Iterator[tuple[str, list[Turn], list[Question]]]:
    """Yield (id, turns, questions with evidence) of each conversation."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        turns = list(_turns(sample["conversation"]))
        known = {turn.unit for turn in turns}
        questions = []
        for item in sample["qa"]:
            cited = re.findall(r"D:?(\d+):0*(\d+)", " ".join(str(part) for part in item.get("evidence") or []))
            evidence = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in cited) & known
            if evidence:
                questions.append(Question(str(item["question"]), evidence, _KINDS[item["category"]]))
        yield sample["sample_id"], turns, questions


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        # Two people talk, so the roles are ours to give: who opens a session is its user. An assistant that speaks
        # before any user counts as untrusted.
        first = conversation[f"session_{number}"][0]["speaker"] if conversation[f"session_{number}"] else None
        at = _instant(conversation.get(f"session_{number}_date_time", ""))
        for place, turn in enumerate(conversation[f"session_{number}"]):
            text = f"{turn['speaker']}: {turn.get('text', '')}"
            if turn.get("blip_caption"):
                text += f" [shares a photo of {turn['blip_caption']}]"
            role = "user" if turn["speaker"] == first else "assistant"
            yield Turn(turn["dia_id"].strip(), number, at + place * 1000, role, text)


def _instant(text: str) -> int:
    try:
        moment = dt.datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=dt.UTC)
    except ValueError:
        moment = dt.datetime(2023, 1, 1, tzinfo=dt.UTC)
    return int(moment.timestamp() * 1000)


def evaluate(
    data: Path, *, embedder: str, mode: str = "dreamline", tuning: bool = False, weights: FusionWeights | None = None
) -> tuple[Scores, Scores, dict[str, Scores], float]:
    """Return turn scores, session scores, turn scores by kind of question, and seconds of ingest."""
    turn_scores, session_scores, kinds = Scores(), Scores(), {kind: Scores() for kind in _KINDS.values()}
    ingest = 0.0
    for name, turns, questions in conversations(data):
        if (name in TUNING) != tuning:
            continue
        with tempfile.TemporaryDirectory() as folder:
            agent = agent_with(Path(folder) / name, turns, embedder=embedder, mode=mode)
            asker, seconds = asker_for(agent, weights)
            ingest += seconds
            for question in questions:
                start = time.perf_counter()
                units = asker.units(question.text)
                turn_scores.times.append(time.perf_counter() - start)
                found = metrics([unit for unit, _ in units], question.evidence)
                turn_scores.add(found)
                kinds[question.kind].add(found)
                sessions = frozenset(unit.split(":")[0] for unit in question.evidence)
                session_scores.add(metrics(pooled(units, lambda unit: unit.split(":")[0]), sessions))
            asker.close()
    return turn_scores, session_scores, kinds, ingest


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="locomo10.json, or its folder")
    parser.add_argument("--embedder", action="append", help="static, minilm, e5, none; may be repeated")
    parser.add_argument("--mode", default="dreamline", choices=["dreamline", "openclaw"])
    parser.add_argument("--tuning", action="store_true", help="the two tuning conversations instead of the other eight")
    parser.add_argument("--weights", default="", help="fusion weights such as vector=0.5,neighbours=0.4/0.2")
    options = parser.parse_args(argv)
    data = data_file(options.data, "locomo10.json", "locomo")
    if data is None:
        return 0
    weights = fusion_weights(options.weights)
    for embedder in options.embedder or ["none", "static", "minilm"]:
        turns, sessions, kinds, ingest = evaluate(
            data, embedder=embedder, mode=options.mode, tuning=options.tuning, weights=weights
        )
        name = f"locomo.{embedder}" + ("" if options.mode == "dreamline" else f".{options.mode}")
        figures = [
            Figure(
                f"{name}.{level}.{metric}",
                round(scores.mean(metric), 4),
                "share",
                target=_target(embedder, level, metric),
            )
            for level, scores in (("turn", turns), ("session", sessions))
            for metric in ("recall@5", "recall@10", "hit@1", "hit@5", "hit@10", "mrr")
        ]
        figures += [
            Figure(f"{name}.{kind}.hit@10", round(scores.mean("hit@10"), 4), "share") for kind, scores in kinds.items()
        ]
        figures += [
            Figure(f"{name}.p50", round(turns.p50_ms, 2), "ms"),
            Figure(f"{name}.ingest", round(ingest, 2), "s"),
        ]
        emit(figures)
    return 0


def _target(embedder: str, level: str, metric: str) -> str | None:
    wanted = TARGETS.get((embedder, f"{level}.{metric}"))
    return f">= {wanted}" if wanted else None


if __name__ == "__main__":
    sys.exit(main())
