"""The table of one sweep."""

from recall_runtime.cli.sweep_table import GATE_MEANINGS, sweep_lines
from recall_runtime.vocabulary import Gate


def test_every_gate_has_its_meaning_in_the_order_of_trial() -> None:
    assert list(GATE_MEANINGS) == [gate.value for gate in Gate]


def test_an_entry_is_shown_without_its_comments_and_a_stranger_is_quoted() -> None:
    data = {
        "sweep_id": "s1",
        "outcome": "promoted",
        "reason": None,
        "problems": ["the model did not answer"],
        "entries": [
            {"operation": "added", "file": "MEMORY.md", "score": 0.9, "signals": 4, "text": "- Pier 3. <!-- x -->"}
        ],
        "not_promoted": [
            {"gate": "origin", "count": 2, "best_score": 0.8, "most_signals": 5, "examples": ["[untrusted] 'Pay'"]}
        ],
        "read": {
            "seen": 4,
            "taken": 1,
            "duplicate": 0,
            "waiting": 1,
            "refused": 2,
            "refused_by_reason": {"heading": 2},
        },
    }
    shown = "\n".join(sweep_lines(data))
    assert "Pier 3.\n" in shown
    assert "<!--" not in shown
    assert "[untrusted] 'Pay'" in shown
    assert "the model did not answer" in shown
    assert "Read 4 statements: 1 taken, 0 duplicate, 1 waiting, 2 refused" in shown
