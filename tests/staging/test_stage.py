"""What staging makes of notes and sessions: claims, evidence, states, accounting."""

import os

import pytest

from recall_runtime.clock import parse_instant
from tests.support.sessions import SessionBuilder
from tests.support.workspace_days import Days

NOTE = "memory/2026-03-03.md"
PIER = "The Harbourline ferry leaves from pier 41877."


@pytest.fixture
def days(tmp_path):
    return Days(tmp_path)


def states(days, like="%"):
    return days.rows("SELECT text, status, reason FROM claims WHERE text LIKE ? ORDER BY text", like)


def test_a_hand_written_line_becomes_a_waiting_claim_with_one_place(days):
    days.write(NOTE, f"# 2026-03-03\n\n- {PIER}\n")
    report = days.stage("2026-03-04T03:00:00Z")
    assert states(days) == [(PIER, "waiting", None)]
    assert days.rows("SELECT source, path, start_line, end_line, day, live, echo FROM evidence") == [
        ("note", NOTE, 3, 3, "2026-03-03", 1, 0)
    ]
    assert report.verdicts[NOTE]["taken"] == 1


def test_seen_is_the_sum_of_all_verdicts(days):
    days.write(NOTE, f"# Log\n\n- {PIER}\n- {PIER}\n- TODO\n\n| a | b |\n| --- | --- |\n\n```\n- code\n```\n")
    report = days.stage("2026-03-04T03:00:00Z")
    assert report.seen == report.totals.total()
    assert (report.totals["taken"], report.totals["duplicate"]) == (1, 1)
    assert report.totals["refused:heading"] == 1
    assert report.totals["refused:fenced_code"] == 1
    assert report.totals["refused:table_rule"] == 2  # the header row says what the columns are, the rule nothing
    stored = days.rows("SELECT sum(lines) FROM accounting WHERE sweep_id = ?", "2026-03-04T03:00:00Z")
    assert stored == [(report.seen,)]


