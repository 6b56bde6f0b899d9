"""The graph of the ledger: ids without words, the chain of replacements, bad rows, no circle ever."""

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_assets.lineage.graph import EntryState, LedgerRow, LineageGraph, build_graph
from memory_assets.lineage.ledger import read_graph
from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.storage.connection import open_writer
from recall_runtime.storage.schema import open_state
from tests.support.state_rows import NOON, add_claim, add_promotion, make_agent


def _row(number: int, key: str, text: str, **changes: Any) -> LedgerRow:
    values: dict[str, Any] = {
        "ledger_id": number,
        "sweep_id": f"sweep-{number}",
        "at": NOON + number,
        "file": "MEMORY.md",
        "operation": "added",
        "entry_key": key,
        "claim_id": key,
        "text": text,
    }
    return LedgerRow(**(values | changes))


def _source(path: str, line: int, **more: Any) -> dict[str, Any]:
    return {"path": path, "start": line, "end": line} | more


def _states(graph: LineageGraph) -> dict[str, EntryState]:
    return {entry.entry_key: entry.state for entry in graph.entries}


def test_note_evidence_and_entry_are_joined() -> None:
    source = _source("memory/2026-03-09.md", 7, evidence_id=12, session_id="s1")
    graph = build_graph([_row(1, "aaaaaaaaaaaa", "- A", sources=(source,))])
    assert graph.edges == (
        ("evidence/2026-03-09-L7", "entries/aaaaaaaaaaaa"),
        ("notes/2026-03-09", "evidence/2026-03-09-L7"),
    )
    (evidence,) = graph.evidence
    assert (evidence.path, evidence.start_line, evidence.day, evidence.session_id) == (
        "memory/2026-03-09.md",
        7,
        "2026-03-09",
        "s1",
    )


def test_two_entries_that_cite_one_line_share_its_node() -> None:
    source = _source("memory/2026-03-09.md", 7)
    graph = build_graph(
        [_row(1, "aaaaaaaaaaaa", "- A", sources=(source,)), _row(2, "bbbbbbbbbbbb", "- B", sources=(source,))]
    )
    assert len(graph.evidence) == len(graph.notes) == 1


@pytest.mark.parametrize(
    ("path", "node"),
    [
        pytest.param("memory/2026-03-09.md", r"notes/2026-03-09", id="the plain daily note is called after its day"),
        pytest.param("memory/2026-03-09-divorce.md", r"notes/[0-9a-f]{12}", id="a slug is memory text"),
        pytest.param("memory/daily/2026-03-09.md", r"notes/[0-9a-f]{12}", id="another file of the same day"),
        pytest.param("memory/projects/secret-client.md", r"notes/[0-9a-f]{12}", id="topic notes by hash"),
        pytest.param("sessions/main/abc.jsonl", r"notes/[0-9a-f]{12}", id="transcripts by hash"),
    ],
)
def test_a_note_id_tells_no_memory(path: str, node: str) -> None:
    graph = build_graph([_row(1, "aaaaaaaaaaaa", "- A", sources=(_source(path, 1),))])
    assert re.fullmatch(node, graph.notes[0].node_id)
    assert graph.notes[0].is_transcript == path.startswith("sessions/")


def test_an_entry_is_called_after_its_claim() -> None:
    graph = build_graph([_row(1, "memory:claim:aaaaaaaaaaaa", "- A")])
    assert graph.entries[0].node_id == "entries/aaaaaaaaaaaa"


def test_an_entry_key_made_of_words_is_hashed() -> None:
    graph = build_graph([_row(1, "memory:memory/2026-03-09-divorce.md:3:3", "- A")])
    assert re.fullmatch(r"entries/[0-9a-f]{12}", graph.entries[0].node_id)


def test_a_superseded_entry_points_to_its_successor_and_stays() -> None:
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- Paint it green"),
            _row(2, "bbbbbbbbbbbb", "- Paint it grey", operation="superseded", priors=("- Paint it green",)),
            _row(3, "cccccccccccc", "- Paint it red", operation="superseded", priors=("- Paint it grey",)),
        ]
    )
    assert _states(graph) == {
        "aaaaaaaaaaaa": EntryState.SUPERSEDED,
        "bbbbbbbbbbbb": EntryState.SUPERSEDED,
        "cccccccccccc": EntryState.ACTIVE,
    }
    assert graph.edges == (
        ("entries/aaaaaaaaaaaa", "entries/bbbbbbbbbbbb"),
        ("entries/bbbbbbbbbbbb", "entries/cccccccccccc"),
    )


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5])
def test_of_two_values_that_take_turns_the_last_one_is_active(rounds: int) -> None:
    """Written again, an entry retires the one that had retired it, however often; the edges make no circle."""
    lines = {"aaaaaaaaaaaa": "- Paint it green", "bbbbbbbbbbbb": "- Paint it grey"}
    keys = [*lines] * 3
    rows = [_row(1, keys[0], lines[keys[0]])]
    for number in range(1, rounds + 1):
        priors = (lines[keys[number - 1]],)
        rows.append(_row(number + 1, keys[number], lines[keys[number]], operation="superseded", priors=priors))
    graph = build_graph(rows)
    assert _states(graph) == {keys[rounds]: EntryState.ACTIVE, keys[rounds - 1]: EntryState.SUPERSEDED}
    assert graph.edges == ((f"entries/{keys[rounds - 1]}", f"entries/{keys[rounds]}"),)


