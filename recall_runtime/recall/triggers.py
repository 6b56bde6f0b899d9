"""Lane 1: curated entries that a message triggers, without any model.

Belongs here: which entries may be triggered, their score, the order and the limit, the block for the prompt.
Does not belong here: comparing words (``recall.phrase_match``), recording what was shown (``recall.turn``).

Who may be injected is decided three times: in the SQL that reads the rows, again in Python on each row, and for each
hit against the project rule. Text is never asked who wrote it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recall_runtime.errors import EmbedderError
from recall_runtime.index.candidates import Floats, Integers
from recall_runtime.index.embedders.protocol import Embedder, Vectors, plain
from recall_runtime.index.hits import SearchHit
from recall_runtime.index.vectors import dots
from recall_runtime.notes.markers import ACTIVE_MEMORY_TAG
from recall_runtime.paths import PathKind, kind_of, tier_of
from recall_runtime.recall.phrase_match import (
    MessageForms,
    Phrase,
    forms_of_message,
    overlap_scores,
    phrase_score,
    phrases_of,
)
from recall_runtime.recall.projects import is_eligible
from recall_runtime.records import Annotations, IndexEntry, Provenance
from recall_runtime.text.escaping import cut, xml
from recall_runtime.text.words import query_terms
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, EntryStatus, OriginClass, SessionKind, Tier

MAX_ROWS = 4_096  # entries with triggers that are kept in memory; the most important ones
PHRASE_SHARE = 0.8
_MOST_WORDS = 32  # words of a phrase that are looked up
_ROUNDING = 1e-9
_DIGITS = 9  # 0.8 x 0.85 + 0.2 x 0.2 is the threshold itself and must not fall short of it by rounding

_SELECT = """
    SELECT e.entry_id, s.path, s.tier, s.day, e.start_line, e.end_line, e.text, e.triggers, e.importance, e.project_key,
           e.status, e.origin_class, e.session_kind, e.observed_at, e.session_id, e.supersedes_key
    FROM entries e JOIN sources s ON s.source_id = e.source_id
    WHERE e.triggers IS NOT NULL AND s.tier = ? AND e.status = ? AND e.origin_class IN (?, ?)
    ORDER BY coalesce(e.importance, 0) DESC, s.path, e.entry_id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class TriggerHit:
    """An entry the message triggers. ``score`` is 0..1 (openclaw-algorithms 13.4)."""

    entry: IndexEntry
    score: float
    phrase: str

    @property
    def as_recall(self) -> SearchHit:
        """The hit in the form in which recalls are recorded."""
        return SearchHit(self.entry, self.score, self.score, None, None, self.entry.text, framed=False)


@dataclass(frozen=True, slots=True)
class TriggerBlock:
    """The block for the prompt, the hits in it, and how many did not fit."""

    text: str
    hits: tuple[TriggerHit, ...]
    left_out: int = 0


def entry_scores(phrases: Floats, relevance: Floats) -> Floats:
    """Return 0.8 x the best phrase score + 0.2 x the relevance limited to 0..1 (openclaw-algorithms 13.4)."""
    return np.round(PHRASE_SHARE * phrases + (1 - PHRASE_SHARE) * np.clip(relevance, 0.0, 1.0), _DIGITS)


def fingerprint(reader: apsw.Connection) -> str:
    """Return what changes whenever the index reads a curated file again; cheap enough for every message."""
    rows = reader.execute(
        "SELECT source_id, path, hash, provenance_hash FROM sources WHERE tier = ? ORDER BY path", (Tier.CURATED,)
    )
    return repr(rows.fetchall())


def load_entries(reader: apsw.Connection) -> list[IndexEntry]:
    """Return the entries that may be triggered, the most important first."""
    allowed = sorted(ELIGIBLE_ORIGINS)
    rows = reader.execute(_SELECT, (Tier.CURATED, EntryStatus.ACTIVE, *allowed, MAX_ROWS))
    return [entry for entry in map(_entry, rows) if _may_be_triggered(entry)]


