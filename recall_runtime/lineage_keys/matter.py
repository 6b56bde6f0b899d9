"""What a statement is about within its project: which environment, which part, whose, and in what words.

Belongs here: the words of a statement sorted by what they tell; whether two statements agree on their matter, and
whether they contradict each other on it.
Does not belong here: the listed words (``matter_words``), values and their shapes (``specifics``), projects and keys
(``book``), which of two statements is the newer (``succession``).

A shape such as ``port #`` or ``s3://keep-#`` does not tell whether a gateway or an exporter, backups or logs are meant.
To retire a true statement is worse than to keep an old one, so whatever is not clearly one matter is two:

- Environments (staging, test, replica, backup ...) must be the same; production is what nobody has to say.
- Neither may name a person, a part, a period or a bound against another one of the other statement.
- The same sentence with another word in the same place is about another thing, and so is one with a word more right
  before a word of both ("the db", "the reporting db").
- In one language the words must agree, as much as the shape leaves open; across languages nothing can be compared but
  the listed words.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise

from recall_runtime.lineage_keys.matter_words import DEFAULT, MARK, PAUSE, lexicon, tokens
from recall_runtime.lineage_keys.specifics import Specifics, specifics_of
from recall_runtime.notes.identity import common_words
from recall_runtime.text.word_sets import word_set
from recall_runtime.text.words import fold, stem, stop_words

MOST = 0.6  # share of the words of the statement with fewer of them that both must have
_HALF = 0.5  # share of the shorter sentence that makes two sentences one with other words in it
_LONGEST = 60  # words of a statement that are compared


@dataclass(frozen=True, slots=True)
class Matter:
    """What the words of one statement tell, folded; listed words stand for their class (``=database``)."""

    language: str
    environment: frozenset[str]
    parts: frozenset[str]
    topics: frozenset[str]
    periods: frozenset[str]
    bounds: frozenset[str]
    directions: frozenset[str]
    names: frozenset[str]
    numbered: frozenset[str]
    words: frozenset[str]
    sequence: tuple[str, ...]
    slots: tuple[str, ...]
    values: frozenset[str]
    slot_environment: frozenset[str]
    slot_topics: frozenset[str]
    is_generic: bool
    is_strong: bool


@lru_cache(maxsize=8192)
def matter_of(text: str, subjects: frozenset[str] = frozenset()) -> Matter:
    """Return what ``text`` is about; ``subjects`` are the folded names of its projects, which tell nothing here."""
    specifics = specifics_of(text)
    numbered = _numbered(text, specifics)
    facts = [value for at, value in enumerate(specifics.values) if at not in numbered]
    slots = tuple(sorted({value.slot for value in facts}))
    slot_tokens = [token for slot in slots for token in tokens(re.sub(r"[\W_]+", " ", slot))]
    apposed = _apposed(text)
    left_out = {*map(stem, subjects), *map(stem, apposed)}
    own = [token for token in tokens(_marked(specifics))[:_LONGEST] if token not in left_out]
    kinds = lexicon().kinds
    sequence = tuple(
        token
        for token in own
        if kinds.get(token) in ("environment", "part", "topic", "idle")
        or (token not in kinds and token not in slot_tokens)
    )
    silent = {MARK, PAUSE, *(token for token in sequence if kinds.get(token) == "idle")}
    return Matter(
        language=_language(text),
        environment=_of("environment", own),
        parts=_of("part", own),
        topics=_of("topic", own),
        periods=_of("period", own),
        bounds=frozenset(before for before, mark in pairwise(own) if mark == MARK and kinds.get(before) == "bound"),
        directions=_of("direction", own),
        names=_names(text) - subjects - apposed,
        numbered=frozenset(specifics.values[at].text for at in numbered),
        words=frozenset(sequence) - silent,
        sequence=sequence,
        slots=slots,
        values=frozenset(value.text for value in facts),
        slot_environment=_of("environment", slot_tokens),
        slot_topics=_of("part", slot_tokens) | _of("topic", slot_tokens),
        is_generic=any(_is_generic(slot) for slot in slots),
        is_strong=bool(facts) and all(value.strong for value in facts),
    )


def contradict(first: Matter, second: Matter) -> bool:
    """Return whether the two are about different things, whatever else they have in common."""
    many = len(first.slots) > 1 and first.slots == second.slots
    if first.numbered != second.numbered or (many and not first.values & second.values):
        return True
    same_by_value = first.slot_environment and first.slot_environment == second.slot_environment
    if first.environment != second.environment and not same_by_value:
        return True
    if _against(first.parts, second.parts):
        return True
    mine = (first.periods, first.bounds, first.directions)
    others = (second.periods, second.bounds, second.directions)
    if any(one and other and one != other for one, other in zip(mine, others, strict=True)):
        return True
    if _foreign(first, second):
        return _against(first.topics, second.topics)
    return _against(first.names, second.names) or _same_sentence_otherwise(first, second)


def agreement(first: Matter, second: Matter) -> float:
    """Return how far the words agree, 0..1, of two statements with the same slots that do not contradict each other.

    The share of the words of the statement that has fewer of them. A part or topic that the shape of the value names
    counts where either statement names it too. Statements in two languages agree when both name the same part, topic or
    environment.
    """
    if _foreign(first, second):
        named = first.parts & second.parts or first.topics & second.topics
        named = named or first.slot_environment & second.slot_environment or first.environment & second.environment
        return float(first.is_strong and second.is_strong and bool(named))
    stated = first.slot_topics & second.slot_topics & (first.words | second.words)
    stated |= first.slot_environment & second.slot_environment
    unsaid = {DEFAULT} - (first.words & second.words)
    mine, other = (first.words | stated) - unsaid, (second.words | stated) - unsaid
    smaller = min(len(mine), len(other))
    if smaller:
        return len(mine & other) / smaller
    return float(first.is_strong and second.is_strong and mine == other)


def may_agree(first: Matter, second: Matter) -> bool:
    """Return whether nothing in the words speaks against one matter: in one language they share at least one word."""
    return not contradict(first, second) and (_foreign(first, second) or agreement(first, second) > 0)


def _against(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether each names something that the other does not."""
    return bool(first - second and second - first)


