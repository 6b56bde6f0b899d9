"""Concept tags: the few words that say what a text is about.

Belongs here: the vocabulary of openclaw-algorithms 19 (glossary, compounds, words) and its rules.
Does not belong here: counting tags over time (the REM phase), triggers of entries.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from recall_runtime.text.word_sets import word_set
from recall_runtime.text.words import SCRIPT_RUN, stop_words

MAX_TAGS = 8
_MAX_LENGTH = 32
_MAX_SOURCE = 4_000
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_COMPOUND = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.\w+)?")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_KANA_ONLY = re.compile("[\u3041-\u30ff]+")
_HAN_OR_HANGUL = re.compile("[\u3400-\u9fff\uac00-\ud7a3]")
_SEGMENT = re.compile("[\u3400-\u9fff\u3005]+|[\u30a1-\u30fa\u30fc-\u30ff]+|[\u3041-\u3096]+|[\uac00-\ud7a3]+")
_EXTENSIONS = word_set("md txt json jsonl yaml yml toml log py js ts sh csv html xml pdf png jpg")
_WORKING = word_set(
    """candidate confidence evidence status staged theme user assistant note notes done info update correction
    now recalls reflections session memory source score"""
)


def concept_tags(path: str, text: str) -> tuple[str, ...]:
    """Return up to eight tags of ``text`` in the note ``path``: glossary words, compounds, then words, in order.

    Source: file name, blank, text without HTML comments (openclaw-algorithms 19). Tags are NFKC and lower-case. Only
    notes have names that people chose; the name of a transcript is an id and says nothing.
    """
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    name = name if name.endswith(".md") else ""
    source = unicodedata.normalize("NFKC", f"{name} {_COMMENT.sub(' ', text)[:_MAX_SOURCE]}").lower()
    tags: dict[str, None] = {}
    for raw, known in _tokens(source):
        tag = raw if known else _normalise(raw)
        if tag:
            tags.setdefault(tag)
        if len(tags) == MAX_TAGS:
            break
    return tuple(tags)


def _tokens(source: str) -> Iterator[tuple[str, bool]]:
    for entry, pattern in _glossary():
        if pattern.search(source) if pattern else entry in source:
            yield entry, True
    for match in _COMPOUND.finditer(source):
        yield match[0], False
    for match in SCRIPT_RUN.finditer(source):
        if match.lastgroup == "unspaced":
            for piece in _SEGMENT.finditer(match[0]):
                yield piece[0], False
        elif match.lastgroup != "sign":
            yield match[0], False


def _normalise(token: str) -> str:
    """Return the tag for a token, or an empty text when it is none."""
    tag = _EDGES.sub("", token).replace("_", "-")
    if not tag or len(tag) > _MAX_LENGTH or tag.isdigit() or _DATE.fullmatch(tag):
        return ""
    shortest = 2 if _HAN_OR_HANGUL.search(tag) else 3
    if len(tag) < shortest or tag in stop_words() or tag in _EXTENSIONS or tag in _WORKING:
        return ""
    return tag if any(sign.isalnum() for sign in tag) else ""


@lru_cache(maxsize=1)
def _glossary() -> tuple[tuple[str, re.Pattern[str] | None], ...]:
    """Entries in order; those too short to be found inside words carry a whole-word pattern."""
    listed = Path(__file__).with_name("concept_glossary.txt").read_text(encoding="utf-8")
    entries = [line.strip() for line in listed.splitlines() if line.strip() and not line.startswith("#")]
    return tuple((entry, _whole_word(entry) if _is_short(entry) else None) for entry in entries)


def _is_short(entry: str) -> bool:
    return len(entry) < (2 if _CJK.search(entry) and not _KANA_ONLY.fullmatch(entry) else 3)


def _whole_word(entry: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(entry)}(?!\w)")
