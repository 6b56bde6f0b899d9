"""From recall events to recall signals: which claim answered, counted once a question and day.

Belongs here: which events count, which statement of a shown line answered the question.
Does not belong here: recording events (``recall_runtime.signals``), other signals (``observations``).

Counted are searches in interactive sessions. What our own lanes inject by themselves is no one's question, so trigger
and lane-2 hits are recorded and not counted. Of one answer only the hits near its best one count: what was shown
beside a much better hit did not answer the question, and a line that turns up beside many answers is not in demand.
A hit is an anchor with the text as shown; the text decides, so a line
that has moved since still gets its signal.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import apsw

from memory_assets.staging.observations import may_repeat
from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.notes.identity import claim_id, normalise
from recall_runtime.storage.connection import query
from recall_runtime.text.similarity import containment
from recall_runtime.text.words import index_text, query_terms
from recall_runtime.vocabulary import SessionKind, SignalKind

COUNTED_LANE = "search"
_WATERMARK = "staged_recall_event"
_NEAR_BEST = 0.75  # share of the best score of the same answer
_MOSTLY_HELD = 0.5  # share of a statement's tokens
_CLEARLY_NEARER = 0.1  # cosine


@dataclass(frozen=True, slots=True)
class Hit:
    """One shown line of one counted event."""

    event_id: int
    at: int
    day: str
    query: str
    query_hash: str
    session_key: str | None
    path: str
    start_line: int
    end_line: int
    score: float
    text: str
    best_score: float

    @property
    def is_bystander(self) -> bool:
        """Whether a much better hit was shown in the same answer."""
        return self.score < _NEAR_BEST * self.best_score


@dataclass(frozen=True, slots=True)
class Place:
    """A claim stated in the file a hit comes from."""

    claim_id: str
    text: str
    kind: str
    pattern: str
    start_line: int
    end_line: int


@dataclass(slots=True)
class Attributed:
    """Recalls as pairs of claim and hit; counts of hits beside a better one, and of those no claim answers."""

    pairs: list[tuple[str, Hit]] = field(default_factory=list)
    bystanders: int = 0
    unattributed: int = 0


def pending_hits(state: apsw.Connection) -> tuple[list[Hit], int]:
    """Return the hits of counted events that were not drained yet, and the number of the last event that was looked at.

    That number is read first: an answer that is recorded meanwhile stays pending.
    """
    rows = query(state, "SELECT value FROM watermarks WHERE name = ?", (_WATERMARK,))
    since = int(rows[0][0]) if rows else 0
    last = query(state, "SELECT coalesce(max(event_id), 0) FROM recall_events")[0][0]
    hits = query(
        state,
        """SELECT e.event_id, e.at, e.day, e.query, e.query_hash, e.session_key,
                  h.path, h.start_line, h.end_line, h.score, h.text,
                  max(h.score) OVER (PARTITION BY e.event_id)
             FROM recall_events e JOIN recall_hits h USING (event_id)
            WHERE e.event_id > ? AND e.event_id <= ? AND e.session_kind = ? AND e.lane = ?
            ORDER BY e.event_id, h.rank""",
        (since, last, SessionKind.INTERACTIVE.value, COUNTED_LANE),
    )
    return [Hit(*row) for row in hits], max(since, last)


class Attribution:
    """Finds the claims that answer a hit. Only reads; runs outside of write transactions.

    Args:
        state: Connection with claims and evidence.
        index: Connection to the index, for how rare a word is.
        nearness: Says how near the statements of a tie are to the question, or gives ``None``.
    """

    def __init__(self, state: apsw.Connection, index: apsw.Connection, nearness: "Nearness") -> None:
        self._state = state
        self._index = index
        self._nearness = nearness
        self._places: dict[str, list[Place]] = {}
        self._rarity: dict[str, float] = {}
        self._rows = max(1, query(index, "SELECT count(*) FROM entries")[0][0])

    def claims_for(self, hit: Hit) -> list[str]:
        """Return the claims stated in the shown text that answer the question best; all of them when they tie.

        How well a statement answers is the sum of the rarity of the question's words in it. Among equals, those that
        hold something specific and are no routine come first, then those nearest in meaning: in a long mixed bullet
        small talk gets nothing.
        """
        shown = self._shown(hit)
        if len(shown) <= 1:
            return [place.claim_id for place in shown]
        terms = query_terms(hit.query)
        ranks = [(self._answers(place, terms), self._tells(place)) for place in shown]
        best = max(ranks)
        if best == (0.0, False):
            return []
        tied = [place for place, rank in zip(shown, ranks, strict=True) if rank == best]
        return [place.claim_id for place in self._nearness.nearest(hit.query, tied)]

    def _shown(self, hit: Hit) -> list[Place]:
        """Return the statements that the shown text holds, each once.

        First those of its file that it holds word for word; then those of its lines that it holds for the most part,
        because a label above or the form of a directive was put into words; last the claim it is, wherever that is
        stated now.
        """
        text = normalise(hit.text)
        places = self._of(hit.path)
        held = [place for place in places if normalise(place.text) in text]
        if not held:
            held = [
                place
                for place in places
                if place.start_line <= hit.end_line
                and place.end_line >= hit.start_line
                and containment(place.text, hit.text) >= _MOSTLY_HELD
            ]
        if not held:
            held = self._read("WHERE c.claim_id = ? LIMIT 1", claim_id(hit.text))
        return list({place.claim_id: place for place in held}.values())

    def _of(self, path: str) -> list[Place]:
        if path not in self._places:
            self._places[path] = self._read("WHERE e.path = ? ORDER BY e.start_line, e.evidence_id", path)
        return self._places[path]

    def _read(self, where: str, value: str) -> list[Place]:
        rows = query(
            self._state,
            "SELECT c.claim_id, c.text, c.kind, c.pattern, e.start_line, e.end_line"  # noqa: S608 - constant conditions
            f" FROM evidence e JOIN claims c USING (claim_id) {where}",
            (value,),
        )
        return [Place(*row) for row in rows]

    def _answers(self, place: Place, terms: Sequence[str]) -> float:
        words = frozenset(index_text(place.text).split())
        return sum(self._rare(term) for term in terms if term in words)

    def _tells(self, place: Place) -> bool:
        return may_repeat(self._state, place.text, place.kind, place.pattern)

    def _rare(self, term: str) -> float:
        """Return ln(1 + rows / rows that hold the term), by the index."""
        if term not in self._rarity:
            quoted = '"' + term.replace('"', '""') + '"'
            holding = query(
                self._index, "SELECT count(*) FROM entries_fts WHERE entries_fts MATCH ?", (f"body : {quoted}",)
            )[0][0]
            self._rarity[term] = math.log(1 + self._rows / max(1, holding))
        return self._rarity[term]


class Nearness:
    """Breaks ties by meaning, with the embedder of the index; without one nothing is broken.

    Args:
        settings: The embedder; it is loaded at the first tie.
    """

    def __init__(self, settings: EmbedderSettings) -> None:
        self._settings = settings
        self._embedder: Embedder | None = None
        self._tried = False

    def nearest(self, question: str, tied: list[Place]) -> list[Place]:
        """Return those of ``tied`` whose cosine with the question comes near the best one; all without an embedder."""
        if len(tied) <= 1:
            return tied
        cosines = self._cosines(question, [place.text for place in tied])
        if cosines is None:
            return tied
        best = max(cosines)
        return [place for place, cosine in zip(tied, cosines, strict=True) if cosine >= best - _CLEARLY_NEARER]

    def _cosines(self, question: str, texts: list[str]) -> list[float] | None:
        try:
            if not self._tried:
                self._tried = True
                self._embedder = resolve(self._settings)
            if self._embedder is None:
                return None
            vector = self._embedder.embed_query(question)
            return [float(cosine) for cosine in self._embedder.embed_documents(texts) @ vector]
        except EmbedderError:
            self._embedder = None
            return None


def attribute(hits: Iterable[Hit], attribution: Attribution) -> Attributed:
    """Return which claims each hit is a recall of."""
    found = Attributed()
    for hit in hits:
        if hit.is_bystander:
            found.bystanders += 1
            continue
        claims = attribution.claims_for(hit)
        found.unattributed += not claims
        found.pairs += [(claim, hit) for claim in claims]
    return found


def drain(state: apsw.Connection, attributed: Attributed, last_event: int) -> tuple[int, set[str]]:
    """Store recall signals and move the watermark; runs inside the caller's write transaction.

    One signal per (claim, question, day): the best score of the day stands, whichever event came first. Returns the
    number of new signals and the claims that got one.
    """
    touched = [claim for claim, hit in attributed.pairs if _store(state, claim, hit)]
    state.execute(
        "INSERT INTO watermarks(name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
        (_WATERMARK, str(last_event)),
    )
    return len(touched), set(touched)


def _store(state: apsw.Connection, claim: str, hit: Hit) -> bool:
    """Store the signal; return whether it is a new one."""
    score = min(1.0, max(0.0, hit.score))
    known = query(
        state,
        "SELECT 1 FROM signals WHERE claim_id = ? AND kind = 'recall' AND context = ? AND day = ?",
        (claim, hit.query_hash, hit.day),
    )
    state.execute(
        """INSERT INTO signals(claim_id, kind, context, day, score, observed_at, event_id)
           VALUES (?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT(claim_id, kind, context, day) DO UPDATE SET score = max(score, excluded.score)""",
        (claim, SignalKind.RECALL.value, hit.query_hash, hit.day, score, hit.at, hit.event_id),
    )
    return not known
