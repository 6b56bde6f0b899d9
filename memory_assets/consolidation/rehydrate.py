"""Looking a claim up again in its live sources before it is written (openclaw-algorithms 25.1).

Belongs here: finding the live place of each piece of evidence, or the reason why there is none.
Does not belong here: gates, composing entries.

A note is read again and split as staging splits it, so a place counts only while the note still states the claim:
moved lines are found, changed, struck or deleted ones are not, nothing inside a managed block is, and comments between
recording and writing change nothing. Two equally near places of one claim are a tie and count as none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import Source
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.statements import statements_of, statements_of_block
from recall_runtime.records import Statement
from recall_runtime.storage.atomic import read_bytes


@dataclass(frozen=True, slots=True)
class Place:
    """One row of evidence: where a claim was stated. ``source`` is note or transcript."""

    evidence_id: int
    claim_id: str
    source: str
    path: str
    start_line: int
    end_line: int
    day: str
    session_id: str | None
    message_id: str | None
    observed_at: int


@dataclass(frozen=True, slots=True)
class LivePlace:
    """A place that still says so: the source with its present lines, and the statement as it reads there."""

    claim_id: str
    source: Source
    text: str
    project_key: str | None
    observed_at: int
    in_note: bool


@dataclass(slots=True)
class Rehydrator:
    """Finds places in live sources; reads each note once.

    Args:
        agent: Whose workspace it is.
        index: Open index database, for messages of transcripts; without it no message is found.
    """

    agent: Agent
    index: apsw.Connection | None
    _notes: dict[str, dict[str, list[Statement]]] = field(default_factory=dict)

    def find(self, place: Place) -> LivePlace | None:
        """Return where ``place`` is now, or ``None`` when its source no longer says so, or says so twice as near."""
        stated = self._in_note(place) if place.source == "note" else self._in_transcript(place)
        statement = _nearest(stated, place.start_line)
        if statement is None:
            return None
        source = Source(
            place.path,
            statement.start_line,
            statement.end_line,
            place.day,
            place.session_id,
            place.message_id,
            place.evidence_id,
        )
        return LivePlace(
            place.claim_id,
            source,
            " ".join(statement.text.split()),
            statement.annotations.project_key,
            place.observed_at,
            place.source == "note",
        )

    def _in_note(self, place: Place) -> Sequence[Statement]:
        if place.path not in self._notes:
            self._notes[place.path] = self._read(place.path)
        return self._notes[place.path].get(place.claim_id, ())

    def _read(self, path: str) -> dict[str, list[Statement]]:
        try:
            data = read_bytes(self.agent.workspace / path)
        except (OSError, RuntimeError):
            data = None
        found: dict[str, list[Statement]] = {}
        if data is None:
            return found
        note = read_note(data, path=path)
        for block in note.blocks:
            if block.refusal is not None:
                continue
            for statement in statements_of_block(block):
                if statement.refusal is None:
                    found.setdefault(statement.claim_id, []).append(statement)
        return found

    def _in_transcript(self, place: Place) -> Sequence[Statement]:
        if self.index is None:
            return ()
        rows = self.index.execute(
            """SELECT e.text, e.start_line, e.end_line FROM entries e JOIN sources s USING (source_id)
                WHERE s.path = ?1 AND (e.message_id = ?2 OR (?2 IS NULL AND e.start_line = ?3)) ORDER BY e.ordinal""",
            (place.path, place.message_id, place.start_line),
        )
        return [
            replace(statement, start_line=start, end_line=end)
            for text, start, end in rows
            for statement in statements_of(text, block=None, start_line=start, end_line=end)
            if statement.refusal is None and statement.claim_id == place.claim_id
        ][:1]


def _nearest(stated: Sequence[Statement], line: int) -> Statement | None:
    if not stated:
        return None
    distance = min(abs(statement.start_line - line) for statement in stated)
    near = [statement for statement in stated if abs(statement.start_line - line) == distance]
    lines = {statement.start_line for statement in near}
    return near[0] if len(lines) == 1 else None