@pytest.mark.parametrize("operation", ["dropped", "merged", "superseded"])
def test_what_a_sweep_that_was_taken_back_did_to_an_entry_never_happened(operation: str) -> None:
    """The entry is in its file again, whatever way it had left it."""
    taken_back = {
        "dropped": [_row(2, "aaaaaaaaaaaa", "- A", sweep_id="late", operation="dropped")],
        "merged": [_row(2, "bbbbbbbbbbbb", "- A.", sweep_id="late", operation="merged", priors=("- A",))],
        "superseded": [_row(2, "bbbbbbbbbbbb", "- B", sweep_id="late", operation="superseded", priors=("- A",))],
    }[operation]
    undone = [
        _row(3, row.entry_key, row.text, sweep_id=UNDONE_BY + "late", operation="undone", claim_id=None)
        for row in taken_back
    ]
    graph = build_graph([_row(1, "aaaaaaaaaaaa", "- A"), *taken_back, *undone])
    assert _states(graph)["aaaaaaaaaaaa"] is EntryState.ACTIVE


def test_a_merged_entry_lives_on_in_the_other() -> None:
    graph = build_graph(
        [_row(1, "aaaaaaaaaaaa", "- A"), _row(2, "bbbbbbbbbbbb", "- A.", operation="merged", priors=("- A",))]
    )
    assert _states(graph) == {"aaaaaaaaaaaa": EntryState.MERGED, "bbbbbbbbbbbb": EntryState.ACTIVE}


def test_a_prior_of_another_file_is_another_entry() -> None:
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- A", file="USER.md"),
            _row(2, "bbbbbbbbbbbb", "- B", operation="superseded", priors=("- A",)),
        ]
    )
    assert _states(graph)["aaaaaaaaaaaa"] is EntryState.ACTIVE


def test_a_prior_written_by_hand_has_no_node() -> None:
    graph = build_graph([_row(1, "bbbbbbbbbbbb", "- B", operation="superseded", priors=("- by hand",))])
    assert graph.edges == ()


def test_undoing_gives_the_replaced_entry_back() -> None:
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- A"),
            _row(2, "bbbbbbbbbbbb", "- B", operation="superseded", priors=("- A",)),
            _row(3, "bbbbbbbbbbbb", "- B", operation="undone", sweep_id=UNDONE_BY + "sweep-2"),
        ]
    )
    assert _states(graph) == {"aaaaaaaaaaaa": EntryState.ACTIVE, "bbbbbbbbbbbb": EntryState.UNDONE}


def test_undoing_a_merge_leaves_the_entry_that_stood_before() -> None:
    first, second = _source("memory/2026-03-08.md", 1), _source("memory/2026-03-09.md", 1)
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- A", sources=(first,)),
            _row(2, "aaaaaaaaaaaa", "- A", operation="merged", sources=(second,)),
            _row(3, "aaaaaaaaaaaa", "- A", operation="undone", sweep_id=UNDONE_BY + "sweep-2"),
        ]
    )
    assert _states(graph) == {"aaaaaaaaaaaa": EntryState.ACTIVE}
    assert [note.day for note in graph.notes] == ["2026-03-08"]


def test_a_sweep_that_runs_again_after_it_was_undone_counts() -> None:
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- A", sweep_id="s"),
            _row(2, "aaaaaaaaaaaa", "- A", operation="undone", sweep_id=UNDONE_BY + "s"),
            _row(3, "aaaaaaaaaaaa", "- A", sweep_id="s"),
        ]
    )
    assert _states(graph) == {"aaaaaaaaaaaa": EntryState.ACTIVE}


def test_a_dropped_entry_says_so() -> None:
    graph = build_graph([_row(1, "aaaaaaaaaaaa", "- A"), _row(2, "aaaaaaaaaaaa", "- A", operation="dropped")])
    assert _states(graph) == {"aaaaaaaaaaaa": EntryState.DROPPED}


