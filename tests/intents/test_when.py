"""From words of time to an instant and a recurrence."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.clock import parse_instant
from recall_runtime.intents.when import resolve_when

NOW = parse_instant("2026-03-01T09:00:00Z")  # a Sunday
UTC = ZoneInfo("UTC")
ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "data" / "requests.tsv").read_text(encoding="utf-8").splitlines()[1:]
]
# The labelled requests say the same eight times in each language, in this order.
TIMES = [
    ("2026-03-06T09:00", None),
    ("2026-03-02T14:30", None),
    ("2026-03-01T11:00", None),
    ("2026-03-03T09:00", None),
    ("2026-03-02T09:00", "FREQ=WEEKLY;BYDAY=MO"),
    None,  # noon in English, this evening elsewhere
    ("2026-03-08T09:00", None),
    None,  # six in the evening in English, half past six elsewhere
]
REQUESTS = [
    (text, TIMES[number])
    for language in ("en", "de", "es", "fr", "pt", "ru", "zh", "ja")
    for number, text in enumerate(row[3] for row in ROWS if row[:2] == [language, "time"])
]


@pytest.mark.parametrize(("text", "expected"), [row for row in REQUESTS if row[1] is not None])
def test_the_same_times_in_eight_languages(text: str, expected: tuple[str, str | None]) -> None:
    when = resolve_when(text, NOW, UTC)
    assert when is not None
    assert (when.start.strftime("%Y-%m-%dT%H:%M"), when.rrule) == expected


@pytest.mark.parametrize(
    ("text", "start", "rrule"),
    [
        ("Tell me at noon", "2026-03-01T12:00", None),
        ("at 8:00", "2026-03-02T08:00", None),
        ("heute Abend", "2026-03-01T20:00", None),
        ("esta noche", "2026-03-01T20:00", None),
        ("ce soir", "2026-03-01T20:00", None),
        ("Set an alarm for half past six", "2026-03-02T06:30", None),
        ("auf halb sieben", "2026-03-02T06:30", None),
        ("on Sunday at 8:00", "2026-03-08T08:00", None),
        ("on Sunday at 10:00", "2026-03-01T10:00", None),
        ("in 20 minutes", "2026-03-01T09:20", None),
        ("twenty minutes from now", "2026-03-01T09:20", None),
        ("двадцать минут: через двадцать минут", "2026-03-01T09:20", None),
        ("in einer Viertelstunde", "2026-03-01T09:15", None),
        ("dans un quart d'heure", "2026-03-01T09:15", None),
        ("через час", "2026-03-01T10:00", None),
        ("in einem Monat", "2026-04-01T09:00", None),
        ("every day at 7 pm", "2026-03-01T19:00", "FREQ=DAILY"),
        ("every morning", "2026-03-02T09:00", "FREQ=DAILY"),
        ("every month", "2026-03-02T09:00", "FREQ=MONTHLY"),
        ("every hour", "2026-03-01T10:00", "FREQ=HOURLY"),
        ("on 2026-12-31", "2026-12-31T09:00", None),
        ("am 24.12.", "2026-12-24T09:00", None),
        ("on 29 February", "2028-02-29T09:00", None),
        ("十二月三十一日", "2026-12-31T09:00", None),
        ("12月31日に", "2026-12-31T09:00", None),
    ],
)
def test_single_times(text: str, start: str, rrule: str | None) -> None:
    when = resolve_when(text, NOW, UTC)
    assert when is not None
    assert (when.start.strftime("%Y-%m-%dT%H:%M"), when.rrule) == (start, rrule)


@pytest.mark.parametrize(
    "text",
    [
        "", "remind me some time", "at 25:99", "2026-02-30", "on 31 April", "2020-01-01",
        "on 03/05/2026", "in 0 minutes",
        "on Friday at 25:00",  # no such hour
        "at 9 or 10 tomorrow", "between 9 and 10 tomorrow", "every day at 9 and 18", "tomorrow 9-17 uhr",  # two hours
        "every Monday to Friday", "on Monday and Thursday", "Friday the 14th", "tomorrow, on Friday",  # two days
        "in two weeks on Tuesday", "in two hours every day", "in 2 hours and 15 minutes", "in two hours at 9",
        "every 15 minutes", "every night and morning", "every day tomorrow", "every hour at 9", "every year in May",
        "every first Monday", "the last Friday of the month", "every weekend", "every day but Sunday",
        "every day until", "until Friday", "every day for two weeks", "every day until yesterday",
        "tonight at 12", "tomorrow at midnight", "tonight at 12:30 am", "tomorrow night at 1",
        "mañana a las 12 de la noche",
        "at 11 in the afternoon", "at 15 in the morning", "at noon and 17:30",
        "before Friday", "on Friday before 5", "tomorrow after work",
        "the week after next on Tuesday", "tomorrow at dawn",
        "send the weekly report on Friday",  # an adjective or a recurrence
        "at 8 call Ana in the evening", "tomorrow about the evening class",  # whose evening
        "через день", "每隔两天", "9時15分前", "3日おき", "明天晚上12点",
    ],
)  # fmt: skip
def test_what_is_not_clear_stays_open(text: str) -> None:
    assert resolve_when(text, NOW, UTC) is None


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Remind me tomorrow to take 2 pills.", "2026-03-02T09:00"),
        ("Remind me to pay 40 euros on Friday at 9.", "2026-03-06T09:00"),
        ("Remind me tomorrow to call every customer.", "2026-03-02T09:00"),
        ("Remind me at 8 pm to read the other half of the 2 chapters.", "2026-03-01T20:00"),
        ("Remind me tomorrow at 9 about invoice 4711.", "2026-03-02T09:00"),
        ("Remind me on Friday to pay the 2nd invoice", "2026-03-06T09:00"),
        ("Remind me at 8 tomorrow to meditate for 10 minutes", "2026-03-02T08:00"),
        ("Dans vingt minutes, dis-moi de sortir le pain du four.", "2026-03-01T09:20"),
        ("明天提醒我买三明治", "2026-03-02T09:00"),
        ("明日、日本の友だちに電話", "2026-03-02T09:00"),
    ],
)
def test_numbers_of_what_is_to_be_done_are_no_times(text: str, start: str) -> None:
    when = resolve_when(text, NOW, UTC)
    assert when is not None
    assert (when.start.strftime("%Y-%m-%dT%H:%M"), when.rrule) == (start, None)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("in an hour and a half", "2026-03-01T10:30"),
        ("in half an hour", "2026-03-01T09:30"),
        ("in anderthalb Stunden", "2026-03-01T10:30"),
        ("dentro de hora y media", "2026-03-01T10:30"),
        ("dans une heure et demie", "2026-03-01T10:30"),
        ("daqui a meia hora", "2026-03-01T09:30"),
        ("через полтора часа", "2026-03-01T10:30"),
        ("半小时后", "2026-03-01T09:30"),
        ("in 3 days at 11", "2026-03-04T11:00"),
        ("in two weeks in the evening", "2026-03-15T20:00"),
        ("next week on Tuesday", "2026-03-03T09:00"),
        ("下周二", "2026-03-03T09:00"),
        ("next month on the 3rd", "2026-04-03T09:00"),
        ("next year on 5 May", "2027-05-05T09:00"),
        ("Friday the 13th", "2026-03-13T09:00"),
        ("at midnight", "2026-03-02T00:00"),
        ("Sonntagabend um 8", "2026-03-01T20:00"),
        ("Freitag morgen um 8", "2026-03-06T08:00"),
        ("Fri at 8", "2026-03-06T08:00"),
        ("um 9:30 am Freitag", "2026-03-06T09:30"),
        ("5 minutes before 3pm", "2026-03-01T14:55"),
    ],
)
def test_spans_and_days_of_several_words(text: str, start: str) -> None:
    when = resolve_when(text, NOW, UTC)
    assert when is not None
    assert (when.start.strftime("%Y-%m-%dT%H:%M"), when.rrule) == (start, None)


def test_a_span_counts_real_hours_over_the_clock_change() -> None:
    zone = ZoneInfo("Europe/Berlin")
    now = parse_instant("2026-03-29T00:30:00Z")  # half an hour before the clocks go forward
    when = resolve_when("in two hours", now, zone)
    assert when is not None
    assert int(when.start.timestamp() * 1000) - now == 2 * 3_600_000


@given(st.text(max_size=120))
def test_any_text_is_read(text: str) -> None:
    when = resolve_when(text, NOW, UTC)
    assert when is None or when.start.timestamp() * 1000 >= NOW
