"""Does a message ask about the past? The deterministic gate of lane 2.

Belongs here: the decision. Does not belong here: the cues themselves (``intent_cues.txt``, openclaw-algorithms 14 with
its known misses mended), running the recall (``recall.deep``).

Each language has three sets of cues: ``intent`` (the message asks for something from the past), ``future`` (it asks to
be reminded, or plans) and ``retrospective`` (it names a finished talk or decision). A message asks about the past when
an intent cue of a language is there and no future cue of that language, or a retrospective one as well.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recall_runtime.text.patterns import lazily

MAX_CHARACTERS = 2_000  # of each end: a question stands at the beginning or the end of what is pasted round it

_QUOTED = re.compile(r"[«“„「『\"][^«»“”„「」『』\"]{1,200}[»”“」』\"]")  # somebody else's words, or words to work on
_LATIN, _CYRILLIC = lazily("[a-z]"), lazily("[\u0400-\u04ff]")
_HAN, _KANA, _HANGUL = lazily("[\u4e00-\u9fff]"), lazily("[\u3040-\u30ff]"), lazily("[\uac00-\ud7a3]")
_SCRIPTS = dict.fromkeys(("en", "de", "es", "fr", "pt"), _LATIN) | {
    "ru": _CYRILLIC,
    "zh": _HAN,
    "ja": _KANA,
    "ko": _HANGUL,
}
_NAME = re.compile(r"\{([A-Z]+)\}")
_SECTION = re.compile(r"\[(\w+)(?:\.(\w+))?\]")


@dataclass(frozen=True, slots=True)
class _Cues:
    """The compiled cues of one language; ``None`` where it has none of a part."""

    intent: re.Pattern[str] | None
    future: re.Pattern[str] | None
    retrospective: re.Pattern[str] | None

    def match(self, text: str) -> bool:
        if self.intent is None or self.intent.search(text) is None:
            return False
        if self.future is None or self.future.search(text) is None:
            return True
        return self.retrospective is not None and self.retrospective.search(text) is not None


def asks_about_past(message: str) -> bool:
    """Return whether ``message`` asks for something from the past, in any of the supported languages."""
    if len(message) > 2 * MAX_CHARACTERS:
        message = f"{message[:MAX_CHARACTERS]}\n{message[-MAX_CHARACTERS:]}"
    text = _QUOTED.sub(" ", " ".join(message.split()).casefold().replace("’", "'"))
    written = [_LATIN] if text.isascii() else dict.fromkeys(_SCRIPTS.values())
    scripts = [script for script in written if script.search(text)]
    return any(_cues_of(language).match(text) for language, script in _SCRIPTS.items() if script in scripts)


@cache
def _cues_of(language: str) -> _Cues:
    """Return the cues of one language; most messages need the first part of those of their own script only."""
    names, parts = _listed()
    found = parts.get(language, {})
    return _Cues(*(_any(found.get(part, ()), names) for part in ("intent", "future", "retrospective")))


@cache
def _listed() -> tuple[dict[str, str], dict[str, dict[str, list[str]]]]:
    """Return the named pieces and, by language and part, the cues as written."""
    listed = Path(__file__).with_name("intent_cues.txt").read_text(encoding="utf-8")
    names: dict[str, str] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    language, part = "", ""
    for line in listed.splitlines():
        section = _SECTION.fullmatch(line)
        if section:
            language, part = section[1], section[2] or ""
        elif line and not line.startswith("#"):
            if language == "names":
                name, _, pattern = line.partition(" = ")
                names[name] = _expanded(pattern, names)
            else:
                parts.setdefault(language, {}).setdefault(part, []).append(line)
    return names, parts


def _expanded(pattern: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda match: names[match[1]], pattern)


def _any(patterns: Sequence[str], names: dict[str, str]) -> re.Pattern[str] | None:
    return lazily("|".join(f"(?:{_expanded(pattern, names)})" for pattern in patterns)) if patterns else None
