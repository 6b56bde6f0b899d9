"""Time in a question: the days it names, whether it asks when, and what that does to an answer."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.clock import parse_instant
from recall_runtime.index import times
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.text.words import index_text
from recall_runtime.vocabulary import Corpus
from tests.support.index_agents import agent_over, write_files, write_session

TODAY = dt.date(2026, 3, 20)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        pytest.param("What did I buy on 1 February, 2025?", "2025-02-01", "2025-02-01", id="day first"),
        pytest.param("What broke on October 13, 2025?", "2025-10-13", "2025-10-13", id="month first"),
        pytest.param("the 3rd of May 2025", "2025-05-03", "2025-05-03", id="ordinal"),
        pytest.param("Was war am 3. März 2026?", "2026-03-03", "2026-03-03", id="German"),
        pytest.param("¿Qué pasó el 5 de enero de 2025?", "2025-01-05", "2025-01-05", id="Spanish"),
        pytest.param("le 1er février", "2026-02-01", "2026-02-01", id="French, no year"),
        pytest.param("5 мая 2025", "2025-05-05", "2025-05-05", id="Russian"),
        pytest.param("2025年2月3日有什么事", "2025-02-03", "2025-02-03", id="Chinese"),
        pytest.param("deploy of 2026-02-01", "2026-02-01", "2026-02-01", id="ISO day"),
        pytest.param("reports of 2026-02", "2026-02-01", "2026-02-28", id="ISO month"),
        pytest.param("am 1.2.2026", "2026-02-01", "2026-02-01", id="dots"),
        pytest.param("Where did we camp in June?", "2025-06-01", "2025-06-30", id="the latest June that has begun"),
        pytest.param("Where were we in March?", "2026-03-01", "2026-03-31", id="the month that runs"),
        pytest.param("December 31?", "2025-12-31", "2025-12-31", id="the latest such day"),
        pytest.param("May 2025 invoices", "2025-05-01", "2025-05-31", id="a month with its year"),
    ],
)
def test_a_question_names_days(question: str, first: str, last: str) -> None:
    assert times.periods(question, TODAY) == (times.Period(dt.date.fromisoformat(first), dt.date.fromisoformat(last)),)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("May I ask what June said?", id="a verb and a name"),
        pytest.param("31 February 2024", id="no such day"),
        pytest.param("2023-13-45", id="no such month"),
        pytest.param("limit of 2024 requests", id="a number"),
        pytest.param("Which trips did we make in 2025?", id="a whole year would put undated facts behind"),
        pytest.param("What is planned on April 3?", id="soon: the last or the next"),
        pytest.param("release 1.2.3", id="a version"),
    ],
)
def test_what_is_no_date_names_no_days(question: str) -> None:
    assert times.periods(question, TODAY) == ()


@given(st.text(max_size=300))
def test_any_text_names_only_days_in_order(text: str) -> None:
    assert all(period.first <= period.last for period in times.periods(text, TODAY))


@pytest.mark.parametrize(
    "question",
    [
        *("When did we move?", "And when is it?", "How long has it run?", "On which day was that?"),
        *("Seit wann läuft das?", "¿Cuándo llega?", "Quand part-il ?", "Quando chegou?", "Когда релиз?"),
        *("什么时候搬家", "引っ越しはいつ", "언제 와요"),
    ],
)
def test_a_question_asks_when(question: str) -> None:
    assert times.asks_when(question)


@pytest.mark.parametrize("question", ["What breaks when it rains?", "Who said when?", "The date of the move?"])
def test_a_subordinate_when_asks_for_something_else(question: str) -> None:
    assert not times.asks_when(question)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("We moved last week.", True),
        ("Wir ziehen am Montag um.", True),
        ("Done by 10:30.", True),
        ("Since 2024 it has been green.", True),
        ("昨天下雨了", True),
        ("The cellar is wet.", False),
        ("It may take 20 boxes.", False),
    ],
)
def test_a_text_says_when(text: str, says: bool) -> None:
    assert times.says_when(frozenset(index_text(text).split())) is says


def test_what_was_said_on_the_day_asked_about_comes_first(tmp_path: Path) -> None:
    notes = {f"memory/2026-02-{day:02d}.md": f"- Bought paint for shelf {day}.\n" for day in range(1, 20)}
    agent = agent_over(write_files(tmp_path / "ws", notes), tmp_path / "home")
    sync(agent)
    answer = search(agent, "Which paint did we buy on February 7?")
    assert answer.hits[0].entry.day == "2026-02-07"
    assert {hit.entry.day for hit in answer.hits[1:3]} <= {f"2026-02-{day:02d}" for day in range(8, 15)}


def test_messages_are_of_the_day_they_were_sent(tmp_path: Path) -> None:
    lines = [("user", "The boiler was serviced."), ("assistant", "Noted.")]
    sessions = tmp_path / "sessions"
    early = write_session(sessions, "s1", lines, key="agent:main:one")
    early.write_text(early.read_text(encoding="utf-8").replace("2026-03-19", "2026-01-05"), encoding="utf-8")
    write_session(sessions, "s2", lines, key="agent:main:two")
    agent = agent_over(
        write_files(tmp_path / "ws", {}),
        tmp_path / "home",
        sessions=sessions,
        now_ms=parse_instant("2026-03-20T00:00Z"),
    )
    sync(agent)
    for asked, session in (("5 January", "s1"), ("19 March", "s2")):
        answer = search(agent, f"What about the boiler on {asked}?", corpus=Corpus.SESSIONS)
        assert (answer.hits[0].entry.message_id or "").startswith(session)


def test_a_line_that_says_when_answers_a_question_that_asks_when(tmp_path: Path) -> None:
    note = "- The roof repair is loud.\n- The roof repair ended Tuesday.\n- The roof repair is dear.\n"
    agent = agent_over(write_files(tmp_path / "ws", {"memory/2026-03-02.md": note}), tmp_path / "home")
    sync(agent)
    assert search(agent, "When was the roof repair?").hits[0].entry.start_line == 2
    assert search(agent, "What about the roof repair?").hits[0].entry.start_line != 2
