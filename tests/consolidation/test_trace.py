"""The story of an entry, back and forward."""

from dataclasses import replace

import pytest

from memory_assets.consolidation.trace import trace
from recall_runtime.clock import FixedClock
from recall_runtime.errors import RefusedError
from recall_runtime.remember.request import remember
from tests.support.curated import NOW, insert_row
from tests.support.night import Night

BOATHOUSE = "<!-- project: github.com/e/boathouse -->"


def test_a_trace_reaches_back_to_lines_and_questions(night: Night) -> None:
    """Lines, messages, recalls, sweep, operation, pre-image."""
    night.write("# M\n")
    claim = night.note(f"The boathouse queue is jobs.11. {BOATHOUSE}", "2026-03-01", path="memory/2026-03-01.md")
    event = insert_row(
        night.state,
        "recall_events",
        at=NOW,
        day="2026-03-02",
        query="which queue",
        query_hash="q",
        session_kind="interactive",
        lane="search",
    )
    insert_row(
        night.state,
        "signals",
        claim_id=claim,
        kind="recall",
        context="q",
        day="2026-03-02",
        score=0.9,
        observed_at=NOW,
        event_id=event,
    )
    night.sweep(claim)
    story = trace(night.state, claim)
    (operation,) = story.operations
    assert story.entry_key == f"memory:claim:{claim}"
    assert story.lineage_key == f"github.com/e/boathouse|jobs.#|{claim}"
    assert (operation.sweep_id, operation.operation, operation.file) == ("s1", "added", "MEMORY.md")
    assert [(source.path, source.start) for source in operation.sources] == [("memory/2026-03-01.md", 3)]
    assert operation.gate["score"] == 0.8
    assert operation.pre_image_hash
    assert [(place.path, place.start_line, place.live) for place in story.evidence] == [
        ("memory/2026-03-01.md", 3, True)
    ]
    assert [(signal.kind, signal.query) for signal in story.signals] == [("recall", "which queue")]


def test_a_trace_follows_supersession_both_ways(night: Night) -> None:
    """A chain of three values."""
    keys = []
    for day in range(1, 4):
        claim = night.note(f"The boathouse queue is jobs.{day}{day}. {BOATHOUSE}", f"2026-03-0{day}")
        night.sweep(claim)
        keys.append(f"memory:claim:{claim}")
    assert trace(night.state, keys[0]).superseded_by == (keys[1], keys[2])
    assert trace(night.state, keys[2]).supersedes == (keys[1], keys[0])


def test_what_was_remembered_on_request_is_followed_and_found_by_words_too(night: Night) -> None:
    """It has a row in the ledger and no claim that anybody staged."""
    keys = []
    for number in (11, 22):
        agent = replace(night.agent, clock=FixedClock(NOW + number))
        made = remember(agent, f"The boathouse queue is jobs.{number}.", session_key="agent:main:main", sender="owner")
        assert made.entry_key
        keys.append(made.entry_key)
    first, second = trace(night.state, "queue is jobs.11"), trace(night.state, "QUEUE is jobs")
    assert (first.entry_key, first.superseded_by, first.supersedes) == (keys[0], (keys[1],), ())
    assert (second.entry_key, second.superseded_by, second.supersedes) == (keys[1], (), (keys[0],))


def test_an_unknown_entry_is_refused(night: Night) -> None:
    """One line with the cure."""
    with pytest.raises(RefusedError, match="No write made"):
        trace(night.state, "nothing")
