"""The optional vector trigger: an intent also fires on a message that means its trigger in other words.

Belongs here: making the vectors of triggers and keeping them those of one embedder, the vector of a message.
Does not belong here: which intents fire (``intents.matching``), embedders (``index.embedders``).

All vectors in the table are of the embedder that the watermark names; another embedder makes them anew.
"""

import json
from typing import TYPE_CHECKING

import apsw

from recall_runtime.intents.matching import VECTORS_WATERMARK, VectorTrigger
from recall_runtime.storage.connection import write_transaction

if TYPE_CHECKING:
    from recall_runtime.index.embedders.protocol import Embedder

LEVEL = 0.8  # share of the way from the cosine of unrelated sentences to that of a paraphrase
MAX_MADE = 64  # vectors one turn makes; the rest follow with the next turns
_MAX_EMBEDDED = 1_000  # characters of a message whose meaning is compared


def vector_trigger(connection: apsw.Connection, embedder: "Embedder", message: str) -> VectorTrigger | None:
    """Bring the vectors of the live intents up to date and return the trigger of ``message``.

    Returns ``None`` for an embedder whose cosines have no measured levels.

    Raises:
        EmbedderError: the embedder failed.
        StoreLockedError: another process holds the database.
    """
    levels = embedder.calibration
    if levels is None or not message.strip():
        return None
    renew_vectors(connection, embedder)
    threshold = levels.unrelated + LEVEL * (levels.paraphrase - levels.unrelated)
    return VectorTrigger(embedder.embed_query(message[:_MAX_EMBEDDED]), threshold, embedder.identity)


def renew_vectors(connection: apsw.Connection, embedder: "Embedder") -> int:
    """Make the vectors that live intents lack, all of them after a change of the embedder; return how many."""
    with write_transaction(connection):
        row = connection.execute("SELECT value FROM watermarks WHERE name = ?", (VECTORS_WATERMARK,)).fetchone()
        if row is None or row[0] != embedder.identity:
            connection.execute("UPDATE standing_intents SET trigger_embedding = NULL")
            connection.execute(
                "INSERT INTO watermarks (name, value) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (VECTORS_WATERMARK, embedder.identity),
            )
    missing = connection.execute(
        "SELECT intent_key, trigger_keywords FROM standing_intents WHERE trigger_embedding IS NULL "
        "AND status IN ('pending', 'armed', 'fired') ORDER BY intent_key LIMIT ?",
        (MAX_MADE,),
    ).fetchall()
    if not missing:
        return 0
    texts = [", ".join(json.loads(str(keywords))) for _, keywords in missing]
    made = embedder.embed_documents(texts).astype("<f4")
    with write_transaction(connection):
        connection.executemany(
            "UPDATE standing_intents SET trigger_embedding = ? WHERE intent_key = ? "
            "AND (SELECT value FROM watermarks WHERE name = ?) = ?",  # of no other embedder that came meanwhile
            [
                (vector.tobytes(), key, VECTORS_WATERMARK, embedder.identity)
                for (key, _), vector in zip(missing, made, strict=True)
            ],
        )
    return len(missing)
