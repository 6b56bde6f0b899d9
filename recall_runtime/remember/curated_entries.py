"""Writing an owner's words into ``MEMORY.md`` and ``USER.md`` through the guarded writer.

Belongs here: what an entry replaces, composing the new file, ledger rows and claims of the write.
Does not belong here: telling facts from directives (``routing``), the steps of a write (``curated.writer``).

An entry is replaced when it says the same but for the value, when the nightly sweep would replace it (the same lineage
key, another value), or when the request names it. The owner's word also replaces what was written by hand; a
hand-written entry of several lines stays and is named.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.compose import NewEntry, append_entries, entry_line, remove_lines, triggers_of
from recall_runtime.curated.effects import SUPERSEDED_BY, ClaimChange, Effects, LedgerEntry
from recall_runtime.curated.writer import Base, WritePlan, apply, read_base, recover
from recall_runtime.errors import ConflictError, RefusedError
from recall_runtime.lineage_keys.book import LineageBook, LineageClaim, given_key
from recall_runtime.lineage_keys.stored import entry_lineage, open_book, written_entry
from recall_runtime.lineage_keys.succession import GIVEN, corrects, retires, stands_beside, values_of
from recall_runtime.notes.blocks import BlockKind
from recall_runtime.notes.conditions import conditions_of
from recall_runtime.notes.curated import CuratedEntry, parse_curated
from recall_runtime.notes.identity import claim_id, normalise, same_claim, value_tokens
from recall_runtime.notes.markers import promotion_marker
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from recall_runtime.records import Annotations
from recall_runtime.remember.wording import is_idle
from recall_runtime.text.concepts import concept_tags
from recall_runtime.text.words import fold, stop_words
from recall_runtime.user_model.contract import Directive, directives
from recall_runtime.user_model.update import Outcome, find_directive, prune, set_directive
from recall_runtime.vocabulary import CandidateStatus, EntryStatus, Operation, OriginClass

ENTRY_KEY_PREFIX = "memory:claim:"  # as a promotion of the same claim would have it, so a sweep meets it
SECTION = "## Remembered on Request"
IMPORTANCE = 8
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked, for the ledger."""

    session_key: str
    sender: str


@dataclass(frozen=True, slots=True)
class CuratedWrite:
    """What came of it. ``write_id`` is what ``undo`` takes, ``None`` when the file said so already."""

    file: str
    entry_key: str
    line: int
    write_id: str | None
    superseded: tuple[str, ...] = ()
    kept_beside: tuple[str, ...] = ()


