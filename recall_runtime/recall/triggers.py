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

from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Embedder, Vector, Vectors, plain
from recall_runtime.index.hits import SearchHit
from recall_runtime.notes.markers import ACTIVE_MEMORY_TAG
from recall_runtime.paths import PathKind, kind_of, tier_of
from recall_runtime.recall.phrase_match import (
    MessageForms,
    Phrase,
    forms_of_message,
    overlap_score,
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
_MAX_BITS = 32  # words of a phrase that are looked up
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


@dataclass(slots=True)
class _Row:
    """One entry; its words and the vectors of its phrases are made when they are first needed, and kept."""

    entry: IndexEntry
    phrases: tuple[Phrase, ...]
    terms: frozenset[str] | None = None
    vectors: Vectors | None = None


def entry_score(phrase: float, relevance: float) -> float:
    """Return 0.8 x the best phrase score + 0.2 x the relevance limited to 0..1 (openclaw-algorithms 13.4)."""
    limited = min(1.0, max(0.0, relevance))
    return round(PHRASE_SHARE * phrase + (1 - PHRASE_SHARE) * limited, _DIGITS)


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

    Args:
        entries: What may be triggered; anything else among them is left out.
        embedder: The local embedder for the written phrases; ``None``: words alone decide.
    """

    def __init__(self, entries: Sequence[IndexEntry], embedder: Embedder | None = None) -> None:
        self._rows: list[_Row] = []
        self._phrases: list[tuple[int, Phrase]] = []  # with the number of its row
        self._by_form: dict[str, list[tuple[int, int]]] = {}  # phrase, bit of the word in it
        for entry in entries:
            phrases = phrases_of(entry.annotations.triggers) if _may_be_triggered(entry) else ()
            if not phrases:
                continue
            self._rows.append(_Row(entry, phrases))
            for phrase in phrases:
                self._phrases.append((len(self._rows) - 1, phrase))
                for place, forms in enumerate(phrase.words[:_MAX_BITS]):
                    for form in forms:
                        self._by_form.setdefault(form, []).append((len(self._phrases) - 1, 1 << place))
        self._embedder = embedder

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All entries, the most important first."""
        return tuple(row.entry for row in self._rows)

    def hits(
        self, message: str, *, threshold: float, max_entries: int, active: Sequence[str] = ()
    ) -> tuple[TriggerHit, ...]:
        """Return the entries that ``message`` triggers: best first, then by path and line.

        Only phrases that share enough words with the message to reach the threshold are looked at.
        """
        forms = forms_of_message(message)
        best = self._best_phrases(forms, (threshold - (1 - PHRASE_SHARE)) / PHRASE_SHARE, active)
        if not best or not max_entries:
            return ()
        relevance = _Relevance(message, self._embedder)
        found: list[TriggerHit] = []
        for number, (phrase, text) in best.items():
            row = self._rows[number]
            score = entry_score(phrase, relevance.of(row))
            if score >= threshold:
                found.append(TriggerHit(row.entry, score, text))
        found.sort(key=lambda hit: (-hit.score, hit.entry.path, hit.entry.start_line))
        return tuple(found[:max_entries])

    def _best_phrases(self, forms: MessageForms, least: float, active: Sequence[str]) -> dict[int, tuple[float, str]]:
        """Return the best phrase of each row that holds one of at least the score ``least``, by row."""
        shared: dict[int, int] = {}
        for form in forms.places:
            for phrase_number, bit in self._by_form.get(form, ()):
                shared[phrase_number] = shared.get(phrase_number, 0) | bit
        best: dict[int, tuple[float, str]] = {}
        for phrase_number, bits in shared.items():
            row, phrase = self._phrases[phrase_number]
            if overlap_score(bits.bit_count(), len(phrase.words)) < least - _ROUNDING:
                continue  # even if all of them stood together
            if not _project_allows(self._rows[row].entry, active):
                continue
            score = phrase_score(phrase, forms)
            if score >= least - _ROUNDING and score > best.get(row, (0.0, ""))[0]:
                best[row] = score, phrase.text
        return best


class _Relevance:
    """How near a message is to what an entry is for, 0..1: by meaning, and by the words both share."""

    def __init__(self, message: str, embedder: Embedder | None) -> None:
        self._message, self._embedder = plain(message)[:_MAX_EMBEDDED], embedder
        self._vector: Vector | None = None
        self._terms: frozenset[str] | None = None

    def of(self, row: _Row) -> float:
        """Return the relevance of the entry to the message."""
        if self._terms is None:
            self._terms = frozenset(query_terms(self._message))
        if row.terms is None:
            row.terms = frozenset(query_terms(f"{row.entry.text} {' '.join(phrase.text for phrase in row.phrases)}"))
        shared = len(self._terms & row.terms) / len(self._terms) if self._terms else 0.0
        try:
            return max(shared, self._meaning(row))
        except EmbedderError:
            self._embedder = None  # words alone decide for the rest of this message
            return shared

    def _meaning(self, row: _Row) -> float:
        if self._embedder is None or self._embedder.calibration is None:
            return 0.0
        if self._vector is None:
            self._vector = self._embedder.embed_query(self._message)
        if row.vectors is None:
            row.vectors = self._embedder.embed_documents([phrase.text for phrase in row.phrases])
        return self._embedder.calibration.scaled(float(np.max(row.vectors @ self._vector)))


_MAX_EMBEDDED = 1_000  # characters of a message whose meaning is compared with short phrases


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
