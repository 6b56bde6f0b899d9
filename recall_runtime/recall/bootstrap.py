"""What every private conversation starts from: ``MEMORY.md`` and ``USER.md`` within their budgets.

Belongs here: which lines of the curated files reach a prompt, whole entries within the budgets, the notes of a fresh
start, the sizes that a status shows. Does not belong here: reading and classifying the files (``recall.views``), the
order of directives (``user_model.injection``), cutting a text (``recall.truncation``).

Rules: openclaw-algorithms 30 and 16.4. Comments, marks, superseded entries, entries of other repositories, entries
that an untrusted or system hand touched, and files with merge marks never reach a prompt; each is counted by reason.
"""

import contextlib
import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.notes.annotations import strip_annotations
from recall_runtime.notes.blocks import Block, BlockKind, read_note
from recall_runtime.notes.conditions import is_over
from recall_runtime.notes.curated import CuratedEntry
from recall_runtime.notes.markers import INJECTED_TAGS
from recall_runtime.paths import MEMORY_FILE, NOTES_FOLDER, USER_FILE, note_day
from recall_runtime.provenance.note_lines import origins_of
from recall_runtime.recall.projects import is_eligible
from recall_runtime.recall.truncation import truncate
from recall_runtime.recall.views import CuratedView, CuratedViews
from recall_runtime.storage.atomic import read_regular
from recall_runtime.storage.schema import read_state
from recall_runtime.text.escaping import clip
from recall_runtime.text.redaction import redact_file
from recall_runtime.user_model.injection import injectable
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass, worst_origin

LEAST_ROOM = 64  # with less of the total left, later files are not begun
NEUTRAL_IMPORTANCE = 5
NOTES_DAYS = 2
NOTES_BYTES = 1_048_576  # read in all: classifying them costs about 0.2 s of the files' deadline
NOTES_CHARS = 1_200  # of one file
NOTES_TOTAL_CHARS = 2_800

