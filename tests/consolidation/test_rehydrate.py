"""Looking sources up again (openclaw-algorithms 25.1)."""

import json

import pytest

from recall_runtime.storage.schema import open_index
from recall_runtime.vocabulary import Gate
from tests.support.curated import insert_row
from tests.support.night import Night

FACT = "The ram is called Otto since spring."
NOTE = "memory/2026-03-18.md"


def test_a_moved_line_is_cited_where_it_is_now(night: Night) -> None:
    """P09: ten lines put in above do not lose the fact."""
    claim = night.note(FACT)
    file = night.agent.workspace / NOTE
    file.write_text("# 2026-03-18\n\n" + "- filler line about nothing\n" * 10 + f"- {FACT}\n")
    night.sweep(claim)
    assert f"- {FACT} Source: {NOTE}#L13-L13" in night.memory


@pytest.mark.parametrize(
    "content",
    [
        "# 2026-03-18\n\n- The ram is called Anton since spring.\n",
        "# 2026-03-18\n",
        f"# 2026-03-18\n\n- ~~{FACT}~~ Wrong.\n",
        f"# D\n\n<!-- openclaw:dreaming:light:start -->\n- {FACT}\n<!-- openclaw:dreaming:light:end -->\n",
        f"# 2026-03-18\n\n```\n- {FACT}\n```\n",
        None,
    ],
    ids=["changed", "deleted", "struck", "managed-block", "fence", "file-gone"],
)
def test_what_the_note_no_longer_says_is_refused_and_stays_eligible(night: Night, content: str | None) -> None:
    """Only the live note counts."""
    claim = night.note(FACT)
    file = night.agent.workspace / NOTE
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    report = night.sweep(claim)
    assert report.refusals == {Gate.REHYDRATION: 1}
    assert not (night.agent.workspace / "MEMORY.md").exists()
    assert night.claim(claim) == ("waiting", None, None)


def test_a_comment_added_since_changes_nothing(night: Night) -> None:
    """Annotations between recording and apply are ignored."""
    claim = night.note(FACT)
    file = night.agent.workspace / NOTE
    file.write_text(file.read_text().replace(FACT, FACT + " <!-- seen by me -->"))
    night.sweep(claim)
    assert f"- {FACT} Source: {NOTE}#L3-L3" in night.memory


def test_the_nearest_of_two_identical_lines_wins_and_a_tie_drops_it(night: Night) -> None:
    """Two equally near places are unresolved."""
    claim = night.note(FACT)
    file = night.agent.workspace / NOTE
    file.write_text(f"- {FACT}\n\n\n- {FACT}\n")  # line 3 was stored: line 4 is nearer
    assert night.sweep(claim, dry_run=True).changes[0].line.startswith(f"- {FACT} Source: {NOTE}#L4-L4")
    file.write_text(f"\n- {FACT}\n\n- {FACT}\n")
    assert night.sweep(claim).refusals == {Gate.REHYDRATION: 1}


def test_a_message_is_found_in_the_index(night: Night) -> None:
    """Evidence of a transcript is checked against the message it came from."""
    claim = night.note(FACT)
    night.state.execute(
        "UPDATE evidence SET source = 'transcript', path = 'sessions/main/a.jsonl', message_id = 'm7', session_id = 's'"
    )
    assert night.sweep(claim).refusals == {Gate.REHYDRATION: 1}  # no index yet
    index = open_index(night.agent.folders.index_db)
    source = insert_row(
        index, "sources", path="sessions/main/a.jsonl", kind="transcript", tier="sessions", hash="h", mtime_ns=0, size=1
    )
    entry = {"source_id": source, "ordinal": 0, "start_line": 12, "end_line": 12, "text_hash": "t", "block": "message"}
    entry |= {"origin_class": "owner", "session_kind": "interactive", "observed_at": 1, "message_id": "m7"}
    insert_row(index, "entries", text=f"By the way. {FACT}", **entry)
    index.close()
    night.sweep(claim)
    assert f"- {FACT} Source: sessions/main/a.jsonl#L12-L12" in night.memory
    (sources,) = night.state.execute("SELECT sources FROM ledger").fetchone() or ("[]",)
    assert json.loads(str(sources))[0]["message_id"] == "m7"


def test_evidence_of_a_forgotten_session_does_not_count(night: Night) -> None:
    """A tombstone is checked before anything is written."""
    claim = night.note(FACT)
    night.state.execute("UPDATE evidence SET session_id = 'gone'")
    night.state.execute("INSERT INTO tombstones VALUES ('gone', 'asked', 1)")
    assert night.sweep(claim).refusals == {Gate.REHYDRATION: 1}


def test_evidence_that_may_not_rise_does_not_count(night: Night) -> None:
    """Origin is checked on each piece of evidence, not on the claim alone."""
    claim = night.note(FACT)
    night.state.execute("UPDATE evidence SET origin_class = 'untrusted'")
    assert night.sweep(claim).refusals == {Gate.REHYDRATION: 1}


def test_three_places_are_three_citations_in_the_ledger(night: Night) -> None:
    """The entry cites the newest, the ledger all."""
    for day in ("2026-03-10", "2026-03-12", "2026-03-14"):
        claim = night.note(FACT, day)
    night.sweep(claim)
    assert "Source: memory/2026-03-14.md#L3-L3" in night.memory
    (sources,) = night.state.execute("SELECT sources FROM ledger").fetchone() or ("[]",)
    assert [source["day"] for source in json.loads(str(sources))] == ["2026-03-14", "2026-03-12", "2026-03-10"]
