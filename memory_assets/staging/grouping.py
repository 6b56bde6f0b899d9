"""Near-duplicates: one fact in several wordings, files and languages becomes one group with one root.

Belongs here: finding candidates by key, joining groups, the class that a restatement of an untrusted claim inherits.
Does not belong here: when two texts are one claim (``recall_runtime.notes.identity``).

Linear in the number of new claims: claims are compared only with those that share a key. The key of a claim with
specific values is the set of its values, that of any other the set of its telling words; near-duplicates have equal
keys by the rule of ``identity.same_claim``. Where no value tells something by itself, the wording must be as near
as without any. All functions run inside the caller's write transaction.
"""

import hashlib
from collections.abc import Iterable

import apsw

from memory_assets.staging.values import telling_values
from recall_runtime.notes.identity import claim_id as identity_of
from recall_runtime.notes.identity import same_claim, value_tokens
from recall_runtime.storage.connection import query
from recall_runtime.text.similarity import jaccard, tokens
from recall_runtime.text.words import stop_words
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, OriginClass, worst_origin

_MOST_COMPARED = 200  # newest claims of one key; a key with more is a routine line, not a fact


def keys_of(text: str) -> list[str]:
    """Return the keys under which a claim is found: its group key, then one key for each telling value."""
    values = value_tokens(text)
    if values:
        return ["v:" + _digest(values), *(f"t:{value}" for value in telling_values(text))]
    words = tokens(text) - stop_words()
    return ["w:" + _digest(words or tokens(text))]


def _digest(words: Iterable[str]) -> str:
    joined = "\n".join(sorted(words))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def link(state: apsw.Connection, claim_ids: Iterable[str], *, threshold: float) -> None:
    """Join each of the new claims to the group that says the same; ``threshold`` is the least Jaccard similarity.

    The root of a group is its oldest claim, so the same groups come out in whatever order claims arrive.
    """
    for claim_id in sorted(claim_ids):
        (text,) = query(state, "SELECT text FROM claims WHERE claim_id = ?", (claim_id,))[0]
        keys = keys_of(text)
        state.executemany(
            "INSERT OR IGNORE INTO claim_keys(key, claim_id) VALUES (?, ?)", [(k, claim_id) for k in keys]
        )
        for other, other_text in _sharing(state, keys[0], claim_id):
            if _alike(text, other_text, threshold):
                _join(state, claim_id, other)


def _sharing(state: apsw.Connection, key: str, claim_id: str) -> list[tuple[str, str]]:
    return query(
        state,
        "SELECT c.claim_id, c.text FROM claim_keys k JOIN claims c USING (claim_id)"
        " WHERE k.key = ? AND c.claim_id <> ? ORDER BY c.last_seen_at DESC, c.claim_id LIMIT ?",
        (key, claim_id, _MOST_COMPARED),
    )


def _alike(text: str, other: str, threshold: float) -> bool:
    if not same_claim(text, other):
        return False
    return bool(telling_values(text)) or jaccard(text, other) >= threshold or identity_of(text) == identity_of(other)


def _join(state: apsw.Connection, claim_id: str, other: str) -> None:
    roots = [root for (root,) in query(state, "SELECT root_id FROM claims WHERE claim_id IN (?, ?)", (claim_id, other))]
    if len(set(roots)) == 1:
        return
    members = query(
        state, "SELECT claim_id FROM claims WHERE root_id IN (?, ?) ORDER BY first_seen_at, claim_id", roots
    )
    root = members[0][0]
    state.execute("UPDATE claims SET root_id = ? WHERE root_id IN (?, ?)", (root, *roots))
    for old in set(roots) - {root}:
        move_hits(state, old, root)


def reroot(state: apsw.Connection, root_id: str) -> None:
    """Give a group whose root was deleted its oldest claim as the new one."""
    members = query(state, "SELECT claim_id FROM claims WHERE root_id = ? ORDER BY first_seen_at, claim_id", (root_id,))
    if members and (root_id,) not in members:
        state.execute("UPDATE claims SET root_id = ? WHERE root_id = ?", (members[0][0], root_id))


