"""When one claim retires another: the newer value for the very same thing wins, an older one never beats a newer.

Belongs here: the rule, and the wordings it reads: a correction, "no longer", a value beside another.
Does not belong here: what a claim is about (``book``), near-duplicates (``notes.identity``).
"""

import re
from typing import Protocol

from recall_runtime.lineage_keys.matter import Matter, contradict, matter_of
from recall_runtime.lineage_keys.specifics import letter_words
from recall_runtime.notes.identity import normalise
from recall_runtime.notes.leads import correction_lead_end
from recall_runtime.text.word_sets import word_set
from recall_runtime.text.words import fold

GIVEN = "given:"  # how the key begins that a writer gave
NAMED = "name:"  # how the key begins of what is known by a proper name alone

_NO_LONGER = re.compile(
    r"\bno longer\b|\bnot\b[^.;]{0,40}\bany ?more\b|\bnicht mehr\b|\bkeine?n? \w+ mehr\b"
    r"|\bya no\b|\bбольше не\b|不再|已不|ではなくなった",
    re.IGNORECASE,
)
# Words that can be nothing else even before a comma; "Now," and "New," can.
_OPENING_CORRECTION = re.compile(
    r"(?:correction|korrektur|corrección|correção|исправление|поправка|更正|訂正|修正|정정)\s*[,，、]", re.IGNORECASE
)
_BESIDE = word_set(
    fold(
        """also additionally another second too besides auch ebenfalls zusätzlich weitere también además otro otra
        segundo aussi autre également também outro outra также тоже ещё второй другой"""
    )
)
_BESIDE_IN_UNSPACED = ("另外", "还有", "也", "第二", "もう一", "追加", "加えて")


class Dated(Protocol):
    """A claim or an entry with what the rule asks of it. ``observed_at`` is in milliseconds UTC."""

    @property
    def text(self) -> str:
        """What it says."""

    @property
    def lineage_key(self) -> str | None:
        """What it is about."""

    @property
    def values(self) -> frozenset[str]:
        """Its specific values, folded (``values_of``)."""

    @property
    def observed_at(self) -> int:
        """When it was last observed."""


class Newer(Dated, Protocol):
    """The claim that may retire another."""

    @property
    def is_correction(self) -> bool:
        """Whether its writer called it a correction."""


def retires(newer: Newer, older: Dated) -> bool:
    """Return whether ``newer`` gives another value for the very thing ``older`` is about."""
    if not same_matter(newer, older):
        return False
    if newer.observed_at < older.observed_at or not _says_other(newer, older):
        return False
    if (newer.lineage_key or "").startswith(GIVEN):
        return True
    if stands_beside(newer.text):
        return False
    widened = bool(older.values) and older.values < newer.values
    return not widened or newer.is_correction or says_no_longer(newer.text)


def same_matter(first: Dated, second: Dated) -> bool:
    """Return whether both have one lineage key and their words do not contradict it.

    A lineage grows by wordings; two of its claims may turn out to be about two things ("the db", "the replica").
    """
    key = first.lineage_key
    return key is not None and key == second.lineage_key and one_matter(first.text, second.text, key)


def one_matter(first: str, second: str, lineage_key: str) -> bool:
    """Return whether two texts of one lineage do not contradict it; what a writer gave a key is one matter."""
    if lineage_key.startswith(GIVEN):
        return True
    return not contradict(matter_under(first, lineage_key), matter_under(second, lineage_key))


def matter_under(text: str, lineage_key: str | None) -> Matter:
    """Return what ``text`` is about, the subject of its lineage key apart."""
    subject = (lineage_key or "").partition("|")[0]
    if subject.startswith(NAMED):
        return matter_of(text, frozenset(subject.removeprefix(NAMED).split()))
    return matter_of(text, frozenset(map(project_name, subject.split("; "))) - {""})


def project_name(key: str) -> str:
    """Return the folded name by which a text mentions the project ``key``."""
    return key.strip().rstrip("/").rpartition("/")[2].removesuffix(".git").casefold()


def given_part(lineage_key: str | None) -> str | None:
    """Return the key a writer gave, for the mark above an entry; ``None`` of a computed one."""
    given = lineage_key is not None and lineage_key.startswith(GIVEN)
    return lineage_key.removeprefix(GIVEN) if given and lineage_key else None


def values_of(text: str) -> frozenset[str]:
    """Return the specific values of a statement, folded: equal sets under one key mean the same fact."""
    return matter_of(text).values


def corrects(text: str) -> bool:
    """Return whether the statement begins as a correction (``Update:``, ``更正：``, ``Correction,``)."""
    return correction_lead_end(text) > 0 or _OPENING_CORRECTION.match(text) is not None


def says_no_longer(text: str) -> bool:
    """Return whether the statement says that something has stopped being so."""
    return _NO_LONGER.search(text) is not None


def stands_beside(text: str) -> bool:
    """Return whether the writer says that this value comes in addition to another one."""
    folded = fold(text)
    return not _BESIDE.isdisjoint(letter_words(folded)) or any(mark in folded for mark in _BESIDE_IN_UNSPACED)


def _says_other(newer: Dated, older: Dated) -> bool:
    if newer.values != older.values:
        return True
    if says_no_longer(newer.text) != says_no_longer(older.text):
        return True
    return not newer.values and normalise(newer.text) != normalise(older.text)
