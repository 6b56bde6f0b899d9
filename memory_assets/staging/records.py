"""Records between the steps of staging.

Belongs here: one stated sentence with its place, the report of a run.
Does not belong here: behaviour beyond sums.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from recall_runtime.vocabulary import OriginClass, SessionKind, StatementKind


class Verdict(StrEnum):
    """What became of a statement; a refused one reads ``refused:<reason>`` (``vocabulary.Refusal``)."""

    TAKEN = "taken"
    DUPLICATE = "duplicate"
    WAITING = "waiting"


REFUSED = "refused:"


@dataclass(frozen=True, slots=True)
class Stated:
    """One statement in one place, fit to be a claim by its text. ``day`` is ISO, ``source`` note or transcript.

    ``source_key`` tells a place from others that say the same in the same file: text and session of the lines of a
    note, the message of a transcript. ``echo``: its turn had recalled memory, or it
    is the dump of a session, so it is no observation.
    ``only_echo``: it is no source either, and is kept as a place of a claim that is known without it.
    """

    claim_id: str
    text: str
    kind: StatementKind
    source: str
    path: str
    start_line: int
    end_line: int
    source_key: str
    day: str
    session_id: str | None
    message_id: str | None
    heading_path: tuple[str, ...]
    origin_class: OriginClass
    session_kind: SessionKind
    observed_at: int
    echo: bool
    only_echo: bool
    project_key: str | None
    supersedes_key: str | None


@dataclass(frozen=True, slots=True)
class StagingReport:
    """What one staging did.

    Attributes:
        sources: Number of sources read.
        seen: Number of statements looked at.
        verdicts: Statements by path and verdict; their sum is ``seen``.
        held_back: Rows (messages, blocks) of sessions that are not interactive, by kind.
        new_claims: Claims met for the first time.
        gone: Places that no longer say what they said.
        withdrawn: Claims whose last note line was taken out.
        recalls: Recall signals that were new.
        bystanders: Hits that were shown beside a much better one.
        unattributed: Other hits of counted recalls that no claim answers.
        observations: Observation signals that were new.
        staged: Roots of the groups the light phase reinforced, best first.
        waiting: Roots of the groups beyond its limit.
    """

    sources: int = 0
    seen: int = 0
    verdicts: Mapping[str, Counter[str]] = field(default_factory=dict)
    held_back: Mapping[SessionKind, int] = field(default_factory=dict)
    new_claims: int = 0
    gone: int = 0
    withdrawn: int = 0
    recalls: int = 0
    bystanders: int = 0
    unattributed: int = 0
    observations: int = 0
    staged: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def totals(self) -> Counter[str]:
        """Statements by verdict over all sources."""
        return sum(self.verdicts.values(), Counter[str]())
