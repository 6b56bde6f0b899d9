"""A value that returns to an earlier one is learned again; what an undo took back stays out until it is stated anew."""

import datetime as dt

import pytest

from memory_assets.sweep import run_sweep
from recall_runtime.clock import parse_instant
from recall_runtime.curated.history import undo
from recall_runtime.notes.writer import append_note
from tests.support.sessions import SessionBuilder
from tests.support.workspace_days import Days

MARK = " <!-- project: github.com/e/ferry -->"
FIRST, SECOND = "The gateway for ferry listens on port 8080.", "The gateway for ferry listens on port 9090."
NEWEST = "The gateway for ferry listens on port 7070."
REWORDED = "Gateway for ferry listens on port 8080 now."


@pytest.fixture
def days(tmp_path):
    return Days(tmp_path)


def instant(day, hour=3):
    return (dt.datetime(2026, 3, 1, hour, tzinfo=dt.UTC) + dt.timedelta(days=day - 1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def say(days, day, text, session):
    """Note ``text`` in three sessions on three days from ``day`` on; the night after the last may promote it."""
    for number in range(3):
        days.note(instant(day + number, 10), text + (MARK if "ferry" in text else ""), f"{session}-{number}")


def sweep(days, day):
    return run_sweep(days.at(instant(day)), publishing=False)


def curated(days, text):
    """How often ``text`` stands in a curated file as a promoted entry's line that holds."""
    lines = []
    for name in ("MEMORY.md", "USER.md"):
        file = days.agent.workspace / name
        content = file.read_text(encoding="utf-8") if file.exists() else ""
        active = True
        for line in content.splitlines():
            if "status: " in line:
                active = "status: active" in line
            if line.startswith("- ") and active:
                lines.append(line)
    return sum(line.startswith(f"- {text}") for line in lines)


def status(days, text):
    return days.rows("SELECT status FROM claims WHERE text = ?", text)[0][0]


def files(days):
    root = days.agent.workspace
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def first_then_second(days, first=FIRST, second=SECOND):
    """One value was promoted, then another took its place."""
    say(days, 3, first, "a")
    sweep(days, 6)
    assert curated(days, first) == 1
    say(days, 10, second, "b")
    sweep(days, 13)
    assert (curated(days, first), curated(days, second)) == (0, 1)


RETURNS = [
    (FIRST, SECOND, FIRST, "the-same-words"),
    (FIRST, SECOND, REWORDED, "other-words"),
    ("Always give prices in euro.", "Always give prices in Swiss francs.", "Always give prices in euro.", "directive"),
]


@pytest.mark.parametrize(("first", "second", "third"), [row[:3] for row in RETURNS], ids=[row[3] for row in RETURNS])
def test_a_value_that_returns_takes_the_place_of_the_one_in_between(days, first, second, third):
    first_then_second(days, first, second)
    say(days, 17, third, "c")
    assert sweep(days, 20).outcome == "promoted"
    assert curated(days, second) == 0
    assert curated(days, first) + (curated(days, third) if third != first else 0) == 1
    assert status(days, second) == "superseded"


@pytest.mark.parametrize(("first", "second", "third"), [row[:3] for row in RETURNS], ids=[row[3] for row in RETURNS])
def test_further_nights_without_news_change_no_byte(days, first, second, third):
    """Neither value takes the other's place again by itself, however often it had been stated."""
    first_then_second(days, first, second)
    say(days, 17, third, "c")
    sweep(days, 20)
    before, claims = files(days), days.rows("SELECT claim_id, status, reason FROM claims ORDER BY claim_id")
    for night in (21, 22, 23):
        assert sweep(days, night).outcome == "nothing_to_do"
    assert files(days) == before
    assert days.rows("SELECT claim_id, status, reason FROM claims ORDER BY claim_id") == claims


def test_a_directive_that_came_too_late_for_user_md_enters_when_it_is_stated_anew(days):
    """The file held a newer word that no claim stands behind; a still newer one replaces it."""
    days.write(
        "USER.md",
        "# User\n\n## Directives\n\n<!-- observed: 2026-03-20 | status: active -->\n\n- Always give prices in yen.\n",
    )
    euro = "Always give prices in euro."
    say(days, 3, euro, "a")
    for night in (6, 7):
        sweep(days, night)
        assert (curated(days, euro), status(days, euro)) == (0, "superseded")
    say(days, 22, euro, "b")
    sweep(days, 25)
    assert (curated(days, euro), curated(days, "Always give prices in yen.")) == (1, 0)


def test_a_value_may_go_and_come_any_number_of_times(days):
    first_then_second(days)
    for round_, text in enumerate((FIRST, SECOND, FIRST)):
        say(days, 17 + 7 * round_, text, f"again-{round_}")
        sweep(days, 20 + 7 * round_)
        other = SECOND if text == FIRST else FIRST
        assert (curated(days, text), curated(days, other)) == (1, 0)


def edit_above(days):
    note = next((days.agent.workspace / "memory").glob("2026-03-03*.md"))
    note.write_text("- Bought some apples on the way home.\n" + note.read_text(encoding="utf-8"), encoding="utf-8")


def say_in_a_group(days, text=FIRST):
    key = "agent:main:telegram:group:crew"
    append_note(days.at(instant(17, 10)), text + MARK, session_key=key, session_id="crew")


def reword_in_a_group(days):
    say_in_a_group(days, REWORDED)


def say_after_recall(days):
    """A session's agent searches memory, gets the old line and repeats it."""
    talk = SessionBuilder("echo", start=parse_instant(instant(17, 10)))
    talk.user("What was the old port?")
    talk.tool("memory_search", {"query": "old port of the gateway"}, f"memory/2026-03-03.md:1: {FIRST}")
    talk.assistant(FIRST)
    days.session(talk)


def say_it_late(days):
    """A session of the time before the second value is only now read."""
    days.says(instant(8, 10), "late", FIRST)


STATES_NOTHING = [edit_above, say_in_a_group, reword_in_a_group, say_after_recall]


@pytest.mark.parametrize("happening", [*STATES_NOTHING, say_it_late])
def test_what_is_no_newer_statement_brings_no_value_back(days, happening):
    """The old place moved, a stranger's word, an echo, an older statement."""
    first_then_second(days)
    happening(days)
    for night in (18, 19):
        sweep(days, night)
    assert (curated(days, FIRST), curated(days, SECOND)) == (0, 1)
    assert status(days, FIRST) in ("superseded", "refused")


def test_a_value_that_returned_before_a_third_one_came_stays_superseded(days):
    """Newer than what took its place, but not than what took the place of that."""
    first_then_second(days)
    say(days, 20, NEWEST, "c")
    sweep(days, 23)
    assert curated(days, NEWEST) == 1
    days.says(instant(17, 10), "late", FIRST)
    sweep(days, 24)
    assert (curated(days, NEWEST), status(days, FIRST)) == (1, "superseded")


WORDINGS = [FIRST, REWORDED, "The gateway for ferry listens on port 8080 today."]


def taken_back(days, texts=(FIRST, FIRST, FIRST)):
    """What three sessions said was promoted, and the owner took it back the next morning."""
    for number, text in enumerate(texts):
        days.note(instant(3 + number, 10), text + MARK, f"a-{number}")
    report = sweep(days, 6)
    assert sum(curated(days, text) for text in set(texts)) == 1
    with days.state() as state:
        undo(days.at(instant(6, 9)), state, report.sweep_id, now_ms=parse_instant(instant(6, 9)))
    assert sum(curated(days, text) for text in set(texts)) == 0


@pytest.mark.parametrize("texts", [(FIRST,) * 3, WORDINGS], ids=["one-wording", "three-wordings"])
def test_what_was_taken_back_stays_out_in_all_its_wordings(days, texts):
    taken_back(days, texts)
    for night in (7, 8, 9):
        sweep(days, night)
    assert sum(curated(days, text) for text in set(texts)) == 0


def go_on_in_the_same_session(days):
    days.note(instant(6, 11), FIRST + MARK, "a-0")


@pytest.mark.parametrize("happening", [*STATES_NOTHING, go_on_in_the_same_session])
def test_what_was_taken_back_stays_out_when_nobody_states_it_anew(days, happening):
    taken_back(days)
    happening(days)
    for night in (18, 19):
        sweep(days, night)
    assert curated(days, FIRST) == 0


def test_a_new_wording_of_an_old_day_stays_out_with_what_was_taken_back(days):
    """A session from before the undo, read after it, says the same in other words."""
    taken_back(days)
    days.says(instant(4, 11), "old-1", REWORDED)
    days.says(instant(5, 11), "old-2", REWORDED)
    for night in (7, 8):
        sweep(days, night)
    assert status(days, REWORDED) == "waiting"
    assert curated(days, FIRST) + curated(days, REWORDED) == 0


@pytest.mark.parametrize("text", [FIRST, REWORDED], ids=["the-same-words", "other-words"])
def test_what_was_taken_back_counts_again_when_it_is_stated_anew(days, text):
    """A later session says so: then it was right after all."""
    taken_back(days)
    sweep(days, 7)
    say(days, 9, text, "new")
    sweep(days, 12)
    assert curated(days, FIRST) + (curated(days, REWORDED) if text != FIRST else 0) == 1


def test_a_line_taken_back_whose_note_is_deleted_and_restored_stays_out(days):
    """It is the same place in the same session, not a new statement."""
    taken_back(days)
    note = next((days.agent.workspace / "memory").glob("2026-03-03*.md"))
    kept = note.read_bytes()
    note.unlink()
    sweep(days, 7)
    note.write_bytes(kept)
    sweep(days, 8)
    assert curated(days, FIRST) == 0
