"""Lane 1: who may be triggered, the block, the labelled set."""

import functools
import json
import random
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors
from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.index.sync import sync
from recall_runtime.recall.triggers import TriggerHit, TriggerSet, load_entries, trigger_block
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.storage.connection import open_reader
from recall_runtime.transcripts.envelopes import cut_user
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier
from tests.support.index_agents import agent_over, write_files

LABELLED = Path(__file__).parent / "data" / "triggers.jsonl"


def entry(
    text: str = "The oven runs hot.", triggers: tuple[str, ...] = ("oven door",), **changes: object
) -> IndexEntry:
    made = IndexEntry(
        entry_id=1,
        path="MEMORY.md",
        tier=Tier.CURATED,
        start_line=3,
        end_line=3,
        text=text,
        heading_path=(),
        day=None,
        annotations=Annotations(triggers),
        status=EntryStatus.ACTIVE,
        provenance=Provenance(OriginClass.AGENT, SessionKind.INTERACTIVE, 0),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def hits(entries: list[IndexEntry], message: str, active: tuple[str, ...] = ()) -> list[str]:
    found = TriggerSet(entries).hits(message, threshold=0.72, max_entries=3, active=active)
    return [hit.entry.text for hit in found]


def test_a_message_that_holds_the_phrase_triggers_the_entry() -> None:
    assert hits([entry()], "the oven door squeaks") == ["The oven runs hot."]


class Agreeing:
    """A model for which all texts mean the same."""

    dimensions, identity, calibration, worth_caching = 64, "agreeing", Calibration(0.0, 1.0), False

    def embed_query(self, text: str) -> Vector:
        return np.full(self.dimensions, 1 / 8, dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        time.sleep(0)  # as any model does, it lets other threads run
        return np.tile(self.embed_query(""), (len(texts), 1))


def test_messages_that_come_at_once_leave_each_entry_its_vector() -> None:
    """What is made for the first messages is kept for all later ones."""
    numbers = range(1, 9)
    entries = [entry(f"Fact {n}.", (f"word{n} thing{n}",), entry_id=n, start_line=n) for n in range(1, 100)]
    messages = [f"word{n} thing{n} beside many words that no phrase holds at all" for n in numbers]

    def scores(made: TriggerSet, message: str, together: threading.Barrier | None = None) -> list[float]:
        if together:
            together.wait()
        return [hit.score for hit in made.hits(message, threshold=0.72, max_entries=3)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            made, together = TriggerSet(entries, Agreeing()), threading.Barrier(len(messages))
            with ThreadPoolExecutor(len(messages)) as pool:
                list(pool.map(functools.partial(scores, made, together=together), messages))
            assert [scores(made, message) for message in messages] == [[1.0]] * len(messages)
    finally:
        sys.setswitchinterval(before)


def test_many_entries_are_scored_like_each_one_alone() -> None:
    words = ["oven", "door", "gateway", "port", "mill", "grain", "keys", "crane", "valve", "lamp", "rope", "desk"]
    made = random.Random(5)  # noqa: S311 - a reproducible set
    entries = [
        entry(
            " ".join(made.sample(words, 5)),
            tuple(" ".join(made.sample(words, made.randint(1, 4))) for _ in range(3)),
            entry_id=number,
            start_line=number,
        )
        for number in range(1, 300)
    ]
    embedder = StaticEmbedder()
    together = TriggerSet(entries, embedder)
    for message in (" ".join(made.sample(words, size)) for size in (1, 2, 3, 5, 8)):
        alone = [
            hit for one in entries for hit in TriggerSet([one], embedder).hits(message, threshold=0.72, max_entries=1)
        ]
        alone.sort(key=lambda hit: (-round(hit.score, 6), hit.entry.start_line))
        found = together.hits(message, threshold=0.72, max_entries=300)
        assert [(hit.entry.entry_id, hit.phrase) for hit in found] == [
            (hit.entry.entry_id, hit.phrase) for hit in alone
        ]
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in alone], abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"tier": Tier.EPISODIC}, id="tier of a daily note"),
        pytest.param({"path": "memory/2026-01-01.md"}, id="path of a daily note under the curated tier"),
        pytest.param({"path": "sessions/main/a.jsonl", "tier": Tier.SESSIONS}, id="transcript"),
        pytest.param({"status": EntryStatus.SUPERSEDED}, id="superseded"),
        pytest.param({"provenance": Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, 0)}, id="untrusted"),
        pytest.param({"provenance": Provenance(OriginClass.SYSTEM, SessionKind.CRON, 0)}, id="system"),
    ],
)
def test_what_is_not_active_curated_and_eligible_is_never_triggered(changes: dict[str, object]) -> None:
    """The check in Python, whatever the SQL let through."""
    assert hits([entry(**changes)], "the oven door squeaks") == []


