"""What counts as a signal, once: recalls and observations."""

import itertools

import pytest

from memory_assets.staging import recalls
from recall_runtime.clock import parse_instant
from recall_runtime.vocabulary import Gate
from tests.support.sessions import SessionBuilder
from tests.support.workspace_days import Days

NOTE = "memory/2026-03-03.md"
PIER = "The Harbourline ferry leaves from pier 41877."
LONG = (
    "- Paused the Harbourline refactor, will pick up tomorrow. Cleaned up 212 MB of temp data. "
    f"{PIER} Waiting for Ines to send the slides.\n"
)


@pytest.fixture
def days(tmp_path):
    return Days(tmp_path)


def signals(days, kind="recall"):
    return days.rows(
        "SELECT c.text, s.context, s.day, s.score FROM signals s JOIN claims c USING (claim_id)"
        " WHERE s.kind = ? ORDER BY s.day, s.context, c.text",
        kind,
    )


def test_one_question_a_day_counts_once_with_its_best_score(days):
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    for hour, hit in ((9, 0.7), (10, 0.9), (11, 0.8)):
        days.recall(f"2026-03-04T{hour:02d}:00:00Z", "Which pier? ", NOTE, 1, hit)
    days.stage("2026-03-05T03:00:00Z")
    assert [(day, hit) for _, _, day, hit in signals(days)] == [("2026-03-04", 0.9)]


def test_the_same_question_on_another_day_counts_again(days):
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    for day in ("04", "05"):
        days.recall(f"2026-03-{day}T09:00:00Z", "which pier", NOTE, 1)
    days.stage("2026-03-06T03:00:00Z")
    assert len(signals(days)) == 2


@pytest.mark.parametrize("key", ["agent:main:cron:nightly", "agent:main:main:heartbeat", "agent:main:subagent:x", None])
def test_recalls_of_machine_sessions_count_nothing(days, key):
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "which pier", NOTE, 1, key=key)
    days.stage("2026-03-05T03:00:00Z")
    assert signals(days) == []


@pytest.mark.parametrize("lane", ["trigger", "recall"])
def test_what_our_own_lanes_inject_counts_nothing(days, lane):
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "which pier", NOTE, 1)
    days.rows("UPDATE recall_events SET lane = ?", lane)
    days.stage("2026-03-05T03:00:00Z")
    assert signals(days) == []


def test_in_a_long_bullet_only_the_sentence_that_answers_gets_the_recall(days):
    days.write(NOTE, LONG)
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "which pier does the ferry leave from", NOTE, 1)
    days.stage("2026-03-05T03:00:00Z")
    assert [text for text, *_ in signals(days)] == [PIER]


def test_a_question_without_a_shared_word_goes_to_what_holds_something_specific(days):
    days.write(NOTE, f"- Nothing much happened in the afternoon today. {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "Fähranleger", NOTE, 1)
    days.stage("2026-03-05T03:00:00Z")
    assert [text for text, *_ in signals(days)] == [PIER]


def test_a_hit_beside_a_much_better_one_counts_nothing(days):
    from recall_runtime.signals.recalls import record_external_recall

    days.write(NOTE, f"- {PIER}\n- Lamp oil is kept in shed 20931.\n")
    days.sync("2026-03-03T12:00:00Z")
    results = [
        {"path": NOTE, "startLine": 1, "endLine": 1, "score": 0.9},
        {"path": NOTE, "startLine": 2, "endLine": 2, "score": 0.4},
    ]
    at = "2026-03-04T09:00:00Z"
    record_external_recall(
        days.at(at),
        query="which pier",
        results=results,
        at_ms=parse_instant(at),
        session_key="agent:main:telegram:direct:owner",
    )
    report = days.stage("2026-03-05T03:00:00Z")
    assert [text for text, *_ in signals(days)] == [PIER]
    assert report.bystanders == 1


def test_a_recall_follows_its_line_to_where_it_moved(days):
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "which pier", NOTE, 1)
    days.write(NOTE, f"# Day\n\n- Another line that was put above it, number 77123.\n- {PIER}\n")
    days.stage("2026-03-05T03:00:00Z")
    assert [text for text, *_ in signals(days)] == [PIER]


def test_note_then_recall_and_recall_then_note_give_the_same_counts(tmp_path):
    """P08: one claim, whatever lane saw it first."""
    outcomes = []
    for number, staged_first in enumerate((True, False)):
        days = Days(tmp_path / str(number))
        days.write(NOTE, f"- {PIER}\n")
        days.sync("2026-03-03T12:00:00Z")
        if staged_first:
            days.stage("2026-03-04T03:00:00Z")
        for hour in (9, 10, 11):
            days.recall(f"2026-03-04T{hour:02d}:00:00Z", f"question {hour} about the pier", NOTE, 1)
        days.stage("2026-03-05T03:00:00Z")
        claims = days.rows("SELECT claim_id, root_id, text, status FROM claims")
        outcomes.append((claims, signals(days)))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][1]) == 3


def test_a_statement_alone_is_no_signal(days):
    days.says("2026-03-03T09:00:00Z", "s-1", PIER)
    days.note("2026-03-03T09:05:00Z", f"- {PIER}", "s-1")
    days.stage("2026-03-04T03:00:00Z")
    assert signals(days, "observation") == []


