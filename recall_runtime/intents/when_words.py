"""The tables of ``when_words.txt``: words of time in eight languages and their values.

Belongs here: reading the tables, and the patterns made of them.
Does not belong here: what a row of such words means (``intents.when_tokens``, ``intents.when``).
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

END = r"(?![a-zа-я0-9_'-])"  # behind a word of a script with blanks; other scripts have no such edge


@lru_cache(maxsize=1)
def _sections() -> dict[str, dict[str, str]]:
    text = Path(__file__).with_name("when_words.txt").read_text(encoding="utf-8")
    sections: dict[str, dict[str, str]] = {}
    section, value = "", ""
    for line in text.splitlines():
        if line.startswith("["):
            section, value = line.strip("[]").split(" ", 1)
            section, value = (value, "") if section == "mark" else (section, value)
        elif line and not line.startswith("#"):
            words = (word.replace("_", " ") for word in line.split())
            sections.setdefault(section, {}).update(dict.fromkeys(words, value))
    return sections


def words_of(section: str) -> Mapping[str, str]:
    """Return the words of ``weekday``, ``day`` or another section of ``when_words.txt`` with their values."""
    return _sections()[section]


@lru_cache(maxsize=64)
def any_of(*sections: str) -> str:
    """Return a pattern of the words of ``sections``, the longest first, each up to its edge."""
    words = sorted({word for section in sections for word in words_of(section)}, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word) + (END if is_spaced(word) else "") for word in words) + ")"


def is_spaced(word: str) -> bool:
    """Return whether ``word`` is of a script that parts words with blanks."""
    return word[-1].isascii() or "а" <= word[-1] <= "я"


def number_of(text: str) -> int | None:
    """Return the number that ``text`` writes in digits or as one word, or ``None``."""
    if text.isdecimal():
        return int(text)
    numbers = words_of("number")
    if text in numbers:
        return int(numbers[text])
    if len(text) == 2 and text[0] == "十" and text[1] in numbers:
        return 10 + int(numbers[text[1]])
    if len(text) >= 2 and text[1] == "十" and text[0] in numbers:
        return int(numbers[text[0]]) * 10 + (int(numbers[text[2]]) if len(text) == 3 and text[2] in numbers else 0)
    return None
