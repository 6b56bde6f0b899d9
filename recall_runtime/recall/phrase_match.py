"""How well a message holds a trigger phrase, in every script.

Belongs here: the comparable words of a phrase and of a message, the phrase score of openclaw-algorithms 13.4.
Does not belong here: which entries have phrases, thresholds (``recall.triggers``), forms of words (``intents.terms``).

Beyond the reference: inflected forms count as the word, a run of a script without blanks counts by its pairs of
signs, and the words of a phrase must stand near each other, so that a long message doesn't hold every phrase.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recall_runtime.intents.terms import terms_of
from recall_runtime.text.words import SCRIPT_RUN, fold, split_clusters

ONE_WORD = 0.85
NEARNESS = 8  # words that may stand between those of a phrase
MAX_CHARACTERS = 4_000

_SEPARATORS = re.compile(r"[\n;|；]")
_TAIL_SIGNS = re.compile(r"[+#]{1,3}")

Forms = frozenset[str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One trigger phrase: its distinct words, each with the forms it is known by."""

    text: str
    words: tuple[Forms, ...]


@dataclass(frozen=True, slots=True)
class MessageForms:
    """Where each form stands in a message, counted in words."""

    places: Mapping[str, tuple[int, ...]]


def phrases_of(triggers: Sequence[str]) -> tuple[Phrase, ...]:
    """Return the phrases of stored triggers, split on line ends, semicolons and bars; empty ones are left out."""
    texts = dict.fromkeys(" ".join(part.split()) for stored in triggers for part in _SEPARATORS.split(stored))
    found = (Phrase(text, tuple(dict.fromkeys(_forms_in(text)))) for text in texts if text)
    return tuple(phrase for phrase in found if phrase.words)


def forms_of_message(message: str) -> MessageForms:
    """Return the forms of a message; of a long one the beginning and the end, where its request stands."""
    if len(message) > MAX_CHARACTERS:
        message = f"{message[: MAX_CHARACTERS // 2]}\n{message[-MAX_CHARACTERS // 2 :]}"
    places: dict[str, list[int]] = {}
    for position, forms in enumerate(_forms_in(message)):
        for form in forms:
            places.setdefault(form, []).append(position)
    return MessageForms({form: tuple(found) for form, found in places.items()})


def phrase_score(phrase: Phrase, message: MessageForms) -> float:
    """Return the phrase score 0..1: a lone word gives 0.85, all words of a longer phrase give 1, a part less."""
    return overlap_score(_overlap(phrase, message), len(phrase.words))


def overlap_score(found: int, size: int) -> float:
    """Return the score of a phrase of ``size`` words of which ``found`` are there."""
    if size == 1:
        return ONE_WORD if found else 0.0
    return min(1.0, 0.8 * found / size + 0.2 * min(1.0, found / 2))


def overlap_scores(found: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return :func:`overlap_score` for each pair of ``found`` and ``sizes``."""
    several = np.minimum(1.0, 0.8 * found / sizes + 0.2 * np.minimum(1.0, found / 2))
    return np.where(sizes == 1, np.where(found > 0, ONE_WORD, 0.0), several)


def _overlap(phrase: Phrase, message: MessageForms) -> int:
    """Return how many words of the phrase stand together in the message."""
    if len(phrase.words) == 1:
        return int(not phrase.words[0].isdisjoint(message.places))
    hits = sorted(
        (place, index)
        for index, forms in enumerate(phrase.words)
        for place in {at for form in forms for at in message.places.get(form, ())}
    )
    window = len(phrase.words) + NEARNESS
    best, start = 0, 0
    inside: dict[int, int] = {}
    for place, index in hits:
        inside[index] = inside.get(index, 0) + 1
        while hits[start][0] <= place - window:
            gone = hits[start][1]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            start += 1
        best = max(best, len(inside))
    return best


def _forms_in(text: str) -> list[Forms]:
    folded = fold(text)
    found: list[Forms] = []
    for match in SCRIPT_RUN.finditer(folded):
        run = match[0]
        if match.lastgroup == "unspaced":
            signs = split_clusters(run)
            pairs = [first + second for first, second in pairwise(signs)]
            found.extend(frozenset((pair,)) for pair in pairs or signs)
            continue
        tail = _TAIL_SIGNS.match(folded, match.end())
        if tail:
            found.append(frozenset((run + tail[0],)))
        elif len(run) > 1 or match.lastgroup != "word":
            found.append(_word_forms(run))
    return found


@lru_cache(maxsize=32_768)
def _word_forms(word: str) -> Forms:
    forms = frozenset(form for term in terms_of(word) for form in term.exact | term.loose)
    return forms or frozenset((word,))
