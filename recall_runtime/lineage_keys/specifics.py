"""What a statement says specifically: its values, and the masked shape they have.

Belongs here: finding values (numbers, identifiers, addresses, paths) in a sentence of any language and masking them.
Does not belong here: who or what the statement is about (``lineage_keys.book``).

A *slot* is the shape of a value with its digits masked, such as ``s3://keep-#``, ``--shards=#``, ``schema #`` or
``# eur``. A slot is *strong* when the shape itself carries a name (letters of an identifier, a label before a number);
it is *weak* when any fact could have it (a bare number, a number with a unit, a host, an address without digits).
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

# Units by what they measure; a unit never tells what is measured, so its slot is weak.
_UNITS = {
    "eur": "eur euro euros €", "usd": "usd dollar dollars $", "gbp": "gbp £ pounds", "chf": "chf francs franken",
    "ms": "ms millisecond milliseconds millisekunden 毫秒 ミリ秒 мс milisegundos",
    "s": "s sec secs second seconds sekunde sekunden 秒 сек секунд segundos",
    "min": "min mins minute minutes minuten 分钟 分 мин минут minutos",
    "h": "h hr hrs hour hours stunde stunden 小时 時間 ч часов часа hora horas",
    "d": "d day days tag tage tagen 天 日 день дней дня día días",
    "week": "week weeks woche wochen 周 週 недель semana semanas",
    "%": "% percent prozent", "kb": "kb kib", "mb": "mb mib", "gb": "gb gib", "tb": "tb tib",
    "m": "m meter metre meters metres", "km": "km", "cm": "cm", "mm": "mm", "kg": "kg", "g": "g",
    "l": "l liter litre litres",
    "c": "°c degrees grad", "px": "px pixel pixels", "times": "x times mal раз veces 次 回",
}  # fmt: skip
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words.split()}

# Words that stand before (or, in some languages, near) a number and say what kind of number it is.
_LABELS = {
    "port": "port ports порт порту puerto 端口 ポート 포트 พอร์ต",
    "version": "version versión версия 版本 バージョン",
    "room": "room raum zimmer sala комната 房间",
    "ext": "ext extension durchwahl nebenstelle 分机",
    "pin": "pin code код código 密码",
    "number": "number nr no nummer номер número 号",
}
_LABEL_OF = {word: label for label, words in _LABELS.items() for word in words.split()}

# Function words that may stand before a number without being its label.
_NO_LABEL_WORDS = """
    a an and are as at be but by for from has have if in into is it its must no not of on or over per set than that
    the then this to under up use uses was were will with at about until since before after only now us than más
    am auf aus bei bis das dem den der die ein eine für hat im in ist mit nach nur oder seit sind
    und unter vom von vor zu zum
    a al con de del desde el en es hasta la las los o para por que se son u un una y
    e et ou
    в во до за из и к на не от по с со это
    at most least max min exactly roughly around almost nearly
