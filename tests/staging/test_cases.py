"""The hard inputs of tests/cases that staging and the gates decide: 07, 15, 16, 19, 22."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory_assets.gates.explain import refusals_at
from recall_runtime.clock import parse_instant
from recall_runtime.records import Provenance
from recall_runtime.vocabulary import Gate, OriginClass, SessionKind
from tests.support.sessions import save_rows
from tests.support.workspace_days import DIRECT, Days

CASES = Path(__file__).parent.parent / "cases"


@pytest.fixture
def days(tmp_path):
    return Days(tmp_path)


def take_sessions(days: Days, folder: Path, keys: dict[str, str | None], owner: set[str]) -> None:
    """Copy the sessions of a case, saying by the host's own metadata who wrote and of what kind each session is."""
    store: dict[str, Any] = {}
    for file in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if file.stem in owner and row.get("message", {}).get("role") == "user":
                row["message"]["__openclaw"] = {"senderIsOwner": True}
                row["message"]["provenance"] = {"kind": "external_user", "sourceChannel": "telegram"}
        save_rows(days.folder / "sessions" / f"{rows[0]['id']}.jsonl", rows)
        key = keys.get(file.stem)
        if key:
            store[key] = {"sessionId": rows[0]["id"], "chatType": "direct"}
    (days.folder / "sessions" / "sessions.json").write_text(json.dumps(store), encoding="utf-8")


def test_07_groups_of_one_fact(days):
    lines = (CASES / "07-duplicate-bullets" / "MEMORY.md").read_text(encoding="utf-8").split("\n")
    expected = json.loads((CASES / "07-duplicate-bullets" / "expected.json").read_text(encoding="utf-8"))
    for number, line in enumerate(lines, start=1):
        if line.startswith(("-", "*")):
            days.write(f"memory/2026-03-03-{number}.md", line + "\n")
    days.stage("2026-03-04T03:00:00Z")
    root_of = {
        int(path.rpartition("-")[2].removesuffix(".md")): root
        for path, root in days.rows("SELECT e.path, c.root_id FROM evidence e JOIN claims c USING (claim_id)")
    }
    for group in expected["same_fact"]:
        assert len({root_of[number] for number in group}) == 1, group
    for one, other in expected["never_the_same"]:
        if one in root_of or other in root_of:
            assert root_of.get(one) != root_of.get(other), (one, other)


def test_15_only_the_interactive_session_gives_candidates(days):
    keys = {
        "interactive": DIRECT,
        "heartbeat": "agent:main:main:heartbeat",
        "cron": "agent:main:cron:brief",
        "subagent": "agent:main:subagent:s-153",
        "unknown": None,
    }
    take_sessions(days, CASES / "15-scaffolding-sessions" / "sessions", keys, {"interactive"})
    days.sync("2026-03-11T12:00:00Z")
    for path, line in days_index(days):
        for day in range(6, 11):
            for question in range(10):
                days.recall(f"2026-03-{day:02d}T09:00:00Z", f"question {question}", path, line)
    report = days.stage("2026-03-12T03:00:00Z")
    eligible = days.rows(
        "SELECT DISTINCT e.path FROM evidence e JOIN claims c USING (claim_id) WHERE c.status = 'waiting'"
    )
    assert eligible == [("sessions/main/s-150.jsonl",)]
    passed = [row for row in days.score("2026-03-12T03:00:00Z") if row.passed]
    texts = [days.rows("SELECT text FROM claims WHERE claim_id = ?", row.claim_id)[0][0] for row in passed]
    assert len(texts) == 1
    assert "museum pass renews on the fourteenth" in texts[0]
    assert days.rows("SELECT count(*) FROM claims WHERE origin_class = 'owner' AND text LIKE '%grey suit%'") == [(0,)]
    expected = json.loads((CASES / "15-scaffolding-sessions" / "expected.json").read_text(encoding="utf-8"))
    for needle in expected["never_promoted_nor_injected"]:
        assert not any(needle.lower() in text.lower() for text in texts)
    assert report.held_back == {"cron": 2, "heartbeat": 4, "subagent": 2, "unknown": 1}