def test_three_sessions_on_three_days_pass_the_gates(days):
    for day in ("01", "02", "03"):
        days.says(f"2026-03-{day}T09:00:00Z", f"s-{day}", PIER)
    days.stage("2026-03-04T03:00:00Z")
    assert len(signals(days, "observation")) == 3
    (row,) = days.score("2026-03-04T03:00:00Z")
    assert row.passed, row


def test_two_sessions_do_not(days):
    for day in ("02", "03"):
        days.says(f"2026-03-{day}T09:00:00Z", f"s-{day}", PIER)
    days.stage("2026-03-04T03:00:00Z")
    (row,) = days.score("2026-03-04T03:00:00Z")
    assert row.failed_gate is Gate.MIN_RECALL_COUNT


@pytest.mark.parametrize("order", list(itertools.permutations(("01", "02", "03"))))
def test_the_order_of_arrival_does_not_matter(tmp_path, order):
    days = Days(tmp_path)
    for night, day in enumerate(order, start=4):
        days.says(f"2026-03-{day}T09:00:00Z", f"s-{day}", PIER)
        days.stage(f"2026-03-{night:02d}T03:00:00Z")
    assert [(context, day) for _, context, day, _ in signals(days, "observation")] == [
        (f"session:s-{day}", f"2026-03-{day}") for day in ("01", "02", "03")
    ]


def test_the_same_line_in_three_notes_by_hand_counts_by_the_day(days):
    for day in ("01", "02", "03"):
        days.write(f"memory/2026-03-{day}.md", f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    assert [context for _, context, *_ in signals(days, "observation")] == [
        f"day:2026-03-{day}" for day in ("01", "02", "03")
    ]


def test_a_note_of_no_known_session_on_a_day_a_session_said_it_is_no_second_context(days):
    days.says("2026-03-03T09:00:00Z", "s-1", PIER)
    days.write(NOTE, f"- {PIER}\n")
    days.stage("2026-03-04T03:00:00Z")
    assert signals(days, "observation") == []


def test_repetition_of_something_unspecific_counts_nothing(days):
    for day in ("01", "02", "03"):
        days.says(f"2026-03-{day}T09:00:00Z", f"s-{day}", "The harbour was busy with tourists again.")
    days.stage("2026-03-04T03:00:00Z")
    assert signals(days, "observation") == []


def test_routine_lines_that_differ_in_their_values_alone_count_nothing(days):
    for day in range(1, 8):
        days.write(
            f"memory/2026-03-{day:02d}.md",
            f"- The night export wrote {41000 + day} rows.\n- The night export wrote 49999 rows.\n",
        )
    days.stage("2026-03-08T03:00:00Z")
    assert signals(days, "observation") == []


def test_what_a_session_says_after_it_was_shown_is_no_observation(days):
    days.says("2026-03-01T09:00:00Z", "s-1", PIER)
    days.says("2026-03-02T09:00:00Z", "s-2", PIER)
    days.stage("2026-03-03T03:00:00Z")
    assert len(signals(days, "observation")) == 2
    key = "agent:main:webchat:direct:owner"
    days.recall("2026-03-03T08:00:00Z", "which pier", "sessions/main/s-1.jsonl", 2, key=key)
    days.says("2026-03-03T09:00:00Z", "s-3", PIER, key=key)
    days.stage("2026-03-04T03:00:00Z")
    assert [context for _, context, *_ in signals(days, "observation")] == ["session:s-1", "session:s-2"]


def test_an_untrusted_session_is_no_observation(days):
    days.says("2026-03-01T09:00:00Z", "s-1", PIER)
    for day in ("02", "03"):
        session = SessionBuilder(f"g-{day}", start=parse_instant(f"2026-03-{day}T09:00:00Z"))
        session.user("For boats: pier 41877 is where Harbourline leaves.", owner=False)
        days.session(session, key="agent:main:telegram:group:7", chat_type="group")
    days.stage("2026-03-04T03:00:00Z")
    assert signals(days, "observation") == []


def test_five_nights_without_a_question_promote_nothing(days):
    """P40: reading the same note again is no demand."""
    days.write(NOTE, f"- {PIER}\n")
    for night in range(4, 9):
        days.stage(f"2026-03-{night:02d}T03:00:00Z")
        assert days.score(f"2026-03-{night:02d}T03:00:00Z") == []


@pytest.mark.parametrize("reading", [1, 2, 3])
def test_a_recall_that_is_recorded_while_others_are_read_is_counted_once(days, reading):
    """Before each of the statements that read the pending ones: none of them may step over what it did not see."""
    days.write(NOTE, f"- {PIER}\n")
    days.sync("2026-03-03T12:00:00Z")
    days.recall("2026-03-04T09:00:00Z", "first question", NOTE, 1)
    statements: list[str] = []

    def another_turn_answers(_cursor, sql, _bindings):
        statements.append(sql)
        if len(statements) == reading:
            days.recall("2026-03-04T09:00:01Z", "second question", NOTE, 1)
        return True

    with days.state() as state:
        state.exec_trace = another_turn_answers
        hits, last = recalls.pending_hits(state)
    assert len(statements) >= reading
    newest = days.rows("SELECT max(event_id) FROM recall_events")[0][0]
    counted = [hit.event_id for hit in hits]
    pending = list(range(last + 1, newest + 1))
    assert counted + pending == [1, 2]
