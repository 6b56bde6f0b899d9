"""Action-sensitive memories: what holds only under a condition, up to a day, or not without somebody's word.

Belongs here: the grammar of condition and expiry, the conservative rules that see them in prose, whether one is over.
Does not belong here: splitting sentences (``statements``), leaving out what is over (``recall``), showing (callers).

Grammar, behind an entry or a note line, as comments: ``<!-- condition: only on the staging host -->`` and
``<!-- expires: 2026-04-30 -->`` (the last day on which it holds). A condition must not get lost on the way, so it
travels *in the text*: reading a line turns the comment into the mark ``(condition: …)`` or ``(expires: …)``, every
statement of the line gets it, and a promoted entry is written with it. The mark may also be written by hand.
"""

import datetime as dt
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from recall_runtime.text.patterns import lazily

MAX_CONDITION = 300
_CARRIER = lazily(r"\s*(condition|expires)\s*:\s*(.*?)\s*", re.IGNORECASE | re.DOTALL)
_BRACKETS = str.maketrans({"(": "[", ")": "]", "（": "[", "）": "]"})
_MARK = lazily(rf"\((condition|expires): ([^()（）\n]{{1,{MAX_CONDITION}}})\)", re.IGNORECASE)
_DAY = (
    r"(?:(?P<{0}y>\d{{4}})-(?P<{0}m>\d{{2}})-(?P<{0}d>\d{{2}})"
    r"|(?P<{0}D>\d{{1,2}})\.\s?(?P<{0}M>\d{{1,2}})\.\s?(?P<{0}Y>\d{{4}})"
    r"|(?P<{0}Yc>\d{{4}})年(?P<{0}Mc>\d{{1,2}})月(?P<{0}Dc>\d{{1,2}})日)"
)
_UNTIL = lazily(
    r"\b(?:until|till|through|valid to|expires(?: on)?|bis(?: zum| einschließlich)?|hasta(?: el)?|jusqu['’]au"
    rf"|até(?: o)?|до)\s+{_DAY.format('a')}"
    rf"|(?:直到|截至|有效期至|至)\s?{_DAY.format('b')}|{_DAY.format('c')}\s?(?:まで|为止)",
    re.IGNORECASE,
)
_YEAR = lazily(r"\d{4}")
_PAST = lazily(
    r"\b(?:was|were|had been|used to|war|waren|wurde|galt|fue|era|estaba|estuvo|était|fut|foi|estava|был[аио]?)\b",
    re.IGNORECASE,
)
_BARE = lazily(
    r"\*{0,2}(?:(?:but |and |this )?(?:only (?:after|with|until|till|if|when|while|on|for)\b|(?:needs|requires) "
    r"|valid until|expires\b|ask \w+(?: \w+)? (?:first|before)|not without\b"
    r"|nur (?:mit|nach|bis|wenn|solange|auf|für)\b|gilt (?:nur )?bis|nicht ohne\b|vorher \w+ fragen"
    r"|solo (?:con|tras|hasta|si|cuando)\b|no sin\b|seulement (?:avec|après|si|quand)\b|pas sans\b"
    r"|só (?:com|depois|até|se|quando)\b|não sem\b|только (?:с|после|до|если|когда)\b|не без\b)"
    r"|仅(?:限|在)|只有|须经|需要.{0,12}批准|ただし|.{1,20}の承認が必要)",
    re.IGNORECASE,
)


class ActionSense(StrEnum):
    """Why somebody who acts on a memory must look twice."""

    APPROVAL = "approval"
    HANDS_OFF = "hands_off"
    TEMPORARY = "temporary"
    HANDOFF = "handoff"