def write_fact(
    agent: Agent, state: apsw.Connection, text: str, asked: Asked, *, supersedes: str | None, now_ms: int
) -> CuratedWrite:
    """Make ``text`` an entry of ``MEMORY.md``, in place of what it replaces.

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
    entry_key = ENTRY_KEY_PREFIX + claim
    outcome: list[CuratedWrite] = []

    def plan(base: Base) -> WritePlan | None:
        entries = _editable(base)
        named = _named(entries, supersedes, state) if supersedes else None
        same = next((entry for entry in entries if entry is not named and _says_so(entry, text, entry_key)), None)
        if same is not None and named is None:
            outcome[:] = [CuratedWrite(MEMORY_FILE, same.entry_key or entry_key, same.start_line, None)]
            return None
        requested, rivals = _rivals(state, entries, text, named, now_ms)
        gone = [entry for entry in rivals if _is_plain(entry)]
        beside = [entry for entry in rivals if not _is_plain(entry)]
        if named in beside:
            raise RefusedError("That entry has several lines", f"Edit {MEMORY_FILE} by hand; nothing was written.")
        annotations = Annotations(triggers_of(concept_tags("", text)), IMPORTANCE, _project_of(gone))
        line = entry_line(text, None, annotations)
        left = remove_lines(base.content or b"", [(entry.first_line, entry.end_line) for entry in gone])
        fresh = NewEntry(entry_key, line, annotations.project_key, requested.given_key)
        content = append_entries(left, SECTION, [fresh])
        row = LedgerEntry(
            Operation.SUPERSEDED if gone else Operation.ADDED,
            entry_key,
            line,
            claim,
            priors=tuple(_printable(entry.raw) for entry in gone),
            lineage_key=requested.lineage_key,
            gate=_because(asked),
        )
        outcome[:] = [
            CuratedWrite(
                MEMORY_FILE,
                entry_key,
                _line_of(content, entry_key, text),
                _write_id(state, now_ms, claim),
                tuple(entry.text for entry in gone),
                tuple(entry.text for entry in beside),
            )
        ]
        keys = [key for entry in gone for key in entry.entry_keys]
        claims = (*_promoted(claim, entry_key, now_ms), *_retired(state, keys, entry_key))
        return WritePlan(base, content, Effects((row,), claims))

    return _written(agent, state, MEMORY_FILE, plan, outcome, now_ms)


def write_directive(
    agent: Agent, state: apsw.Connection, text: str, asked: Asked, *, supersedes: str | None, now_ms: int
) -> CuratedWrite:
    """Make ``text`` the one active directive on its matter in ``USER.md``. Arguments and errors as for a fact."""
    claim = claim_id(text)
    entry_key = ENTRY_KEY_PREFIX + claim
    today = day_of(now_ms, agent.zone)
    outcome: list[CuratedWrite] = []

    def plan(base: Base) -> WritePlan | None:
        data = base.content or b""
        found = directives(data)
        replaces = (find_directive(found, supersedes),) if supersedes else ()
        change = set_directive(
            data, text, _observed(found, today), replaces=replaces, marks=(promotion_marker(entry_key),)
        )
        if change.outcome is Outcome.UNCHANGED:
            line = next(one.start_line for one in found if one.is_active and normalise(one.text) == normalise(text))
            outcome[:] = [CuratedWrite(USER_FILE, entry_key, line, None)]
            return None
        cap = agent.settings.dreaming.deep.user_budget_characters
        grown = prune(change.data, cap) if cap else change.data
        if cap and len(grown.decode("utf-8", errors="replace")) > cap:
            raise RefusedError(
                f"{USER_FILE} has no room for it ({cap} characters)",
                "Remove a directive that no longer holds, then ask again.",
            )
        gone = {directive.start_line for directive in change.replaced}
        entries = [entry for entry in parse_curated(data, user_file=True).entries if entry.start_line in gone]
        row = LedgerEntry(
            Operation.SUPERSEDED if change.replaced else Operation.ADDED,
            entry_key,
            f"- {change.text}",
            claim,
            priors=tuple(_printable(entry.raw) for entry in entries),
            gate=_because(asked),
        )
        keys = [key for entry in entries for key in entry.entry_keys if key != entry_key]
        line = next(one.start_line for one in directives(grown) if one.is_active and one.text == change.text)
        outcome[:] = [
            CuratedWrite(
                USER_FILE,
                entry_key,
                line,
                _write_id(state, now_ms, claim),
                tuple(directive.text for directive in change.replaced),
            )
        ]
        return WritePlan(
            base, grown, Effects((row,), (*_promoted(claim, entry_key, now_ms), *_retired(state, keys, entry_key)))
        )

    return _written(agent, state, USER_FILE, plan, outcome, now_ms)


def _written(
    agent: Agent,
    state: apsw.Connection,
    file: str,
    plan: Callable[[Base], WritePlan | None],
    outcome: list[CuratedWrite],
    now_ms: int,
) -> CuratedWrite:
    recover(agent, state)
    first = plan(read_base(agent, file))
    if first is None or outcome[0].write_id is None:
        return outcome[0]
    result = apply(agent, state, first, sweep_id=outcome[0].write_id, now_ms=now_ms, rebuild=plan)
    if result.plan is None and outcome[0].write_id is not None:
        raise ConflictError(f"{file} kept changing", "Nothing was written; ask again.")
    return outcome[0]


def _observed(found: Sequence[Directive], today: dt.date) -> dt.date:
    """Return the day of the request: what the owner says now is the last word, also beside a date in the future."""
    return max((one.observed for one in found if one.observed is not None and one.observed > today), default=today)


def _because(asked: Asked) -> dict[str, str]:
    return {
        "because": "remember",
        "origin_class": OriginClass.OWNER.value,
        "session_key": asked.session_key,
        "sender": asked.sender,
    }


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

    @property
    def given_key(self) -> str | None:
        """The key a writer gave, for the mark above the entry; computed keys stay in the ledger."""
        given = self.lineage_key is not None and self.lineage_key.startswith(GIVEN)
        return self.lineage_key.removeprefix(GIVEN) if given and self.lineage_key else None


def _rivals(
    state: apsw.Connection, entries: Sequence[CuratedEntry], text: str, named: CuratedEntry | None, now_ms: int
) -> tuple[_Statement, list[CuratedEntry]]:
    """Return the request with its lineage key, and the entries whose value, or condition, it replaces.

    Keys are made as the sweep makes them, of the entries in their order and then of the request.
    """
    book = open_book(state)
    standing = [_Statement(entry.text, _lineage_of_entry(state, book, entry)) for entry in entries]
    claim = claim_id(text)
    key = _lineage_of_claim(state, claim) or book.key_of(LineageClaim(claim, text))
    requested = _Statement(text, key, now_ms)
    rivals = [
        entry
        for entry, old in zip(entries, standing, strict=True)
        if entry is named or _same_frame(entry, text) or retires(requested, old)
    ]
    return requested, rivals


def _same_frame(entry: CuratedEntry, text: str) -> bool:
    """Return whether both say the same but for the value or the condition."""
    if stands_beside(text):
        return False
    frame = _frame(text)
    return frame is not None and _frame(entry.text) == frame and normalise(entry.text) != normalise(text)


def _project_of(replaced: Sequence[CuratedEntry]) -> str | None:
    """Return the project of the entries that are replaced: the new value belongs where the old one did."""
    projects = {entry.annotations.project_key for entry in replaced}
    return projects.pop() if len(projects) == 1 else None


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
    fits = [entry for entry in entries if wanted in entry.entry_keys or ENTRY_KEY_PREFIX + wanted in entry.entry_keys]
    book = open_book(state)
    fits = fits or [
        entry for entry in entries if wanted and _lineage_of_entry(state, book, entry) in (wanted, given_key(wanted))
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


def _lineage_of_entry(state: apsw.Connection, book: LineageBook, entry: CuratedEntry) -> str | None:
    written = written_entry(state, entry.entry_keys)
    project_key = entry.annotations.project_key
    return entry_lineage(book, entry.text, project_key, marked=entry.lineage_key, written=written)


def _line_of(content: bytes, entry_key: str, text: str) -> int:
    for entry in parse_curated(content).entries:
        if entry.entry_key == entry_key and normalise(entry.text) == normalise(text):
            return entry.start_line
    raise RefusedError(f"An open fence or comment in {MEMORY_FILE} would hide it", "Close it by hand, then ask again.")


def _promoted(claim: str, entry_key: str, now_ms: int) -> tuple[ClaimChange]:
    return (ClaimChange(claim, CandidateStatus.PROMOTED, None, now_ms, entry_key),)


def _retired(state: apsw.Connection, keys: Sequence[str], successor: str) -> Iterator[ClaimChange]:
    for key in keys:
        rows = state.execute(
            "SELECT claim_id, promoted_at FROM claims WHERE entry_key = ? AND status = ?",
            (key, CandidateStatus.PROMOTED),
        )
        for claim, promoted_at in rows.fetchall():
            since = None if promoted_at is None else int(promoted_at)
            yield ClaimChange(str(claim), CandidateStatus.SUPERSEDED, SUPERSEDED_BY + successor, since, key)


def _write_id(state: apsw.Connection, now_ms: int, claim: str) -> str:
    """Return an id for the write that no write had before."""
    stamp = dt.datetime.fromtimestamp(now_ms / 1000, tz=dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    wanted = f"remember-{stamp}-{claim[:6]}"
    for number in range(1, 1_000):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if state.execute("SELECT 1 FROM ledger WHERE sweep_id = ? LIMIT 1", (name,)).fetchone() is None:
            return name
    raise ConflictError(f"{wanted} was used a thousand times", "Wait a second, then ask again.")


def _printable(line: str) -> str:
    return line.encode("utf-8", errors="replace").decode("utf-8")