def test_each_place_remembers_whether_it_says_the_claim_as_a_correction(days):
    days.says("2026-03-03T09:00:00Z", "s-1", PIER)
    days.write(NOTE, f"- Update: {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    assert days.rows("SELECT source, correction FROM evidence ORDER BY source") == [("note", 1), ("transcript", 0)]
    assert len(states(days)) == 1


def test_staging_ten_times_changes_nothing(days):
    days.write(NOTE, f"- {PIER}\n")
    days.says("2026-03-03T09:00:00Z", "s-1", PIER)
    days.stage("2026-03-04T03:00:00Z")
    days.recall("2026-03-04T10:00:00Z", "which pier", NOTE, 1)
    days.stage("2026-03-05T03:00:00Z")
    before = days.dump()
    for night in range(6, 16):
        report = days.stage(f"2026-03-{night:02d}T03:00:00Z")
        assert (report.sources, report.staged, report.recalls, report.observations) == (0, (), 0, 0)
    assert days.dump() == before


def test_a_touched_file_with_the_same_content_is_not_read_again(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, f"- {PIER}\n")
    assert days.stage("2026-03-05T03:00:00Z").sources == 0


def test_a_moved_line_keeps_its_evidence_with_new_lines(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    (before,) = days.rows("SELECT evidence_id FROM evidence")
    days.write(NOTE, f"# Day\n\nSomething else stands here now, at length.\n\n- {PIER}\n")
    days.stage("2026-03-05T03:00:00Z")
    assert days.rows("SELECT evidence_id, start_line, live FROM evidence WHERE claim_id = ?", claim_of(days, PIER)) == [
        (*before, 5, 1)
    ]


def claim_of(days, text):
    ((claim_id,),) = days.rows("SELECT claim_id FROM claims WHERE text = ?", text)
    return claim_id


def test_a_line_taken_out_withdraws_its_claim_and_a_new_one_brings_it_back(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, "- (withdrawn by the owner)\n")
    report = days.stage("2026-03-05T03:00:00Z")
    assert report.gone == 1
    assert states(days, "The Harbour%") == [(PIER, "withdrawn", "gone")]
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-06T03:00:00Z")
    assert states(days, "The Harbour%") == [(PIER, "waiting", None)]


def test_a_line_taken_out_is_the_later_word_than_the_session_that_said_it(days):
    days.write(NOTE, f"- {PIER}\n")
    days.says("2026-03-03T09:00:00Z", "s-1", PIER)
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, "- (withdrawn by the owner)\n")
    days.stage("2026-03-05T03:00:00Z")
    assert states(days, "The Harbour%") == [(PIER, "withdrawn", "gone")]


def test_a_session_after_the_line_was_taken_out_says_it_anew(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, "- (withdrawn by the owner)\n")
    days.stage("2026-03-05T03:00:00Z")
    days.says("2026-03-06T09:00:00Z", "s-9", PIER)
    days.stage("2026-03-07T03:00:00Z")
    assert states(days, "The Harbour%") == [(PIER, "waiting", None)]


def test_a_deleted_note_withdraws_its_claims(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    (days.agent.workspace / NOTE).unlink()
    days.stage("2026-03-05T03:00:00Z")
    assert states(days) == [(PIER, "withdrawn", "gone")]


def test_a_struck_line_withdraws_its_claim(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, f"- ~~{PIER}~~\n")
    report = days.stage("2026-03-05T03:00:00Z")
    assert report.totals["refused:struck"] == 1
    assert states(days, "The Harbour%") == [(PIER, "withdrawn", "gone")]


def test_old_notes_are_outside_the_look_back_until_one_of_their_lines_is_recalled(days):
    old = "memory/2025-06-01.md"
    days.write(old, f"- {PIER}\n")
    assert days.stage("2026-03-04T03:00:00Z").sources == 0
    days.recall("2026-03-04T10:00:00Z", "which pier", old, 1)
    report = days.stage("2026-03-05T03:00:00Z")
    assert (report.sources, report.recalls) == (1, 1)


def test_a_changed_old_note_that_was_staged_is_read_again(days):
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    days.write(NOTE, "- (withdrawn by the owner)\n")
    assert days.stage("2026-12-01T03:00:00Z").gone == 1


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:cron:nightly", "cron"),
        ("agent:main:main:heartbeat", "heartbeat"),
        ("agent:main:subagent:s-7", "subagent"),
    ],
)
def test_notes_of_machine_sessions_are_kept_and_refused(days, key, kind):
    days.note("2026-03-03T09:00:00Z", f"- {PIER}", "s-7", key=key)
    report = days.stage("2026-03-04T03:00:00Z")
    ((status, reason),) = days.rows("SELECT status, reason FROM claims")
    assert status == "refused"
    assert reason in ("origin", "session_kind")
    assert report.held_back[kind] >= 1
    assert report.totals["taken"] == 0


def test_a_label_above_a_nested_item_stays_with_it(days):
    days.write(NOTE, "- Harbourline ferry\n  - leaves from pier 41877 every morning.\n")
    days.stage("2026-03-04T03:00:00Z")
    assert ("Harbourline ferry: leaves from pier 41877 every morning.",) in days.rows("SELECT text FROM claims")


def test_an_echo_mark_makes_no_claim(days):
    days.write(NOTE, f"- (recalled) {PIER}\n")
    report = days.stage("2026-03-04T03:00:00Z")
    assert report.totals == {"refused:echo": 1}
    assert states(days) == []


def test_assistant_text_of_a_turn_that_recalled_memory_makes_no_claim(days):
    session = SessionBuilder("s-1", start=parse_instant("2026-03-03T09:00:00Z"))
    session.user("And for the islands?", injected=f"Recalled from memory: {PIER}")
    session.assistant("The island boat leaves from pier 41878 at noon.")
    days.session(session)
    report = days.stage("2026-03-04T03:00:00Z")
    assert report.totals["refused:echo"] == 1
    assert states(days) == []


def test_a_writer_given_key_is_kept_as_lineage_key(days):
    days.note("2026-03-03T09:00:00Z", f"- {PIER}", "s-1", supersedes_key="ferry-pier")
    days.stage("2026-03-04T03:00:00Z")
    assert days.rows("SELECT lineage_key, key_is_given FROM claims") == [("ferry-pier", 1)]