_OUR_TAG = re.compile(rf"<(?=/?(?:{'|'.join(INJECTED_TAGS)})\b)", re.IGNORECASE)
_DROPPED_KINDS = frozenset(
    {
        BlockKind.COMMENT,
        BlockKind.FRONT_MATTER,
        BlockKind.MANAGED,
        BlockKind.SESSION_HEADER,
        BlockKind.ENVELOPE,
        BlockKind.CONFLICT_MARK,
    }
)
_VERBATIM = frozenset({BlockKind.CODE})
_BLANK_RUN = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class InjectedFile:
    """One file of the block: its text in the prompt, its sizes in characters, what was left out by reason.

    ``omitted`` names why nothing of the file is injected.
    """

    name: str
    text: str = ""
    raw_chars: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False
    omitted: str | None = None

    @property
    def injected_chars(self) -> int:
        """Characters that reach the prompt."""
        return len(self.text)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the file that is kept or dropped whole. Headings have no rank: they go when nothing is below them."""

    line: int
    text: str
    level: int = 0  # of a heading
    rank: tuple[int, int, int] | None = None  # lower goes first


def memory_copy(
    view: CuratedView, active: tuple[str, ...], limit: int, shown_elsewhere: frozenset[int] = frozenset()
) -> InjectedFile:
    """Return the copy of ``MEMORY.md`` for a prompt, at most ``limit`` characters.

    When not all entries fit, whole ones are left out, the least important first (openclaw-algorithms 11: no importance
    counts as 5; among equals the product's own oldest, then the last of the hand-written). A file whose text can't be
    thinned like that is cut with a marker.

    Args:
        view: The file.
        active: Keys of the active projects.
        limit: Characters.
        shown_elsewhere: First lines of entries that another block of the turn holds.
    """
    if view.file.conflicted:
        return InjectedFile(view.name, raw_chars=view.raw_chars, omitted="conflict")
    left_out: Counter[str] = Counter()
    pieces = list(_pieces(view, active, shown_elsewhere, left_out))
    text = _joined(pieces)
    if len(text) <= limit:
        return InjectedFile(view.name, text, view.raw_chars, dict(left_out))
    thinned, dropped = _thinned(pieces, limit, view.name)
    if thinned is None:
        return InjectedFile(view.name, truncate(text, limit, view.name), view.raw_chars, dict(left_out), cut=True)
    left_out["budget"] += dropped
    return InjectedFile(view.name, thinned, view.raw_chars, dict(left_out), cut=True)


def user_copy(view: CuratedView, limit: int) -> InjectedFile:
    """Return what ``USER.md`` says that holds, whole directives in at most ``limit`` characters."""
    if view.file.conflicted:
        return InjectedFile(view.name, raw_chars=view.raw_chars, omitted="conflict")
    left_out: Counter[str] = Counter()
    foreign: set[int] = set()
    firsts = {directive.start_line: directive.first_line for directive in view.directives}
    for entry in view.file.entries:
        first = min(entry.first_line, firsts.get(entry.start_line, entry.first_line))
        origin = view.origin_of(first, entry.end_line)
        reason = (
            f"origin:{origin}" if origin not in ELIGIBLE_ORIGINS else "expired" if view.is_over(entry.text) else None
        )
        if reason is not None:
            left_out[reason] += 1
            foreign.update(range(first, entry.end_line + 1))
    data = view.data
    if foreign:
        lines = view.file.reading.lines
        data = b"".join(data[line.start : line.end] for line in lines if line.number not in foreign)
    chosen = injectable(data, limit)
    text = neutral(chosen.text)
    if chosen.left_out:
        left_out["budget"] += chosen.left_out
    if len(text) > limit:  # a neutralised tag is longer than the tag
        text = truncate(text, limit, view.name)
    return InjectedFile(view.name, text, view.raw_chars, dict(left_out), cut=bool(chosen.left_out))


def bootstrap_files(
    agent: Agent,
    user: CuratedView | None,
    memory: CuratedView | None,
    active: tuple[str, ...],
    shown_elsewhere: frozenset[int] = frozenset(),
) -> tuple[InjectedFile, ...]:
    """Return the curated files in their order, each within its own budget and what is left of the total."""
    settings = agent.settings.bootstrap
    room = max(settings.total_max_chars, settings.max_chars)
    files: list[InjectedFile] = []
    for name, view in ((USER_FILE, user), (MEMORY_FILE, memory)):
        if view is None:
            files.append(InjectedFile(name, omitted="missing"))
            continue
        if room < LEAST_ROOM:
            files.append(InjectedFile(name, raw_chars=view.raw_chars, omitted="total_budget"))
            continue
        if name == USER_FILE:
            file = user_copy(view, min(settings.user_max_chars, room))
        else:
            file = memory_copy(view, active, min(settings.max_chars, room), shown_elsewhere)
        files.append(file)
        room -= file.injected_chars
    return tuple(files)


def recent_notes(
    agent: Agent, state: apsw.Connection | None, now_ms: int, active: tuple[str, ...] = ()
) -> tuple[InjectedFile, ...]:
    """Return what today's and yesterday's notes say, newest day first, for the start of a new conversation.

    Only what is of an eligible class, of no other project than the ``active`` ones, not over and not outdated by a
    later line; secrets are masked. A note is read whole, because its first half doesn't say what its lines are: a
    record matches whole lines, and a block may end anywhere. At most 1,200 characters of a file, 2,800 in all; a note
    too large to be read within 1 MiB of all (or ``sources.max_file_bytes``) is named instead.
    """
    today = day_of(now_ms, agent.zone)
    files: list[InjectedFile] = []
    room, readable = NOTES_TOTAL_CHARS, NOTES_BYTES
    for back in range(NOTES_DAYS):
        day = (today - dt.timedelta(days=back)).isoformat()
        for path in sorted((agent.workspace / NOTES_FOLDER).glob(f"{day}*.md")):
            name = f"{NOTES_FOLDER}/{path.name}"
            if note_day(name) is None or room <= 0:
                continue
            most = min(readable, agent.settings.sources.max_file_bytes)
            try:
                data = read_regular(path, most + 1)
            except OSError as error:
                files.append(unreadable(name, error))
                continue
            if len(data) > most:
                files.append(InjectedFile(name, omitted="too_large"))
                continue
            readable -= len(data)
            file = _note_copy(agent, state, name, data, min(NOTES_CHARS, room), active, today)
            files.append(file)
            room -= file.injected_chars
    return tuple(files)


def unreadable(name: str, error: OSError) -> InjectedFile:
    """Return what is injected of a file that can't be read: nothing, and why."""
    return InjectedFile(name, omitted=f"unreadable ({error.strerror or error})")


def render(files: tuple[InjectedFile, ...]) -> str:
    """Return the files that have text, each below a line with its name."""
    return "\n\n".join(f"## {file.name}\n\n{file.text}" for file in files if file.text)


def _note_copy(
    agent: Agent,
    state: apsw.Connection | None,
    name: str,
    data: bytes,
    limit: int,
    active: tuple[str, ...],
    today: dt.date,
) -> InjectedFile:
    from recall_runtime.notes.outdated import outdated

    raw_chars = len(data.decode("utf-8", errors="replace"))
    written = read_note(data, path=name)
    if written.conflicted:
        return InjectedFile(name, raw_chars=raw_chars, omitted="conflict")
    origins = origins_of(agent.workspace, state, name, data, written)
    masked = redact_file(data)
    blocks = (written if masked == data else read_note(masked, path=name)).blocks

    def origin_of(block: Block) -> OriginClass:
        return worst_origin(origins[block.start_line - 1 : block.end_line])

    dead = outdated(blocks, lambda block: origin if (origin := origin_of(block)) in ELIGIBLE_ORIGINS else None)
    left_out: Counter[str] = Counter()
    kept: list[str] = []
    for position, block in enumerate(blocks):
        if block.kind in _DROPPED_KINDS or not block.text.strip():
            continue
        reason = _reason_against(block, origin_of(block), active, today)
        if reason is None and position in dead:
            reason = "superseded"
        if reason is not None:
            left_out[reason] += 1
            continue
        mark = "## " if block.kind is BlockKind.HEADING else "- " if block.kind is BlockKind.BULLET else ""
        kept.append(mark + " ".join(block.text.split()))
    text = neutral("\n".join(kept))
    return InjectedFile(name, clip(text, limit), raw_chars, dict(left_out), cut=len(text) > limit)


def _reason_against(block: Block, origin: OriginClass, active: tuple[str, ...], today: dt.date) -> str | None:
    """Return why a block of a note may not be injected, or ``None``; entries have ``CuratedView.reason_against``."""
    if origin not in ELIGIBLE_ORIGINS:
        return f"origin:{origin}"
    if is_over(block.text, today):
        return "expired"
    return None if is_eligible(block.annotations.project_key, active) else "project"


def _pieces(
    view: CuratedView, active: tuple[str, ...], shown_elsewhere: frozenset[int], left_out: Counter[str]
) -> Iterator[_Piece]:
    """Yield headings, entries and other text in file order; what may not be injected is counted in ``left_out``."""
    starts = {entry.start_line: entry for entry in view.file.entries}
    inside: dict[int, int] = {}
    for entry in view.file.entries:
        inside.update(dict.fromkeys(range(entry.first_line, entry.end_line + 1), entry.start_line))
    for block in view.note.blocks:
        owner = inside.get(block.start_line)
        if owner is not None:
            entry = starts[owner]
            if block.start_line != owner:
                continue
            reason = view.reason_against(entry, active) or ("shown_in_project" if owner in shown_elsewhere else None)
            if reason is None:
                yield _entry_piece(view, entry)
            else:
                left_out[reason] += 1
            continue
        piece = _other_piece(view, block, left_out)
        if piece is not None:
            yield piece


def _entry_piece(view: CuratedView, entry: CuratedEntry) -> _Piece:
    importance = entry.annotations.importance
    rank = (
        NEUTRAL_IMPORTANCE if importance is None else importance,
        0 if entry.generated else 1,
        entry.start_line if entry.generated else -entry.start_line,
    )
    if entry.generated:
        return _Piece(entry.start_line, neutral(f"- {entry.text}"), rank=rank)
    lines = [line.text for line in view.file.reading.lines[entry.start_line - 1 : entry.end_line]]
    return _Piece(entry.start_line, neutral("\n".join(_without_carriers(lines))), rank=rank)


def _other_piece(view: CuratedView, block: Block, left_out: Counter[str]) -> _Piece | None:
    if block.kind in _DROPPED_KINDS or not block.text.strip():
        return None
    origin = view.origin_of(block.start_line, block.end_line)
    if origin not in ELIGIBLE_ORIGINS:
        left_out[f"origin:{origin}"] += 1
        return None
    lines = [line.text for line in view.file.reading.lines[block.start_line - 1 : block.end_line]]
    text = neutral("\n".join(lines if block.kind in _VERBATIM else _without_carriers(lines)))
    if block.kind is BlockKind.HEADING:
        level = len(lines[0].lstrip()) - len(lines[0].lstrip().lstrip("#"))
        return _Piece(block.start_line, text, level=max(1, level))
    return _Piece(block.start_line, text, rank=(NEUTRAL_IMPORTANCE, 1, -block.start_line))


def _without_carriers(lines: list[str]) -> list[str]:
    stripped = [strip_annotations(line) for line in lines]
    return [after for before, after in zip(lines, stripped, strict=True) if after.strip() or not before.strip()]


def _joined(pieces: list[_Piece]) -> str:
    """Return the pieces as Markdown; a heading with nothing below it is left out, it may name another project."""
    shown: list[_Piece] = []
    for piece in pieces:
        while piece.level and shown and shown[-1].level >= piece.level:
            shown.pop()
        shown.append(piece)
    while shown and shown[-1].level:
        shown.pop()
    parts = [f"\n{piece.text}\n" if piece.level else piece.text for piece in shown]
    return _BLANK_RUN.sub("\n\n", "\n".join(parts)).strip("\n")


def _thinned(pieces: list[_Piece], limit: int, name: str) -> tuple[str | None, int]:
    """Return the text with the lowest ranks left out and a note of how many, or ``None`` when nothing would stay."""
    order = sorted((piece for piece in pieces if piece.rank is not None), key=lambda piece: piece.rank or (0, 0, 0))
    least, most = 1, len(order) - 1  # at least one goes, at least one stays
    best: tuple[str | None, int] = (None, 0)
    while least <= most:  # the more go, the shorter the text
        middle = (least + most) // 2
        gone = {piece.line for piece in order[:middle]}
        kept = [piece for piece in pieces if piece.line not in gone]
        text = f"{_joined(kept)}\n\n[{middle} of lowest importance left out here; read {name} for all]"
        if len(text) <= limit:
            best, most = (text, middle), middle - 1
        else:
            least = middle + 1
    return best


def neutral(text: str) -> str:
    """Return ``text`` in which no tag of our own frames stands, so that nothing can end the frame around it."""
    return _OUR_TAG.sub("&lt;", text)


def curated_views(
    agent: Agent, views: CuratedViews, state: apsw.Connection | None
) -> tuple[CuratedView | None, CuratedView | None, dict[str, InjectedFile]]:
    """Return the views of ``USER.md`` and ``MEMORY.md``, and what stands for those that can't be read, by name."""
    user: CuratedView | None = None
    memory: CuratedView | None = None
    problems: dict[str, InjectedFile] = {}
    try:
        user = views.load(agent, USER_FILE, state)
    except OSError as error:
        problems[USER_FILE] = unreadable(USER_FILE, error)
    try:
        memory = views.memory(agent, state)
    except OSError as error:
        problems[MEMORY_FILE] = unreadable(MEMORY_FILE, error)
    return user, memory, problems


def with_problems(files: tuple[InjectedFile, ...], problems: Mapping[str, InjectedFile]) -> tuple[InjectedFile, ...]:
    """Return ``files`` in which what can't be read says so, and isn't taken for missing."""
    return tuple(problems.get(file.name, file) for file in files)


def injected_sizes(agent: Agent) -> tuple[InjectedFile, ...]:
    """Return what a private conversation without an active project gets of each file: sizes and reasons, by file.

    Raises:
        StoreError: the records of who wrote what can't be read.
    """
    views = CuratedViews()
    with contextlib.ExitStack() as stack:
        state = None
        if agent.folders.state_db.exists():
            state = stack.enter_context(contextlib.closing(read_state(agent.folders.state_db)))
        user, memory, problems = curated_views(agent, views, state)
    return with_problems(bootstrap_files(agent, user, memory, ()), problems)
