"""Whose value a question asks for: its subject, the shapes the value may have, the newest statement of one matter.

Belongs here: known names in a question, what shapes the best texts on its attribute have, the order of statements
about one thing. Pure functions over arrays. Does not belong here: shapes of one text (``index.content``), the key of a
claim (``lineage_keys.book``: it decides what is retired, here only the order of an answer is at stake), queries.

A question that names a known project is about it. What it asks for often has other words in the answer, or another
language; but the values of one attribute look alike whoever they belong to. So the texts that hold the words of the
attribute, of any project, vote for a shape of value, and texts about the project that hold such a value come forward.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from recall_runtime.index.candidates import NOBODY, Candidates, Flags, Floats, Integers
from recall_runtime.index.results import Ranked
from recall_runtime.text.words import fold, index_text
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass

VOTERS = 40  # texts on the attribute that are looked at
SHAPES = 3  # shapes that are looked for
LEAST_SUBSTANCE = 0.75  # of a text that votes, is lifted for its value, or may be the newest statement of a matter
REORDERED = 40  # ranked candidates among which the newest statement comes first
FOREIGN = 0.4  # what is left of the score of a text that does not name the subject
SHAPE_SHARE = 0.6  # added to the score of a text with the likeliest shape, times its other factors
_SHARPNESS = 4  # power of a voter's share of the best score
_RARITY = 2  # power of a shape's inverse document frequency

_PAST = re.compile(
    r"\b(?:before (?:the|that|this) (?:change|update|switch|move|migration)|previously|formerly|used to|back then"
    r"|vor (?:der|dem) (?:änderung|umstellung|wechsel)|früher(?:e[rsn]?)?|vorher|ehemals|damals"
    r"|antes (?:del cambio|de)|anteriormente|avant (?:le changement)|auparavant|antes da mudança"
    r"|раньше|прежде|до (?:изменения|перехода))\b"
    r"|之前|以前|原来|变更前|変更前|もともと|예전|이전"
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of the subject of a question; nothing when it names no known project.

    ``shapes`` are the likely shapes of the value asked for with their shares, ``valued`` the entries about the subject
    that hold such a value, ``about`` all entries about it in the order of their ids, ``past`` whether the question asks
    how it was before a change.
    """

    shapes: Mapping[str, float] = field(default_factory=dict)
    valued: frozenset[int] = frozenset()
    about: Integers | None = None
    past: bool = False

    def applied(self, found: Candidates, scores: Floats) -> Floats:
        """Return ``scores`` lifted for the values asked for and lowered for what is not about the subject.

        The value in a routine line or in a stranger's text is not the one asked for.
        """
        if self.about is None:
            return scores
        lifted = scores + SHAPE_SHARE * shape_lift(found, self.shapes) * trusted(found)
        out: Floats = lifted * np.where(np.isin(found.entry_ids, self.about), 1.0, FOREIGN)
        return out

    def in_time(self, ranked: Iterator[Ranked], found: Candidates) -> Iterator[Ranked]:
        """Yield ``ranked`` with the statements of one matter among the best in the order of time."""
        if self.about is not None:
            best = list(itertools.islice(ranked, REORDERED))
            yield from newest_first(best, found, np.isin(found.entry_ids, self.about), oldest=self.past)
        yield from ranked


def names_of(project_keys: Iterable[str | None]) -> frozenset[str]:
    """Return the terms by which questions name the projects: the last part of each key, where it is one term."""
    names: set[str] = set()
    for keys in project_keys:
        for key in (keys or "").split(";"):
            term = index_text(key.strip().rstrip("/").rpartition("/")[2].removesuffix(".git"))
            if len(term) > 2 and " " not in term:
                names.add(term)
    return frozenset(names)


def asks_for_the_past(question: str) -> bool:
    """Return whether ``question`` asks how something was before it changed."""
    return _PAST.search(fold(question)) is not None


def without_the_past(question: str) -> str:
    """Return ``question`` without the words that only say when."""
    return _PAST.sub(" ", fold(question))