class TriggerSet:
    """The entries with triggers of one state of the index, ready to be asked.

    A message is looked up by its words, and what is left is reckoned in arrays, so that thousands of entries take no
    longer than a few. The words and vectors of an entry are made when it first may be triggered, and kept.

    Args:
        entries: What may be triggered; anything else among them is left out.
        embedder: The local embedder for the written phrases; ``None``: words alone decide.
    """

    def __init__(self, entries: Sequence[IndexEntry], embedder: Embedder | None = None) -> None:
        self._entries: list[IndexEntry] = []
        self._phrases: list[Phrase] = []
        firsts, codes = [0], dict[str, list[int]]()  # a code is the number of a phrase and the place of a word in it
        for entry in entries:
            phrases = phrases_of(entry.annotations.triggers) if _may_be_triggered(entry) else ()
            if not phrases:
                continue
            self._entries.append(entry)
            for phrase in phrases:
                for place, forms in enumerate(phrase.words[:_MOST_WORDS]):
                    for form in forms:
                        codes.setdefault(form, []).append(len(self._phrases) * _MOST_WORDS + place)
                self._phrases.append(phrase)
            firsts.append(len(self._phrases))
        self._firsts = np.array(firsts, dtype=np.int64)  # first phrase of each entry, and the end
        self._owners = np.repeat(np.arange(len(self._entries)), np.diff(self._firsts))
        self._sizes = np.array([len(phrase.words) for phrase in self._phrases], dtype=np.int64)
        self._codes = {form: np.array(found, dtype=np.int64) for form, found in codes.items()}
        places = sorted(
            range(len(self._entries)), key=lambda at: (self._entries[at].path, self._entries[at].start_line)
        )
        self._order = np.argsort(np.array(places, dtype=np.int64))
        self._terms: dict[int, frozenset[str]] = {}
        self._allowed: tuple[tuple[str, ...], NDArray[np.bool_]] | None = None
        self._embedder = embedder
        # made before any thread asks: of two messages that each made the array, one would lose its rows for good
        self._vectors: Vectors = np.zeros((len(self._phrases), embedder.dimensions if embedder else 0), np.float32)
        self._has_vector = np.zeros(len(self._phrases), dtype=bool)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All entries, the most important first."""
        return tuple(self._entries)

    def hits(
        self, message: str, *, threshold: float, max_entries: int, active: Sequence[str] = ()
    ) -> tuple[TriggerHit, ...]:
        """Return the entries that ``message`` triggers: best first, then by path and line.

        Only phrases that share enough words with the message to reach the threshold are looked at.
        """
        rows, phrases, phrase_scores = self._best_phrases(
            forms_of_message(message), (threshold - (1 - PHRASE_SHARE)) / PHRASE_SHARE, tuple(active)
        )
        if not len(rows) or not max_entries:
            return ()
        scores = entry_scores(phrase_scores, self._relevance(message, rows))
        found = np.flatnonzero(scores >= threshold)
        best = found[np.lexsort((self._order[rows[found]], -scores[found]))][:max_entries]
        return tuple(
            TriggerHit(self._entries[int(rows[at])], float(scores[at]), self._phrases[int(phrases[at])].text)
            for at in best.tolist()
        )

    def _best_phrases(
        self, forms: MessageForms, least: float, active: tuple[str, ...]
    ) -> tuple[Integers, Integers, Floats]:
        """Return entries with a phrase of at least the score ``least``, that phrase, and its score."""
        found = [self._codes[form] for form in forms.places if form in self._codes]
        if not found:
            return _NONE, _NONE, np.array([])
        phrases, shared = np.unique(np.unique(np.concatenate(found)) // _MOST_WORDS, return_counts=True)
        scores = overlap_scores(shared, self._sizes[phrases])  # as if all of them stood together
        likely = (scores >= least - _ROUNDING) & self._allows(active)[self._owners[phrases]]
        phrases, scores = phrases[likely], scores[likely]
        for at in np.flatnonzero(self._sizes[phrases] > 1).tolist():
            scores[at] = phrase_score(self._phrases[int(phrases[at])], forms)
        near = scores >= least - _ROUNDING
        phrases, scores = phrases[near], scores[near]
        order = np.lexsort((phrases, -scores, self._owners[phrases]))
        rows, first = np.unique(self._owners[phrases][order], return_index=True)
        return rows, phrases[order][first], scores[order][first]

    def _allows(self, active: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which entries may be triggered in a session with these projects."""
        known = self._allowed
        if known is None or known[0] != active:
            allowed = [_project_allows(entry, active) for entry in self._entries]
            known = self._allowed = active, np.array(allowed, dtype=bool)
        return known[1]

    def _relevance(self, message: str, rows: Integers) -> Floats:
        """Return how near the message is to what each entry is for, up to 1: by meaning, and by words both share."""
        message = plain(message)[:_MAX_EMBEDDED]
        asked = frozenset(query_terms(message))
        shared = np.array([len(asked & self._terms_of(row)) for row in rows.tolist()]) / max(1, len(asked))
        try:
            return np.maximum(shared, self._meaning(message, rows))
        except EmbedderError:
            return shared  # words alone decide for this message

    def _terms_of(self, row: int) -> frozenset[str]:
        known = self._terms.get(row)
        if known is None:
            phrases = self._phrases[self._firsts[row] : self._firsts[row + 1]]
            text = f"{self._entries[row].text} {' '.join(phrase.text for phrase in phrases)}"
            known = self._terms[row] = frozenset(query_terms(text))
        return known

    def _meaning(self, message: str, rows: Integers) -> Floats:
        """Return the calibrated cosine of the message and the nearest phrase of each entry."""
        if self._embedder is None or self._embedder.calibration is None:
            return np.zeros(len(rows))
        counts = self._firsts[rows + 1] - self._firsts[rows]
        starts = np.cumsum(counts) - counts
        phrases = np.repeat(self._firsts[rows] - starts, counts) + np.arange(counts.sum())
        cosines = dots(self._vectors_of(phrases, self._embedder), self._embedder.embed_query(message))
        levels = self._embedder.calibration
        nearest = np.maximum.reduceat(cosines, starts).astype(np.float64)
        return (nearest - levels.unrelated) / max(1e-9, levels.paraphrase - levels.unrelated)  # limited with the rest

    def _vectors_of(self, phrases: Integers, embedder: Embedder) -> Vectors:
        missing = phrases[~self._has_vector[phrases]]
        if len(missing):
            made = embedder.embed_documents([self._phrases[phrase].text for phrase in missing.tolist()])
            self._vectors[missing] = made
            self._has_vector[missing] = True
        return self._vectors[phrases]


