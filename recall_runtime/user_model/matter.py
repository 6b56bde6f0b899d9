"""What a directive is about, so that a change of mind meets the directive it changes.

Belongs here: the words that name a matter, comparing two matters. Deterministic, no model.
Does not belong here: which directive wins (``user_model.update``), identity of facts (``notes.identity``).

Conservative: two directives are one matter only when they share what they speak of, and hold for the same occasion.
Imperatives, generic verbs, fillers, numbers and times say nothing about the matter; a currency, a language or a unit
is a value and stands for its class. Directives in different languages meet only through such classes.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from recall_runtime.text.words import SCRIPT_RUN, fold, split_clusters, stem, stop_words, words

_SENTENCE = re.compile(r"[.!?;。！？；](?:\s|$)|[。！？；]|\s—\s|\s–\s")
_VERB_CLASSES = frozenset({"<answer>", "<schedule>", "<send>", "<show>"})
_VERB_NAMES = frozenset(name.strip("<>") for name in _VERB_CLASSES)
_DIGIT = re.compile(r"\d")
_CONTRAST = re.compile(
    r",?\s*\b(?:not|instead of|rather than|nicht|statt|anstatt|no|en lugar de|en vez de|pas|plutot que|au lieu de|nao"
    r"|em vez de|а не|вместо)\b[^,;.]*"
    r"|,\s*(?:never|nie|nunca|jamais|никогда)\b[^,;.]*|(?:，|,)?(?:而不是|不要|不用)[^，。]*"
)
_LONG = 6  # tokens of a directive that says too much to be the other value of a short one
_SHORT = 4  # tokens of a directive whose last noun still says what it is about
_ELISION = re.compile(r"(?<!\w)([cdjlmnst]|qu)['’](\w+)")
_NAME = "<name>"
_NAMING = (
    "call me", "address me as", "nenn mich", "nenne mich", "llámame", "appelle-moi", "me chame de", "зови меня",
    "зовите меня", "называй меня", "называйте меня",
)  # fmt: skip
_NO_NAMES = frozenset({"back", "only", "first", "directly", "immediately", "later", "early", "anytime", "today"})
_CJK_FRAME = re.compile(
    "(?:请|請|总是|總是|一律|始终|永远|从不|從不|绝不|不要|不用|使用|用|以|尽量|优先|我|你|的|时候|时|時|都|给我|ください|て下さい|してください|"
    "いつも|必ず|常に|決して|ないで|使って|使う|して|を|は|に|で|の|が|と|も)"
)


@dataclass(frozen=True, slots=True)
class _Words:
    opening: frozenset[str]
    idle: frozenset[str]
    against: frozenset[str]
    unsaid: frozenset[str]  # words of the idle ones that change nothing about what is asked for
    unspaced_attitudes: tuple[tuple[str, bool], ...]  # (words, whether against), longest first
    scope: frozenset[str]
    exceptions: frozenset[str]
    prepositions: frozenset[str]
    numbers: frozenset[str]
    classes: dict[str, str]
    unspaced: tuple[tuple[str, str], ...]  # class values in scripts without blanks, longest first


@dataclass(frozen=True, slots=True)
class Matter:
    """The words a directive speaks of: all of them, those of its object, and those of the occasion it holds for.

    ``against``: it rules something out ("never", "I dislike"), rather than asking for it. ``said``: the tokens with the
    values, limits and sizes that the tokens leave out.
    """

    tokens: frozenset[str]
    topic: tuple[str, ...]
    scope: frozenset[str]
    against: bool = False
    said: frozenset[str] = frozenset()

    @property
    def subjects(self) -> frozenset[str]:
        """Tokens that name something, classes of values and of verbs aside."""
        return frozenset(token for token in self.tokens if token == "<mail>" or not token.startswith("<"))


def matter_of(text: str) -> frozenset[str]:
    """Return the tokens that name what ``text`` is about; classes of values are written ``<currency>``."""
    return _matter(text).tokens


def value_class_of(text: str) -> frozenset[str]:
    """Return the classes of values (currency, language, ...) that ``text`` names."""
    return frozenset(token for token in matter_of(text) if token.startswith("<"))


def values_in(text: str) -> tuple[str, ...]:
    """Return the words of ``text`` that are values of a class, as written, in order."""
    known = _known_words()
    pieces = [piece.strip(".,;:!?()\"'") for piece in text.split()]
    spaced = tuple(piece for piece in pieces if known.classes.get(fold(piece)) not in (None, *_VERB_NAMES))
    if spaced:
        return spaced
    return tuple(value for value, name in known.unspaced if name not in _VERB_NAMES and value in text)


def same_matter(a: str, b: str) -> bool:
    """Return whether two directives are about one matter, so that the newer replaces the older.

    Both hold for the same occasion, and: their tokens are equal (a limit or a value moved). Else two that rule
    something out never meet, for exclusions add up; one that asks and one that rules out meet when the tokens of one
    are in the other with one more at most; two that ask for something meet when all tokens of one are in the other, at
    least one of them a subject or two of them values; or they share half of the smaller one, two tokens with a subject
    at least; or their objects, both short, end in the same word ("window seats", "aisle seats").
    """
    mine, other = _matter(a), _matter(b)
    if not mine.tokens or not other.tokens:
        return False
    if not (mine.scope <= other.tokens and other.scope <= mine.tokens):
        return False
    if mine.tokens == other.tokens:
        return True
    if mine.against and other.against:
        return False
    shared = mine.tokens & other.tokens
    smaller, larger = sorted((mine.tokens, other.tokens), key=len)
    if mine.against != other.against:
        return smaller == shared and bool(shared & mine.subjects) and len(larger) - len(smaller) <= 1
    if len(larger) > _LONG:
        return False
    if smaller == shared:
        return bool(shared & mine.subjects) or len(shared) > 1
    if len(shared) >= 2 and 2 * len(shared) >= len(smaller) and shared & mine.subjects:
        return True
    return len(larger) <= _SHORT and _same_head(mine, other)


def says_the_same(a: str, b: str) -> bool:
    """Return whether two directives of one matter ask for the same, so that they don't contradict each other."""
    mine, other = _matter(a), _matter(b)
    return (mine.tokens, mine.against, mine.said) == (other.tokens, other.against, other.said)


