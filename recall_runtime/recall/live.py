"""Whether what the index says of a memory file still holds, asked for the few texts that are about to be shown.

Belongs here: comparing the records of who wrote what with those an entry was classified by; classifying it anew.
Does not belong here: bringing the index up to date (``index.sync``), who may be injected (``recall.turn``).

The index is brought up to date now and then; a record of a write counts at once. Asking costs one row an entry, and a
file is read only when its records changed since. Making rows is imported then: a turn hardly ever needs it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import apsw

from recall_runtime.agent import Agent
from recall_runtime.index.hits import SearchHit
from recall_runtime.provenance.note_lines import provenance_hash
from recall_runtime.storage.atomic import read_regular
from recall_runtime.storage.connection import query
from recall_runtime.vocabulary import OriginClass, Tier, worst_origin


def same_records(state: apsw.Connection | None, path: str, known_hash: str, session_id: str | None) -> bool:
    """Return whether ``path`` has the records of writes that the index classified it by."""
    return provenance_hash(state, path, session_id) == known_hash


def is_row_of(text: str, row: str) -> bool:
    """Return whether the index would hold exactly ``row`` for an entry with ``text``, or for a piece of it."""
    from recall_runtime.index.rows import row_texts

    return row in row_texts(text)


def with_live_classes(
    agent: Agent, state: apsw.Connection | None, reader: apsw.Connection, hits: Sequence[SearchHit]
) -> tuple[SearchHit, ...]:
    """Return ``hits``, each with the class that its text has by the records of this moment.

    Classes of transcripts depend on no records. A text that its file holds no more, or whose file can't be read, is
    untrusted once the records changed.

    Args:
        agent: Whose memory it is.
        state: A reader of the state database; ``None`` before there is one.
        reader: A reader of the index that still sees the state the hits are of.
        hits: What was found.
    """
    paths = {hit.entry.path for hit in hits if hit.entry.tier is not Tier.SESSIONS}
    rows = query(reader, _SOURCES, (json.dumps(sorted(paths)),))
    changed = paths - {path for path, known, session in rows if same_records(state, path, known, session)}
    return tuple(_classified(agent, state, hit) if hit.entry.path in changed else hit for hit in hits)


_SOURCES = "SELECT path, provenance_hash, session_id FROM sources WHERE path IN (SELECT value FROM json_each(?))"


def _classified(agent: Agent, state: apsw.Connection | None, hit: SearchHit) -> SearchHit:
    origin = _class_now(agent, state, hit.entry.path, hit.entry.text)
    if origin is hit.entry.provenance.origin_class:
        return hit
    entry = replace(hit.entry, provenance=replace(hit.entry.provenance, origin_class=origin))
    return replace(hit, entry=entry, framed=origin is OriginClass.UNTRUSTED)


def _class_now(agent: Agent, state: apsw.Connection | None, path: str, text: str) -> OriginClass:
    """Return the least trusted class of the rows that the file gives now for ``text``."""
    from recall_runtime.index.rows import note_rows

    try:
        data = read_regular(agent.workspace / path)
    except OSError:
        return OriginClass.UNTRUSTED
    rows = note_rows(state, agent.workspace, path, data, observed_at=0, zone=agent.zone, messages=None).entries
    return worst_origin([row.origin_class for row in rows if row.text == text] or [OriginClass.UNTRUSTED])
