"""Triggers: precision and recall on the labelled set, and the time a message takes at any corpus size.

Belongs here: this one measurement; the labelled set lies with the tests of the recall room.
Does not belong here: correctness (``tests/recall``).
"""

import argparse
import functools
import json
import random
import sys
from pathlib import Path

from benchmarks.figures import Figure, emit, percentile, time_each
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.recall.intent import asks_about_past
from recall_runtime.recall.triggers import TriggerSet
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

DATA = Path(__file__).parent.parent / "tests" / "recall" / "data"
THRESHOLD = 0.72
BOUND_MS = 1.0


def labelled(name: str, split: str) -> list[dict[str, object]]:
    """Return the rows of one half of a labelled set."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]


def entry_of(number: int, text: str, triggers: tuple[str, ...]) -> IndexEntry:
    """Return a curated entry with triggers."""
    return IndexEntry(
        entry_id=number,
        path="MEMORY.md",
        tier=Tier.CURATED,
        start_line=number,
        end_line=number,
        text=text,
        heading_path=(),
        day=None,
        annotations=Annotations(triggers),
        status=EntryStatus.ACTIVE,
        provenance=Provenance(OriginClass.AGENT, SessionKind.INTERACTIVE, 0),
    )


def counted(pairs: list[tuple[bool, bool]]) -> tuple[float, float]:
    """Return precision and recall of (found, right) pairs."""
    right = sum(found and label for found, label in pairs)
    return right / max(1, sum(found for found, _ in pairs)), right / max(1, sum(label for _, label in pairs))


def other_fires(embedder: Embedder | None) -> float:
    """Return how often a message fires an entry it was not written for, all entries of all languages at once."""
    rows = labelled("triggers.jsonl", "test")
    known = sorted({(str(row["entry"]), tuple(row["triggers"])) for row in rows})  # type: ignore[arg-type]  # JSON
    made = TriggerSet([entry_of(number, *pair) for number, pair in enumerate(known, start=1)], embedder)
    found = [
        hit.entry.annotations.triggers != tuple(row["triggers"])  # type: ignore[arg-type]  # JSON
        for row in rows
        for hit in made.hits(str(row["message"]), threshold=THRESHOLD, max_entries=3)
    ]
    return sum(found) / len(rows)


def quality(split: str, embedder: Embedder | None) -> tuple[float, float]:
    """Return precision and recall at the threshold on one half."""
    pairs: list[tuple[bool, bool]] = []
    for number, row in enumerate(labelled("triggers.jsonl", split), start=1):
        made = TriggerSet([entry_of(number, str(row["entry"]), tuple(row["triggers"]))], embedder)  # type: ignore[arg-type]  # JSON
        pairs.append((bool(made.hits(str(row["message"]), threshold=THRESHOLD, max_entries=3)), bool(row["fires"])))
    return counted(pairs)


def messages_and_entries(size: int) -> tuple[list[str], list[IndexEntry]]:
    """Return the labelled messages and ``size`` entries: the labelled ones, then others of the same words."""
    rows = labelled("triggers.jsonl", "test") + labelled("triggers.jsonl", "tune")
    generator = random.Random(1)  # noqa: S311 - a reproducible workload
    words = sorted({word for row in rows for word in str(row["message"]).split()})
    known = {(str(row["entry"]), tuple(row["triggers"])) for row in rows}  # type: ignore[arg-type]  # JSON
    entries = [entry_of(number, text, triggers) for number, (text, triggers) in enumerate(sorted(known), start=1)]
    for number in range(len(entries) + 1, size + 1):
        phrases = tuple(" ".join(generator.sample(words, generator.randint(1, 3))) for _ in range(3))
        entries.append(entry_of(number, " ".join(generator.sample(words, 12)), phrases))
    return [str(row["message"]) for row in rows], entries[:size]


def main(argv: list[str]) -> int:
    """Run the measurement; return 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args(argv)
    try:
        embedder: Embedder | None = StaticEmbedder()
    except EmbedderError:
        embedder = None
    figures: list[Figure] = []
    for split in ("test", "tune", "fresh"):  # fresh: written before the rules were read
        precision, recall = quality(split, embedder)
        targets = (">= 0.97", ">= 0.90") if split == "test" else (None, None)
        figures.append(Figure(f"triggers.precision_{split}", round(precision, 4), "share", target=targets[0]))
        figures.append(Figure(f"triggers.recall_{split}", round(recall, 4), "share", target=targets[1]))
    words_only = quality("test", None)
    figures.append(Figure("triggers.precision_test_without_vectors", round(words_only[0], 4), "share"))
    figures.append(Figure("triggers.recall_test_without_vectors", round(words_only[1], 4), "share"))
    figures.append(Figure("triggers.other_entries_fired_test", round(other_fires(embedder), 4), "a message"))
    worst = 0.0
    for size in (200, 512, 4_096):
        messages, entries = messages_and_entries(size)
        made = TriggerSet(entries, embedder)
        spent = [
            min(time_each(functools.partial(made.hits, message, threshold=THRESHOLD, max_entries=3), 5))
            for message in messages
        ]
        p50, p99 = percentile(spent, 0.5), percentile(spent, 0.99)
        figures.append(Figure(f"triggers.p50_{size}_entries", p50, "ms", note="best of five a message"))
        figures.append(Figure(f"triggers.p99_{size}_entries", p99, "ms", target=f"<= {BOUND_MS:g} ms"))
        worst = max(worst, p99)
    pairs = [
        (asks_about_past(str(row["message"])), bool(row["asks"])) for row in labelled("recall_intent.jsonl", "test")
    ]
    precision, recall = counted(pairs)
    f1 = 2 * precision * recall / (precision + recall)
    figures.append(Figure("recall_intent.f1_test", round(f1, 4), "F1", target=">= 0.95"))
    texts = [str(row["message"]) for row in labelled("recall_intent.jsonl", "test")]
    spent = [min(time_each(functools.partial(asks_about_past, text), 5)) for text in texts]
    figures.append(Figure("recall_intent.p99", percentile(spent, 0.99), "ms"))
    emit(figures)
    return 0 if worst <= BOUND_MS and figures[0].value >= 0.97 and figures[1].value >= 0.90 and f1 >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
