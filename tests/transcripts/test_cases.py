"""The shared cases as far as reading transcripts goes."""

import json
from collections import Counter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from recall_runtime.clock import age_days, day_of, parse_instant
from recall_runtime.provenance.sessions import SessionFacts, classify_session
from recall_runtime.transcripts.protocol import Role, TranscriptReading
from recall_runtime.transcripts.reader import read_transcript
from recall_runtime.vocabulary import OriginClass, SessionKind

CASES = Path(__file__).parents[1] / "cases"
OWNERS = classify_session(None, "agent:main:main")


def read(name: str, facts: SessionFacts | None = OWNERS) -> TranscriptReading:
    path = CASES / name
    return read_transcript(path, path.name, facts=facts)


def test_a_broken_transcript_is_read_in_three_passes(tmp_path: Path) -> None:
    """Case 06: faults are counted, the cut line waits, nothing is taken in twice."""
    expected = json.loads((CASES / "06-broken-transcript/expected.json").read_text())
    file = tmp_path / "s-60.jsonl"
    file.write_bytes((CASES / "06-broken-transcript/stage-1.jsonl").read_bytes())
    first = read_transcript(file, "s-60", facts=OWNERS)
    assert [m.message_id for m in first.messages] == expected["after_stage_1"]["messages_with_text"]
    assert first.faults == expected["after_stage_1"]["reported"]
    file.write_bytes((CASES / "06-broken-transcript/stage-2.jsonl").read_bytes())
    stage = expected["after_stage_2 (same file, grown)"]
    second = read_transcript(
        file, "s-60", facts=OWNERS, from_offset=first.read_to, expected_prefix_hash=first.prefix_hash
    )
    assert [m.message_id for m in second.messages] == stage["new"]
    third = read_transcript(
        file, "s-60", facts=OWNERS, from_offset=second.read_to, expected_prefix_hash=second.prefix_hash
    )
    assert third.messages == ()
    whole = read_transcript(file, "other-name", facts=OWNERS)
    assert [m.message_hash for m in whole.messages] == [m.message_hash for m in (*first.messages, *second.messages)]


def test_a_plain_string_is_legal_content() -> None:
    assert read("06-broken-transcript/stage-2.jsonl").messages[3].text == "Plain string content is legal too."


def test_instants_fall_on_the_day_of_the_zone() -> None:
    """Case 14: one rule for days, whatever the transcript's own offset."""
    expected = json.loads((CASES / "14-timezone-boundary/expected.json").read_text())
    at = {m.message_id: m.at for m in read("14-timezone-boundary/transcript.jsonl").messages}
    for message_id, zones in expected["note_date_by_zone"].items():
        for zone, day in zones.items():
            instant = at[message_id]
            assert instant is not None
            assert day_of(instant, ZoneInfo(zone)).isoformat() == day, (message_id, zone)


def test_odd_clocks_never_crash() -> None:
    """Case 14: no offset is UTC, a number is milliseconds, the future has age 0, nonsense is unknown."""
    messages = {m.message_id: m for m in read("14-timezone-boundary/transcript.jsonl").messages}
    assert messages["n1"].at == parse_instant("2026-03-08T02:30:00Z")
    assert messages["n2"].at == messages["z2"].at
    future = messages["n3"].at
    assert future is not None
    assert age_days(future, parse_instant("2026-03-10T00:00:00Z")) == 0.0
    for odd in ("n4", "n5"):
        assert messages[odd].at is None
        assert messages[odd].provenance.observed_at > 0


def test_abandoned_branches_are_read_and_marked() -> None:
    """Case 14 hangs its odd clocks on one parent: the last of them is the active branch."""
    active = {m.message_id: m.active_branch for m in read("14-timezone-boundary/transcript.jsonl").messages}
    assert [name for name, on in active.items() if not on] == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    ("file", "key", "kind", "origins"),
    [
        ("interactive", "agent:main:main", SessionKind.INTERACTIVE, {"owner": 1, "agent": 1}),
        ("heartbeat", "agent:main:main:heartbeat", SessionKind.HEARTBEAT, {"system": 4}),
        ("cron", "agent:main:cron:1", SessionKind.CRON, {"system": 2}),
        ("subagent", "agent:main:subagent:s-153", SessionKind.SUBAGENT, {"system": 2}),
        ("unknown", None, SessionKind.UNKNOWN, {"untrusted": 1}),
    ],
)
def test_only_the_interactive_session_has_an_owner(
    file: str, key: str | None, kind: SessionKind, origins: dict[str, int]
) -> None:
    """Case 15: all are read, with the counts that explain what was held back."""
    reading = read(f"15-scaffolding-sessions/sessions/{file}.jsonl", classify_session(None, key) if key else None)
    assert reading.facts.kind is kind
    assert Counter(m.provenance.origin_class.value for m in reading.messages) == origins
    assert {m.provenance.session_kind for m in reading.messages} == {kind}


def test_injected_parts_are_cut_and_their_echoes_marked() -> None:
    """Case 16: the owner's words beside an injected part stay; what the turn repeats is an echo."""
    messages = read("16-recall-loop/sessions/loop.jsonl").messages
    users = {m.message_id: m for m in messages if m.role is Role.USER}
    assert not any("oven runs fifteen" in m.text for m in users.values())
    assert users["r25"].text == "Remember this as well: the grill tray is kept in the garage."
    assert users["r26"].text == "Correction, the repair man was here: the oven is exact now."
    assert {m.provenance.origin_class for m in users.values()} == {OriginClass.OWNER}
    assert all(m.recalled_turn for m in messages if m.role is Role.ASSISTANT)
    assert len(messages) == 26


def test_no_secret_leaves_the_reader() -> None:
    """Case 23: secrets are masked before anything is stored, look-alikes stay."""
    expected = json.loads((CASES / "23-secrets/expected.json").read_text())
    reading = read("23-secrets/sessions/" + next((CASES / "23-secrets/sessions").iterdir()).name)
    text = "\n".join(m.text for m in reading.messages)
    assert not [secret for secret in expected["never_in_any_derived_store"] if secret in text]
    for kept in ("Hill Top", "blue folder", "4242-4242", "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"):
        assert kept in text
