"""The hour of the day as eight languages write and say it: "9.30", "14h30", "half past eight", "nueve menos cuarto".

Belongs here: one pattern for each wording, and the time that a match of it means.
Does not belong here: the day, and the part of the day that stands apart from the hour (``intents.when``).
"""

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from recall_runtime.intents.when_words import END, any_of, number_of, words_of

_HOURS = {
    "en": "one two three four five six seven eight nine ten eleven twelve",
    "de": "eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
    "es": "una dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "fr": "une deux trois quatre cinq six sept huit neuf dix onze douze",
    "pt": "uma duas tres quatro cinco seis sete oito nove dez onze doze",
    "ru": "час два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
}
_MINUTES = {
    "en": "five ten fifteen twenty twenty-five thirty forty forty-five fifty",
    "de": "funf zehn funfzehn zwanzig funfundzwanzig dreissig vierzig funfundvierzig funfzig",
    "es": "cinco diez quince veinte veinticinco treinta cuarenta cincuenta",
    "fr": "cinq dix quinze vingt vingt-cinq trente quarante quarante-cinq cinquante",
    "pt": "cinco dez quinze vinte trinta quarenta cinquenta",
    "ru": "пять десять пятнадцать двадцать тридцать сорок пятьдесят",
}
_NOT_AN_HOUR = (
    r"(?![\d:/-]|\.\d|,\d)(?! ?[%°€$])(?! (?:\w*percent|\w*prozent|por ciento|por cento|pour cent|процент\w*|degrees?"
    r"|grad|grados?|graus?|degres?|градус\w*|euros?|dollars?|points?|places?|tage?n?|jahre?n?|mal|stuck|punkte|meter"
    r"|personen|people|or more|or less|раз|дн\w+|минут\w*|штук\w*|метр\w*|мест\w*|рубл\w+|строк\w*"
    r"|de (?:ene|jan|fe[bv]|mar|abr|ma[iy]|ju[ln]|ag|set|sep|o[cu]t|nov|d[ie][cz])\w*)\b)"
)
# A minute said behind the hour counts when the clause ends there, or goes on with a word that can't be counted.
_AFTER_MINUTE = (
    r"(?= ?(?:$|[.,;:!?)])| (?:tomorrow|today|tonight|on|to|in|every|each|morgen|heute|an|zu|daran|manana|hoy|de|que"
    r"|the|next|demain|amanha|завтра|сегодня)\b)"
)
_MERIDIEM = (  # not the German "am"
    r"(?P<ap>[ap])\.? ?m\b\.?"
    r"(?! (?:\d{1,2}\.|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend|(?:vor|nach)?mittag|abend|morgen))"
)
_CJK = r"[一二三四五六七八九十两兩]{1,3}"


@dataclass(frozen=True, slots=True)
class Clock:
    """An hour of the day. ``exact``: the wording leaves no choice between before and after noon."""

    time: dt.time
    exact: bool = False
    turn_of_day: bool = False  # midnight said as a word or as 24: it belongs to two days


_Meaning = Callable[[dict[str, str | None]], Clock | None]


def clock_at(folded: str, place: int) -> tuple[Clock | None, int] | None:
    """Return the hour that starts at ``place`` and where it ends; the hour is ``None`` when there is no such hour.

    Returns ``None`` when no hour of the day starts there.
    """
    for pattern, meaning in _wordings():
        match = pattern.match(folded, place)
        if match is not None:
            return meaning(match.groupdict()), match.end()
    return None


def _number(text: str | None) -> int | None:
    if not text:
        return None
    found = number_of(text)
    if found is None and text in words_of("of_hour"):
        return int(words_of("of_hour")[text])
    return 1 if text in ("eins", "час") else found


def _clock(hour: int | None, minute: int | None, half_of_day: str | None = None) -> Clock | None:
    if hour is None or minute is None or not (0 <= hour <= 24 and 0 <= minute < 60):
        return None
    if half_of_day is not None:
        if not 1 <= hour <= 12:
            return None
        return Clock(dt.time(hour % 12 + (12 if half_of_day == "p" else 0), minute), exact=True)
    return Clock(dt.time(hour % 24, minute), exact=hour > 12 or hour == 0, turn_of_day=hour == 24)


def _plain(found: dict[str, str | None]) -> Clock | None:
    """An hour, with minutes, a half, a quarter, or minutes to or past it."""
    hour = _number(found["h"])
    said = found.get("m") or found.get("n")
    minute = _number(said) if said else 0
    if found.get("half"):
        minute = 30
    if found.get("quarter"):
        minute = 15
    if found.get("three"):
        minute = 45
    if found.get("less"):
        less = 15 if found.get("lq") else _number(found.get("lm"))
        return _before(hour, less, found.get("ap"))
    return _clock(hour, minute, found.get("ap"))


def _before(hour: int | None, minutes: int | None, half_of_day: str | None = None) -> Clock | None:
    if hour is None or minutes is None or not (1 <= hour <= 24 and 0 < minutes < 60):
        return None
    if half_of_day is not None:
        whole = _clock(hour, 0, half_of_day)
        if whole is None:
            return None
        return Clock(dt.time((whole.time.hour - 1) % 24, 60 - minutes), exact=True)
    return Clock(dt.time((hour - 1) % 24 if hour > 1 else 12, 60 - minutes), exact=hour > 13)


