"""The validator of a model's operations: nothing the model says is trusted (openclaw-algorithms 26.2 to 26.4).

Belongs here: the answer's schema, every rule an operation must meet, the loss bound.
Does not belong here: asking the model (``consolidation.model_step``), composing the file (``consolidation.plan``).

The model returns decisions, never text. Any broken rule rejects the whole answer of the group.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from memory_assets.consolidation.records import Candidate, Decision, PriorEntry
from recall_runtime.lineage_keys.book import LineageBook, LineageClaim
from recall_runtime.lineage_keys.succession import GIVEN, same_matter
from recall_runtime.notes.identity import normalise
from recall_runtime.text.words import index_text
from recall_runtime.vocabulary import Operation

MIN_KEY_WORDS_SHARED = 0.6  # share of a given key's words that an unmarked prior must hold


class RejectedAnswerError(Exception):
    """The model's answer breaks a rule; the text says which, for the report. Never shown as an error to the user."""


class ModelOperation(BaseModel):
    """One operation as the model writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    candidateKey: str  # noqa: N815 - the field name is OpenClaw's wire format
    action: Literal["added", "merged", "superseded"]
    priorEntries: list[str]  # noqa: N815 - the field name is OpenClaw's wire format


class ModelAnswer(BaseModel):
    """The whole answer: operations and nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    operations: list[ModelOperation]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model was shown of one group: short keys of candidates, and lines of entries as shown."""

    candidates: Mapping[str, Candidate]
    lines: Mapping[str, PriorEntry]  # only lines that stand once


def read_answer(data: Any, text: str) -> ModelAnswer:
    """Return the parsed answer.

    Raises:
        RejectedAnswerError: it is not raw JSON of the schema.
    """
    try:
        tree = json.loads(text) if data is None else data
        return ModelAnswer.model_validate(tree)
    except (ValueError, RecursionError, ValidationError) as error:
        raise RejectedAnswerError("the answer is not the operations that were asked for") from error


def validate(
    answer: ModelAnswer,
    shown: Shown,
    entries: Sequence[PriorEntry],
    *,
    max_loss: float,
    book: LineageBook,
) -> list[Decision]:
    """Return the decisions of one project group, in the order of its candidates.

    Args:
        answer: What the model returned.
        shown: What it was shown.
        entries: All entries of the file, for the loss bound and for texts that are already there.
        max_loss: Largest share of entries that may be replaced.
        book: The lineage rules: whether a prior may be about the same thing as a candidate, and in which projects.

    Raises:
        RejectedAnswerError: a rule is broken; the message names it.
    """
    keys = [operation.candidateKey for operation in answer.operations]
    if sorted(keys) != sorted(shown.candidates):
        raise RejectedAnswerError("the operations are not exactly one for each candidate")
    present = {normalise(entry.text) for entry in entries}
    by_key = {operation.candidateKey: operation for operation in answer.operations}
    decisions = []
    for key, candidate in shown.candidates.items():
        decision = _decision(by_key[key], candidate, shown)
        _check(decision, entries, present, book)
        decisions.append(decision)
    taken = [prior.start_line for decision in decisions for prior in decision.priors]
    if len(taken) != len(set(taken)):
        raise RejectedAnswerError("one entry is replaced twice")
    if len(taken) > allowed_losses(len(entries), max_loss):
        raise RejectedAnswerError("more entries would be replaced than one night may replace")
    return decisions


def projects_of(book: LineageBook, one: Candidate | PriorEntry) -> str:
    """Return the projects that a candidate or an entry belongs to by what it says, else by its annotation."""
    return book.projects_of(_claim(one))


def allowed_losses(entries: int, max_loss: float) -> int:
    """Return how many of ``entries`` one night may take away: at most the share ``max_loss`` of them (26.4), or one.

    One in any case, or the wrong value in a file of three entries could never be replaced.
    """
    return max(1, math.floor(entries * max_loss + 1e-9))


def _decision(operation: ModelOperation, candidate: Candidate, shown: Shown) -> Decision:
    if not any(sign.isalpha() for sign in candidate.text):
        raise RejectedAnswerError("a candidate has no letters")
    priors = []
    for line in operation.priorEntries:
        prior = shown.lines.get(line)
        if prior is None:
            raise RejectedAnswerError("a prior entry is not one line of the file")
        priors.append(prior)
    return Decision(candidate, Operation(operation.action), tuple(priors), "proposed by the model")


def _check(
    decision: Decision,
    entries: Sequence[PriorEntry],
    present: set[str],
    book: LineageBook,
) -> None:
    candidate, priors = decision.candidate, decision.priors
    lineage = [entry for entry in entries if same_matter(candidate, entry) and entry.values != candidate.values]
    if decision.operation is Operation.ADDED:
        _require(not priors, "an addition names prior entries")
        _require(normalise(candidate.text) not in present, "an addition is in the file already")
        _require(not [entry for entry in lineage if entry.replaceable], "an addition leaves an older value standing")
        return
    _require(bool(priors), "a merge or supersession names no prior entry")
    for prior in priors:
        _require(projects_of(book, prior) == projects_of(book, candidate), "a prior entry belongs to another project")
        _require(not prior.has_children, "a prior entry owns lines below it")
    if decision.operation is Operation.MERGED:
        same = all(normalise(prior.text) == normalise(candidate.text) for prior in priors)
        _require(same, "a merge joins different facts")
        return
    for prior in priors:
        _require(prior.observed_at <= candidate.observed_at, "an older observation replaces a newer one")
        _require(prior.values != candidate.values or not candidate.values, "a supersession changes no value")
        _require(_may_replace(candidate, prior, book), "a prior entry is about something else")
    if lineage and {entry.start_line for entry in lineage if entry.replaceable} - {p.start_line for p in priors}:
        raise RejectedAnswerError("a supersession leaves an entry of the same lineage standing")


def _may_replace(candidate: Candidate, prior: PriorEntry, book: LineageBook) -> bool:
    if same_matter(candidate, prior):
        return True
    if book.may_be_one(_claim(candidate), _claim(prior)):
        return True
    given = candidate.lineage_key is not None and candidate.lineage_key.startswith(GIVEN)
    if not given or (prior.lineage_key or "").startswith(GIVEN):
        return False
    words = set(index_text((candidate.lineage_key or "").removeprefix(GIVEN).replace("-", " ")).split())
    held = words & set(index_text(prior.text).split())
    return bool(words) and len(held) / len(words) >= MIN_KEY_WORDS_SHARED


def _claim(one: Candidate | PriorEntry) -> LineageClaim:
    return LineageClaim(one.claim_id or "", one.text, one.project_key)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise RejectedAnswerError(otherwise)
