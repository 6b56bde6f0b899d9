"""Making the owner's words an entry of ``MEMORY.md``, in place of what they replace.

Belongs here: which entries a request replaces, composing the new file.
Does not belong here: lineage keys (``lineage_keys``), directives (``preferences``), the steps of a write
(``curated.writer``).

An entry is replaced when it says the same but for the value, when the nightly sweep would replace it (the same lineage
key, another value), or when the request names it. The owner's word also replaces what was written by hand, but only
what says the same or is named; what else may be about the same thing stays and is named in the answer, and so does a
hand-written entry of several lines. A fact that stands there already takes the place of what it contradicts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.curated.compose import NewEntry, append_entries, entry_line, remove_lines, triggers_of
from recall_runtime.curated.writer import Base, WritePlan
from recall_runtime.errors import RefusedError
from recall_runtime.lineage_keys.book import LineageBook, LineageClaim, given_key
from recall_runtime.lineage_keys.matter import contradict, matter_of
from recall_runtime.lineage_keys.stored import WrittenEntry, entry_lineage, open_book, written_entry
from recall_runtime.lineage_keys.succession import corrects, given_part, retires, stands_beside, values_of
from recall_runtime.notes.blocks import BlockKind
from recall_runtime.notes.conditions import conditions_of
from recall_runtime.notes.curated import CuratedEntry, parse_curated
from recall_runtime.notes.identity import claim_id, normalise, same_claim, value_tokens
from recall_runtime.notes.markers import entry_key_of
from recall_runtime.paths import MEMORY_FILE
from recall_runtime.records import Annotations
from recall_runtime.remember.wording import is_idle
from recall_runtime.remember.writes import Asked, CuratedWrite, Planned, effects_of, write, write_id_of
from recall_runtime.text.concepts import concept_tags
from recall_runtime.text.lines import printable
from recall_runtime.text.words import fold, stop_words
from recall_runtime.vocabulary import EntryStatus

SECTION = "## Remembered on Request"
IMPORTANCE = 8
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def write_fact(
    agent: Agent, state: apsw.Connection, text: str, asked: Asked, *, supersedes: str | None, now_ms: int
) -> CuratedWrite:
    """Make ``text`` an entry.

    Args:
        agent: Whose memory it is.
        state: Its open state database.
        text: The fact on one line.
        asked: Who asked for it.
        supersedes: Entry key, lineage key or words of the one entry it replaces in any case.
        now_ms: Instant of the write.

    Raises:
        RefusedError: the file can't be edited, or ``supersedes`` names no entry or several.
        ConflictError: the file kept changing.
    """
    claim = claim_id(text)
    entry_key = entry_key_of(claim)

    def plan_on(base: Base) -> Planned:
        entries = _editable(base)
        named = _named(entries, supersedes, state) if supersedes else None
        same = next((entry for entry in entries if _says_so(entry, text, entry_key)), None)
        requested, replaced, suspected = _rivals(state, [entry for entry in entries if entry is not same], text, now_ms)
        rivals = [entry for entry in entries if entry in replaced or entry is named]
        gone = [entry for entry in rivals if _is_plain(entry)]
        beside = [entry for entry in entries if entry is not named and (entry in suspected or entry in rivals)]
        beside = [entry for entry in beside if entry not in gone]
        if named is not None and named not in gone:
            raise RefusedError("That entry has several lines", f"Edit {MEMORY_FILE} by hand; nothing was written.")
        told = tuple(entry.text for entry in beside)
        if same is not None and (not gone or not _is_plain(same)):
            told = tuple(entry.text for entry in [*gone, *beside])
            return Planned(
                None, CuratedWrite(MEMORY_FILE, same.entry_key or entry_key, same.start_line, None, kept_beside=told)
            )
        superseded = tuple(entry.text for entry in gone if entry is not same)
        if same is not None and same not in gone:
            gone.append(same)
        fresh = _entry(text, entry_key, requested, gone)
        left = remove_lines(base.content or b"", [(entry.first_line, entry.end_line) for entry in gone])
        content = append_entries(left, SECTION, [fresh])
        effects = effects_of(
            state,
            asked,
            claim=claim,
            entry_key=entry_key,
            line=fresh.line,
            replaced=gone,
            now_ms=now_ms,
            lineage_key=requested.lineage_key,
        )
        outcome = CuratedWrite(
            MEMORY_FILE,
            entry_key,
            _line_of(content, entry_key, text),
            write_id_of(state, now_ms, claim),
            superseded,
            told,
        )
        return Planned(WritePlan(base, content, effects), outcome)

    return write(agent, state, MEMORY_FILE, plan_on, now_ms)


def _editable(base: Base) -> list[CuratedEntry]:
    file = parse_curated(base.content or b"")
    if file.conflicted or file.reading.undecodable:
        raise RefusedError(
            f"{base.file} holds an unresolved merge or is no text", "Resolve it by hand, then ask again."
        )
    return [entry for entry in file.entries if entry.status is EntryStatus.ACTIVE]


def _says_so(entry: CuratedEntry, text: str, entry_key: str) -> bool:
    if conditions_of(entry.text) != conditions_of(text):
        return False
    return entry_key in entry.entry_keys or same_claim(entry.text, text)


@dataclass(frozen=True, slots=True)
class _Statement:
    """What the request, or an entry, says of which thing. An entry is older than any request."""

    text: str
    lineage_key: str | None
    observed_at: int = 0

    @property
    def values(self) -> frozenset[str]:
        """Its specific values."""
        return values_of(self.text)

    @property
    def is_correction(self) -> bool:
        """Whether it begins as one."""
        return corrects(self.text)


def _entry(text: str, entry_key: str, requested: _Statement, gone: Sequence[CuratedEntry]) -> NewEntry:
    """Return the new entry. It belongs to the project of what it replaces, when that is one."""
    projects = {entry.annotations.project_key for entry in gone}
    project_key = projects.pop() if len(projects) == 1 else None
    annotations = Annotations(triggers_of(concept_tags("", text)), IMPORTANCE, project_key)
    line = entry_line(text, None, annotations)
    return NewEntry(entry_key, line, project_key, given_part(requested.lineage_key))


def _rivals(
    state: apsw.Connection, entries: Sequence[CuratedEntry], text: str, now_ms: int
) -> tuple[_Statement, list[CuratedEntry], list[CuratedEntry]]:
    """Return the request with its lineage key, the entries it replaces, and hand-written ones it may be about.

    Keys are made as the sweep makes them, of the entries in their order and then of the request.
    """
    book = open_book(state)
    known = [written_entry(state, entry.entry_keys) for entry in entries]
    standing = [
        _Statement(entry.text, _lineage_of_entry(book, entry, written))
        for entry, written in zip(entries, known, strict=True)
    ]
    claim = claim_id(text)
    key = _lineage_of_claim(state, claim) or book.key_of(LineageClaim(claim, text))
    requested = _Statement(text, key, now_ms)
    replaced: list[CuratedEntry] = []
    suspected: list[CuratedEntry] = []
    for entry, written, old in zip(entries, known, standing, strict=True):
        if _same_frame(entry, text):
            replaced.append(entry)
        elif retires(requested, old):
            ours = written is not None and written.line == _first_line(entry)
            (replaced if ours else suspected).append(entry)
    return requested, replaced, suspected


def _first_line(entry: CuratedEntry) -> str:
    return printable(entry.raw.split("\n", 1)[0].rstrip("\r"))


def _same_frame(entry: CuratedEntry, text: str) -> bool:
    """Return whether both say the same of the same thing but for the value or the condition."""
    if stands_beside(text) or contradict(matter_of(entry.text), matter_of(text)):
        return False
    frame = _frame(text)
    return frame is not None and _frame(entry.text) == frame and normalise(entry.text) != normalise(text)


def _frame(text: str) -> frozenset[str] | None:
    """Return the content words of ``text`` with its values masked, or ``None`` when it has no value.

    Names are kept, so two things with a value each never share a frame.
    """
    if not value_tokens(text):
        return None
    words = []
    for word in normalise(text).split():
        bare = word.strip(".,:;!?()[]\"'`。，：；（）")
        if value_tokens(bare) == frozenset((bare,)) and bare.isascii():
            words.append("#")
        else:
            words.append(fold(_DIGITS.sub("#", bare)))
    return frozenset(word for word in words if word and word not in stop_words() and not is_idle(word))


def _is_plain(entry: CuratedEntry) -> bool:
    return entry.kind is BlockKind.BULLET and entry.start_line == entry.end_line and not entry.damage


def _named(entries: Sequence[CuratedEntry], name: str, state: apsw.Connection) -> CuratedEntry:
    wanted = name.strip()
    fits = [entry for entry in entries if wanted in entry.entry_keys or entry_key_of(wanted) in entry.entry_keys]
    book = open_book(state)
    fits = fits or [
        entry
        for entry in entries
        if wanted
        and _lineage_of_entry(book, entry, written_entry(state, entry.entry_keys)) in (wanted, given_key(wanted))
    ]
    words = normalise(wanted)
    fits = fits or [entry for entry in entries if words and normalise(entry.text) == words]
    fits = fits or [entry for entry in entries if words and words in normalise(entry.text)]
    if len(fits) != 1:
        raise RefusedError(
            f"{len(fits)} entries of {MEMORY_FILE} fit {name!r}", "Give the key or the words of exactly one entry."
        )
    return fits[0]


def _lineage_of_claim(state: apsw.Connection, claim: str) -> str | None:
    row = state.execute("SELECT lineage_key FROM claims WHERE claim_id = ?", (claim,)).fetchone()
    return str(row[0]) if row and row[0] else None


def _lineage_of_entry(book: LineageBook, entry: CuratedEntry, written: WrittenEntry | None) -> str | None:
    project_key = entry.annotations.project_key
    return entry_lineage(book, entry.text, project_key, marked=entry.lineage_key, written=written)


def _line_of(content: bytes, entry_key: str, text: str) -> int:
    for entry in parse_curated(content).entries:
        if entry.entry_key == entry_key and normalise(entry.text) == normalise(text):
            return entry.start_line
    raise RefusedError(f"An open fence or comment in {MEMORY_FILE} would hide it", "Close it by hand, then ask again.")
