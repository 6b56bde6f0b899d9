"""Days, hours and recurrences put together in eight languages, against answers worked out day by day."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.intents.when import resolve_when

ZONE = ZoneInfo("Europe/Berlin")
MOMENTS = st.integers(0, 4 * 365 * 24 * 60).map(
    lambda minutes: dt.datetime(2026, 1, 1, tzinfo=ZONE) + dt.timedelta(minutes=minutes)
)
FITS = Callable[[dt.date, dt.date], bool]  # a day, today: whether the words mean that day


def in_days(number: int) -> FITS:
    return lambda day, today: (day - today).days == number


def weekday(*numbers: int) -> FITS:
    return lambda day, today: day.weekday() in numbers


def date(month: int, number: int) -> FITS:
    """The next such date; one that is over today by the hour is not asked for a year early."""
    return lambda day, today: (day.month, day.day) == (month, number) and (day - today).days < 365


def yearly(month: int, number: int) -> FITS:
    return lambda day, today: (day.month, day.day) == (month, number)


def month_day(number: int) -> FITS:
    return lambda day, today: day.day == number


def any_day(day: dt.date, today: dt.date) -> bool:
    return True


@dataclass(frozen=True)
class Language:
    """What a language has for days, hours and recurrences, and words that make any of it unclear."""

    frame: str
    days: dict[str, FITS]
    hours: dict[str, tuple[int, int]]
    repeats: dict[str, tuple[FITS, str]]
    until: dict[str, FITS]
    leftovers: tuple[str, ...]
    joint: str = " "


LANGUAGES = {
    "en": Language(
        "Remind me {} to call Ana.",
        {
            "tomorrow": in_days(1), "the day after tomorrow": in_days(2), "on Friday": weekday(4),
            "on 5 May": date(5, 5), "on the 28th": month_day(28),
            "next Tuesday": weekday(1), "on the 31st": month_day(31),
        },
        {
            "at 9": (9, 0), "at 14:30": (14, 30), "at half past 8": (8, 30), "at half six": (6, 30),
            "at quarter past nine": (9, 15), "at a quarter to nine": (8, 45), "at ten to nine": (8, 50),
            "at twenty past 7": (7, 20), "at 12 am": (0, 0), "at 12:30 am": (0, 30), "at 12 pm": (12, 0),
            "at 7 pm": (19, 0), "at eight o'clock": (8, 0), "at 8 in the evening": (20, 0), "at noon": (12, 0),
            "at 9.15 am": (9, 15), "at nine thirty": (9, 30), "at quarter to 8 in the evening": (19, 45),
        },
        {
            "every day": (any_day, "FREQ=DAILY"), "every 3 days": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "every other day": (any_day, "FREQ=DAILY;INTERVAL=2"),
            "every two weeks": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "every two weeks on Monday": (weekday(0), "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
            "every other Friday": (weekday(4), "FREQ=WEEKLY;INTERVAL=2;BYDAY=FR"),
            "every Monday and Thursday": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "on Mondays, Wednesdays and Fridays": (weekday(0, 2, 4), "FREQ=WEEKLY;BYDAY=MO,WE,FR"),
            "every weekday": (weekday(0, 1, 2, 3, 4), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
            "every month on the 15th": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "on the 1st of every month": (month_day(1), "FREQ=MONTHLY;BYMONTHDAY=1"),
            "every year on 5 May": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"until Friday": weekday(4), "until 24 December": date(12, 24), "till the day after tomorrow": in_days(2)},
        ("or 7", "until", "except Sunday", "half", "and 17:30", "quarter", "every other", "for two weeks", "before"),
    ),
    "de": Language(
        "Erinnere mich {} an Ana.",
        {
            "morgen": in_days(1), "übermorgen": in_days(2), "am Freitag": weekday(4), "am 5. Mai": date(5, 5),
            "am 24.12.": date(12, 24), "am 28.": month_day(28), "am Dienstag": weekday(1),
        },
        {
            "um 9": (9, 0), "um 14:30": (14, 30), "um halb neun": (8, 30), "um viertel nach acht": (8, 15),
            "um viertel vor acht": (7, 45), "um dreiviertel acht": (7, 45), "um zehn vor neun": (8, 50),
            "um fünf nach halb neun": (8, 35), "um 9 Uhr": (9, 0), "um 9 Uhr abends": (21, 0), "um 9.30 Uhr": (9, 30),
            "um halb acht abends": (19, 30),
        },
        {
            "jeden Tag": (any_day, "FREQ=DAILY"), "alle 3 Tage": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "jeden zweiten Tag": (any_day, "FREQ=DAILY;INTERVAL=2"),
            "alle zwei Wochen": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "jeden Montag und Donnerstag": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "montags": (weekday(0), "FREQ=WEEKLY;BYDAY=MO"),
            "jede zweite Woche am Montag": (weekday(0), "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
            "am 15. jedes Monats": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "jeden Monat am 15.": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "jedes Jahr am 5. Mai": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"bis Freitag": weekday(4), "bis zum 24. Dezember": date(12, 24), "bis übermorgen": in_days(2)},
        ("oder 7", "bis", "außer Sonntag", "halb", "und 17:30", "viertel", "ersten Montag", "vor"),
    ),
    "es": Language(
        "Recuérdame {} llamar a Ana.",
        {
            "mañana": in_days(1), "pasado mañana": in_days(2), "el viernes": weekday(4), "el 5 de mayo": date(5, 5),
            "el día 28": month_day(28),
        },
        {
            "a las 9": (9, 0), "a las 14:30": (14, 30), "a las nueve y media": (9, 30), "a las nueve y cuarto": (9, 15),
            "a las nueve menos cuarto": (8, 45), "a las nueve menos diez": (8, 50), "a las nueve y diez": (9, 10),
            "a las 8 de la tarde": (20, 0), "a las 9 de la mañana": (9, 0), "a la una": (1, 0),
        },
        {
            "todos los días": (any_day, "FREQ=DAILY"), "cada 3 días": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "cada dos semanas": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "cada lunes y jueves": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "los lunes": (weekday(0), "FREQ=WEEKLY;BYDAY=MO"), "todos los lunes": (weekday(0), "FREQ=WEEKLY;BYDAY=MO"),
            "cada mes el día 15": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "el 15 de cada mes": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "cada año el 5 de mayo": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"hasta el viernes": weekday(4), "hasta el 24 de diciembre": date(12, 24)},
        ("o 7", "hasta", "excepto el domingo", "media", "y 17:30", "menos", "último"),
    ),
    "fr": Language(
        "Rappelle-moi {} d'appeler Ana.",
        {
            "demain": in_days(1), "après-demain": in_days(2), "vendredi": weekday(4), "le 5 mai": date(5, 5),
            "le 28": month_day(28),
        },
        {
            "à 9 h": (9, 0), "à 14h30": (14, 30), "à neuf heures et demie": (9, 30), "à neuf heures et quart": (9, 15),
            "à neuf heures moins le quart": (8, 45), "à neuf heures moins dix": (8, 50), "à 8 h du soir": (20, 0),
        },
        {
            "tous les jours": (any_day, "FREQ=DAILY"), "tous les 3 jours": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "toutes les deux semaines": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "tous les lundis et jeudis": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "chaque lundi": (weekday(0), "FREQ=WEEKLY;BYDAY=MO"),
            "le 15 de chaque mois": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "tous les mois le 15": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "chaque année le 5 mai": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"jusqu'à vendredi": weekday(4), "jusqu'au 24 décembre": date(12, 24)},
        ("ou 7", "jusqu'à", "sauf dimanche", "demie", "et 17:30", "moins", "dernier"),
    ),
    "pt": Language(
        "Lembra-me {} de ligar à Ana.",
        {
            "amanhã": in_days(1), "depois de amanhã": in_days(2), "na sexta": weekday(4),
            "no dia 5 de maio": date(5, 5),
            "no dia 28": month_day(28),
        },
        {
            "às 9": (9, 0), "às 14h30": (14, 30), "às nove e meia": (9, 30), "às nove e um quarto": (9, 15),
            "às nove e dez": (9, 10), "às quinze para as nove": (8, 45), "às dez para as nove": (8, 50),
            "às 8 da noite": (20, 0), "às 9 da manhã": (9, 0),
        },
        {
            "todos os dias": (any_day, "FREQ=DAILY"), "a cada 3 dias": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "a cada duas semanas": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "toda segunda e quinta": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "todo dia 15": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "todo mês no dia 15": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "todos os anos no dia 5 de maio": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"até sexta": weekday(4), "até 24 de dezembro": date(12, 24)},
        ("ou 7", "até", "exceto domingo", "meia", "e 17:30", "menos", "último"),
    ),
    "ru": Language(
        "Напомни {} позвонить Ане.",
        {
            "завтра": in_days(1), "послезавтра": in_days(2), "в пятницу": weekday(4), "5 мая": date(5, 5),
            "28-го": month_day(28),
        },
        {
            "в 9:00": (9, 0), "в 14:30": (14, 30), "в половине девятого": (8, 30), "в полдевятого": (8, 30),
            "без четверти девять": (8, 45), "без десяти девять": (8, 50), "в четверть девятого": (8, 15),
            "в 9 часов": (9, 0), "в 8 вечера": (20, 0), "в 3 часа ночи": (3, 0), "в 3 часа дня": (15, 0),
        },
        {
            "каждый день": (any_day, "FREQ=DAILY"), "каждые 3 дня": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "каждые две недели": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "каждый понедельник и четверг": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "по понедельникам": (weekday(0), "FREQ=WEEKLY;BYDAY=MO"),
            "15-го числа каждого месяца": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "каждый год 5 мая": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"до пятницы": weekday(4), "до 24 декабря": date(12, 24)},
        ("или 7", "до", "кроме воскресенья", "половину", "и 17:30", "последний"),
    ),
    "zh": Language(
        "{}提醒我给安娜打电话。",
        {"明天": in_days(1), "后天": in_days(2), "周五": weekday(4), "5月5日": date(5, 5), "28号": month_day(28)},
        {
            "9点": (9, 0), "14:30": (14, 30), "八点半": (8, 30), "八点一刻": (8, 15), "八点三刻": (8, 45),
            "差一刻九点": (8, 45), "差十分九点": (8, 50), "八点十分": (8, 10), "晚上八点": (20, 0), "下午三点": (15, 0),
            "凌晨三点": (3, 0), "中午十二点": (12, 0),
        },
        {
            "每天": (any_day, "FREQ=DAILY"), "每3天": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "每两周": (any_day, "FREQ=WEEKLY;INTERVAL=2"), "每周一和周四": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "每月15号": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "每年5月5日": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"直到周五": weekday(4), "直到12月24日": date(12, 24)},
        ("或7", "直到", "除了周日", "和17:30", "最后"),
        joint="",
    ),
    "ja": Language(
        "{}にアナへの電話を思い出させて。",
        {"明日": in_days(1), "明後日": in_days(2), "金曜日": weekday(4), "5月5日": date(5, 5), "28日": month_day(28)},
        {
            "9時": (9, 0), "14:30": (14, 30), "8時半": (8, 30), "8時15分": (8, 15), "午後3時": (15, 0),
            "夜8時": (20, 0), "朝7時": (7, 0), "午前9時": (9, 0),
        },
        {
            "毎日": (any_day, "FREQ=DAILY"), "3日ごとに": (any_day, "FREQ=DAILY;INTERVAL=3"),
            "2週間ごとに": (any_day, "FREQ=WEEKLY;INTERVAL=2"),
            "毎週月曜日と木曜日の": (weekday(0, 3), "FREQ=WEEKLY;BYDAY=MO,TH"),
            "毎月15日の": (month_day(15), "FREQ=MONTHLY;BYMONTHDAY=15"),
            "毎年5月5日の": (yearly(5, 5), "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=5"),
        },
        {"金曜日まで": weekday(4), "12月24日まで": date(12, 24)},
        ("か7", "まで", "日曜日以外", "と17:30", "最後"),
        joint="",
    ),
}  # fmt: skip
NAMES = sorted(LANGUAGES)


def first_that_fits(fits: FITS, hour: tuple[int, int], now: dt.datetime) -> dt.datetime | None:
    """Return the first day that fits at ``hour`` and is still to come, by trying one day after the other."""
    for step in range(4 * 366 + 1):
        day = now.date() + dt.timedelta(days=step)
        start = dt.datetime.combine(day, dt.time(*hour), tzinfo=ZONE)
        if fits(day, now.date()) and start > now:
            return start
    return None


def asked(language: Language, *words: str) -> str:
    return language.frame.format(language.joint.join(words))


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)  # the first call compiles its patterns
@given(data=st.data(), moment=MOMENTS)
def test_a_day_and_an_hour_mean_that_day_at_that_hour(name: str, data: st.DataObject, moment: dt.datetime) -> None:
    language, now = LANGUAGES[name], moment
    day = data.draw(st.sampled_from(sorted(language.days)))
    hour = data.draw(st.sampled_from(sorted(language.hours)))
    words = [day, hour] if language.joint == "" else data.draw(st.permutations([day, hour]))
    when = resolve_when(asked(language, *words), int(now.timestamp() * 1000), ZONE)
    expected = first_that_fits(language.days[day], language.hours[hour], now)
    assert (when and (when.start, when.rrule)) == (expected and (expected, None))


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)  # the first call compiles its patterns
@given(data=st.data(), moment=MOMENTS)
def test_a_recurrence_says_every_part_of_its_rule(name: str, data: st.DataObject, moment: dt.datetime) -> None:
    language, now = LANGUAGES[name], moment
    repeat = data.draw(st.sampled_from(sorted(language.repeats)))
    hour = data.draw(st.sampled_from(sorted(language.hours)))
    words = [repeat, hour] if language.joint == "" else data.draw(st.permutations([repeat, hour]))
    fits, rule = language.repeats[repeat]
    when = resolve_when(asked(language, *words), int(now.timestamp() * 1000), ZONE)
    assert when is not None
    assert (when.start, when.rrule) == (first_that_fits(fits, language.hours[hour], now), rule)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)  # the first call compiles its patterns
@given(data=st.data(), moment=MOMENTS)
def test_until_ends_a_recurrence_with_that_day(name: str, data: st.DataObject, moment: dt.datetime) -> None:
    language, now = LANGUAGES[name], moment
    daily = next(words for words, (_, rule) in language.repeats.items() if rule == "FREQ=DAILY")
    until = data.draw(st.sampled_from(sorted(language.until)))
    hour = data.draw(st.sampled_from(sorted(language.hours)))
    when = resolve_when(asked(language, daily, until, hour), int(now.timestamp() * 1000), ZONE)
    start = first_that_fits(any_day, language.hours[hour], now)
    last = first_that_fits(language.until[until], (23, 59), now)
    assert start is not None
    assert last is not None
    if last.date() < start.date():
        assert when is None
    else:
        assert when is not None
        end = last.replace(second=59).astimezone(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
        assert (when.start, when.rrule) == (start, f"FREQ=DAILY;UNTIL={end}")


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)  # the first call compiles its patterns
@given(data=st.data(), moment=MOMENTS)
def test_words_of_time_that_are_left_over_leave_it_open(name: str, data: st.DataObject, moment: dt.datetime) -> None:
    language = LANGUAGES[name]
    day = data.draw(st.sampled_from([*sorted(language.days), *sorted(language.repeats)]))
    hour = data.draw(st.sampled_from(sorted(language.hours)))
    words = [day, hour] if language.joint == "" else data.draw(st.permutations([day, hour]))
    words = [*words, data.draw(st.sampled_from(language.leftovers))]
    assert resolve_when(asked(language, *words), int(moment.timestamp() * 1000), ZONE) is None


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)  # the first call compiles its patterns
@given(data=st.data(), moment=MOMENTS)
def test_two_days_of_one_task_leave_it_open(name: str, data: st.DataObject, moment: dt.datetime) -> None:
    language = LANGUAGES[name]
    first, second = data.draw(st.lists(st.sampled_from(sorted(language.days)), min_size=2, max_size=2, unique=True))
    now = moment
    when = resolve_when(asked(language, f"{first}, {second}"), int(now.timestamp() * 1000), ZONE)
    if when is not None:  # "on Friday, the 28th" is one day when both are
        assert language.days[first](when.start.date(), now.date())
        assert language.days[second](when.start.date(), now.date())
