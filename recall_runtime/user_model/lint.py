"""What is wrong with a ``USER.md``: one finding a line, with the cure.

Belongs here: the rules of the contract as findings.
Does not belong here: repairing (the owner decides; ``user_model.update`` changes one directive).
"""

from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.directives import directive_of
from recall_runtime.user_model.contract import Directive, contradictions, directives_of

USER_CAP = 4_000


class LintRule(StrEnum):
    """Rules a ``USER.md`` is held to."""

    DAMAGED_METADATA = "damaged_metadata"
    NO_METADATA = "no_metadata"
    CONTRADICTION = "contradiction"
    NOT_IMPERATIVE = "not_imperative"
    TWO_INSTRUCTIONS = "two_instructions"
    OVER_CAP = "over_cap"
    CONFLICT = "conflict"
    UNDECODABLE = "undecodable"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: the rule, the line it is about, and one sentence with the cure."""

    rule: LintRule
    line: int
    message: str


def lint(data: bytes, *, cap: int = USER_CAP) -> tuple[Finding, ...]:
    """Return the findings of the bytes of a ``USER.md``, by line. Never raises."""
    file = parse_curated(data, user_file=True)
    if file.reading.undecodable:
        return (Finding(LintRule.UNDECODABLE, 1, "The file is no UTF-8 text; save it as UTF-8."),)
    found = directives_of(file)
    findings = [finding for directive in found for finding in _of_one(directive)]
    for group in contradictions(found):
        lines = ", ".join(str(directive.start_line) for directive in group)
        message = f"Lines {lines} are active on one matter; mark all but one superseded."
        findings.append(Finding(LintRule.CONTRADICTION, group[-1].start_line, message))
    if file.conflicted:
        findings.append(Finding(LintRule.CONFLICT, 1, "The file holds an unresolved merge; resolve it by hand."))
    length = len(data.decode("utf-8", errors="replace"))
    if length > cap:
        message = f"The file has {length} characters of {cap}; remove stale superseded directives or move facts."
        findings.append(Finding(LintRule.OVER_CAP, 1, message))
    return tuple(sorted(findings, key=lambda finding: (finding.line, finding.rule)))


def _of_one(directive: Directive) -> list[Finding]:
    line = directive.start_line
    findings = [
        Finding(
            LintRule.DAMAGED_METADATA, directive.metadata_line or line, f"Metadata: {problem}; correct the comment."
        )
        for problem in directive.problems
    ]
    if directive.is_hand_written:
        message = "No metadata: counts as active since an unknown day; add <!-- observed: DAY | status: active -->."
        findings.append(Finding(LintRule.NO_METADATA, line, message))
    if not directive.is_active:
        return findings
    first = directive.text.split("\n", 1)[0]
    if directive_of(first, is_message=False, project_key=None) is None:
        message = "Does not begin with an imperative (Always, Never, Prefer); say what to do."
        findings.append(Finding(LintRule.NOT_IMPERATIVE, line, message))
    sentences = [part for part in first.replace("; ", ". ").split(". ") if part.strip()]
    if sum(directive_of(part, is_message=False, project_key=None) is not None for part in sentences) > 1:
        findings.append(Finding(LintRule.TWO_INSTRUCTIONS, line, "Holds two instructions; give each its own bullet."))
    return findings
