"""From claims that passed the gates to candidates: gates tried again, sources looked up, texts made fit for a line.

Belongs here: everything read from the state database about one claim; the reasons why it is no candidate after all.
Does not belong here: scores (``memory_assets.gates``), deciding (``deterministic``, ``model_step``).

Nothing is taken from the caller but the ids: origin and kind of session are read again from the claims and from each
piece of evidence, and least trusted wins (openclaw-algorithms 25).
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from memory_assets.consolidation.records import Candidate, Refused
from memory_assets.consolidation.rehydrate import LivePlace, Place, Rehydrator
from memory_assets.gates.loading import eligible
from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.compose import cap_snippet, importance_of, triggers_of
from recall_runtime.lineage_keys.book import LineageBook
from recall_runtime.lineage_keys.succession import corrects, one_matter, stands_beside, values_of
from recall_runtime.notes.conditions import conditions_of
from recall_runtime.notes.hygiene import contaminated
from recall_runtime.notes.leads import correction_lead_end
from recall_runtime.notes.markers import entry_key_of
from recall_runtime.records import INVALID_PROJECT, Annotations
from recall_runtime.text.concepts import concept_tags
from recall_runtime.vocabulary import CandidateStatus, Gate, OriginClass, SessionKind, StatementKind


def load_candidates(
    agent: Agent,
    state: apsw.Connection,
    index: apsw.Connection | None,
    book: LineageBook,
    *,
    sweep_id: str,
    passed: Sequence[str],
) -> tuple[list[Candidate], list[Refused]]:
    """Return the candidates among the claims ``passed`` (best first) and the reason for each that is none."""
    rehydrator = Rehydrator(agent, index)
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    limit = agent.settings.dreaming.deep.limit
    for rank, claim_id in enumerate(dict.fromkeys(passed)):
        if len(candidates) >= limit:
            refused.append(Refused(claim_id, Gate.LIMIT, f"{limit} candidates a night"))
            continue
        outcome = _candidate(agent, state, rehydrator, book, sweep_id, claim_id, rank)
        if isinstance(outcome, Candidate):
            candidates.append(outcome)
        else:
            refused.append(outcome)
    return candidates, refused


def _candidate(
    agent: Agent,
    state: apsw.Connection,
    rehydrator: Rehydrator,
    book: LineageBook,
    sweep_id: str,
    claim_id: str,
    rank: int,
) -> Candidate | Refused:
    row = state.execute(
        "SELECT root_id, kind, project_key, lineage_key, origin_class, session_kind, status"
        " FROM claims WHERE claim_id = ?",
        (claim_id,),
    ).fetchone()
    if row is None:
        return Refused(claim_id, Gate.SOURCE, "no such claim")
    root_id, kind, project_key, lineage_key, origin, session_kind, status = (_text(value) for value in row)
    refused = _refused_as_claim(claim_id, status, origin, session_kind)
    if refused is not None:
        return refused
    members = _members(state, root_id, claim_id)
    live = _live_places(state, rehydrator, claim_id, members)
    if not live:
        return Refused(claim_id, Gate.REHYDRATION, "its sources no longer say so")
    lead = correction_lead_end(live[0].text)
    text = cap_snippet(live[0].text[lead:], agent.settings.dreaming.deep.max_promoted_snippet_tokens)
    project_key = project_key or _project_of_members(state, members)
    refused = _refused_as_text(agent, claim_id, text, project_key, in_note=live[0].in_note)
    if refused is not None:
        return refused
    gate = _gate_row(state, sweep_id, claim_id)
    score = float(gate.get("score", 0.0))
    project = _project_of(book, text, project_key or None)
    candidate = Candidate(
        claim_id=claim_id,
        entry_key=entry_key_of(claim_id),
        text=text,
        kind=StatementKind(kind),
        origin_class=OriginClass(origin),
        session_kind=SessionKind(session_kind),
        observed_at=max(place.observed_at for place in live),
        score=score,
        rank=rank,
        sources=tuple(place.source for place in live),
        annotations=Annotations(triggers_of(concept_tags("", text)), importance_of(score), project),
        lineage_key=lineage_key or None,
        values=values_of(text),
        members=members,
        is_correction=any(corrects(place.text) for place in live),
        gate=gate,
    )
    newer = _newer_claim(state, candidate)
    return Refused(claim_id, Gate.SUPERSEDED, f"a newer value was stated: {newer}") if newer else candidate


def _refused_as_claim(claim_id: str, status: str, origin: str, session_kind: str) -> Refused | None:
    """Return why the claim may not be written, whatever it says."""
    if status == CandidateStatus.PROMOTED:
        return Refused(claim_id, Gate.ALREADY_PROMOTED)
    if status != CandidateStatus.WAITING:
        return Refused(claim_id, Gate.SUPERSEDED if status == CandidateStatus.SUPERSEDED else Gate.SOURCE, status)
    if not eligible(origin, SessionKind.INTERACTIVE):
        return Refused(claim_id, Gate.ORIGIN, origin)
    if not eligible(origin, session_kind):
        return Refused(claim_id, Gate.SESSION_KIND, session_kind)
    return None


def _refused_as_text(agent: Agent, claim_id: str, text: str, project_key: str, *, in_note: bool) -> Refused | None:
    """Return why the text can't stand in an entry tonight."""
    if contaminated(text, transcript_form_allowed=not in_note) or not _fits_one_line(text):
        return Refused(claim_id, Gate.CONTAMINATED)
    limits = conditions_of(text)
    if limits.over(day_of(agent.clock.now_ms(), agent.zone)):
        return Refused(claim_id, Gate.MAX_AGE_DAYS, f"it held until {limits.expires}")
    if project_key == INVALID_PROJECT:
        return Refused(claim_id, Gate.SOURCE, "its project annotation is damaged")
    return None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _members(state: apsw.Connection, root_id: str, claim_id: str) -> tuple[str, ...]:
    """Return the claims of the group that may be promoted, the speaker first."""
    rows = state.execute(
        "SELECT claim_id, origin_class, session_kind FROM claims WHERE root_id = ? AND status IN (?, ?)"
        " ORDER BY claim_id",
        (root_id, CandidateStatus.WAITING, CandidateStatus.PROMOTED),
    )
    others = [member for member, origin, kind in rows if member != claim_id and eligible(origin, kind)]
    return (claim_id, *others)


