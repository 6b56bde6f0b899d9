"""The closed lifecycle of a standing intent and its upkeep.

Belongs here: the states, expiry, re-arming, rebuilding the look-up forms.
Does not belong here: firing (``intents.matching``), creation and cancelling (``intents.store``).

``pending`` rows (put there by another writer of the table) never fire; they expire and can be cancelled like the rest.
An instant that is exactly the end counts as past it: expired at ``expires_at``, re-armed at last fire + cooldown.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

import apsw

from recall_runtime.intents.terms import TERMS_VERSION, lookup_choices

_TERMS_WATERMARK = "standing_intent_terms"


class IntentStatus(StrEnum):
    """States of a standing intent; the last three are final."""

    PENDING = "pending"
    ARMED = "armed"
    FIRED = "fired"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What one upkeep changed."""

    expired: int
    rearmed: int


def maintain(connection: apsw.Connection, now_ms: int) -> Upkeep:
    """Expire and re-arm what is due at ``now_ms``. Call inside a write transaction; it runs before each list and match.

    A last fire in the future (a clock that was wrong) counts from now on, so an intent is never stuck behind it.
    """
    connection.execute(
        "UPDATE standing_intents SET status = 'expired' "
        "WHERE status IN ('pending', 'armed', 'fired') AND expires_at IS NOT NULL AND expires_at <= ?",
        (now_ms,),
    )
    expired = connection.changes()
    connection.execute(
        "UPDATE standing_intents SET last_fired_at = ? WHERE +status IN ('armed', 'fired') AND last_fired_at > ?",
        (now_ms, now_ms),
    )
    connection.execute(
        "UPDATE standing_intents SET status = 'armed' WHERE status = 'fired' AND fire_count < max_fires "
        "AND last_fired_at + cooldown_seconds * 1000 <= ?",
        (now_ms,),
    )
    rearmed = connection.changes()
    _renew_terms(connection)
    return Upkeep(expired, rearmed)


def index_terms(connection: apsw.Connection, intent_key: int) -> None:
    """Store the look-up forms of one intent anew."""
    connection.execute("DELETE FROM standing_intent_terms WHERE intent_key = ?", (intent_key,))
    stored = connection.execute("SELECT trigger_keywords FROM standing_intents WHERE intent_key = ?", (intent_key,))
    for (keywords,) in stored.fetchall():
        for entry in json.loads(str(keywords)):
            choices = lookup_choices(entry)
            rarest = min(choices, key=lambda forms: (_crowd(connection, forms), sorted(forms)), default=frozenset())
            connection.executemany(
                "INSERT OR IGNORE INTO standing_intent_terms (form, intent_key) VALUES (?, ?)",
                [(form, intent_key) for form in sorted(rarest)],
            )


def _crowd(connection: apsw.Connection, forms: frozenset[str]) -> int:
    """Return how many entries are already found by one of ``forms``."""
    row = connection.execute(
        "SELECT count(*) FROM standing_intent_terms WHERE form IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(forms), ensure_ascii=False),),
    ).fetchone()
    return int(str(row[0])) if row else 0


def _renew_terms(connection: apsw.Connection) -> None:
    """Store the forms of rows that have none yet (any writer may add rows), or of all after an upgrade."""
    row = connection.execute("SELECT value FROM watermarks WHERE name = ?", (_TERMS_WATERMARK,)).fetchone()
    if row is not None and row[0] == TERMS_VERSION:
        return
    only_new = row is not None and row[0] == ""
    live = connection.execute(
        "SELECT intent_key FROM standing_intents AS i WHERE status IN ('pending', 'armed', 'fired') AND NOT (? AND "
        "EXISTS (SELECT 1 FROM standing_intent_terms AS t WHERE t.intent_key = i.intent_key))",
        (only_new,),
    )
    for (intent_key,) in live.fetchall():
        index_terms(connection, int(str(intent_key)))
    connection.execute(
        "INSERT INTO watermarks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (_TERMS_WATERMARK, TERMS_VERSION),
    )
