"""The table of one sweep."""

from pathlib import Path

from memory_assets.sweep import run_sweep
from recall_runtime.cli.sweep_table import GATE_MEANINGS, report_data, sweep_lines
from recall_runtime.vocabulary import Gate
from tests.support.workspace_days import Days


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


def test_a_dry_run_counts_what_the_sweep_then_holds_back(tmp_path: Path) -> None:
    days = Days(tmp_path)
    mark = " <!-- project: github.com/x/ferry -->"
    for day in ("03", "04", "05"):
        for hour, port in (("10", "8080"), ("11", "9100")):
            text = f"The ferry gateway listens on port {port}.{mark}"
            days.note(f"2026-03-{day}T{hour}:00:00Z", text, f"{day}-{port}")
    night = days.at("2026-03-06T03:00:00Z")
    told = report_data(run_sweep(night, publishing=False, dry_run=True))
    held = run_sweep(night, publishing=False).failed_gates
    assert held == {Gate.SUPERSEDED: 1}  # the older port passed all gates and was refused by the newer one
    assert {row["gate"]: row["count"] for row in told["not_promoted"]} == held
