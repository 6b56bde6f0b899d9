"""Identity of a claim: what makes two texts the same fact, and what never does.

Belongs here: the normalised form and its hash, specific values of a text, near-duplicates, masked patterns.
Does not belong here: whether a text is a claim at all (``hygiene``), which of two claims wins (``consolidation``).

Letter case, width, spacing, emphasis, list signs, hyphen kind, end punctuation and a leading "Update:" do not make a
new fact; a digit, a colour, a name, "not" or another emoji does.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from recall_runtime.notes.leads import correction_lead_end, strip_leads
from recall_runtime.text.patterns import lazily
from recall_runtime.text.similarity import jaccard_of, tokens
from recall_runtime.text.word_sets import word_set
from recall_runtime.text.words import SCRIPT_RUN, fold, stop_words

_FORMAT_SIGNS = lazily("[\u00ad\u061c\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_HYPHENS = lazily("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'})
_EMPHASIS = lazily(r"\*+|`+|~~|(?<!\w)_+(?=\S)|(?<=\S)_+(?!\w)")
_LIST_SIGN = lazily(r"^(?:[-*+>#]+[ ]|\d{1,3}[.)][ ]|\[[ x]\][ ])+")
_END = " .!?;:,\u2026\u3002\uff01\uff1f\uff1b\uff1a\uff0c\u3001"

_CHUNK = lazily(r"[A-Za-z0-9_./:@#%+=~$&\\-]+")
_TRIM = ".,:;/-=&#"
_HOST = lazily(r"[a-z0-9-]{2,}(?:\.[a-z0-9-]{2,})+", re.IGNORECASE)
_CODE = lazily(r"`([^`\n]{1,200})`")
_NUMBER = lazily(r"\d+(?:[.,:]\d+)*")
_NEGATIONS = word_set(
    """not no never none nothing neither nor cannot can't don't doesn't isn't aren't wasn't weren't won't
    without stop nicht kein keine keinen nie niemals ohne ne pas jamais sans aucun sin nunca ningún ninguna
    não sem не нет никогда без ни нельзя"""
)
_NEGATION_SIGNS = lazily("[不没沒无無非别別未勿]|ない|ません|なく|안 |않|없")
_NEGATED_BEFORE = lazily(
    r"(?:\b(?:not|no longer|never|nicht|nicht mehr|kein|keine|nie|no|nunca|не|больше не|pas)\b[^\s,;:.()]*"
    r"(?:\s+[^\s,;:.()]+){0,2}\s+|[不没非别勿未][^\s,，。;；]{0,6})[`\"'(]{0,2}$",
    re.IGNORECASE,
)
_GERMAN = word_set("""der die das und ist für von nicht auf mit den dem ein eine wird nur vor bei zum zur""")


def normalise(text: str) -> str:
    """Return the normalised form that identifies a claim. Normalising twice changes nothing more."""
    for _ in range(8):
        following = _normalise_once(text)
        if following == text:
            break
        text = following
    return text


def claim_id(text: str) -> str:
    """Return the first 12 hex digits of the SHA-1 of the normalised text."""
    return _hash12(normalise(text))


def query_hash(query: str) -> str:
    """Return the first 12 hex digits of the SHA-1 of the trimmed, lower-cased query (openclaw-algorithms 17.2)."""
    return _hash12(query.strip().lower())


def value_tokens(text: str) -> frozenset[str]:
    """Return the specific tokens of ``text``, folded.

    Tokens with digits, paths, addresses, host and file names, flags, identifiers, single words in backticks.
    """
    found: set[str] = set()
    folded = unicodedata.normalize("NFKC", _HYPHENS.sub("-", _FORMAT_SIGNS.sub("", text)))
    for match in _CODE.finditer(folded):
        word = match[1].strip()
        if word and not any(sign.isspace() for sign in word):
            found.add(_trim(word).casefold())
    for match in _CHUNK.finditer(folded):
        token = _trim(match[0])
        if _is_specific(token):
            found.add(token.casefold())
    found.discard("")
    return frozenset(found)


def pattern(text: str) -> str:
    """Return ``text`` with values, numbers and names masked: lines of one routine share their pattern."""
    words: list[str] = []
    for position, word in enumerate(normalise_keep_case(text).split()):
        bare = word.strip(".,:;!?()[]\"'。，：；（）")
        if any(sign.isdigit() for sign in word):
            words.append(_NUMBER.sub("#", word) if not bare.isascii() else "#")
        elif _is_specific(bare):
            words.append("#")
        elif position and bare[:1].isupper():
            words.append("@")
        else:
            words.append(word.casefold())
    return re.sub(r"#(?: #)+", "#", " ".join(words)).rstrip(_END)


def same_claim(a: str, b: str) -> bool:
    """Return whether two texts state the same fact, possibly in other words or another language.

    Equal normalised forms are one claim. With specific values: equal values, none of them negated on one side only,
    and a shared subject. Without: Jaccard similarity of 0.9 or more, and nothing but stop words differs. Texts that
    differ in a number, a negation, a colour or a name are never one claim.
    """
    if normalise(a) == normalise(b):
        return True
    values = value_tokens(a)
    if values != value_tokens(b):
        return False
    mine, other = tokens(a), tokens(b)
    if not values:
        differing = (mine ^ other) - (stop_words() - _NEGATIONS)
        return not differing and _negations(a) == _negations(b) and jaccard_of(mine, other) >= 0.9
    if _negated_values(a, values) != _negated_values(b, values):
        return False
    return _same_subject(a, b, values)


def shares_subject(a: str, b: str) -> bool:
    """Return whether both texts name the same thing, and not each of them something the other does not name.

    Values and words of the common vocabulary name nothing, so "X listens on 12" and "the port of X is 14" share X,
    while "X listens on 12" and "Y listens on 12" share nothing. A subject written in another script is not seen.
    """
    return not _other_names(a, b) and _share(subject_words(a), subject_words(b))


def subject_words(text: str) -> frozenset[str]:
    """Return the folded Latin words by which ``text`` names what it is about."""
    return _subjects(text, value_tokens(text))


def _same_subject(a: str, b: str, values: frozenset[str]) -> bool:
    """Return whether two texts with equal ``values`` are about the same thing."""
    if _other_names(a, b):
        return False
    subjects_a, subjects_b = _subjects(a, values), _subjects(b, values)
    if subjects_a and subjects_b:
        return _share(subjects_a, subjects_b)
    return _negations(a) == _negations(b) and jaccard_of(tokens(a), tokens(b)) >= 0.5


def _share(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether the sets meet and not each holds a word of its own: the same sentence about two things."""
    return bool(first & second) and not (first - second and second - first)


