"""Giving entries their vectors.

Belongs here: which text is embedded, batches, the cache, the identity of what is inside.
Does not belong here: the embedders, the table of vectors.

Embedding happens outside transactions; each batch is written in one short transaction, so an interrupted run goes on
where it stopped and the keyword lane answers meanwhile.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import apsw
import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index import store, vectors
from recall_runtime.index.embedders.calibration import measure
from recall_runtime.index.embedders.protocol import Embedder, Vector
from recall_runtime.index.vectors import VectorFault, VectorRow
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

BATCH = 256


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a run did. ``error`` is why it stopped early, ``None`` when every entry has been tried."""

    made: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Pending:
    entry_id: int
    tier: Tier
    origin_class: OriginClass
    session_kind: SessionKind
    status: EntryStatus
    text: str

    @property
    def text_hash(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def identity_changed(connection: apsw.Connection, embedder: Embedder | None) -> bool:
    """Return whether the index holds rows or vectors that this version and embedder would make differently."""
    chunking = store.get_meta(connection, "chunking")
    if chunking is not None and chunking != store.CHUNKING_VERSION:
        return True
    built_with = store.get_meta(connection, "embedder")
    return embedder is not None and built_with is not None and built_with != embedder.identity


def embed_missing(
    connection: apsw.Connection,
    embedder: Embedder,
    *,
    now_ms: int,
    cache_entries: int,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] | None = None,
) -> Embedded:
    """Make the vectors of all entries that have none yet. An endpoint that fails ends the run, not the process."""
    total = next(iter(connection.execute("SELECT count(*) FROM entries WHERE embedded = 0")))[0]
    if not total:
        return Embedded()
    made, refused = 0, Counter[str]()
    try:
        _claim_identity(connection, embedder)
        while batch := _next_batch(connection, batch_size):
            found = _cached(connection, embedder, batch)
            missing = [item for item in batch if item.text_hash not in found]
            if missing:
                fresh = embedder.embed_documents([item.text for item in missing])
                new = {item.text_hash: row for item, row in zip(missing, fresh, strict=True)}
                found |= new
            else:
                new = {}
            faults = _write(connection, embedder, batch, found, new, now_ms)
            refused.update(fault.value for fault in faults.values())
            made += len(batch) - len(faults)
            if progress:
                progress(made + sum(refused.values()), total)
    except EmbedderError as error:
        return Embedded(made, dict(refused), str(error))
    _trim_cache(connection, cache_entries)
    return Embedded(made, dict(refused))


def _claim_identity(connection: apsw.Connection, embedder: Embedder) -> None:
    """Write down whose vectors these are, and how long; measure the levels of an embedder that has none stored."""
    if store.get_meta(connection, "embedder") == embedder.identity:
        return
    dimensions = embedder.dimensions
    calibration = embedder.calibration or measure(embedder)
    with write_transaction(connection):
        vectors.prepare(connection, dimensions)
        store.set_meta(connection, "embedder", embedder.identity)
        store.set_meta(connection, "dimensions", str(dimensions))
        store.set_meta(connection, "calibration", json.dumps([calibration.unrelated, calibration.paraphrase]))


def _next_batch(connection: apsw.Connection, size: int) -> list[_Pending]:
    rows = connection.execute(
        "SELECT e.entry_id, s.tier, e.origin_class, e.session_kind, e.status, e.text, e.heading_path"
        " FROM entries e JOIN sources s ON s.source_id = e.source_id"
        " WHERE e.embedded = 0 ORDER BY e.entry_id LIMIT ?",
        (size,),
    )
    return [
        _Pending(entry_id, Tier(tier), OriginClass(origin), SessionKind(kind), EntryStatus(status), _text(text, path))
        for entry_id, tier, origin, kind, status, text, path in rows
    ]


def _text(text: str, heading_path: str) -> str:
    """Return what is embedded: the nearest heading above gives a line its subject."""
    headings = json.loads(heading_path) if heading_path else []
    return f"{headings[-1]}: {text}" if headings else text


def _cached(connection: apsw.Connection, embedder: Embedder, batch: Sequence[_Pending]) -> dict[str, Vector]:
    if not embedder.worth_caching:
        return {}
    rows = connection.execute(
        "SELECT text_hash, vector FROM embedding_cache WHERE identity = ?"
        " AND text_hash IN (SELECT value FROM json_each(?))",
        (embedder.identity, json.dumps([item.text_hash for item in batch])),
    )
    return {text_hash: np.frombuffer(blob, dtype="<f4") for text_hash, blob in rows}


def _write(
    connection: apsw.Connection,
    embedder: Embedder,
    batch: Sequence[_Pending],
    found: dict[str, Vector],
    new: dict[str, Vector],
    now_ms: int,
) -> dict[int, VectorFault]:
    dimensions = int(store.get_meta(connection, "dimensions") or 0)
    rows = [
        VectorRow(item.entry_id, item.tier, item.origin_class, item.session_kind, item.status, found[item.text_hash])
        for item in batch
    ]
    with write_transaction(connection):
        faults = vectors.put(connection, rows, dimensions)
        connection.executemany(
            "UPDATE entries SET embedded = ? WHERE entry_id = ?",
            ((2 if item.entry_id in faults else 1, item.entry_id) for item in batch),
        )
        if embedder.worth_caching:
            connection.executemany(
                "INSERT OR REPLACE INTO embedding_cache(identity, text_hash, vector, used_at) VALUES (?, ?, ?, ?)",
                (
                    (embedder.identity, text_hash, vector.astype("<f4").tobytes(), now_ms)
                    for text_hash, vector in new.items()
                    if vectors.fault_of(vector, dimensions) is None
                ),
            )
        store.bump_revision(connection)
    return faults


def _trim_cache(connection: apsw.Connection, keep: int) -> None:
    """Bound the cache: the longest unused vectors go."""
    count = next(iter(connection.execute("SELECT count(*) FROM embedding_cache")))[0]
    if count > keep:
        with write_transaction(connection):
            connection.execute(
                "DELETE FROM embedding_cache WHERE (identity, text_hash) IN"
                " (SELECT identity, text_hash FROM embedding_cache ORDER BY used_at, text_hash LIMIT ?)",
                (count - keep,),
            )