def test_a_project_entry_needs_every_one_of_its_keys() -> None:
    tagged = entry(annotations=Annotations(("oven door",), None, "git.example/a/b; git.example/a/c"))
    assert hits([tagged], "oven door", ("git.example/a/b",)) == []
    assert hits([tagged], "oven door", ("git.example/a/b", "git.example/a/c")) == [tagged.text]


def test_entries_of_the_user_file_ignore_the_project() -> None:
    tagged = entry(path="USER.md", annotations=Annotations(("oven door",), None, "git.example/a/b"))
    assert hits([tagged], "oven door") == [tagged.text]


def test_at_most_three_by_score_then_path_then_line() -> None:
    rows = [entry(f"Fact {line}.", entry_id=line, start_line=line) for line in range(9, 0, -1)]
    assert hits(rows, "oven door") == ["Fact 1.", "Fact 2.", "Fact 3."]


def test_only_eligible_rows_leave_the_index(tmp_path: Path) -> None:
    memory = "- Oven hot. <!-- trigger: oven -->\n- No phrase.\n"
    note = "- Oven cold. <!-- trigger: oven -->\n"
    workspace = write_files(tmp_path / "ws", {"MEMORY.md": memory, "memory/2026-03-01.md": note})
    agent = agent_over(workspace, tmp_path / "home")
    sync(agent)
    reader = open_reader(agent.folders.index_db)
    found = load_entries(reader)
    reader.close()
    assert [item.text for item in found] == ["Oven hot."]


def test_the_block_is_well_formed_whatever_the_entry_says() -> None:
    hostile = entry("</active_memory_plugin> & \"x\" 'y' <script>")
    block = trigger_block([TriggerHit(hostile, 1.0, "oven")], 1_800)
    assert block.text.startswith("Context:\n<active_memory_plugin>\n")
    inside = ET.fromstring(block.text.removeprefix("Context:\n"))  # noqa: S314 - our own text
    assert inside.text == "\n- </active_memory_plugin> & \"x\" 'y' <script> (Source: MEMORY.md#L3)\n"


def test_a_later_transcript_is_cut_free_of_the_block() -> None:
    block = trigger_block([TriggerHit(entry(), 1.0, "oven")], 1_800)
    own = cut_user(f"{block.text}\n\nHow hot today?")
    assert (own.text, own.recalled) == ("How hot today?", True)


@pytest.mark.parametrize("budget", [0, 60, 130, 200, 400, 1_800])
def test_the_block_keeps_its_budget(budget: int) -> None:
    rows = [TriggerHit(entry("<&>" * 300, entry_id=n), 1.0, "oven") for n in range(3)]
    block = trigger_block(rows, budget)
    assert len(block.text) <= budget
    assert len(block.hits) + block.left_out == 3


@pytest.mark.parametrize("split", ["test", "tune"])
def test_precision_and_recall_on_the_labelled_set(split: str) -> None:
    """Asked for: at least 0.97 and 0.90 on the half kept apart (issue on recall, 4)."""
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    right = wrong = missed = 0
    embedder = StaticEmbedder()
    for row in (row for row in rows if row["split"] == split):
        made = TriggerSet([entry(row["entry"], tuple(row["triggers"]))], embedder)
        fires = bool(made.hits(row["message"], threshold=0.72, max_entries=3))
        right += fires and row["fires"]
        wrong += fires and not row["fires"]
        missed += row["fires"] and not fires
    assert right / (right + wrong) >= 0.97
    assert right / (right + missed) >= 0.90


def test_the_labelled_set_is_as_large_and_broad_as_asked() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 300
    assert {row["language"] for row in rows} >= {"en", "de", "es", "fr", "pt", "ru", "zh", "ja"}
    splits = ("tune", "test", "fresh")
    assert {(row["split"], row["fires"]) for row in rows} == {(a, b) for a in splits for b in (True, False)}
