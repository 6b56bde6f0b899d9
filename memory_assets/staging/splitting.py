"""Rows of the index as statements: fit to be claims, or counted under the reason why not.

Belongs here: joining a row's provenance to its statements, the verdict on each.
Does not belong here: splitting text and refusing by form (``recall_runtime.notes``), the database.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory_assets.gates.loading import eligible
from memory_assets.staging.reading import Row, StagedSource, evidence_day
from memory_assets.staging.records import REFUSED, Stated
from recall_runtime.agent import Agent
from recall_runtime.notes.blocks import BlockKind, Note, read_note
from recall_runtime.notes.leads import is_echo
from recall_runtime.notes.statements import statements_of, statements_of_block
from recall_runtime.records import Annotations, Statement
from recall_runtime.storage.atomic import content_hash, read_bytes
from recall_runtime.vocabulary import Refusal, SessionKind, Tier, worst_origin

_MESSAGE = "message"


@dataclass(slots=True)
class SplitSource:
    """The statements of one source.

    ``stated`` holds those whose form is fit, and ``candidates`` for each of them whether it may be promoted: a fit
    statement of an untrusted line is kept, so that a copy can't launder it, and counted as refused. ``held_back``
    counts rows by the kind of session that keeps them out. ``seen`` counts what was looked at, apart from any verdict:
    the verdicts must add up to it.
    """

    source: StagedSource
    stated: list[Stated] = field(default_factory=list)
    candidates: list[bool] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    held_back: Counter[SessionKind] = field(default_factory=Counter)
    seen: int = 0


def split(agent: Agent, source: StagedSource, rows: Sequence[Row]) -> SplitSource:
    """Return the statements of ``source``, with the provenance of its rows.

    A note is split block by block, as the index read it, so that rehydration finds the same statements. Only when the
    file has changed since, its rows are split instead: they lack the labels above nested items.
    """
    found = SplitSource(source)
    found.held_back.update(row.session_kind for row in rows if row.session_kind is not SessionKind.INTERACTIVE)
    note = _read_as_indexed(agent, source) if source.tier is not Tier.SESSIONS else None
    if note is None:
        for row in rows:
            _take_row(agent, found, row)
        return found
    covering = _Covering(rows)
    for block in note.blocks:
        if block.refusal is not None:
            found.seen += 1
            found.refused[REFUSED + block.refusal] += 1
            continue
        for statement in statements_of_block(block):
            found.seen += 1
            covered = covering.worst(statement.start_line, statement.end_line)
            if covered is None:
                found.refused[REFUSED + Refusal.NOT_INDEXED] += 1
                continue
            _take(agent, found, covered, statement, led=is_echo(block.text), copied=note.dump is not None)
    return found


def _read_as_indexed(agent: Agent, source: StagedSource) -> Note | None:
    data = read_bytes(agent.workspace / source.path)
    if data is None or content_hash(data) != source.hash:
        return None
    return read_note(data, path=source.path)


def _take_row(agent: Agent, found: SplitSource, row: Row) -> None:
    if row.refusal is not None:
        found.seen += 1
        found.refused[REFUSED + row.refusal] += 1
        return
    message = row.block == _MESSAGE
    for statement in statements_of(
        row.text,
        block=None if message else BlockKind(row.block),
        start_line=row.start_line,
        end_line=row.end_line,
        heading_path=row.heading_path,
        annotations=Annotations(project_key=row.project_key),
    ):
        found.seen += 1
        _take(agent, found, row, statement, led=not message and is_echo(row.text))


class _Covering:
    """The row behind a line of a note; the least trusted one where several cover it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._by_line: dict[int, Row] = {}
        for row in rows:
            for line in range(row.start_line, row.end_line + 1):
                self._by_line[line] = _worse(self._by_line.get(line), row)

    def worst(self, start_line: int, end_line: int) -> Row | None:
        """Return the least trusted row of the lines, both ends included; ``None`` when the index has none."""
        worst: Row | None = None
        for line in range(start_line, end_line + 1):
            if line in self._by_line:
                worst = _worse(worst, self._by_line[line])
        return worst


def _worse(first: Row | None, second: Row) -> Row:
    if first is None or first.origin_class is second.origin_class:
        return first or second
    return second if worst_origin((first.origin_class, second.origin_class)) is second.origin_class else first


def _take(agent: Agent, found: SplitSource, row: Row, statement: Statement, *, led: bool, copied: bool = False) -> None:
    """Count the statement under its first reason to be refused.

    ``led``: its block begins with an echo mark. ``copied``: the note is the dump of a session, so it only repeats what
    the transcript says.
    """
    if statement.refusal is not None or led:
        found.refused[REFUSED + (statement.refusal or Refusal.ECHO)] += 1
        return
    if row.refusal is Refusal.OUTDATED:  # the index knows it: trust of both lines decides
        found.refused[REFUSED + row.refusal] += 1
        return
    only_echo = row.recalled and row.block == _MESSAGE
    reason = _refusal(row, only_echo=only_echo)
    if reason is not None:
        found.refused[REFUSED + reason] += 1
    echo = only_echo or copied or row.recalled
    found.stated.append(_stated(agent, found.source, row, statement, echo=echo, only_echo=only_echo))
    found.candidates.append(reason is None)


def _refusal(row: Row, *, only_echo: bool) -> Refusal | None:
    if only_echo:
        return Refusal.ECHO
    if not eligible(row.origin_class, SessionKind.INTERACTIVE):
        return Refusal.ORIGIN
    return None if row.session_kind is SessionKind.INTERACTIVE else Refusal.SESSION_KIND


def _stated(
    agent: Agent, source: StagedSource, row: Row, statement: Statement, *, echo: bool, only_echo: bool
) -> Stated:
    transcript = row.block == _MESSAGE
    place = row.message_hash or row.text_hash if transcript else f"{row.text_hash}:{row.session_id or ''}"
    return Stated(
        claim_id=statement.claim_id,
        text=statement.text,
        kind=statement.kind,
        source="transcript" if transcript else "note",
        path=source.path,
        start_line=statement.start_line,
        end_line=statement.end_line,
        source_key=hashlib.sha256(place.encode()).hexdigest()[:24],
        day=evidence_day(source, row, agent.zone),
        session_id=row.session_id,
        message_id=row.message_id,
        heading_path=statement.heading_path,
        origin_class=row.origin_class,
        session_kind=row.session_kind,
        observed_at=row.observed_at,
        echo=echo,
        only_echo=only_echo,
        project_key=statement.annotations.project_key,
        supersedes_key=row.supersedes_key,
    )
