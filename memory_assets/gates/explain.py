"""Why a candidate stands where it stands: every gate with value, threshold and verdict, and what is missing.

Belongs here: finding the claim a selector means, the same scores as the sweep's, the words.
Does not belong here: formulas (the ``.sql`` files), printing (``recall_runtime.cli``).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw

from memory_assets.gates.loading import Candidate, load_groups
from memory_assets.gates.scoring import GateRow, score_groups
from recall_runtime.config import DeepSettings
from recall_runtime.errors import SourceError
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.statements import statements_of_block
from recall_runtime.paths import PathKind, kind_of
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, CandidateStatus, Gate, SessionKind, SignalKind

_PLACE = re.compile(r"(?P<path>[^\s:#][^:#]*)(?:#L|:)(?P<start>\d+)(?:-L?(?P<end>\d+))?$")
_NOTES = frozenset({PathKind.DAILY_NOTE, PathKind.TOPIC_NOTE})
_NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LATER_GATES = (Gate.LIMIT, Gate.REHYDRATION, Gate.BUDGET, Gate.WRITE)


@dataclass(frozen=True, slots=True)
class GateView:
    """One gate: what was measured, what it asks for, and whether it lets the candidate through.

    ``passed`` is ``None`` when the gate is tried only within a sweep and no sweep has tried it yet.
    """

    gate: Gate
    value: str | float | int | None
    threshold: str | float | int | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """One place where a claim of the group is stated."""

    claim_id: str
    source: str
    path: str
    start_line: int
    end_line: int
    day: str
    session_id: str | None
    message_id: str | None
    origin_class: str
    session_kind: str
    echo: bool
    live: bool


@dataclass(frozen=True, slots=True)
class SignalView:
    """One counted signal. ``query`` is the question behind a recall, as recorded."""

    claim_id: str
    kind: SignalKind
    context: str
    day: str
    score: float
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything known about one candidate.

    Attributes:
        verdict: The first gate that fails now, ``None``: all gates that can be tried outside a sweep let it through.
        scores: The components and the score as a sweep at this instant would compute them.
        recalls: Signals that are questions of people.
        other_signals: Observations and grounded signals.
        missing: What it would take, in words; empty when nothing is.
    """

    claim_id: str
    root_id: str
    text: str
    kind: str
    status: CandidateStatus
    reason: str | None
    project_key: str | None
    entry_key: str | None
    verdict: Gate | None
    gates: tuple[GateView, ...]
    scores: GateRow
    evidence: tuple[EvidenceView, ...]
    recalls: tuple[SignalView, ...]
    other_signals: tuple[SignalView, ...]
    missing: tuple[str, ...]


def find_claims(state: apsw.Connection, selector: str, *, limit: int = 20) -> list[str]:
    """Return the claims ``selector`` may mean, best first.

    A selector is a claim id or the start of one, an entry key, a place (``memory/2026-03-04.md:12``,
    ``…#L12-L13``), or words that occur in the claim's text.
    """
    selector = selector.strip()
    if not selector:
        return []
    for statement, values in _lookups(selector, limit):
        found = [claim_id for (claim_id,) in query(state, statement, values)]
        if found:
            return found
    return []


def _lookups(selector: str, limit: int) -> list[tuple[str, tuple[str | int, ...]]]:
    lookups: list[tuple[str, tuple[str | int, ...]]] = [
        ("SELECT claim_id FROM claims WHERE claim_id = ?1 OR entry_key = ?1 LIMIT ?2", (selector, limit)),
    ]
    if re.fullmatch(r"[0-9a-f]{4,12}", selector):
        lookups.append(("SELECT claim_id FROM claims WHERE claim_id GLOB ? LIMIT ?", (f"{selector}*", limit)))
    if place := _PLACE.fullmatch(selector):
        start = int(place["start"])
        lookups.append(
            (
                """SELECT e.claim_id FROM evidence e LEFT JOIN signals s USING (claim_id)
                    WHERE e.path = ? AND e.start_line <= ? AND e.end_line >= ?
                    GROUP BY e.claim_id ORDER BY max(e.live) DESC, count(s.signal_id) DESC, e.claim_id LIMIT ?""",
                (place["path"], int(place["end"] or start), start, limit),
            )
        )
    lookups.append(
        (
            """SELECT c.claim_id FROM claims c LEFT JOIN signals s USING (claim_id)
                WHERE instr(lower(c.text), lower(?)) > 0
                GROUP BY c.claim_id ORDER BY count(s.signal_id) DESC, length(c.text), c.claim_id LIMIT ?""",
            (selector, limit),
        )
    )
    return lookups


