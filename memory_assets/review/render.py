"""Wording of the review files: records in, bounded and neutralised Markdown out. Pure.

Belongs here: the bodies of the managed blocks, of history and diary entries.
Does not belong here: files, markers and where a body goes (``review.dreams``, ``review.phases``).

Shapes: openclaw-facts 6 and 10, openclaw-algorithms 26.5 and 28. Everything shown is redacted; control signs and
direction overrides are made visible; comments, HTML and images can't come out of it.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence

from memory_assets.review.records import Aspiration, LightCandidate, ReviewLine, SweepReport, Theme, Truth
from recall_runtime.clock import format_instant
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.markers import promotion_marker
from recall_runtime.records import Anchor
from recall_runtime.text.escaping import clip, code_span, terminal
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import Operation

MAX_HIGHLIGHTS = 8
HIGHLIGHT_CHARACTERS = 180
TEXT_CHARACTERS = 280
MAX_CANDIDATES_SHOWN = 100
MAX_LISTED = 20
DIARY_CHARACTERS = 700
NO_UPDATES = "- No notable updates."
NO_CHANGES = "- No durable changes."


def shown(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return foreign text for one line of a review file: redacted, neutralised, bounded."""
    flat = terminal(" ".join(redact(text[: limit * 8]).split()))
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("![", "!&#91;")
    return clip(flat, limit)


def light_body(candidates: Sequence[LightCandidate]) -> str:
    """Return the body of the light block."""
    lines: list[str] = []
    for candidate in candidates[:MAX_CANDIDATES_SHOWN]:
        lines += [
            f"- Candidate: {shown(candidate.text)}",
            f"  - confidence: {candidate.confidence:.2f}",
            f"  - evidence: {_evidence(candidate.evidence)}",
            f"  - recalls: {candidate.recalls}",
            "  - status: staged",
        ]
    lines += _more(len(candidates), MAX_CANDIDATES_SHOWN)
    return "\n".join(lines or [NO_UPDATES])


def rem_body(themes: Sequence[Theme], truths: Sequence[Truth]) -> str:
    """Return the body of the REM block."""
    lines = ["### Reflections"]
    for theme in themes[:MAX_LISTED]:
        lines += [
            f"- Theme: {code_span(shown(theme.tag, 64))} kept surfacing across {theme.memories} memories.",
            f"  - confidence: {theme.strength:.2f}",
            f"  - evidence: {_evidence(theme.evidence)}",
            "  - note: reflection",
        ]
    lines += ["- No strong patterns surfaced."] if not themes else []
    lines += ["", "### Possible Lasting Truths"]
    lines += [
        f"- {shown(truth.text)} [confidence={truth.confidence:.2f} evidence={_evidence(truth.evidence)}]"
        for truth in truths[:MAX_LISTED]
    ]
    lines += ["- No strong candidate truths surfaced."] if not truths else []
    return "\n".join(lines)


def deep_body(report: SweepReport) -> str:
    """Return the body of the deep block: counts by gate, what changed, what waits for the owner."""
    if not (report.ranked or report.lines or report.conflicts or report.aspirations or report.reason):
        return NO_CHANGES
    counts = ", ".join(f"{report.count(operation)} {operation}" for operation in Operation if report.count(operation))
    lines = [
        f"- Sweep {code_span(shown(report.sweep_id, 80))} of {report.day.isoformat()}.",
        f"- Ranked {report.ranked} candidate(s).",
        f"- Promoted {_promoted(report)} candidate(s){f': {counts}' if counts else ''}.",
    ]
    held = ", ".join(f"{shown(gate, 40)} {number}" for gate, number in report.failed_gates.items() if number)
    lines += [f"- Held back: {held}."] if held else []
    lines.append(f"- Consolidated by {shown(report.mode, 80)}.")
    lines += [f"- Reason: {shown(report.reason)}"] if report.reason else []
    lines += ["- Highlights:", *highlights(report.lines)] if report.lines else []
    lines += _for_the_owner(report)
    return "\n".join(lines)


