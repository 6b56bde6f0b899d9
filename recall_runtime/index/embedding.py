"""Giving entries their vectors.

Belongs here: which text is embedded, batches, the cache, the identity of what is inside.
Does not belong here: the embedders, the table of vectors.

Embedding happens outside transactions; each batch is written in one short transaction, so an interrupted run goes on
where it stopped and the keyword lane answers meanwhile.
"""

import contextlib
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import apsw
import numpy as np

from recall_runtime.errors import EmbedderError
from recall_runtime.index import store, vectors
from recall_runtime.index.embedders.calibration import measure
from recall_runtime.index.embedders.protocol import Embedder, Vector, Vectors
from recall_runtime.index.vectors import VectorFault, VectorRow
from recall_runtime.storage.connection import write_transaction
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

BATCH = 256
FIRST_WAIT_MS = 30_000
MAX_WAIT_MS = 3_600_000
_TO_EMBED = """
    SELECT e.entry_id, s.tier, e.origin_class, e.session_kind, e.status, e.text, e.heading_path
      FROM entries e JOIN sources s ON s.source_id = e.source_id
     WHERE e.embedded = 0 AND e.entry_id > ? ORDER BY e.entry_id LIMIT ?"""


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


@dataclass(frozen=True, slots=True)
class _Batch:
    """Entries that are embedded together, and the vectors that the cache has for them."""

    items: list[_Pending]
    hashes: list[str | None]  # places in the cache; ``None`` for an embedder that needs none
    known: dict[str | None, Vector]

    def missing(self) -> list[int]:
        """Return the places of the items whose vector must be made."""
        return [place for place, text_hash in enumerate(self.hashes) if text_hash not in self.known]


def identity_changed(connection: apsw.Connection, embedder: Embedder | None) -> bool:
    """Return whether the index holds rows or vectors that this version and embedder would make differently."""
    chunking = store.get_meta(connection, "chunking")
    if chunking is not None and chunking != store.CHUNKING_VERSION:
        return True
    built_with = store.get_meta(connection, "embedder")
    return embedder is not None and built_with is not None and built_with != embedder.identity


def retry_at(connection: apsw.Connection) -> int:
    """Return the instant from which vectors that are missing are to be tried again, in milliseconds."""
    return _failures(connection)[1]


def note_outcome(connection: apsw.Connection, error: str | None, made: int, now_ms: int) -> None:
    """Write down that making vectors failed, so that it is left alone for a while, or that it failed no more.

    The time doubles with each failure in a row that had ``made`` nothing, from half a minute to an hour.
    """
    count, _ = _failures(connection)
    if error is None and not count:
        return
    count = 0 if error is None else 1 if made else count + 1
    wait = min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** min(count - 1, 20)) if count else 0
    with write_transaction(connection):
        store.set_meta(connection, "vector_failures", json.dumps([count, now_ms + wait if count else 0]))


def _failures(connection: apsw.Connection) -> tuple[int, int]:
    count, at = json.loads(store.get_meta(connection, "vector_failures") or "[0, 0]")
    return int(count), int(at)


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
        with contextlib.closing(_made_ahead(connection, embedder, batch_size)) as batches:
            for batch, fresh in batches:
                faults = _write(connection, embedder, batch, fresh, now_ms)
                refused.update(fault.value for fault in faults.values())
                made += len(batch.items) - len(faults)
                if progress:
                    progress(made + sum(refused.values()), total)
    except EmbedderError as error:
        return Embedded(made, dict(refused), str(error))
    _trim_cache(connection, cache_entries)
    return Embedded(made, dict(refused))


def _made_ahead(
    connection: apsw.Connection, embedder: Embedder, size: int
) -> Generator[tuple[_Batch, Sequence[Vector]]]:
    """Yield each batch with its new vectors; while the caller writes it, another thread makes the next ones."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed") as worker:
        waiting: tuple[_Batch, Future[Vectors] | None] | None = None
        for batch in _batches(connection, embedder, size):
            texts = [batch.items[place].text for place in batch.missing()]
            ahead = batch, worker.submit(embedder.embed_documents, texts) if texts else None
            if waiting:
                yield waiting[0], _result(waiting[1])
            waiting = ahead
        if waiting:
            yield waiting[0], _result(waiting[1])


def _result(future: Future[Vectors] | None) -> Sequence[Vector]:
    return list(future.result()) if future else []


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


def _batches(connection: apsw.Connection, embedder: Embedder, size: int) -> Iterator[_Batch]:
    last = 0
    while rows := list(connection.execute(_TO_EMBED, (last, size))):
        items = [
            _Pending(
                entry_id, Tier(tier), OriginClass(origin), SessionKind(kind), EntryStatus(status), _text(text, path)
            )
            for entry_id, tier, origin, kind, status, text, path in rows
        ]
        last = items[-1].entry_id
        hashes = [_hash(item.text) if embedder.worth_caching else None for item in items]
        yield _Batch(items, hashes, _cached(connection, embedder, hashes))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(text: str, heading_path: str) -> str:
    """Return what is embedded: the nearest heading above gives a line its subject."""
    heading = _nearest_heading(heading_path)
    return f"{heading}: {text}" if heading is not None else text


@functools.lru_cache(maxsize=64)
def _nearest_heading(heading_path: str) -> str | None:
    """Return the last heading of a stored path; the lines of a section share it."""
    headings = json.loads(heading_path) if heading_path else []
    return str(headings[-1]) if headings else None


def _cached(connection: apsw.Connection, embedder: Embedder, hashes: Sequence[str | None]) -> dict[str | None, Vector]:
    if not embedder.worth_caching:
        return {}
    rows = connection.execute(
        "SELECT text_hash, vector FROM embedding_cache WHERE identity = ?"
        " AND text_hash IN (SELECT value FROM json_each(?))",
        (embedder.identity, json.dumps(hashes)),
    )
    return {text_hash: np.frombuffer(blob, dtype="<f4") for text_hash, blob in rows}


def _write(
    connection: apsw.Connection, embedder: Embedder, batch: _Batch, fresh: Sequence[Vector], now_ms: int
) -> dict[int, VectorFault]:
    dimensions = int(store.get_meta(connection, "dimensions") or 0)
    new = dict(zip(batch.missing(), fresh, strict=True))
    rows = [
        VectorRow(
            item.entry_id,
            item.tier,
            item.origin_class,
            item.session_kind,
            item.status,
            new[place] if place in new else batch.known[batch.hashes[place]],
        )
        for place, item in enumerate(batch.items)
    ]
    with write_transaction(connection):
        faults = vectors.put(connection, rows, dimensions)
        connection.executemany(
            "UPDATE entries SET embedded = ? WHERE entry_id = ?",
            ((2 if item.entry_id in faults else 1, item.entry_id) for item in batch.items),
        )
        if embedder.worth_caching:
            connection.executemany(
                "INSERT OR REPLACE INTO embedding_cache(identity, text_hash, vector, used_at) VALUES (?, ?, ?, ?)",
                (
                    (embedder.identity, batch.hashes[place], vector.astype("<f4").tobytes(), now_ms)
                    for place, vector in new.items()
                    if batch.items[place].entry_id not in faults
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