def test_a_heading_named_after_a_known_project_gives_its_key_to_what_names_nothing_itself(days):
    days.write(
        NOTE,
        f"- {PIER} <!-- project: github.com/acme/harbourline -->\n\n## Harbourline\n\n"
        "- The port is 12501.\n- The port of Kelpworks is 12502.\n",
    )
    days.stage("2026-03-04T03:00:00Z")
    assert days.rows("SELECT text, project_key FROM claims WHERE text LIKE 'The port%' ORDER BY text") == [
        ("The port is 12501.", "github.com/acme/harbourline"),
        ("The port of Kelpworks is 12502.", None),
    ]


def test_the_cap_lets_recalled_groups_in_before_new_ones(tmp_path):
    days = Days(tmp_path, dreaming={"light": {"limit": 1}})
    days.write(NOTE, f"- {PIER}\n- Lamp oil is kept in shed 20931.\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-03T13:00:00Z", "where is the lamp oil", NOTE, 2)
    report = days.stage("2026-03-04T03:00:00Z")
    (staged,), (waiting,) = report.staged, report.waiting
    assert days.rows("SELECT text FROM claims WHERE claim_id = ?", staged) == [("Lamp oil is kept in shed 20931.",)]
    assert days.rows("SELECT text FROM claims WHERE claim_id = ?", waiting) == [(PIER,)]
    assert report.totals == {"taken": 1, "waiting": 1}
    assert days.stage("2026-03-05T03:00:00Z").staged == (waiting,)


def test_six_hundred_new_lines_push_no_recalled_group_out(tmp_path):
    """P35: groups with recalls keep their signals and their place, whatever mass of new lines follows."""
    days = Days(tmp_path, dreaming={"light": {"limit": 20}})
    days.write(NOTE, "".join(f"- Depot {n} keeps part number {41000 + n}.\n" for n in range(20)))
    days.sync("2026-03-03T12:00:00Z")
    for line in range(1, 21):
        days.recall("2026-03-03T13:00:00Z", f"part {41000 + line - 1}", NOTE, line)
    first = days.stage("2026-03-04T03:00:00Z")
    days.write("memory/2026-03-04.md", "".join(f"- Crate {n} holds lot {52000 + n}.\n" for n in range(600)))
    days.stage("2026-03-05T03:00:00Z")
    counted = days.rows("SELECT count(DISTINCT claim_id) FROM signals WHERE kind = 'recall'")
    assert (len(first.staged), counted) == (20, [(20,)])


def saved_at(days, path, instant):
    """Give a hand-written file the time at which its owner saved it."""
    seconds = parse_instant(instant) // 1000
    os.utime(days.agent.workspace / path, (seconds, seconds))


def test_an_unsigned_line_is_as_old_as_when_it_was_first_seen(days):
    """A note without a day has the time of its file: saving another line of it states nothing anew."""
    path = "memory/harbour.md"
    days.write(path, f"- {PIER}\n")
    saved_at(days, path, "2026-03-03T12:00:00Z")
    days.stage("2026-03-04T03:00:00Z")
    (first,) = days.rows("SELECT observed_at, day FROM evidence WHERE claim_id = ?", claim_of(days, PIER))
    days.write(path, f"- {PIER}\n- The Harbourline kiosk takes card 55120 only.\n")
    saved_at(days, path, "2026-03-09T12:00:00Z")
    days.stage("2026-03-10T03:00:00Z")
    assert days.rows("SELECT observed_at, day FROM evidence WHERE claim_id = ?", claim_of(days, PIER)) == [first]


def test_an_unsigned_line_that_was_gone_is_stated_anew_when_it_comes_back(days):
    path = "memory/harbour.md"
    for text, instant, night in (
        (f"- {PIER}\n", "2026-03-03T12:00:00Z", "2026-03-04T03:00:00Z"),
        ("- Nothing to say today, all is quiet.\n", "2026-03-06T12:00:00Z", "2026-03-07T03:00:00Z"),
        (f"- {PIER}\n", "2026-03-09T12:00:00Z", "2026-03-10T03:00:00Z"),
    ):
        days.write(path, text)
        saved_at(days, path, instant)
        days.stage(night)
    assert days.rows("SELECT observed_at, day, live FROM evidence WHERE claim_id = ?", claim_of(days, PIER)) == [
        (parse_instant("2026-03-09T12:00:00Z"), "2026-03-09", 1)
    ]