def refusals_at(workspace: Path, selector: str) -> tuple[str, ...]:
    """Return why the lines that ``selector`` names can't be candidates: a reason of ``vocabulary.Refusal`` each.

    Empty when the selector is no place in a note, the note can't be read, or something there may be a candidate.
    """
    place = _PLACE.fullmatch(selector.strip())
    if place is None or kind_of(place["path"]) not in _NOTES or ".." in place["path"].split("/"):
        return ()
    data = read_bytes(workspace / place["path"])
    first = int(place["start"])
    last = int(place["end"] or first)
    found: list[str] = []
    for block in read_note(data or b"", path=place["path"]).blocks:
        if block.start_line > last or block.end_line < first:
            continue
        stated = () if block.refusal else statements_of_block(block)
        reasons = (
            [block.refusal]
            if block.refusal
            else [each.refusal for each in stated if each.start_line <= last and each.end_line >= first]
        )
        if not all(reasons):
            return ()
        found += [str(reason) for reason in reasons]
    return tuple(found)


def explain(
    state: apsw.Connection, selector: str, *, settings: DeepSettings, now_ms: int, workspace: Path | None = None
) -> Explanation:
    """Explain the best match of ``selector`` (see ``find_claims``) as a sweep at ``now_ms`` would see it.

    Raises:
        SourceError: nothing staged answers to the selector. With ``workspace`` the error of a refused line of a note
            says why it was refused.
    """
    claims = find_claims(state, selector, limit=1)
    refused = refusals_at(workspace, selector) if workspace and not claims else ()
    if refused:
        raise SourceError(
            f"{selector} is no candidate: {', '.join(dict.fromkeys(refused))}",
            "docs/concepts.md says what each reason means.",
        )
    if not claims:
        raise SourceError(
            f"No candidate answers to {selector!r}",
            "Give a claim id, an entry key, a place such as memory/2026-03-04.md:12, or words of the line.",
        )
    claim_id = claims[0]
    text, root_id, kind, status, reason, project_key, entry_key = query(
        state,
        "SELECT text, root_id, kind, status, reason, project_key, entry_key FROM claims WHERE claim_id = ?",
        (claim_id,),
    )[0]
    candidate, row = _scored(state, claim_id, root_id, settings, now_ms)
    gates = _gate_views(candidate, row, settings, _last_verdict(state, candidate))
    recalls, others = _signal_views(state, candidate.members)
    return Explanation(
        claim_id=claim_id,
        root_id=root_id,
        text=text,
        kind=kind,
        status=CandidateStatus(status),
        reason=reason,
        project_key=project_key,
        entry_key=entry_key,
        verdict=next((view.gate for view in gates if view.passed is False), None),
        gates=gates,
        scores=row,
        evidence=_evidence_views(state, candidate.members),
        recalls=recalls,
        other_signals=others,
        missing=_missing(candidate, row, settings, gates, reason),
    )


def _scored(
    state: apsw.Connection, claim_id: str, root_id: str, settings: DeepSettings, now_ms: int
) -> tuple[Candidate, GateRow]:
    candidates, signals = load_groups(state, now_ms=now_ms, max_age_days=settings.max_age_days, roots=[root_id])
    rows = {row.claim_id: row for row in score_groups(candidates, signals, settings=settings, now_ms=now_ms)}
    candidate = next(each for each in candidates if claim_id in each.members)
    return candidate, rows[candidate.claim_id]