def move_hits(state: apsw.Connection, old: str, root: str) -> None:
    """Move the phase hits of a former root to the new one."""
    state.execute(
        """INSERT INTO phase_signals(claim_id, light_hits, rem_hits, last_light_at, last_rem_at, last_rem_considered_at)
           SELECT ?2, light_hits, rem_hits, last_light_at, last_rem_at, last_rem_considered_at
             FROM phase_signals WHERE claim_id = ?1
           ON CONFLICT(claim_id) DO UPDATE SET
               light_hits = max(light_hits, excluded.light_hits), rem_hits = max(rem_hits, excluded.rem_hits),
               last_light_at = nullif(max(coalesce(last_light_at, 0), coalesce(excluded.last_light_at, 0)), 0),
               last_rem_at = nullif(max(coalesce(last_rem_at, 0), coalesce(excluded.last_rem_at, 0)), 0),
               last_rem_considered_at = nullif(
                   max(coalesce(last_rem_considered_at, 0), coalesce(excluded.last_rem_considered_at, 0)), 0)""",
        (old, root),
    )
    state.execute("DELETE FROM phase_signals WHERE claim_id = ?", (old,))


def inherit(state: apsw.Connection, claim_ids: Iterable[str]) -> list[str]:
    """Give restatements of earlier untrusted claims their class; return the claims that lost their trust.

    A claim that holds all specific values of an untrusted one that was there before it, and speaks of the same
    subject, is that claim in other words. A claim that was there first keeps its own class, so a web page can't
    disable a true fact by repeating it.
    """
    lowered: dict[str, OriginClass] = {}
    for claim_id in sorted(set(claim_ids)):
        for trusted, origin in _inheritances(state, claim_id):
            lowered[trusted] = worst_origin((origin, lowered.get(trusted, origin)))
    state.executemany(
        "UPDATE claims SET origin_class = ?, status = 'refused', reason = 'origin' WHERE claim_id = ?"
        " AND status NOT IN ('promoted', 'superseded')",
        [(origin.value, claim_id) for claim_id, origin in lowered.items()],
    )
    return sorted(lowered)


def _inheritances(state: apsw.Connection, claim_id: str) -> list[tuple[str, OriginClass]]:
    """Return the pairs (trusted claim, class it inherits) in which ``claim_id`` is either side."""
    text, origin, seen = query(
        state, "SELECT text, origin_class, first_seen_at FROM claims WHERE claim_id = ?", (claim_id,)
    )[0]
    found: list[tuple[str, OriginClass]] = []
    for other, other_text, other_origin, other_seen in _sharing_value(state, claim_id):
        mine, theirs = OriginClass(origin), OriginClass(other_origin)
        if mine in ELIGIBLE_ORIGINS and theirs is OriginClass.UNTRUSTED and other_seen < seen:
            if _restates(text, other_text):
                found.append((claim_id, theirs))
        elif (
            mine is OriginClass.UNTRUSTED
            and theirs in ELIGIBLE_ORIGINS
            and seen < other_seen
            and _restates(other_text, text)
        ):
            found.append((other, mine))
    return found


def _restates(text: str, earlier: str) -> bool:
    """Return whether ``text`` holds every specific value of ``earlier`` and shares a telling word with it."""
    values, before = value_tokens(text), value_tokens(earlier)
    if not before <= values:
        return False
    parts = frozenset[str]().union(*(tokens(value) for value in values))
    return bool((tokens(text) & tokens(earlier)) - parts - stop_words())


def _sharing_value(state: apsw.Connection, claim_id: str) -> list[tuple[str, str, str, int]]:
    return query(
        state,
        """SELECT DISTINCT c.claim_id, c.text, c.origin_class, c.first_seen_at
             FROM claim_keys mine JOIN claim_keys other ON other.key = mine.key AND other.claim_id <> mine.claim_id
             JOIN claims c ON c.claim_id = other.claim_id
            WHERE mine.claim_id = ? AND mine.key GLOB 't:*' ORDER BY c.first_seen_at, c.claim_id LIMIT ?""",
        (claim_id, _MOST_COMPARED),
    )