def _to(found: dict[str, str | None]) -> Clock | None:
    return _before(_number(found["h"]), 15 if found.get("q") else _number(found.get("m")), found.get("ap"))


def _past(found: dict[str, str | None]) -> Clock | None:
    return _clock(_number(found["h"]), 15 if found.get("q") else _number(found.get("m")), found.get("ap"))


def _half_past(found: dict[str, str | None]) -> Clock | None:
    return _clock(_number(found["h"]), 30, found.get("ap"))


def _half_to(found: dict[str, str | None]) -> Clock | None:
    """German and Russian: half of the hour that is on; with minutes before or after that half."""
    hour = _number(found["h"])
    if hour is None or not 1 <= hour <= 12:
        return None
    minute = 30
    if found.get("m"):
        minute += (_number(found["m"]) or 0) * (1 if found["way"] == "nach" else -1)
    return _clock(hour - 1 or 12, minute)


def _three_quarters_to(found: dict[str, str | None]) -> Clock | None:
    return _before(_number(found["h"]), 15)


def _quarter_of(found: dict[str, str | None]) -> Clock | None:
    """Russian: a quarter of the hour that is on."""
    hour = _number(found["h"])
    return _clock(hour - 1 or 12, 15) if hour is not None and 1 <= hour <= 12 else None


def _midnight(_: dict[str, str | None]) -> Clock | None:
    return Clock(dt.time(0), exact=True, turn_of_day=True)


def _nothing(_: dict[str, str | None]) -> Clock | None:
    return None


def _hour(language: str) -> str:
    return r"(?P<h>\d{1,2}|" + "|".join(_HOURS[language].split()) + ")"


def _minutes(language: str, group: str = "m") -> str:
    words = sorted(_MINUTES[language].split(), key=len, reverse=True)
    return rf"(?P<{group}>\d{{1,2}}(?![\d:])|{'|'.join(words)})"