def _project_of_members(state: apsw.Connection, members: Sequence[str]) -> str:
    """Return the project that another wording of the claim was noted for, or nothing."""
    for member in members:
        row = state.execute("SELECT project_key FROM claims WHERE claim_id = ?", (member,)).fetchone()
        if row is not None and row[0]:
            return str(row[0])
    return ""


def _live_places(
    state: apsw.Connection, rehydrator: Rehydrator, claim_id: str, members: Sequence[str]
) -> list[LivePlace]:
    """Return the places that still state the group: the speaker's own first, notes before transcripts, newest first."""
    places = []
    for member in members:
        rows = state.execute(
            """SELECT evidence_id, claim_id, source, path, start_line, end_line, day, session_id, message_id,
                      observed_at, origin_class, session_kind
                 FROM evidence
                WHERE claim_id = ? AND live = 1 AND echo = 0
                  AND (session_id IS NULL OR session_id NOT IN (SELECT session_id FROM tombstones))""",
            (member,),
        )
        for *place, origin, kind in rows:
            found = rehydrator.find(Place(*place)) if eligible(origin, kind) else None
            if found is not None:
                places.append(found)
    return sorted(
        places,
        key=lambda place: (
            place.claim_id != claim_id,
            not place.in_note,
            -place.observed_at,
            place.source.path,
            place.source.start,
        ),
    )


def _fits_one_line(text: str) -> bool:
    """Return whether the text can stand in an entry line without opening or ending anything."""
    if "<!--" in text or not any(sign.isalnum() for sign in text):
        return False
    return not any(unicodedata.category(sign) == "Cc" for sign in text)


def _gate_row(state: apsw.Connection, sweep_id: str, claim_id: str) -> Mapping[str, Any]:
    cursor = state.execute("SELECT * FROM gate_scores WHERE sweep_id = ? AND claim_id = ?", (sweep_id, claim_id))
    for row in cursor:
        names = [column[0] for column in cursor.get_description()]
        skipped = {"sweep_id", "claim_id", "failed_gate"}
        return {name: value for name, value in zip(names, row, strict=True) if name not in skipped}
    return {}


def _project_of(book: LineageBook, text: str, project_key: str | None) -> str | None:
    """Return the project of the entry; a text that names other projects is about those, whatever heading it has."""
    if project_key is None:
        return None
    named = book.named_in(text)
    keys = {part.strip() for part in project_key.split(";")}
    return named if named and keys.isdisjoint(named.split("; ")) else project_key


def _newer_claim(state: apsw.Connection, candidate: Candidate) -> str | None:
    """Return the text of a newer trusted claim with another value for the same thing, promoted or not."""
    if candidate.lineage_key is None:
        return None
    rows = state.execute(
        """SELECT c.claim_id, c.text, c.origin_class, c.session_kind, max(e.observed_at)
             FROM claims c JOIN evidence e ON e.claim_id = c.claim_id AND e.live = 1 AND e.echo = 0
            WHERE c.lineage_key = ? AND c.status IN (?, ?) GROUP BY c.claim_id HAVING max(e.observed_at) > ?""",
        (candidate.lineage_key, CandidateStatus.WAITING, CandidateStatus.PROMOTED, candidate.observed_at),
    )
    for claim_id, text, origin, kind, _ in rows:
        other = claim_id not in candidate.members and values_of(text) != candidate.values
        other = other and one_matter(text, candidate.text, candidate.lineage_key)
        if other and eligible(origin, kind) and not stands_beside(text) and not stands_beside(candidate.text):
            return str(text)
    return None
