"""Records of one night's consolidation.

Belongs here: what passes between rehydration, planning, validation and apply.
Does not belong here: behaviour.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from recall_runtime.curated.effects import Source
from recall_runtime.lineage_keys.succession import corrects, given_part
from recall_runtime.records import Annotations
from recall_runtime.vocabulary import Operation, OriginClass, SessionKind, StatementKind


class Mode(StrEnum):
    """Who decided the operations of a night."""

    MODEL = "model"
    DETERMINISTIC = "deterministic"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A claim that passed the gates and was found again in its live source.

    ``text`` is the statement, capped, one line. ``observed_at`` is the newest live observation in milliseconds UTC.
    ``rank`` is its place in the order of scores, 0 the best.
    """

    claim_id: str
    entry_key: str
    text: str
    kind: StatementKind
    origin_class: OriginClass
    session_kind: SessionKind
    observed_at: int
    score: float
    rank: int
    sources: tuple[Source, ...]
    annotations: Annotations
    lineage_key: str | None = None
    values: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()  # claims of the same group, itself included
    is_correction: bool = False  # it began as one ("Update:"); the lead is not part of ``text``
    gate: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lineage_marker(self) -> str | None:
        """The key a writer gave, for the lineage comment; computed keys stay in the ledger."""
        return given_part(self.lineage_key)

    @property
    def project_key(self) -> str | None:
        """The project its entry belongs to; ``None`` is the global group."""
        return self.annotations.project_key


@dataclass(frozen=True, slots=True)
class PriorEntry:
    """An entry that stands in ``MEMORY.md``.

    ``derived`` entries cite their source or carry a marker and were not edited since: a newer claim may replace them.
    ``generated`` ones have in addition the full shape a sweep writes, in a section nobody else wrote in: the budget
    may drop them. Everything else is hand-written and is never removed.
    """

    start_line: int  # with its markers
    entry_line: int
    end_line: int
    line: str  # the first line as it stands in the file, without line end
    text: str  # what it says, without list sign, source and annotations
    keys: tuple[str, ...]
    derived: bool
    generated: bool
    has_children: bool
    project_key: str | None
    lineage_key: str | None
    values: frozenset[str]
    observed_at: int
    day: str  # of its section or source; the order in which the budget drops
    claim_id: str | None = None
    is_trusted: bool = True  # owner or agent by the records of who wrote its lines

    @property
    def is_correction(self) -> bool:
        """Whether its text begins as a correction of an earlier one."""
        return corrects(self.text)

    @property
    def replaceable(self) -> bool:
        """Whether a newer claim may take its place: a line below it belongs to somebody else."""
        return self.derived and not self.has_children


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one candidate. ``because`` says why in one phrase.

    ``into`` is the key of the entry it joins (merged, reconciled): one of the file or of another candidate tonight.
    """

    candidate: Candidate
    operation: Operation
    priors: tuple[PriorEntry, ...] = ()
    because: str = ""
    into: str | None = None

    @property
    def writes(self) -> bool:
        """Whether an entry line is written for it."""
        return self.operation in (Operation.ADDED, Operation.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Overtaken:
    """An entry that stands in the file although a newer entry of the file gives another value for the same thing."""

    entry: PriorEntry
    newer: PriorEntry


@dataclass(frozen=True, slots=True)
class Refused:
    """A candidate that is not written tonight. It stays eligible unless ``superseded_by`` names its successor."""

    claim_id: str
    reason: str
    detail: str = ""
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """An entry that a newer claim contradicts, or may contradict: both stand, the owner decides.

    ``is_certain``: it says another value of the very same thing, but was written by hand. Else the newer claim calls
    itself a correction and does not say of what.
    """

    line: int
    standing: str
    newer: str
    entry_key: str  # of the newer one
    is_certain: bool = True

    @property
    def message(self) -> str:
        """One line for the owner that names both."""
        if self.is_certain:
            return f"stands by hand, and a newer claim says otherwise: {self.newer}"
        return f"may be out of date: {self.standing} Written tonight: {self.newer}"