def _same_sentence_otherwise(first: Matter, second: Matter) -> bool:
    """Return whether it is one sentence with another word in the same place, or with one more before a shared word."""
    mine, other = sorted((first.sequence, second.sequence))
    silent = first.slot_topics & second.slot_topics | {DEFAULT}
    telling = (first.words | second.words) - silent
    if not (first.words & second.words) - silent:
        return False
    shorter = min(sum(token in telling for token in sequence) for sequence in (mine, other))
    steps = SequenceMatcher(None, mine, other, autojunk=False).get_opcodes()
    shared = sum(tag == "equal" and token in telling for tag, a, b, _, _ in steps for token in mine[a:b])
    for tag, a_start, a_end, b_start, b_end in steps:
        if tag == "equal":
            continue
        own = telling & set(mine[a_start:a_end]) - set(other)
        others = telling & set(other[b_start:b_end]) - set(mine)
        if own and others and shared >= max(1, shorter) * _HALF:
            return True
        if bool(own) != bool(others) and shared >= shorter:
            sequence, start, end = (mine, a_start, a_end) if own else (other, b_start, b_end)
            if MARK not in sequence[max(0, start - 1) : start] and telling.issuperset(sequence[end - 1 : end + 1]):
                return True
    return False


def _of(kind: str, tokens: Iterable[str]) -> frozenset[str]:
    kinds = lexicon().kinds
    return frozenset(token for token in tokens if kinds.get(token) == kind) - {DEFAULT}


def _numbered(text: str, specifics: Specifics) -> frozenset[int]:
    """Return which values are no values but names: tickets, and things with a number that the sentence opens with."""
    tickets = {match.casefold() for match in _TICKET.findall(text)}
    found = set()
    for at, (value, (start, end)) in enumerate(zip(specifics.values, specifics.spans, strict=True)):
        label = _numbered_before(specifics.folded[max(0, start - 40) : start])
        kinds = _numbered_kinds(value.slot) or label
        if value.text in tickets or "ticket" in kinds or specifics.folded[:start].endswith("#"):
            found.add(at)
        elif at == 0 and (kinds or (value.strong and len(specifics.values) > 1)):
            before = [word for word in _WORD.findall(specifics.folded[:start]) if word not in stop_words()]
            room = 2 if len(specifics.values) > 1 or specifics.dates else 1  # "Ferry line 3 leaves at 8:15"
            labelled = 0 < len(before) <= room and (bool(label) or value.slot.startswith(f"{before[-1]} "))
            if (not before or labelled) and not _IS_THE.match(specifics.folded[end:]):
                found.add(at)
    return frozenset(found)


