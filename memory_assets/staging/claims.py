"""Claims and the places that state them.

Belongs here: writing evidence, what leaves with a source, what a claim is made of its evidence.
Does not belong here: near-duplicates (``grouping``), signals (``recalls``, ``observations``).

All functions run inside the caller's write transaction.
"""

import json
from collections.abc import Iterable, Sequence

import apsw

from memory_assets.gates.loading import eligible
from memory_assets.staging.records import Stated
from recall_runtime.curated.history import UNDONE_BY
from recall_runtime.lineage_keys.book import project_names
from recall_runtime.lineage_keys.stored import known_projects
from recall_runtime.notes.identity import common_words, pattern, value_tokens
from recall_runtime.notes.leads import correction_lead
from recall_runtime.storage.connection import query
from recall_runtime.text.concepts import concept_tags
from recall_runtime.text.similarity import tokens
from recall_runtime.text.words import stop_words
from recall_runtime.vocabulary import CandidateStatus, OriginClass, Refusal, SessionKind, worst_origin

_UNDONE = UNDONE_BY + "*"
GONE = "gone"  # reason of a withdrawn claim: no source states it any more

# A line that nobody signed and that stays where it stood is as old as when it was first seen: a note without a day has
# the time of its file, and saving the file says nothing anew.
_STAYS = "evidence.live = 1 AND evidence.source = 'note' AND evidence.session_id IS NULL"
_DAY = f"iif({_STAYS}, min(evidence.day, excluded.day), excluded.day)"
_OBSERVED_AT = f"iif({_STAYS}, min(evidence.observed_at, excluded.observed_at), excluded.observed_at)"
_UPSERT = f"""
INSERT INTO evidence(claim_id, source, path, start_line, end_line, source_key, day, session_id, message_id,
                     heading_path, origin_class, session_kind, echo, correction, observed_at, batch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(claim_id, path, source_key) DO UPDATE SET
    start_line = excluded.start_line, end_line = excluded.end_line, day = {_DAY},
    session_id = excluded.session_id, message_id = excluded.message_id, heading_path = excluded.heading_path,
    origin_class = excluded.origin_class, session_kind = excluded.session_kind, echo = excluded.echo,
    correction = excluded.correction, observed_at = {_OBSERVED_AT}, live = 1, gone_at = NULL,
    batch = excluded.batch
WHERE (start_line, end_line, day, session_id, message_id, heading_path, origin_class, session_kind, echo, correction,
       observed_at, live)
   IS NOT (excluded.start_line, excluded.end_line, {_DAY}, excluded.session_id, excluded.message_id,
       excluded.heading_path, excluded.origin_class, excluded.session_kind, excluded.echo, excluded.correction,
       {_OBSERVED_AT}, 1)
"""  # noqa: S608 - constant texts


class ClaimBook:
    """Takes in the statements of one source after the other and remembers what they changed.

    Args:
        state: Connection inside a write transaction.
        now_ms: When a line that is missing was seen to be gone.
        batch: Name of the backfill the evidence belongs to, for its rollback.
    """

    def __init__(self, state: apsw.Connection, *, now_ms: int, batch: str | None = None) -> None:
        self._state = state
        self._now_ms = now_ms
        self.batch = batch
        self.new: set[str] = set()
        self.touched: set[str] = set()
        self.gone = 0

    def take(self, path: str, stated: Iterable[Stated]) -> list[tuple[Stated, bool]]:
        """Store what ``path`` states now; whatever else it stated before is gone.

        Returns each statement that was stored, with whether it was the first to bring its claim.
        """
        before = {
            (claim_id, key): evidence_id
            for claim_id, key, evidence_id in query(
                self._state,
                "SELECT claim_id, source_key, evidence_id FROM evidence WHERE path = ? AND live = 1",
                (path,),
            )
        }
        taken = []
        for each in stated:
            if each.only_echo and not self._known(each.claim_id):
                continue
            first = self._claim(each)
            self._state.execute(_UPSERT, self._values(each))
            if self._state.changes():
                self.touched.add(each.claim_id)
            before.pop((each.claim_id, each.source_key), None)
            taken.append((each, first))
        self._leave(before)
        return taken

    def _claim(self, each: Stated) -> bool:
        self._state.execute(
            """INSERT INTO claims(claim_id, root_id, text, kind, origin_class, session_kind, concept_tags, pattern,
                                  first_seen_at, last_seen_at)
               VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT(claim_id) DO NOTHING""",
            (
                each.claim_id,
                each.text,
                each.kind.value,
                each.origin_class.value,
                each.session_kind.value,
                "; ".join(concept_tags(each.path, each.text)),
                pattern(each.text),
                each.observed_at,
            ),
        )
        if not self._state.changes():
            return False
        self.new.add(each.claim_id)
        return True

    def _known(self, claim_id: str) -> bool:
        return bool(query(self._state, "SELECT 1 FROM claims WHERE claim_id = ?", (claim_id,)))

    def _values(self, each: Stated) -> tuple[object, ...]:
        return (
            each.claim_id, each.source, each.path, each.start_line, each.end_line, each.source_key, each.day,
            each.session_id, each.message_id,
            json.dumps(each.heading_path, ensure_ascii=False) if each.heading_path else "",
            each.origin_class.value, each.session_kind.value, int(each.echo), int(correction_lead(each.text)),
            each.observed_at, self.batch,
        )  # fmt: skip

    def _leave(self, left: dict[tuple[str, str], int]) -> None:
        self._state.executemany(
            "UPDATE evidence SET live = 0, gone_at = ? WHERE evidence_id = ?",
            [(self._now_ms, evidence_id) for evidence_id in left.values()],
        )
        self.gone += len(left)
        self.touched.update(claim_id for claim_id, _ in left)


