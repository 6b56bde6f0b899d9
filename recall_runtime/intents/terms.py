"""Trigger words of standing intents and the words of a message, in forms that can be compared.

Belongs here: splitting a keyword entry into terms, the forms a term may take, the exact test of an entry.
Does not belong here: folding and stemming as such (``text.words``), budgets and scopes (``intents.matching``).

Beyond the reference (openclaw-algorithms 32.4, 32.5): a hyphenated term also matches its parts side by side or joined;
a term in a script without blanks matches inside a run; full-width forms are folded; and at most **one** term of an
entry may match by an inflected form only, so ``launch`` matches "launching" while ``boiler service`` does not match
"boilers were serviced". Signs behind a letter are part of the word: ``C++`` is not ``C``.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from recall_runtime.text.words import SCRIPT_RUN, fold, split_clusters, stem, stop_words, words

TERMS_VERSION = "1"  # a change of the forms below rebuilds the stored ones
MAX_MESSAGE_CHARACTERS = 16_000
_CONNECTORS = re.compile(r"[-./:@+=%#&~\\_]+")
_TAIL_SIGNS = "+#"
_ENDINGS = (("nen", 5), ("en", 5), ("es", 4), ("n", 5), ("s", 4), ("e", 4))  # plural and case endings, least rest


@dataclass(frozen=True, slots=True)
class Term:
    """One word an entry asks for. ``exact`` forms match as they stand, ``loose`` ones are inflected forms."""

    exact: frozenset[str]
    loose: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()  # of a compound: match side by side
    run: str = ""  # in a script without blanks: matches anywhere inside the text
    weak: bool = False  # a stop word: required, but not looked up

    @property
    def lookup(self) -> frozenset[str]:
        """Forms of which a matching message holds at least one."""
        if self.run:
            signs = split_clusters(self.run)
            return frozenset(("".join(signs[:2]),))
        plain = frozenset(form for form in self.exact if not self.loose & frozenset(_loose_forms(form)))
        return plain | self.loose | frozenset(self.parts[:1])  # a word is found by the forms it shares with others


@dataclass(frozen=True, slots=True)
class MessageWords:
    """The words of one message, ready for comparison."""

    sequence: tuple[str, ...]
    exact: frozenset[str]
    loose: frozenset[str]
    folded: str

    @property
    def lookup(self) -> frozenset[str]:
        """All forms under which a keyword entry may be found."""
        return self.exact | self.loose


def message_words(text: str) -> MessageWords:
    """Return the comparable words of ``text`` (its first ``MAX_MESSAGE_CHARACTERS``)."""
    folded = fold(text[:MAX_MESSAGE_CHARACTERS])
    sequence = tuple(_without_bare(words(folded)))
    exact = set(sequence)
    for word in sequence:
        if _CONNECTORS.search(word):
            exact.add(_CONNECTORS.sub("", word) if word[-1] not in _TAIL_SIGNS else word)
        if "'" in word:
            exact.update(part for part in word.split("'") if len(part) > 2)
    loose = {form for word in exact for form in _loose_forms(word)}
    return MessageWords(sequence, frozenset(exact), frozenset(loose), folded)


def _without_bare(pieces: list[str]) -> list[str]:
    """Drop the bare letter that segmentation gives beside a signed word: ``c++`` says nothing about ``c``."""
    kept: list[str] = []
    for piece in pieces:
        if kept and kept[-1][-1] in _TAIL_SIGNS and kept[-1].rstrip(_TAIL_SIGNS) == piece:
            continue
        kept.append(piece)
    return kept


@lru_cache(maxsize=16_384)
def terms_of(entry: str) -> tuple[Term, ...]:
    """Return the terms of one keyword entry: all must be in the message, in any order."""
    terms: list[Term] = []
    for chunk in fold(entry).split():
        read_to = 0
        for match in SCRIPT_RUN.finditer(chunk):
            if match.lastgroup == "word":
                continue
            terms.extend(_compound_terms(chunk[read_to : match.start()]))
            unspaced = match.lastgroup == "unspaced"
            terms.append(Term(frozenset((match[0],)), run=match[0]) if unspaced else _word_term(match[0]))
            read_to = match.end()
        terms.extend(_compound_terms(chunk[read_to:]))
    return tuple(dict.fromkeys(terms))


def _compound_terms(chunk: str) -> list[Term]:
    """Return the terms of a chunk of plain words; punctuation that joins nothing separates."""
    pieces = _without_bare(words(chunk))
    terms: list[Term] = []
    index = 0
    while index < len(pieces):
        whole = pieces[index]
        parts = tuple(part for part in _CONNECTORS.split(whole) if part)
        if len(parts) > 1:
            joined = _CONNECTORS.sub("", whole)
            terms.append(Term(frozenset((whole, joined)), parts=tuple(words(" ".join(parts)))))
            index += 1 + len(words(" ".join(parts)))
        else:
            terms.append(_word_term(whole))
            index += max(1, len(words(whole))) if whole[-1] not in _TAIL_SIGNS else 1
    return terms


def _word_term(word: str) -> Term:
    exact = frozenset(words(word) if word[-1] not in _TAIL_SIGNS else (word,)) or frozenset((word,))
    return Term(exact, loose=frozenset(_loose_forms(word)), weak=word in stop_words())


@lru_cache(maxsize=65_536)
def _loose_forms(word: str) -> tuple[str, ...]:
    """Return the forms that inflections of ``word`` share, marked so that they never equal a plain word."""
    if len(word) < 4 or not word.isalpha():
        return ()
    forms = ["~" + stem(word)]
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = word[: -len(ending)]
            break
    forms.append("~" + word)
    return tuple(forms)


def entry_matches(entry: str, message: MessageWords) -> bool:
    """Return whether every term of ``entry`` is in ``message``, at most one of them by an inflected form only."""
    terms = terms_of(entry)
    inflected = 0
    for term in terms:
        if term.run:
            if term.run not in message.folded:
                return False
        elif not (term.exact & message.exact or _side_by_side(term.parts, message.sequence)):
            if not term.loose & message.loose:
                return False
            inflected += 1
    return bool(terms) and inflected <= 1


def _side_by_side(parts: tuple[str, ...], sequence: tuple[str, ...]) -> bool:
    size = len(parts)
    return size > 1 and any(sequence[at : at + size] == parts for at in range(len(sequence) - size + 1))


def lookup_choices(entry: str) -> tuple[frozenset[str], ...]:
    """Return the sets of forms by which ``entry`` can be found: any one of them does. Stop words only if alone."""
    terms = terms_of(entry)
    return tuple(term.lookup for term in terms if not term.weak) or tuple(term.lookup for term in terms)