def test_two_entries_that_replaced_each_other_in_turn_make_no_circle() -> None:
    graph = build_graph(
        [
            _row(1, "aaaaaaaaaaaa", "- A"),
            _row(2, "bbbbbbbbbbbb", "- B", operation="superseded", priors=("- A",)),
            _row(3, "aaaaaaaaaaaa", "- A", operation="superseded", priors=("- B",)),
        ]
    )
    assert graph.edges == (("entries/bbbbbbbbbbbb", "entries/aaaaaaaaaaaa"),)


_KEYS = st.sampled_from(["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd"])
_OPERATIONS = st.sampled_from(["added", "merged", "superseded", "dropped", "undone", "reconciled"])


@given(st.lists(st.tuples(_KEYS, _OPERATIONS, st.lists(_KEYS, max_size=3)), max_size=30), st.integers(1, 6))
def test_no_ledger_gives_a_circle_or_an_edge_to_nowhere(history: list[tuple[str, str, list[str]]], cap: int) -> None:
    rows = [
        _row(number, key, f"- {key}", operation=operation, priors=tuple(f"- {prior}" for prior in priors))
        for number, (key, operation, priors) in enumerate(history, 1)
    ]
    graph = build_graph(rows, cap=cap)
    known = {entry.node_id for entry in graph.entries}
    assert len(known) == len(graph.entries) <= cap
    assert len(known) + graph.hidden == len({row.entry_key for row in rows})
    waiting = dict.fromkeys(known, 0)
    for upstream, downstream in graph.edges:
        assert {upstream, downstream} <= known
        waiting[downstream] += 1
    free = [node for node, count in waiting.items() if not count]
    while free:
        node = free.pop()
        del waiting[node]
        for upstream, downstream in graph.edges:
            if upstream == node:
                waiting[downstream] -= 1
                if not waiting[downstream]:
                    free.append(downstream)
    assert not waiting


def test_the_cap_keeps_the_newest_and_counts_the_rest() -> None:
    graph = build_graph([_row(number, f"{number:012x}", f"- {number}") for number in range(1, 11)], cap=3)
    assert [entry.entry_key for entry in graph.entries] == [f"{number:012x}" for number in (10, 9, 8)]
    assert graph.hidden == 7


def test_text_of_a_claim_that_lost_its_trust_is_not_carried() -> None:
    graph = build_graph([_row(1, "aaaaaaaaaaaa", "- A", trusted=False)])
    assert graph.entries[0].text is None


def test_broken_rows_are_counted_and_drawn_with_what_is_left(tmp_path: Path) -> None:
    agent = make_agent(tmp_path)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        add_promotion(state, "aaaaaaaaaaaa", "- A", sources="[{not json")
        add_promotion(state, "bbbbbbbbbbbb", "- B", sources=[{"path": 5}, _source("memory/2026-03-09.md", 2)])
    graph = read_graph(agent.folders.state_db)
    assert graph.damaged == 1
    assert len(graph.entries) == 2
    assert [line.start_line for line in graph.evidence] == [2]


def test_the_class_of_the_claim_decides_whether_text_is_shown(tmp_path: Path) -> None:
    agent = make_agent(tmp_path)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        for number, origin in enumerate(("owner", "agent", "system", "untrusted")):
            add_claim(state, f"{number:012x}", "x", origin=origin)
            add_promotion(state, f"{number:012x}", f"- {origin}")
    shown = {entry.text for entry in read_graph(agent.folders.state_db).entries}
    assert shown == {"- owner", "- agent", None}


def test_a_missing_database_is_a_reason(tmp_path: Path) -> None:
    assert "dreamline dream" in (read_graph(tmp_path / "none.sqlite").problem or "")


@pytest.mark.parametrize("content", [b"rubbish" * 500, b"SQLite format 3\0" + b"\xff" * 4000], ids=["text", "header"])
def test_a_damaged_database_is_a_reason(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.sqlite").write_bytes(content)
    assert read_graph(tmp_path / "state.sqlite").problem


def test_a_database_without_a_ledger_is_a_reason(tmp_path: Path) -> None:
    with contextlib.closing(open_state(tmp_path / "state.sqlite")) as connection:
        connection.execute("DROP TABLE ledger")
    assert "ledger" in (read_graph(tmp_path / "state.sqlite").problem or "")


def test_a_database_of_another_program_is_a_reason(tmp_path: Path) -> None:
    with contextlib.closing(open_writer(tmp_path / "state.sqlite")) as connection:
        connection.execute("CREATE TABLE other (a)")
    assert "not Dreamline's" in (read_graph(tmp_path / "state.sqlite").problem or "")