def _numbered_kinds(slot: str) -> tuple[str, ...]:
    letters = _LETTERS.findall(slot)
    return lexicon().numbered(letters[0]) if len(letters) == 1 and "/" not in slot else ()


def _numbered_before(text: str) -> tuple[str, ...]:
    """Return of which kinds of numbered things the last word of ``text`` is one."""
    words = _WORD.findall(text)
    return lexicon().numbered(words[-1]) if words and text.rstrip().endswith(words[-1]) else ()


def _is_generic(slot: str) -> bool:
    """Return whether things of any kind have such a slot: a port, a room, a node, a version."""
    return "place" in _numbered_kinds(slot)


def _marked(specifics: Specifics) -> str:
    """Return the folded statement with a mark in place of each value."""
    pieces = []
    end = 0
    for start, stop in specifics.spans:
        pieces += [specifics.folded[end:start].replace(MARK, " "), f" {MARK} "]
        end = stop
    return "".join([*pieces, specifics.folded[end:].replace(MARK, " ")])


def _names(text: str) -> frozenset[str]:
    """Return the folded names: words in capitals in mid-sentence; none in German, where every noun has one."""
    if _language(text) == "de":
        return frozenset()
    found = set()
    start = True
    for token in text.split():
        word = token.strip("\"'“”‘’„«»()[]{}*_`.,;:!?").replace("’", "'").removesuffix("'s")
        if not start and word[:1].isupper() and word.isalpha() and not word.isupper() and len(word) > 1:
            found.add(fold(word))
        start = token.endswith((".", "!", "?", ":"))
    return frozenset(word for word in found - common_words() - stop_words() if not lexicon().classes_of(word))


def _apposed(text: str) -> frozenset[str]:
    """Return the folded names that belong to the value: ``call Noor, ext. 441``, ``Noor (rota 12) owns the pager``."""
    return frozenset(
        fold(match[1]) for match in _APPOSED.finditer(text) if match.start() or not _IS_AT.match(text[match.end() :])
    )


def _foreign(first: Matter, second: Matter) -> bool:
    """Return whether the two are in different languages, as far as can be told."""
    return bool(first.language and second.language) and first.language != second.language


@lru_cache(maxsize=8192)
def _language(text: str) -> str:
    """Return the language by its script, else by its function words; empty when they do not tell."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return language
    words = _WORD.findall(fold(text))
    counts = {language: sum(word in listed for word in words) for language, listed in _FUNCTION_WORDS.items()}
    most = max(counts.values())
    best = [language for language, count in counts.items() if count == most]
    return best[0] if most and len(best) == 1 else ""


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_TICKET = re.compile(r"(?<![\w/.:-])[A-Z][A-Z0-9]{1,9}-\d+(?![\w-])")
_APPOSED = re.compile(r"\b([^\W\d_a-z][^\W\d_]+)\s*[,(]\s*(?:[^\W\d_]+\.?\s*)?\d+\b\)?")
_IS_AT = re.compile(r"[\s,]*(?:is|are|was|sits?|works?|belongs?|joined|ist|sitzt|arbeitet|es|est|é|сидит|работает)\b")
# After a number at the beginning: what follows says which thing it is, so the number is the value after all.
_IS_THE = re.compile(
    r"\s*(?:(?:is|was|are)(?: now)? (?:the|our|my|[\w-]+'s)\b|(?:ist|war)(?: jetzt)? (?:der|die|das|unser\w*|mein\w*)\b"
    r"|(?:es|é|est)(?: ahora| agora| désormais)? (?:el|la|lo|o|a|le|nuestr\w+|noss\w+|notre)\b|是|は)"
)
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30fa]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
_FUNCTION_WORDS = {
    "en": word_set("the of is are was were on in at for to and from by with when runs uses its has be must not"),
    "de": word_set(
        "der die das den dem des von für auf ist sind und mit im am zu zum nicht hat läuft nutzt nur ein eine wird bei"
        " ab in"
    ),
    "es": word_set("el la los las de del en es y para usa con por al un una se está van va"),
    "fr": word_set("le la les de des du est sur dans et pour utilise avec au aux un une à écoute tourne en"),
    "pt": word_set("o a os as de do da dos das no na em é e para usa com um uma ao fica roda"),
}