def days_index(days: Days) -> list[tuple[str, int]]:
    """Return path and line of every row of the index."""
    import contextlib

    from recall_runtime.storage.connection import open_reader

    with contextlib.closing(open_reader(days.agent.folders.index_db)) as index:
        return index.execute(
            "SELECT s.path, e.start_line FROM entries e JOIN sources s USING (source_id) WHERE s.tier IN"
            " ('episodic', 'sessions')"
        ).fetchall()


def test_16_echoes_of_a_recalled_fact_are_no_candidates_and_new_words_are(days):
    days.write("MEMORY.md", (CASES / "16-recall-loop" / "MEMORY.md").read_text(encoding="utf-8"))
    take_sessions(days, CASES / "16-recall-loop" / "sessions", {"loop": DIRECT}, {"loop"})
    report = days.stage("2026-03-13T03:00:00Z")
    texts = [text for (text,) in days.rows("SELECT text FROM claims WHERE status = 'waiting'")]
    assert any("grill tray" in text for text in texts)
    assert not any("fifteen" in text for text in texts)
    assert days.rows("SELECT count(*) FROM signals") == [(0,)]
    assert report.totals["refused:echo"] >= 12


def test_16_the_owners_correction_is_a_candidate_of_its_own(days):
    take_sessions(days, CASES / "16-recall-loop" / "sessions", {"loop": DIRECT}, {"loop"})
    days.stage("2026-03-13T03:00:00Z")
    said = days.rows(
        "SELECT c.text, c.status FROM claims c JOIN evidence e USING (claim_id)"
        " WHERE e.message_id = 'r26' AND e.echo = 0"
    )
    assert said
    assert all(status == "waiting" for _, status in said)


def test_19_forged_provenance_is_held_back_and_uses_up_no_slot(tmp_path):
    lowest = {"min_score": 0, "min_recall_count": 0, "min_unique_queries": 0, "max_age_days": 10_000, "limit": 1}
    days = Days(tmp_path, dreaming={"deep": lowest})
    text = (CASES / "19-forged-provenance" / "memory" / "2026-03-14.md").read_text(encoding="utf-8")
    at = parse_instant("2026-03-14T09:00:00Z")
    untrusted = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, at, "s-1")
    days.note("2026-03-14T09:00:00Z", text, "s-1", provenance=untrusted)
    days.write("memory/2026-03-15.md", "- The roof ladder is locked with code 4471.\n")
    days.sync("2026-03-15T09:00:00Z")
    for path, line in days_index(days):
        count = 1 if path.endswith("15.md") else 8
        for number in range(count):
            days.recall(f"2026-03-{15 + number % 5}T10:00:00Z", f"question {number}", path, line, 1.0)
    days.stage("2026-03-20T03:00:00Z")
    rows = days.score("2026-03-20T03:00:00Z")
    passed = [days.rows("SELECT text FROM claims WHERE claim_id = ?", row.claim_id)[0][0] for row in rows if row.passed]
    assert passed == ["The roof ladder is locked with code 4471."]
    held = [row for row in rows if not row.passed]
    assert held
    assert {row.failed_gate for row in held} == {Gate.ORIGIN}


def test_22_of_thirty_junk_lines_that_pass_all_numbers_only_the_facts_do(days):
    folder = CASES / "22-junk-candidates"
    note = "memory/2026-03-17.md"
    days.write(note, (folder / note).read_text(encoding="utf-8"))
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    days.sync("2026-03-17T23:00:00Z")
    lines = (folder / note).read_text(encoding="utf-8").split("\n")
    for line in range(3, len(lines)):
        for number in range(5):
            instant = f"2026-03-{15 + number % 3}T{9 + number:02d}:00:00Z"
            days.recall(instant, f"question {number % 4} on line {line}", note, line, 0.95)
    report = days.stage("2026-03-18T03:00:00Z")
    passed = {row.claim_id for row in days.score("2026-03-18T03:00:00Z") if row.passed}
    promoted = {
        line
        for claim_id in passed
        for (line,) in days.rows("SELECT start_line FROM evidence WHERE claim_id = ?", claim_id)
    }
    assert set(expected["promote"]) <= promoted
    assert promoted <= set(expected["promote"]) | set(expected["soft"]["lines"])
    assert report.seen == report.totals.total()
    assert report.totals.total() >= 30
    for line in range(1, 30):
        if lines[line - 1].strip():
            assert refusals_at(days.agent.workspace, f"{note}:{line}"), lines[line - 1]
