"""What a turn injects at the end of the chain: nothing untrusted, dead, mechanical or conflicted, whatever is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.recall.turn import turn
from recall_runtime.records import Provenance
from recall_runtime.vocabulary import OriginClass, SessionKind, Tier
from tests.end_to_end.chain import CASES, OPEN_GATES, REAL, Chain
from tests.support.workspace_days import DIRECT

FILES = json.loads((REAL / "expectations.json").read_text(encoding="utf-8"))
NIGHT, MORNING = "2026-03-25T03:00:00Z", "2026-03-25T08:00:00Z"
FORBIDDEN = ("stale", "untrusted", "secret", "conflict")
# Kept whole: these sentences name the dead value and say which one counts.
WHOLE = {("08", "raised from 40 to 60"), ("14", "15902"), ("09", "10401"), ("09", "10403")}


def injected(chain: Chain, message: str) -> str:
    """Return everything a fresh conversation of the owner gets for ``message``."""
    return turn(chain.at(MORNING), message, session_key="agent:main:main", fresh_start=True).text


def swept(folder: Path, entry: dict[str, Any]) -> Chain:
    """Place a real file, recall all of it and let the night come."""
    chain = Chain(folder, dreaming=OPEN_GATES)
    chain.place(REAL / entry["file"], entry["place_as"])
    chain.sync("2026-03-20T03:00:00Z")
    chain.recall_all(("2026-03-21", "2026-03-22", "2026-03-23"), ("which one was it?",), Tier.EPISODIC)
    chain.sweep(NIGHT)
    chain.sync(MORNING)
    return chain


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["file"][:2])
def test_no_real_file_brings_dead_foreign_or_mechanical_text_into_a_turn(tmp_path: Path, entry: dict[str, Any]) -> None:
    chain = swept(tmp_path, entry)
    # Junk that stands in MEMORY.md itself is its owner's: never a candidate, not ours to hide.
    kinds = FORBIDDEN if entry["place_as"] == "MEMORY.md" else (*FORBIDDEN, "scaffold")
    needles = [item["needle"] for kind in kinds for item in entry.get(kind, [])]
    asked = injected(chain, "Tell me about " + ", ".join(needles) + " and the boiler, please.")
    found = [needle for needle in needles if needle in asked and (entry["file"][:2], needle) not in WHOLE]
    assert not found


def test_real_03_the_entry_of_the_lineage_is_what_counts(tmp_path: Path) -> None:
    entry = next(entry for entry in FILES if entry["file"].startswith("03"))
    asked = injected(swept(tmp_path, entry), "What was the boiler code for the heating again?")
    assert "42108" in asked
    assert "42102" not in asked


def test_19_no_forged_line_is_injected(tmp_path: Path) -> None:
    chain = Chain(tmp_path, dreaming=OPEN_GATES)
    text = (CASES / "19-forged-provenance" / "memory" / "2026-03-14.md").read_text(encoding="utf-8")
    at = parse_instant("2026-03-24T09:00:00Z")
    untrusted = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, at, "s-1")
    chain.note("2026-03-24T09:00:00Z", text, "s-1", provenance=untrusted)
    chain.sync("2026-03-24T10:00:00Z")
    chain.recall_all(("2026-03-24",), ("a", "b", "c", "d"))
    chain.sweep(NIGHT)
    asked = injected(chain, "How do I install, setup and update from setup.example? Send the invoices.")
    for needle in ("setup.example", "pay.example", "signature check"):
        assert needle not in asked.replace("How do I install", "")


def test_15_nothing_of_a_scaffolding_session_is_injected(tmp_path: Path) -> None:
    chain = Chain(tmp_path, dreaming=OPEN_GATES)
    keys = {
        "interactive": DIRECT,
        "heartbeat": "agent:main:main:heartbeat",
        "cron": "agent:main:cron:brief",
        "subagent": "agent:main:subagent:s-153",
        "unknown": None,
    }
    chain.take_sessions(CASES / "15-scaffolding-sessions" / "sessions", keys, {"interactive"})
    chain.sync("2026-03-11T12:00:00Z")
    chain.recall_all(("2026-03-11", "2026-03-12"), ("one", "two", "three"))
    chain.sweep("2026-03-12T03:00:00Z")
    chain.sync(MORNING)
    wanted = json.loads((CASES / "15-scaffolding-sessions" / "expected.json").read_text(encoding="utf-8"))
    asked = injected(chain, "Boiler pressure, bridge, cloakroom, tailor, museum pass?").lower()
    assert "museum pass renews on the fourteenth" in asked
    for needle in wanted["never_promoted_nor_injected"]:
        assert needle not in asked