def _same_head(mine: Matter, other: Matter) -> bool:
    """Whether the objects end in the same word; the occasion of one may be the object of the other."""
    heads = [part[-1] if part else "" for part in (mine.topic, other.topic)]
    if not heads[0] or not heads[1]:
        return False
    if mine.tokens & _VERB_CLASSES != other.tokens & _VERB_CLASSES:
        return False  # "address guests by name" speaks of something else than "keep replies to guests short"
    if heads[0] == heads[1] and not heads[0].startswith("<"):
        return True
    return (heads[0] in other.scope and mine.topic[-1:] == (heads[0],)) or (
        heads[1] in mine.scope and other.topic[-1:] == (heads[1],)
    )


@lru_cache(maxsize=4_096)
def _matter(text: str) -> Matter:
    known = _known_words()
    folded = fold(_first_sentences(text))
    folded = _ELISION.sub(r"\1e \2", _without_exception(folded, known))
    naming = _names_the_owner(folded, known)
    if _is_unspaced(folded):
        return Matter(frozenset({_NAME}), (), frozenset()) if naming else _unspaced_matter(folded, known)
    tokens: dict[str, None] = {}
    topic: list[str] = []
    scope: set[str] = set()
    in_scope = False
    open_topic = True
    against = False
    said: set[str] = set()
    for word in _spoken(folded):
        against = against or word in known.against
        if word not in known.unsaid and word not in stop_words():
            said.add(_stem(word))
        if word in known.scope:
            in_scope = True
            open_topic = False
            continue
        if word in known.prepositions:
            open_topic = open_topic and not topic
            in_scope = in_scope and not scope
            continue
        token = _token(word, known)
        if token is None:
            continue
        tokens[token] = None
        if in_scope:
            scope.add(token)
        elif open_topic and (topic or token not in _VERB_CLASSES):
            topic.append(token)
    if naming:  # how the owner is called is a matter of its own, and the name its value
        return Matter(frozenset({_NAME, *scope}), (), frozenset(scope))
    return Matter(frozenset(tokens), tuple(topic), frozenset(scope), against, frozenset(said))


def _names_the_owner(folded: str, known: _Words) -> bool:
    """Return whether the directive says how to call its owner ("call me Noor"), and not when ("call me before 9")."""
    found = _naming_words().search(folded)
    if found is None or found["name"] is None:
        return found is not None
    name = found["name"]
    is_plain = name in known.prepositions | known.scope | known.exceptions | known.idle or name in stop_words()
    return not is_plain and name not in _NO_NAMES and not _DIGIT.search(name)


@lru_cache(maxsize=1)
def _naming_words() -> re.Pattern[str]:
    spaced = "|".join(re.escape(fold(words)) for words in _NAMING)
    return re.compile(rf"(?:^|\s)(?:{spaced})\s+(?P<name>[^\s.,;:!?]+)|叫我|称呼我|稱呼我|と呼んで")