_MAX_EMBEDDED = 1_000  # characters of a message whose meaning is compared with short phrases
_NONE = np.array([], dtype=np.int64)


def trigger_block(hits: Sequence[TriggerHit], budget: int) -> TriggerBlock:
    """Return the hidden block with its marker lines, at most ``budget`` characters, each line with its source.

    A line that does not fit is left out; the first one is cut rather than lost.
    """
    lines: list[str] = []
    shown: list[TriggerHit] = []
    room = budget - len(frame(""))
    for hit in hits:
        line = source_line(hit.entry.text, f"{hit.entry.path}#L{hit.entry.start_line}", room)
        if line is None:
            continue
        lines.append(line)
        shown.append(hit)
        room -= len(line) + 1
    text = frame("\n".join(lines)) if lines else ""
    return TriggerBlock(text, tuple(shown), len(hits) - len(shown))


def source_line(text: str, source: str, room: int) -> str | None:
    """Return ``- text (Source: path#Lx)``, escaped, in at most ``room`` characters, or ``None`` without room for it."""
    tail = f" (Source: {xml(source)})"
    body = xml(" ".join(text.split()))
    if len(body) + len(tail) + 2 > room:
        left = room - len(tail) - 3
        if left < _LEAST_SHOWN:
            return None
        body = _cut_escaped(" ".join(text.split()), left)
    return f"- {body}{tail}"


_LEAST_SHOWN = 40


def _cut_escaped(text: str, room: int) -> str:
    """Return the longest start of ``text`` that is at most ``room`` characters once escaped, with an ellipsis."""
    size = room
    while size > 0 and len(xml(cut(text, size))) > room:
        size -= max(1, (len(xml(cut(text, size))) - room) // 6)
    return xml(cut(text, size)).rstrip() + "…"


def frame(escaped: str) -> str:
    """Return text that is already escaped between the marker lines by which it is recognised later (33)."""
    return f"Context:\n<{ACTIVE_MEMORY_TAG}>\n{escaped}\n</{ACTIVE_MEMORY_TAG}>"


def _may_be_triggered(entry: IndexEntry) -> bool:
    return (
        entry.tier is Tier.CURATED
        and tier_of(entry.path) is Tier.CURATED
        and entry.status is EntryStatus.ACTIVE
        and entry.provenance.origin_class in ELIGIBLE_ORIGINS
    )


def _project_allows(entry: IndexEntry, active: Sequence[str]) -> bool:
    if kind_of(entry.path) is PathKind.USER:  # the user's preferences belong to no project
        return True
    return is_eligible(entry.annotations.project_key, active)


def _entry(values: Sequence[Any]) -> IndexEntry:
    (entry_id, path, tier, day, start, end, text, triggers, importance, project, status, origin, kind, observed,
     session_id, supersedes) = values  # fmt: skip
    return IndexEntry(
        entry_id=entry_id,
        path=path,
        tier=Tier(tier),
        start_line=start,
        end_line=end,
        text=text,
        heading_path=(),
        day=day,
        annotations=Annotations(tuple(triggers.split("; ")), importance, project),
        status=EntryStatus(status),
        provenance=Provenance(OriginClass(origin), SessionKind(kind), observed, session_id, supersedes),
    )