def _last_verdict(state: apsw.Connection, candidate: Candidate) -> tuple[Gate | None, Mapping[str, object]] | None:
    rows = query(
        state,
        """SELECT g.failed_gate, g.detail FROM gate_scores g JOIN sweeps s USING (sweep_id)
            WHERE g.claim_id = ? ORDER BY s.started_at DESC LIMIT 1""",
        (candidate.claim_id,),
    )
    if not rows:
        return None
    failed, detail = rows[0]
    # Consolidation has finer reasons than gates; they all mean that the write was refused.
    gate = None if failed is None else Gate(failed) if failed in set(Gate) else Gate.WRITE
    return gate, json.loads(detail)


def _gate_views(
    candidate: Candidate,
    row: GateRow,
    settings: DeepSettings,
    last: tuple[Gate | None, Mapping[str, object]] | None,
) -> tuple[GateView, ...]:
    status = candidate.status
    tried = [
        GateView(
            Gate.SOURCE,
            "live" if candidate.live and status is not CandidateStatus.WITHDRAWN else "gone",
            "live",
            candidate.live and status is not CandidateStatus.WITHDRAWN,
        ),
        GateView(
            Gate.ORIGIN,
            candidate.origin_class.value,
            "owner or agent",
            candidate.origin_class in ELIGIBLE_ORIGINS,
        ),
        GateView(
            Gate.SESSION_KIND,
            candidate.session_kind.value,
            SessionKind.INTERACTIVE.value,
            candidate.session_kind is SessionKind.INTERACTIVE,
        ),
        GateView(Gate.CONTAMINATED, status.value, "not refused", status is not CandidateStatus.REFUSED),
        GateView(Gate.ALREADY_PROMOTED, status.value, "not promoted", status is not CandidateStatus.PROMOTED),
        GateView(Gate.SUPERSEDED, status.value, "not superseded", status is not CandidateStatus.SUPERSEDED),
        GateView(
            Gate.MIN_RECALL_COUNT,
            row.signal_count,
            settings.min_recall_count,
            row.signal_count >= max(1, settings.min_recall_count),
        ),
        GateView(
            Gate.MIN_UNIQUE_QUERIES,
            row.unique_queries,
            settings.min_unique_queries,
            row.unique_queries >= settings.min_unique_queries,
        ),
        GateView(Gate.MAX_AGE_DAYS, row.age_days, settings.max_age_days, row.age_days <= settings.max_age_days),
        GateView(Gate.MIN_SCORE, row.raw_score, settings.min_score, row.raw_score >= settings.min_score),
    ]
    seen_late = _seen_late(last)
    tried = [seen_late if seen_late and view.passed and view.gate is seen_late.gate else view for view in tried]
    return (*tried, *(_later_gate(gate, settings, last) for gate in _LATER_GATES))


def _seen_late(last: tuple[Gate | None, Mapping[str, object]] | None) -> GateView | None:
    """Return the gate at which the last sweep's consolidation refused what had passed before, with what it found."""
    if last is None or last[0] is None or "late" not in last[1]:
        return None
    return GateView(last[0], str(last[1]["late"]), None, passed=False)


def _later_gate(gate: Gate, settings: DeepSettings, last: tuple[Gate | None, Mapping[str, object]] | None) -> GateView:
    threshold = settings.limit if gate is Gate.LIMIT else None
    if last is None:
        return GateView(gate, None, threshold, None)
    failed, detail = last
    place = detail.get("place") if gate is Gate.LIMIT else None
    value = place if isinstance(place, int) else None
    if failed is gate:
        return GateView(gate, value, threshold, passed=False)
    reached = failed is None or (failed in _LATER_GATES and _LATER_GATES.index(failed) > _LATER_GATES.index(gate))
    return GateView(gate, value, threshold, True if reached else None)