@lru_cache(maxsize=1)
def _wordings() -> tuple[tuple[re.Pattern[str], _Meaning], ...]:
    of_hour = any_of("of_hour")
    en, de, es, fr, pt, ru = (_hour(language) for language in _HOURS)
    cjk = rf"(?P<h>\d{{1,2}}|{_CJK})"
    m_en, m_de, m_es, m_fr, m_pt, m_ru = (_minutes(language) for language in _MINUTES)
    less_es, less_fr, less_pt = (_minutes(language, "lm") for language in ("es", "fr", "pt"))
    ap, after = rf"(?: ?{_MERIDIEM}| o'?clock\b)?", _AFTER_MINUTE
    to_en = rf"(?:(?:a )?(?P<q>quarter)|{m_en}(?: min(?:ute)?s?)?) (?:to|before|till|of) {en}"
    at = r"(?:at )?(?:about |around )?"
    um = r"(?:um |auf |gegen )?"
    uhr = rf"{END}(?: uhr\b)?"
    rows: list[tuple[str, _Meaning]] = [
        # digits
        (rf"(?:at |um |a las |as |в |a )?(?<![\d:.])(?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?!\d|:[0-5]\d|-)"
         rf"(?: ?{_MERIDIEM}| ?(?:uhr|h|o'?clock|horas?|heures?|час\w*)\b)?", _plain),
        (rf"(?:um |at |gegen )?(?P<h>\d{{1,2}})\.(?P<m>[0-5]\d)(?: ?uhr\b| ?{_MERIDIEM})", _plain),
        (r"um (?P<h>\d{1,2})\.(?P<m>[0-5]\d)(?![\d.])", _plain),
        (r"(?:a |vers |pour |as |pelas )?(?P<h>\d{1,2}) ?h ?(?P<m>[0-5]\d)\b", _plain),
        # the half, the quarters, and the minutes to and past an hour
        (rf"(?:{at}half past|(?:at|by|around|about) half(?: after)?) {en}{END}{ap}", _half_past),
        (rf"half {en}{END}{ap}{after}", _half_past),
        (rf"(?:at|by|around|about) {to_en}{ap}{END}(?! (?:hour|minute|day|week|month|year))", _to),
        (rf"(?<!from ){to_en}{ap}{after}", _to),
        (rf"{at}(?:(?:a )?(?P<q>quarter)|{m_en}(?: min(?:ute)?s?)?) (?:past|after) {en}{ap}{END}", _past),
        (rf"{um}(?:{m_de}(?: minuten)? (?P<way>vor|nach) )?halb {de}{uhr}", _half_to),
        (rf"{um}(?:(?P<q>viertel)|{m_de}(?: minuten)?) vor {de}{uhr}", _to),
        (rf"{um}(?:(?P<q>viertel)|{m_de}(?: minuten)?) nach {de}{uhr}", _past),
        (rf"{um}dreiviertel {de}{uhr}", _three_quarters_to),
        (rf"(?:a las? )?(?:(?:un )?(?P<q>cuarto)|{m_es}(?: minutos)?) para las? {es}{END}", _to),
        (rf"(?:as |a )?(?:(?:um )?(?P<q>quarto)|{m_pt}(?: minutos)?) para as? {pt}{END}", _to),
        (rf"(?:в |к |около )?без (?:(?P<q>четверти)|(?P<m>{of_hour})(?: минут)?) {ru}{END}", _to),
        (rf"(?:в |к |на |около )?(?:половин[еуаы] |пол ?-?)(?P<h>{of_hour})", _half_to),
        (rf"(?:в |к |на |около )?четверть (?P<h>{of_hour})", _quarter_of),
        # an hour by its sign
        (rf"(?:at |by |around |about )?{en} ?{_MERIDIEM}", _plain),
        (rf"(?:at |by |around |about )?{en} ?o'?clock\b", _plain),
        (rf"(?:um |gegen |auf |ab )?{de} ?uhr(?: {m_de}{after})?(?![a-z])", _plain),
        (rf"(?:a |vers |des |a partir de )?{fr} ?h(?:eures?)? (?:et (?:(?P<half>demie?)|(?P<quarter>quart))"
         rf"|(?P<less>moins) (?:(?P<lq>le quart)|{less_fr}))\b", _plain),
        (rf"(?:a|vers|des|pour) {fr} ?h\b", _plain),
        (rf"(?:a|vers|des) {fr} heures?\b(?: {m_fr}{after})?", _plain),
        (rf"(?:as|pelas|para as) {pt} ?h\b", _plain),
        (rf"(?:в|к|около) {ru} час(?:а|ов)?\b(?: {m_ru}(?: минут\w*)?{after})?", _plain),
        # an hour behind a word of place in time
        (rf"(?:at|by)(?: about| around)? {en}{_NOT_AN_HOUR}{END}(?: {m_en}{after})?", _plain),
        (rf"(?:um|auf|gegen) {de}{_NOT_AN_HOUR}{END}", _plain),
        (rf"(?:a|hacia|sobre|para) las? {es}{_NOT_AN_HOUR}{END}(?: horas?\b)?(?: y (?:(?P<half>media)"
         rf"|(?P<quarter>cuarto)|{m_es})\b| (?P<less>menos) (?:(?P<lq>cuarto)|{less_es})\b"
         rf"| {_minutes('es', 'n')}{after})?", _plain),
        (rf"(?:as|pelas|para as|por volta das) {pt}{_NOT_AN_HOUR}{END}(?: horas?\b)?(?: e (?:(?P<half>meia)"
         rf"|(?P<quarter>um quarto)|{m_pt})\b| (?P<less>menos) (?:(?P<lq>um quarto)|{less_pt})\b)?", _plain),
        (r"a (?P<h>uma)(?: hora)?(?:(?= (?:de-la-manana|da tarde)\b)| e (?:(?P<half>meia)"
         r"|(?P<quarter>um quarto))\b)", _plain),
        (rf"(?:в|к) (?!час\b){ru}{_NOT_AN_HOUR}{END}(?: {m_ru}(?: минут\w*)?{after})?", _plain),
        (r"в (?P<h>час)(?= (?:дня|ночи)\b)", _plain),
        (rf"{ru}(?: час(?:а|ов)?)?(?= (?:утра|вечера|ночи)\b)", _plain),
        (rf"{ru} час(?:а|ов)?(?= дня\b)", _plain),
        (rf"(?:about|around|gegen|vers|около) (?P<h>\d{{1,2}}){_NOT_AN_HOUR}{after}", _plain),
        (rf"{en}(?= in the (?:morning|afternoon|evening)\b)", _plain),
        (rf"{es}(?= de[ -]la[ -](?:manana|tarde|noche)\b)", _plain),
        (rf"{pt}(?: horas?)?(?= (?:de-la-manana|da (?:tarde|noite))\b)", _plain),
        # scripts without blanks
        (rf"差(?:(?P<q>一刻)|(?P<m>\d{{1,2}}|{_CJK})分)(?:钟|鐘)?{cjk}[点點](?:钟|鐘)?", _to),
        (rf"{cjk}時(?:{cjk.replace('<h>', '<m>')}分前|前|過ぎ|以降|まで)", _nothing),
        (rf"{cjk}[点點](?:钟|鐘)?(?:以|之)?[前后後]", _nothing),
        (rf"(?<![快慢早晚多少好大小有])(?!一[点點](?![半钟鐘整一三十0-9])){cjk}[点點时時](?![间間代])(?:钟|鐘)?"
         rf"(?:(?P<half>半)|(?P<quarter>一刻)|(?P<three>三刻)|(?P<m>\d{{1,2}}|{_CJK})分?)?", _plain),
        (r"(?<=上午|下午|早上|晚上|凌晨|今晚|明晚|明早|清晨)(?P<h>一)[点點]", _plain),
        (any_of("midnight"), _midnight),
    ]  # fmt: skip
    return tuple((re.compile(pattern), meaning) for pattern, meaning in rows)
