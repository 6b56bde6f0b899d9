"""Words of every script, folded the same way in the index, in questions and in triggers.

Belongs here: folding, segmentation, stemming, stop words.
Does not belong here: full-text syntax (``recall_runtime.index`` quotes the words), similarity, concept tags.

Scripts without blanks (Han, kana, Thai, Lao, Khmer, Burmese) give single signs and adjacent pairs; Hangul gives the
word and its stem without the particle; Hebrew and Arabic give the word and its form without the prefixed letters.
Compounds such as ``s3://keep-11206`` or ``CVE-2024-1`` are kept whole and in parts.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

MAX_WORD = 64

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_SOUTHEAST = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"
_UNSPACED = f"{_HAN}{_KANA}{_SOUTHEAST}"
_MARKS = "\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0980-\u0983\u09bc-\u09cd"
_MARKS += "\u0b3e-\u0bcd\u0c3e-\u0c4d"
_LETTER = rf"[^\W{_UNSPACED}{_HANGUL}]"
_WORD = rf"(?:{_LETTER}|[{_MARKS}])"
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

# Runs that stand for themselves in comparisons: plain words, runs without blanks, single symbols.
SCRIPT_RUN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)|(?P<word>{_WORD}+)|(?P<sign>[{_EMOJI}])"
)
_TOKEN = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)|(?P<hangul>[{_HANGUL}]+)"
    rf"|(?P<word>{_WORD}+(?:(?:'|[-./:@+=%#&~\\]+){_WORD}+)*[+#]{{0,3}})|(?P<sign>[{_EMOJI}])"
)
_CONNECTORS = re.compile(r"[-./:@+=%#&~\\_]+")
_CLUSTER = re.compile(
    "[\u0e40-\u0e44]?.[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]*",
    re.DOTALL,
)
_FORMAT_SIGNS = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_COMBINING = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\uff07`\u00b4]")
_LATIN = re.compile("[a-z\u00c0-\u024f\u1e00-\u1eff]+(?:'[a-z\u00c0-\u024f\u1e00-\u1eff]+)*")
_CYRILLIC = re.compile("[\u0400-\u052f]+")
_HEBREW = re.compile("[\u0590-\u05ff]+")
_ARABIC = re.compile("[\u0600-\u06ff]+")
_HEBREW_PREFIX = frozenset("\u05d4\u05d5\u05d1\u05dc\u05db\u05de\u05e9")
_ARABIC_PREFIXES = (
    "\u0648\u0627\u0644",
    "\u0641\u0627\u0644",
    "\u0628\u0627\u0644",
    "\u0643\u0627\u0644",
    "\u0644\u0644",
    "\u0627\u0644",
)
_PARTICLES = (
    *("에게서", "에서는", "으로는", "이라고", "까지", "부터", "에서", "에게", "한테", "으로", "처럼", "보다", "마다"),
    *(
        "조차",
        "밖에",
        "이나",
        "라도",
        "라고",
        "하고",
        "이랑",
        "은",
        "는",
        "이",
        "가",
        "을",
        "를",
        "에",
        "의",
        "와",
        "과",
    ),
    *("도", "로", "만", "랑"),
)
# Function signs that say nothing in a question; the runs are cut there.
_CJK_FUNCTION = re.compile(
    "[的了吗嗎呢是吧啊呀么麼在和与與或也都就把被这這那哪个個我你他她它请請怎のはがをにでともへか]+"
)


def fold(text: str) -> str:
    """Return ``text`` in NFKC, case-folded, without invisible signs and stray combining marks."""
    if text.isascii():
        return text.lower().replace("`", "'")
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _APOSTROPHES.sub("'", _FORMAT_SIGNS.sub("", text))
    return _COMBINING.sub("", text)


def split_clusters(run: str) -> list[str]:
    """Return the written signs of a run without blanks; vowel and tone marks stay with their consonant."""
    return _CLUSTER.findall(run)


def words(text: str) -> list[str]:
    """Return all folded words of ``text`` in order, not stemmed: compounds whole and in parts, pairs and signs."""
    return [word for word, _ in _pieces(fold(text))]


def index_text(text: str) -> str:
    """Return the folded, segmented and stemmed words of ``text`` joined by blanks.

    Holds letters, digits, marks, symbols and the connectors inside a compound; no quotes, parentheses or control signs.
    """
    return " ".join(_stem(word) if plain else word for word, plain in _pieces(fold(text)))


def query_terms(text: str) -> list[str]:
    """Return the distinct terms to look up for the question ``text``, in order, without stop words.

    A question of stop words alone keeps them. Terms are words as :func:`index_text` writes them.
    """
    terms = dict.fromkeys(_query_words(fold(text)))
    telling = [term for term in terms if term not in _stop_terms()]
    return telling or list(terms)


def stem(word: str) -> str:
    """Return the stem of one folded word: English rules for Latin letters, Russian for Cyrillic, else the word.

    An irregular English form has the stem of its base form: a question says "buy" where the note says "bought".
    """
    return _stem(word)


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Return the stop words of all languages we know, folded."""
    listed = Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8")
    return frozenset(fold(word) for line in listed.splitlines() if not line.startswith("#") for word in line.split())