def trusted(found: Candidates) -> Flags:
    """Return which entries say something by themselves: of an eligible class and with substance."""
    eligible = np.array([origin in ELIGIBLE_ORIGINS for origin in OriginClass])[found.origins]
    out: Flags = eligible & (found.substance >= LEAST_SUBSTANCE)
    return out


def likely_shapes(
    scores: Floats, answers: Sequence[str], names: Sequence[str], rarity: Callable[[str], float]
) -> dict[str, float]:
    """Return the shapes the value asked for may have, likeliest first, each with its share of the likeliest (0..1).

    Args:
        scores: Scores of the best texts on the attribute, the voters.
        answers: The shapes of the next line in the talk where the voter itself has none (a question is answered by
            the line after it), else of the voter; untrusted lines have none.
        names: The subject; a shape that holds it is no attribute of it.
        rarity: Inverse document frequency of a shape.
    """
    votes: dict[str, float] = {}
    top = scores.max(initial=0.0)
    for place, answer in enumerate(answers):
        for shape in answer.split():
            if not any(name in shape for name in names):
                votes[shape] = votes.get(shape, 0.0) + float(scores[place] / top) ** _SHARPNESS
    weighed = {shape: count * rarity(shape) ** _RARITY for shape, count in votes.items()}
    most = max(weighed.values(), default=0.0)
    order = sorted(weighed, key=lambda shape: (-weighed[shape], shape))
    return {shape: weighed[shape] / most for shape in order if most > 0}


def answers_of(voters: Candidates, following: Integers, lines: Candidates) -> list[str]:
    """Return the shapes each of ``voters`` votes for; see :func:`likely_shapes`.

    Args:
        voters: The best texts on the attribute.
        following: The entry after each in its talk, or ``NOBODY``.
        lines: The columns of those entries, in the order of their ids.
    """
    speaks = trusted(voters)
    next_shapes = {
        int(entry_id): lines.shape_texts[code]
        for entry_id, code, fit in zip(lines.entry_ids, lines.shapes, trusted(lines), strict=True)
        if fit
    }
    out = []
    for place, code in enumerate(voters.shapes.tolist()):
        own, after = voters.shape_texts[code], int(following[place])
        if not own and voters.in_conversation[place] and after != NOBODY:
            out.append(next_shapes.get(after, ""))
        else:
            out.append(own if speaks[place] else "")
    return out


def shape_lift(found: Candidates, shares: Mapping[str, float]) -> Floats:
    """Return the share of the likeliest shape that each entry holds, 0 for none."""
    codes, place = np.unique(found.shapes, return_inverse=True)
    texts = (found.shape_texts[code] for code in codes.tolist())
    lifts = [max((shares.get(shape, 0.0) for shape in text.split()), default=0.0) for text in texts]
    out: Floats = np.array(lifts, dtype=np.float64)[place]
    return out


def newest_first(ranked: Sequence[Ranked], found: Candidates, about: Flags, *, oldest: bool = False) -> list[Ranked]:
    """Return ``ranked`` with the statements of one matter in the order of time, newest first, on the places they had.

    One matter: about the subject, with one shape of value and the same one. Scores stay with the places, so that they
    still order the answer.

    Args:
        ranked: The best of an answer, in order.
        found: Columns of the candidates, in the order of their ids.
        about: Which candidates are about the subject.
        oldest: Oldest first, for a question that asks for the past.
    """
    places = np.searchsorted(found.entry_ids, [item.entry_id for item in ranked])
    fit = trusted(found) & about
    matters: dict[str, list[int]] = {}
    for rank, place in enumerate(places.tolist()):
        shape = found.shape_texts[found.shapes[place]]
        if fit[place] and shape and " " not in shape:
            matters.setdefault(shape, []).append(rank)
    out = list(ranked)
    for ranks in matters.values():
        in_time = sorted(ranks, key=lambda rank: int(found.observed_at[places[rank]]), reverse=not oldest)
        for rank, source in zip(ranks, in_time, strict=True):
            out[rank] = replace(ranked[source], score=ranked[rank].score)
    return out
