"""Made-up words whose frequencies fall as in any language, for workloads of any size.

Belongs here: syllables, vocabularies, drawing words.
Does not belong here: what is made of them (one module a benchmark).
"""

import itertools
import random
from collections.abc import Callable

SYLLABLES = (
    *("ka", "lo", "mi", "ren", "tas", "vel", "dor", "pin", "sub", "gar"),
    *("nel", "fox", "hum", "jas", "tri", "wen", "zol", "bra", "cep", "dun"),
)


def vocabulary(size: int, generator: random.Random) -> list[str]:
    """Return ``size`` distinct words, at most 100,000; the first of them are the common ones, see :func:`drawer`."""
    words: dict[str, None] = {}
    while len(words) < size:
        words["".join(generator.choice(SYLLABLES) for _ in range(generator.randint(2, 4)))] = None
    return list(words)


def drawer(words: list[str], generator: random.Random) -> Callable[[int], list[str]]:
    """Return what draws so many of ``words``, their frequencies falling as 1/rank."""
    added_up = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    return lambda number: generator.choices(words, cum_weights=added_up, k=number)