def _other_names(a: str, b: str) -> bool:
    names_a, names_b = _names(a), _names(b)
    return bool(names_a - tokens(b) and names_b - tokens(a))


def _subjects(text: str, values: frozenset[str]) -> frozenset[str]:
    """Return the words of ``text`` that name something: Latin words that are neither common nor part of a value."""
    parts = frozenset().union(*(tokens(value) for value in values))
    words = {match[0] for match in SCRIPT_RUN.finditer(fold(text)) if match.lastgroup == "word"}
    return frozenset(word for word in words - stop_words() - common_words() - parts if len(word) > 2 and word.isalpha())


def _names(text: str) -> frozenset[str]:
    """Return capitalised words inside a sentence; none in German, which capitalises every noun."""
    words = re.findall(r"\w+", text)
    if len(_GERMAN.intersection(word.lower() for word in words)) >= 1:
        return frozenset()
    found: set[str] = set()
    for match in re.finditer(r"(?<=[\w,;:(] )([A-Z][a-zà-ÿ]{1,30})\b", text):
        if not text[: match.start()].rstrip().endswith(":"):
            found.add(match[1].lower())
    for match in re.finditer(r"^([A-Z][a-zà-ÿ]{1,30}),", text):
        found.add(match[1].lower())
    return frozenset(found) - common_words() - stop_words()


def _negations(text: str) -> frozenset[str]:
    words = _NEGATIONS.intersection(re.findall(r"[\w']+", fold(text)))
    return frozenset(words) | frozenset(_NEGATION_SIGNS.findall(text))


def _negated_values(text: str, values: frozenset[str]) -> frozenset[str]:
    folded = fold(text)
    found: set[str] = set()
    for value in values:
        at = folded.find(value)
        while at >= 0:
            if _NEGATED_BEFORE.search(folded[max(0, at - 60) : at]):
                found.add(value)
            at = folded.find(value, at + len(value))
    return frozenset(found)


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """Return words that name nothing in particular, in the languages of our notes, folded."""
    listed = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8")
    return frozenset(fold(word) for line in listed.splitlines() if not line.startswith("#") for word in line.split())


def normalise_keep_case(text: str) -> str:
    """Return ``text`` in NFKC without invisible signs, emphasis, list signs and doubled blanks; case is kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = _HYPHENS.sub("-", _FORMAT_SIGNS.sub("", text)).translate(_QUOTES)
    return _LIST_SIGN.sub("", " ".join(_EMPHASIS.sub("", text).split()))


def _normalise_once(text: str) -> str:
    text = normalise_keep_case(text)
    text = strip_leads(text)
    text = text[correction_lead_end(text) :]
    text = unicodedata.normalize("NFKC", text.casefold())
    bare = text.strip(_END)
    return bare or text.strip()


def _is_specific(token: str) -> bool:
    if not token or not any(sign.isalnum() for sign in token):
        return False
    if any(sign.isdigit() for sign in token) or "_" in token.strip("_") or token.startswith("--"):
        return True
    if "://" in token or token.count("/") >= 2 or (token.startswith("/") and len(token) > 2) or "@" in token[1:]:
        return True
    return _HOST.fullmatch(token) is not None


def _trim(token: str) -> str:
    token = token.rstrip(_TRIM)
    while token and token[0] in ".,:;=&":
        token = token[1:]
    return token


def _hash12(text: str) -> str:
    return hashlib.sha1(text.encode("utf-8", errors="replace"), usedforsecurity=False).hexdigest()[:12]