@lru_cache(maxsize=1)
def _stop_terms() -> frozenset[str]:
    return frozenset(_stem(word) for word in stop_words()) | stop_words()


def _pieces(folded: str) -> Iterator[tuple[str, bool]]:
    """Yield each word and whether it is a plain word that may be stemmed."""
    for match in _TOKEN.finditer(folded):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            yield from _compound(run)
        elif kind == "unspaced":
            signs = split_clusters(run)
            yield from ((sign, False) for sign in signs)
            yield from ((first + second, False) for first, second in pairwise(signs))
        elif kind == "hangul":
            yield from ((form, False) for form in _hangul_forms(run[:MAX_WORD]))
        else:
            yield run, False


def _query_words(folded: str) -> Iterator[str]:
    for match in _TOKEN.finditer(folded):
        kind, run = match.lastgroup, match[0]
        if kind == "word":
            pieces = list(_compound(run))
            for word, plain in pieces:
                if len(pieces) == 1 or not (len(word) <= 2 and word.isdigit()):
                    yield _stem(word) if plain else word
        elif kind == "unspaced":
            yield from _unspaced_query(run)
        elif kind == "hangul":
            yield _hangul_forms(run[:MAX_WORD])[-1]
        else:
            yield run


def _unspaced_query(run: str) -> Iterator[str]:
    parts = [split_clusters(part) for part in _CJK_FUNCTION.split(run) if part]
    pairs = [first + second for part in parts for first, second in pairwise(part)]
    if pairs:
        yield from pairs
        return
    signs = split_clusters(run)
    yield from [first + second for first, second in pairwise(signs)] or signs


def _compound(run: str) -> Iterator[tuple[str, bool]]:
    if run.isalnum():
        yield from _word_forms(run)
        return
    if not _CONNECTORS.search(run):
        yield from _word_forms(run)
        return
    if len(run) <= MAX_WORD:
        yield run, False
    for part in _CONNECTORS.split(run):
        if part:
            yield from _word_forms(part)


def _word_forms(word: str) -> Iterator[tuple[str, bool]]:
    word = _plain_latin(word[:MAX_WORD])
    yield word, True
    if word.isascii():
        return
    if _HEBREW.fullmatch(word) and len(word) >= 4 and word[0] in _HEBREW_PREFIX:
        yield word[1:], True
    elif _ARABIC.fullmatch(word):
        for prefix in _ARABIC_PREFIXES:
            if word.startswith(prefix) and len(word) >= len(prefix) + 2:
                yield word[len(prefix) :], True
                break


def _plain_latin(word: str) -> str:
    """Return a Latin word without accents; other scripts keep their marks, which tell letters apart."""
    if word.isascii() or not _LATIN.fullmatch(word):
        return word
    return _COMBINING.sub("", unicodedata.normalize("NFD", word))


def _hangul_forms(word: str) -> tuple[str, ...]:
    for particle in _PARTICLES:
        if word.endswith(particle) and len(word) >= len(particle) + 2:
            return word, word[: -len(particle)]
    return (word,)


@lru_cache(maxsize=1)
def _irregular_forms() -> dict[str, str]:
    listed = Path(__file__).with_name("irregular_forms.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in listed.splitlines() if not line.startswith("#"))
    return {form: base for base, *forms in rows for form in forms}


@lru_cache(maxsize=1)
def _stemmers() -> tuple[Any, Any]:
    import snowballstemmer

    return snowballstemmer.stemmer("english"), snowballstemmer.stemmer("russian")


@lru_cache(maxsize=131_072)
def _stem(word: str) -> str:
    if len(word) < 3 or len(word) > 32:
        return word
    word = _irregular_forms().get(word, word)
    english, russian = _stemmers()
    if _LATIN.fullmatch(word):
        return str(english.stemWord(word))
    if _CYRILLIC.fullmatch(word):
        return str(russian.stemWord(word))
    return word