def _first_sentences(text: str) -> str:
    """Return the first two sentences; what follows explains."""
    end = 0
    for number, match in enumerate(_SENTENCE.finditer(text)):
        end = match.start()
        if number == 1:
            return text[:end]
    return text


def _without_exception(folded: str, known: _Words) -> str:
    folded = _CONTRAST.sub(" ", folded) if not _opens_negative(folded) else folded
    pieces = folded.split()
    for index, word in enumerate(pieces):
        if index and word.strip(",.;:") in known.exceptions:
            return " ".join(pieces[:index])
    return folded


def _opens_negative(folded: str) -> bool:
    return folded.startswith(("not ", "no ", "nicht ", "pas ", "nao ", "不要", "不用"))


def _spoken(folded: str) -> list[str]:
    """Return the plain words in order: compounds whole when they are values, else in parts."""
    classes = _known_words().classes
    spoken: list[str] = []
    skip = 0
    for piece in words(folded):
        if skip:
            skip -= 1
            continue
        parts = [part for part in re.split(r"[-./:@+=%#&~\\_]+", piece) if part]
        if len(parts) > 1 and piece in classes:
            skip = len(parts)
            spoken.append(piece)
        elif len(parts) <= 1:
            spoken.append(piece)
    return spoken


def _token(word: str, known: _Words) -> str | None:
    if word in known.classes:
        return f"<{known.classes[word]}>"
    if word in known.opening or word in known.idle or _DIGIT.search(word) or len(word) < 2:
        return None
    if word in stop_words() or word in known.numbers:
        return None
    return _stem(word)


def _stem(word: str) -> str:
    stemmed = stem(word)
    for ending, least in (("en", 5), ("es", 4), ("s", 4), ("e", 4), ("n", 5)):
        if stemmed.endswith(ending) and len(stemmed) - len(ending) >= least:
            return stemmed[: -len(ending)]
    return stemmed


def _is_unspaced(folded: str) -> bool:
    return any(match.lastgroup == "unspaced" for match in SCRIPT_RUN.finditer(folded))


def _unspaced_matter(folded: str, known: _Words) -> Matter:
    """Return the matter of a directive in a script without blanks: classes, then pairs of the remaining signs."""
    tokens: set[str] = set()
    said = folded
    for value, name in known.unspaced:
        if value in folded:
            tokens.add(f"<{name}>")
            folded = folded.replace(value, " ")
    against = any(words in folded for words, is_against in known.unspaced_attitudes if is_against)
    for attitude, _ in known.unspaced_attitudes:
        folded = folded.replace(attitude, " ")
    rest = _CJK_FRAME.sub(" ", folded)
    for match in SCRIPT_RUN.finditer(rest):
        if match.lastgroup == "unspaced":
            signs = split_clusters(match[0])
            tokens.update(first + second for first, second in pairwise(signs))
        elif match.lastgroup == "word" and (token := _token(match[0], known)):
            tokens.add(token)
    return Matter(frozenset(tokens), (), frozenset(), against, frozenset({said}))


@lru_cache(maxsize=1)
def _known_words() -> _Words:
    text = Path(__file__).with_name("matter_words.txt").read_text(encoding="utf-8")
    sections: dict[str, set[str]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            for word in line.split():
                folded = fold(word)
                sections.setdefault(section, set()).update((folded, *words(folded)[:1]))
    classes = {
        word: name.removeprefix("class ")
        for name, listed in sections.items()
        if name.startswith("class ")
        for word in listed
    }
    unspaced = [(word, name) for word, name in classes.items() if _is_unspaced(word)]
    return _Words(
        opening=frozenset(sections["ALWAYS"] | sections["NEVER"]),
        idle=frozenset(sections["VERBS"] | sections["FILLERS"] | sections["ATTITUDE"] | sections["AGAINST"]),
        against=frozenset(sections["NEVER"] | sections["AGAINST"]),
        unsaid=frozenset(sections["ALWAYS"] | sections["NEVER"] | sections["VERBS"])
        | frozenset(sections["ATTITUDE"] | sections["AGAINST"]),
        unspaced_attitudes=tuple(
            sorted(
                (
                    (word, name == "AGAINST")
                    for name in ("ATTITUDE", "AGAINST")
                    for word in sections[name]
                    if _is_unspaced(word)
                ),
                key=lambda pair: -len(pair[0]),
            )
        ),
        scope=frozenset(sections["SCOPE"]),
        exceptions=frozenset(sections["EXCEPT"]),
        prepositions=frozenset(sections["PREPOSITIONS"]),
        numbers=frozenset(sections["NUMBERS"]),
        classes=classes,
        unspaced=tuple(sorted((pair for pair in unspaced if len(pair[0]) > 1), key=lambda pair: -len(pair[0]))),
    )