"""
_NO_LABEL = frozenset(_NO_LABEL_WORDS.split())

_URL = r"[a-z][a-z0-9+.\-]*://[^\s<>()\[\]{}\"'`，。；、「」（）]+"
_EMAIL = r"[a-z0-9._%+\-]+@[a-z0-9\-]+(?:\.[a-z0-9\-]+)+"
_PATH = r"(?<![a-z0-9])(?:~|\.{1,2})?/[a-z0-9._\-]+(?:/[a-z0-9._\-]+)+"
_RUN = r"(?:--?)?[/a-z0-9_~$€£][a-z0-9_./:@%+#=~\-$€£°]*"
_TOKEN = re.compile(f"{_URL}|{_EMAIL}|{_PATH}|{_RUN}")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?:t[\d:.]+z?)?|\d{1,2}\.\d{1,2}\.(?:\d{2,4})?|\d{1,2}/\d{1,2}/\d{2,4}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:h|am|pm|z)?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NUMBER_UNIT = re.compile(r"([$€£]?)(\d+(?:[.,]\d+)*)([a-z%°€$£]{1,3})?")
_HOST = re.compile(r"[a-z0-9\-]+(?:\.[a-z0-9\-]+)*\.[a-z]{2,}(?::\d+)?")
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*", re.UNICODE)
_EDGES = ".,:;?!&=+*-~"


class Value(NamedTuple):
    """One value: as written (folded), its slot, and whether the slot alone says what it is the value of."""

    text: str
    slot: str
    strong: bool


@dataclass(frozen=True, slots=True)
class Specifics:
    """Values of one statement. ``words`` is the statement without them, folded, for words and names.

    ``folded`` is the statement with them; ``spans`` says where in it each of the values stands.
    """

    values: tuple[Value, ...]
    dates: tuple[str, ...]
    words: str
    folded: str = ""
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """Distinct slots in a fixed order."""
        return tuple(sorted({value.slot for value in self.values}))

    @property
    def strong(self) -> bool:
        """Whether every slot is strong."""
        return bool(self.values) and all(value.strong for value in self.values)


def specifics_of(text: str) -> Specifics:
    """Return the values of ``text`` and the rest of its words. Linear in the length of the text."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("`", " ").replace("*", " ")
    values: list[Value] = []
    dates: list[str] = []
    spans: list[tuple[int, int]] = []
    date_spans: list[tuple[int, int]] = []
    rest: list[str] = []
    end = 0
    for match in _TOKEN.finditer(folded):
        token = match[0].rstrip(_EDGES)
        if not _is_value(token):
            continue
        rest.append(folded[end : match.start()])
        rest.append(" ")
        end = match.start() + len(token)
        if _DATE.fullmatch(token) or _CLOCK.fullmatch(token):
            dates.append(token)
            date_spans.append((match.start(), end))
        else:
            values.append(_value(token, folded, match.start(), end))
            spans.append((match.start(), end))
    rest.append(folded[end:])
    if not values and dates:
        values = [Value(date, "clock" if _CLOCK.fullmatch(date) else "date", False) for date in dates]
        spans = date_spans
    return Specifics(tuple(values), tuple(dates), "".join(rest), folded, tuple(spans))


def is_unit_or_label(word: str) -> bool:
    """Return whether a folded ``word`` is a unit, or a label that says what kind of number a number is."""
    return word in _UNIT_OF or word in _LABEL_OF


def unspaced_labels() -> tuple[str, ...]:
    """Return the labels and units of scripts without blanks, which stand inside a run."""
    return tuple(word for word in (*_LABEL_OF, *_UNIT_OF) if word >= "\u2e80")


def letter_words(text: str) -> list[str]:
    """Return the folded words of letters, scripts apart, so that a Latin name inside Chinese is a word."""
    words: list[str] = []
    current = ""
    latin = False
    for sign in unicodedata.normalize("NFKC", text).casefold() + " ":
        is_letter = sign.isalpha() or (bool(current) and sign in "-_")
        is_latin = sign < "\u0250"
        if current and (not is_letter or is_latin != latin):
            words.append(current.strip("-_"))
            current = ""
        if is_letter:
            current, latin = current + sign, is_latin
    return words


def _is_value(token: str) -> bool:
    if any(sign.isdigit() for sign in token):
        return True
    return "://" in token or "@" in token.strip("@") or (token.count("/") >= 2 and token[0] in "/~.")


def _value(token: str, folded: str, start: int, end: int) -> Value:
    if _NUMBER.fullmatch(token):
        return _number(token, folded, start, end)
    measured = _NUMBER_UNIT.fullmatch(token)
    if measured:
        unit = _UNIT_OF.get(measured[1]) or _UNIT_OF.get(measured[3] or "")
        if unit:
            return Value(measured[2], f"# {unit}", strong=False)
    if "://" in token:
        return _address(token)
    if "@" in token.strip("@"):
        return Value(token, f"mail {token.rpartition('@')[2]}", strong=False)
    if token[0] in "/~." and "/" in token[1:] and not any(sign.isdigit() for sign in token):
        return Value(token, "path", strong=False)
    if _HOST.fullmatch(token) and token.count(".") >= 2:
        return Value(token, "host " + token.partition(":")[0].partition(".")[2], strong=False)
    return _identifier(token)


def _address(token: str) -> Value:
    scheme, _, rest = token.partition("://")
    if any(sign.isdigit() for sign in rest):
        return Value(token, _mask(token), strong=True)
    return Value(token, f"{scheme}://{rest.partition('/')[0]}", strong=False)


def _identifier(token: str) -> Value:
    shape = _mask(token)
    letters = re.findall(r"[^\W\d_]+", shape)
    if "/" not in shape and letters:  # a kind, names in between, a number: runner-amber-7
        first = shape.index(letters[0]) + len(letters[0])
        last = shape.index("#")
        if any(sign.isalpha() for sign in shape[first:last]):
            shape = shape[:first] + "-*-" + shape[last:]
    return Value(token, shape, strong=sum(map(len, letters)) >= 2)


def _mask(token: str) -> str:
    return re.sub(r"\d+", "#", token)


def _number(token: str, folded: str, start: int, end: int) -> Value:
    """Return a bare number with what stands beside it: a unit after it, or a label before it."""
    shape = _mask(token)
    after = folded[end : end + 24].lstrip(" ")
    following = _WORD.match(after)
    unit = _UNIT_OF.get(following[0] if following else after[:1])
    if unit is None and after[:1] and not after[0].isascii():
        unit = next((_UNIT_OF[after[:length]] for length in (3, 2, 1) if after[:length] in _UNIT_OF), None)
    if unit:
        return Value(token, f"# {unit}", strong=False)
    before = _WORD.findall(folded[max(0, start - 40) : start])
    gap = folded[max(0, start - 3) : start].strip(" :#.=(")
    label = before[-1] if before and (not gap or gap[-1:] == before[-1][-1:]) else ""
    if label in _LABEL_OF:
        return Value(token, f"{_LABEL_OF[label]} {shape}", strong=True)
    things = following is not None and following[0] not in _NO_LABEL and following[0].isascii()
    counted = things and token.isdecimal()  # "6 sheep" counts, "pnpm 9.1 only" names a version
    if label and label not in _NO_LABEL and label.isascii() and not counted:
        return Value(token, f"{label} {shape}", strong=True)
    named = _named_nearby(folded)
    return Value(token, f"{named} {shape}", strong=True) if named else Value(token, shape, strong=False)


def _named_nearby(folded: str) -> str | None:
    """Return the label that the sentence names anywhere, when it names exactly one."""
    words = set(_WORD.findall(folded))
    named = {
        label
        for word, label in _LABEL_OF.items()
        if word in words or (not word.isascii() and len(word) > 1 and word in folded)
    }
    return named.pop() if len(named) == 1 else None
