"""How much two texts share, by their tokens.

Belongs here: token sets and Jaccard similarity, containment.
Does not belong here: deciding that two texts are one claim (``recall_runtime.notes.identity``).
"""

from itertools import pairwise

from recall_runtime.text.words import SCRIPT_RUN, fold, split_clusters


def tokens(text: str) -> frozenset[str]:
    """Return the comparison tokens of ``text``.

    Folded words of every script; for scripts without blanks single signs and adjacent pairs; symbols such as emoji.
    """
    found: set[str] = set()
    for match in SCRIPT_RUN.finditer(fold(text)):
        if match.lastgroup == "unspaced":
            signs = split_clusters(match[0])
            found.update(signs)
            found.update(first + second for first, second in pairwise(signs))
        else:
            found.add(match[0])
    return frozenset(found)


def jaccard(a: str, b: str) -> float:
    """Return shared tokens divided by all tokens, 0..1; two texts without tokens compare as texts.

    Formula: openclaw-algorithms 21 (textSimilarity), with words of every script.
    """
    return jaccard_of(tokens(a), tokens(b)) if tokens(a) or tokens(b) else float(a == b)


def jaccard_of(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the Jaccard similarity of two token sets; two empty sets have 0."""
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def containment(part: str, whole: str) -> float:
    """Return the share of the tokens of ``part`` that ``whole`` holds as well, 0..1; no tokens give 0."""
    wanted = tokens(part)
    return len(wanted & tokens(whole)) / len(wanted) if wanted else 0.0