_RULES: tuple[tuple[ActionSense, re.Pattern[str]], ...] = (
    (
        ActionSense.APPROVAL,
        lazily(
            r"\b(?:approval|approved by|sign[- ]?off|go-ahead)\b|\bask \w+(?: \w+)? (?:first|before)\b"
            r"|\b(?:freigabe|genehmigung|zustimmung)\b|\b(?:aprobación|autorización|aprovação|autorização)\b"
            r"|\b(?:approbation|autorisation|accord préalable)\b|\b(?:одобрени[ея]|согласовани[ея]|разрешени[ея])\b"
            r"|批准|审批|许可|承認|許可",
            re.IGNORECASE,
        ),
    ),
    (
        ActionSense.HANDS_OFF,
        lazily(
            r"\b(?:do not|don't|never|must not|no one may|nobody may) "
            r"(?:edit|touch|change|modify|delete|remove|overwrite|restart|merge|deploy|push|rename|move)\b"
            r"|\b(?:read[- ]only|hands off)\b"
            r"|\b(?:nicht|niemals|nie) (?:\w+ )?"
            r"(?:bearbeiten|anfassen|ändern|löschen|überschreiben|neu starten|deployen)\b"
            r"|\bno (?:editar|tocar|cambiar|modificar|borrar|edites|toques|cambies|modifiques|borres)\b"
            r"|\bne (?:pas )?(?:modifi\w+|touch\w+|supprim\w+|chang\w+)\b"
            r"|\bnão (?:editar|mexer|alterar|modificar|apagar|edite|mexa|altere|apague)\b"
            r"|\bне (?:редактир\w+|трога\w+|меня\w+|удаля\w+|изменя\w+)\b"
            r"|(?:不要|请勿|禁止|別|勿)(?:编辑|修改|改动|删除|触碰|重启|部署)|(?:編集|変更|削除|再起動)(?:しない|禁止)",
            re.IGNORECASE,
        ),
    ),
    (
        ActionSense.TEMPORARY,
        lazily(
            r"\b(?:temporar(?:y|ily)|for now|for the time being|code freeze|frozen|on hold|paused)\b"
            r"|\b(?:vorübergehend|vorläufig|bis auf weiteres|eingefroren|pausiert)\b"
            r"|\b(?:temporal(?:mente)?|por ahora|de momento|provisional)\b|\b(?:temporaire(?:ment)?|pour l'instant)\b"
            r"|\b(?:temporári[oa]|temporariamente|por enquanto)\b|\b(?:временно|пока что|заморожен\w*)\b"
            r"|暂时|临时|暂停|冻结|一時的|当面|凍結",
            re.IGNORECASE,
        ),
    ),
    (
        ActionSense.HANDOFF,
        lazily(
            r"\b(?:hand(?:ed|s)?[- ]?(?:off|over)|takes over (?:from|on))\b|\b(?:übergibt|übergabe|übergeben an)\b"
            r"|\b(?:traspas\w+ a|entrega a)\b|\b(?:передач[аеу]|переда[лё]\w* )\b|移交|交接|引き継",
            re.IGNORECASE,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What limits a text. ``expires`` is the last day on which it holds."""

    condition: str | None = None
    expires: dt.date | None = None
    senses: tuple[ActionSense, ...] = ()

    def over(self, today: dt.date) -> bool:
        """Return whether its last day is past."""
        return self.expires is not None and today > self.expires


def mark_of(comment: str) -> str | None:
    """Return the mark for the inside of a comment, or ``None`` when it is neither a condition nor an expiry.

    An expiry that is no date is a condition: it says something, and nobody may act as if it did not.
    """
    carrier = _CARRIER.fullmatch(comment)
    value = " ".join(carrier[2].translate(_BRACKETS).split())[:MAX_CONDITION].rstrip() if carrier else ""
    if carrier is None or not value:
        return None
    if carrier[1].lower() == "expires" and _iso(value) is None:
        return f"(condition: until {value})"[: MAX_CONDITION + 13]
    return f"({carrier[1].lower()}: {value})"


def split_marks(text: str) -> tuple[str, str]:
    """Return ``text`` without the marks at the ends of its lines, and those marks, each once, as one string."""
    if ": " not in text or "(" not in text:
        return text, ""
    marks: dict[str, None] = {}
    lines = []
    for line in text.split("\n"):
        bare, found = _without_end_marks(line)
        marks.update(dict.fromkeys(found))
        lines.append(bare if found else line)
    return ("\n".join(lines), "".join(f" {mark}" for mark in marks)) if marks else (text, "")


def conditions_of(text: str) -> Conditions:
    """Return what limits ``text``: its marks, and what the conservative rules see in its prose. Never raises.

    See ``last_day_of`` for the expiry.
    """
    conditions = [match[2].strip() for match in _MARK.finditer(text) if match[1].lower() == "condition"]
    senses = tuple(sense for sense, pattern in _RULES if pattern.search(text))
    return Conditions("; ".join(dict.fromkeys(conditions)) or None, last_day_of(text), senses)


@lru_cache(maxsize=8_192)  # asked for every entry of the curated files in every turn
def last_day_of(text: str) -> dt.date | None:
    """Return the last day on which ``text`` holds, or ``None`` when it names none.

    A mark decides. Without one, an absolute day behind "until" (eight languages) does, except in a sentence about the
    past. Of several days the earliest counts.
    """
    if not _YEAR.search(text):
        return None
    marks = [match for match in _MARK.finditer(text) if match[1].lower() == "expires"]
    days = [day for match in marks if (day := _iso(match[2])) is not None]
    if not days:
        bare = _MARK.sub(" ", text)
        days = [] if _PAST.search(bare) else [day for match in _UNTIL.finditer(bare) if (day := _written(match))]
    return min(days, default=None)


def is_over(text: str, today: dt.date) -> bool:
    """Return whether the last day on which ``text`` holds is past."""
    last = last_day_of(text)
    return last is not None and today > last


def opens_with_condition(sentence: str) -> bool:
    """Return whether a sentence is nothing but the condition of the one before it ("Only with Robin's approval.")."""
    return _BARE.match(sentence) is not None


def _without_end_marks(line: str) -> tuple[str, list[str]]:
    """Return ``line`` without the marks that end it, and those marks in order. Linear: it looks from the end back."""
    end = len(line.rstrip(" \t"))
    found: list[str] = []
    while end and line[end - 1] == ")":
        start = line.rfind("(", max(0, end - MAX_CONDITION - 20), end)
        if start < 0 or not _MARK.fullmatch(line, start, end):
            break
        found.append(line[start:end])
        end = start
        while end and line[end - 1] in " \t":
            end -= 1
    return line[:end], found[::-1]


def _iso(value: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(value.strip()) if len(value.strip()) == 10 else None
    except ValueError:
        return None


def _written(match: re.Match[str]) -> dt.date | None:
    parts = {name: value for name, value in match.groupdict().items() if value}
    numbers = {name[1:].removesuffix("c").lower(): int(value) for name, value in parts.items()}
    try:
        return dt.date(numbers["y"], numbers["m"], numbers["d"])
    except (KeyError, ValueError):
        return None