def settle(state: apsw.Connection, claim_ids: Iterable[str]) -> None:
    """Work out class, kind, times and state of claims from all their evidence (openclaw-algorithms 2.2).

    The class is that of the least trusted place, the kind the common one. A session's own transcript classifies each
    message by itself, so it overrules what the same session's writes to notes say about the same words. Promoted and
    superseded claims keep their state, and so do those that an undo took back: ``reopening`` says how long.
    """
    for claim_id in sorted(claim_ids):
        rows = query(
            state,
            "SELECT source, session_id, origin_class, session_kind, echo, live, observed_at FROM evidence"
            " WHERE claim_id = ?",
            (claim_id,),
        )
        if not rows:
            continue
        origin, kind = _merged(rows)
        status, reason = _state_of(rows, origin, kind)
        state.execute(
            """UPDATE claims SET origin_class = ?, session_kind = ?, first_seen_at = ?, last_seen_at = ?,
                      status = iif(status IN ('promoted', 'superseded') OR reason GLOB ?, status, ?),
                      reason = iif(status IN ('promoted', 'superseded') OR reason GLOB ?, reason, ?)
                WHERE claim_id = ?""",
            (
                origin.value,
                kind.value,
                min(row[-1] for row in rows),
                max(row[-1] for row in rows),
                _UNDONE,
                status.value,
                _UNDONE,
                reason,
                claim_id,
            ),
        )


def _merged(rows: Sequence[tuple[str, str | None, str, str, int, int, int]]) -> tuple[OriginClass, SessionKind]:
    transcribed = {session for source, session, *_ in rows if source == "transcript" and session}
    counted = [row for row in rows if row[0] == "transcript" or row[1] not in transcribed]
    kinds = {SessionKind(row[3]) for row in counted}
    return (
        worst_origin(OriginClass(row[2]) for row in counted),
        kinds.pop() if len(kinds) == 1 else SessionKind.UNKNOWN,
    )


def _state_of(
    rows: Sequence[tuple[str, str | None, str, str, int, int, int]], origin: OriginClass, kind: SessionKind
) -> tuple[CandidateStatus, str | None]:
    if not eligible(origin, SessionKind.INTERACTIVE):
        return CandidateStatus.REFUSED, Refusal.ORIGIN.value
    if not eligible(origin, kind):
        return CandidateStatus.REFUSED, Refusal.SESSION_KIND.value
    if not any(live and not (echo and source == "transcript") for source, _, _, _, echo, live, _ in rows):
        return CandidateStatus.WITHDRAWN, GONE
    return CandidateStatus.WAITING, None


def name_projects(state: apsw.Connection, stated: Iterable[Stated]) -> None:
    """Give claims the project their writer named, else the known project that a heading above them is called after.

    A heading speaks only for claims that name nothing themselves: the log under one project's heading often mentions
    another. Several named projects are joined by ``; ``; a key once given stays.
    """
    stated = list(stated)
    given: dict[str, set[str]] = {}
    for each in stated:
        if each.project_key:
            given.setdefault(each.claim_id, set()).update(part.strip() for part in each.project_key.split(";"))
    state.executemany(
        "UPDATE claims SET project_key = ? WHERE claim_id = ? AND project_key IS NULL",
        [("; ".join(sorted(keys)), claim_id) for claim_id, keys in given.items()],
    )
    names = project_names(known_projects(state))
    headed = {
        each.claim_id: names[heading.casefold()]
        for each in stated
        for heading in each.heading_path
        if heading.casefold() in names and _names_nothing(each.text)
    }
    state.executemany(
        "UPDATE claims SET project_key = ? WHERE claim_id = ? AND project_key IS NULL",
        [(key, claim_id) for claim_id, key in headed.items()],
    )
    state.executemany(
        "UPDATE claims SET lineage_key = ?, key_is_given = 1 WHERE claim_id = ? AND key_is_given = 0",
        [(each.supersedes_key, each.claim_id) for each in stated if each.supersedes_key],
    )


def _names_nothing(text: str) -> bool:
    parts = frozenset[str]().union(*(tokens(value) for value in value_tokens(text)))
    left = tokens(text) - parts - stop_words() - common_words()
    return not any(word.isalpha() and len(word) > 2 for word in left)


def withdraw(state: apsw.Connection, roots: Iterable[str]) -> list[str]:
    """Withdraw the waiting claims of groups whose owner took the note line out; return them.

    A transcript can't be edited, so the missing note line is the later word, unless the claim was stated again in a
    session after the line was seen to be gone. What merely repeats recalled memory keeps nothing alive.
    """
    withdrawn: list[str] = []
    for root in sorted(set(roots)):
        notes_live, note_gone_at, said_at = query(
            state,
            """SELECT coalesce(sum(e.source = 'note' AND e.live AND NOT e.echo), 0),
                      max(CASE WHEN e.source = 'note' AND e.live = 0 THEN e.gone_at END),
                      max(CASE WHEN e.source = 'transcript' AND e.live = 1 AND e.echo = 0 THEN e.observed_at END)
                 FROM claims c JOIN evidence e USING (claim_id) WHERE c.root_id = ?""",
            (root,),
        )[0]
        if notes_live or note_gone_at is None or (said_at is not None and said_at > note_gone_at):
            continue
        rows = query(
            state,
            "UPDATE claims SET status = 'withdrawn', reason = ? WHERE root_id = ? AND status = 'waiting'"
            " RETURNING claim_id",
            (GONE, root),
        )
        withdrawn.extend(claim_id for (claim_id,) in rows)
    return withdrawn