def highlights(lines: Iterable[ReviewLine]) -> list[str]:
    """Return up to 8 diff-like lines, each at most 180 characters and with the marker of its entry."""
    shown_lines: list[str] = []
    for line in lines:
        marker = promotion_marker(line.entry_key)
        pairs = [("-", prior) for prior in line.priors]
        pairs += [("-" if line.operation is Operation.DROPPED else "+", line.text)]
        for sign, text in pairs:
            cut = clip(terminal(" ".join(redact(text[:4_000]).split())), HIGHLIGHT_CHARACTERS - 2)
            shown_lines.append(f"  - {code_span(f'{sign} {cut}'.replace('`', chr(0x2019)))} {marker}")
    rest = len(shown_lines) - MAX_HIGHLIGHTS
    return shown_lines[:MAX_HIGHLIGHTS] + ([f"  - … and {rest} more."] if rest > 0 else [])


def history_entry(report: SweepReport) -> str:
    """Return one entry of the consolidation history; its heading is the instant, unique to the sweep."""
    lines = [
        f"### {format_instant(report.at)}",
        "",
        f"- Added: {report.count(Operation.ADDED)}",
        f"- Merged: {report.count(Operation.MERGED)}",
        f"- Superseded: {report.count(Operation.SUPERSEDED)}",
    ]
    lines += [f"- Decided by {shown(report.mode, 80)}: {shown(report.reason)}"] if report.reason else []
    lines += ["- Highlights:", *highlights(report.lines)] if report.lines else []
    return "\n".join(lines)


def _own_words(line: str) -> str:
    """Return what an entry line says, without its source and annotations."""
    entries = parse_curated(line.encode("utf-8", "replace")).entries
    return entries[0].text if entries else line


def diary_by_rule(report: SweepReport) -> str:
    """Return the diary text that needs no model."""
    parts = [f"I looked at {report.ranked} candidate(s) and kept {_promoted(report)}."]
    if report.lines:
        parts.append(f"First came: {shown(_own_words(report.lines[0].text), 160)}")
    if report.themes:
        parts.append(f"{', '.join(shown(theme.tag, 40) for theme in report.themes[:3])} kept coming back.")
    if report.light:
        parts.append(f"{len(report.light)} claim(s) were new or asked for again.")
    if report.conflicts or report.aspirations:
        parts.append(f"{len(report.conflicts) + len(report.aspirations)} thing(s) wait for you.")
    return clip(" ".join(parts), DIARY_CHARACTERS)


def fingerprint(report: SweepReport) -> str:
    """Return a hash of what the report says, apart from when: equal reports have equal fingerprints."""
    parts = [
        light_body(report.light),
        rem_body(report.themes, report.truths),
        [(line.operation, line.entry_key, line.text, line.priors) for line in report.lines],
        sorted(report.failed_gates.items()),
        report.ranked,
        report.mode,
        report.reason,
        _for_the_owner(report),
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()[:16]


def _promoted(report: SweepReport) -> int:
    return sum(line.operation in (Operation.ADDED, Operation.MERGED, Operation.SUPERSEDED) for line in report.lines)


def _for_the_owner(report: SweepReport) -> list[str]:
    lines: list[str] = []
    if report.conflicts:
        lines.append("- For you to decide:")
        lines += [
            f"  - {shown(conflict.file, 120)}, line {conflict.line}: {shown(conflict.message)}"
            for conflict in report.conflicts[:MAX_LISTED]
        ]
        lines += _more(len(report.conflicts), MAX_LISTED, indent="  ")
    if report.aspirations:
        lines.append("- Aspirations to review:")
        lines += [_aspiration(item, report) for item in report.aspirations[:MAX_LISTED]]
        lines += _more(len(report.aspirations), MAX_LISTED, indent="  ")
    return lines


def _aspiration(item: Aspiration, report: SweepReport) -> str:
    state = f"expired {item.expires}" if item.expires <= report.day else f"due {item.review}"
    return f"  - {shown(item.text)} ({shown(item.path, 120)}, line {item.line}; {state})"


def _more(number: int, limit: int, *, indent: str = "") -> list[str]:
    return [f"{indent}- … and {number - limit} more."] if number > limit else []


def _evidence(anchors: Sequence[Anchor]) -> str:
    return ", ".join(f"{shown(a.path, 160)}:{a.start_line}-{a.end_line}" for a in anchors[:3]) or "none"