def _missing(
    candidate: Candidate, row: GateRow, settings: DeepSettings, gates: tuple[GateView, ...], reason: str | None
) -> tuple[str, ...]:
    failed = {view.gate for view in gates if view.passed is False}
    sentences = {
        Gate.SOURCE: "a live source line: the text is no longer where it was stated",
        Gate.ORIGIN: f"nothing can help: its origin is {candidate.origin_class.value}, which no score outweighs",
        Gate.SESSION_KIND: f"nothing can help: it comes from a session of kind {candidate.session_kind.value}",
        Gate.CONTAMINATED: f"nothing can help: it was refused ({reason or 'unknown reason'})",
        Gate.ALREADY_PROMOTED: "nothing: it is in the curated file already",
        Gate.SUPERSEDED: "nothing: a newer claim took its place",
        Gate.MIN_RECALL_COUNT: _more(max(1, settings.min_recall_count) - row.signal_count, "recall", "recalls")
        + " or independent statements",
        Gate.MIN_UNIQUE_QUERIES: _more(
            settings.min_unique_queries - row.unique_queries, "distinct question", "distinct questions"
        )
        + " or independent sessions",
        Gate.MAX_AGE_DAYS: f"a signal of the last {settings.max_age_days} days",
        Gate.MIN_SCORE: f"{settings.min_score - row.raw_score:.3f} more score, such as recalls on more days bring",
        Gate.LIMIT: f"a place among the first {settings.limit}; it stays eligible for the next sweep",
        Gate.REHYDRATION: "the same words in the source as when they were staged",
        Gate.BUDGET: "room in the curated file; it stays eligible for the next sweep",
        Gate.WRITE: "a curated file that can take it; it stays eligible for the next sweep",
    }
    blocking = [gate for gate in (Gate.SOURCE, Gate.ORIGIN, Gate.SESSION_KIND, Gate.CONTAMINATED) if gate in failed]
    if blocking:
        return (sentences[blocking[0]],)
    return tuple(sentences[gate] for gate in Gate if gate in failed)


def _more(count: int, singular: str, plural: str) -> str:
    word = _NUMBER_WORDS[count] if 0 <= count < len(_NUMBER_WORDS) else str(count)
    return f"{word} more {singular if count == 1 else plural}"


def _evidence_views(state: apsw.Connection, members: tuple[str, ...]) -> tuple[EvidenceView, ...]:
    views = [
        _evidence_view(row)
        for member in members
        for row in query(
            state,
            """SELECT claim_id, source, path, start_line, end_line, day, session_id, message_id, origin_class,
                      session_kind, echo, live FROM evidence WHERE claim_id = ?""",
            (member,),
        )
    ]
    return tuple(sorted(views, key=lambda view: (view.day, view.path, view.start_line)))


def _evidence_view(row: tuple[Any, ...]) -> EvidenceView:
    values: tuple[Any, ...] = (*row[:-2], bool(row[-2]), bool(row[-1]))
    return EvidenceView(*values)


def _signal_views(
    state: apsw.Connection, members: tuple[str, ...]
) -> tuple[tuple[SignalView, ...], tuple[SignalView, ...]]:
    views = [
        SignalView(claim_id, SignalKind(kind), *rest)
        for member in members
        for claim_id, kind, *rest in query(
            state,
            """SELECT s.claim_id, s.kind, s.context, s.day, s.score, r.query
                 FROM signals s LEFT JOIN recall_events r USING (event_id) WHERE s.claim_id = ? ORDER BY s.signal_id""",
            (member,),
        )
    ]
    views.sort(key=lambda view: (view.day, view.context))
    recalls = tuple(view for view in views if view.kind is SignalKind.RECALL)
    return recalls, tuple(replace(view, query=None) for view in views if view.kind is not SignalKind.RECALL)
