"""Vectors of entries: storing, deleting, and the nearest ones under a filter.

Belongs here: the vec0 table of sqlite-vec and its plain twin, refusing vectors that would poison an answer, the exact
scan. Does not belong here: making vectors (``index.embedders``), ranking (``index.ranking``).

Three readers give the same answers: KNN inside sqlite-vec; the exact scan over a matrix read from the same table
without the extension (its chunks are ordinary blobs); the exact scan over the plain table that is written where the
extension can't be loaded. The vec0 table has one partition key, the tier; more keys would cost a chunk each.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recall_runtime.errors import StoreError
from recall_runtime.index.embedders.protocol import Vector, Vectors, unit_rows
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

MAX_K = 4096  # sqlite-vec raises above it
_CHUNK = 1024  # vectors a chunk of vec0 holds
_NATIVE = "vectors"
_PLAIN = "vectors_plain"
_TIERS = {tier.value: place for place, tier in enumerate(Tier)}
_ORIGINS = {origin.value: place for place, origin in enumerate(OriginClass)}
_STATUSES = {status.value: place for place, status in enumerate(EntryStatus)}


class VectorFault(StrEnum):
    """Why a vector is refused. Stored, it would come first in every answer (zero, NaN) or fail to be written."""

    SHORT = "short"
    LONG = "long"
    ZERO = "zero"
    NOT_FINITE = "not_finite"


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One vector to be stored. An origin of ``None`` becomes untrusted: the class for unknown."""

    entry_id: int
    tier: Tier
    origin_class: OriginClass | None
    session_kind: SessionKind
    status: EntryStatus
    vector: Sequence[float] | Vector


@dataclass(frozen=True, slots=True)
class VectorFilter:
    """What may be in the answer. It is applied inside the search, so a crowd of others can't empty the answer.

    ``session_entries`` are the entries of the transcripts that may be shown, ascending; ``None``: all of them.
    """

    tiers: frozenset[Tier] = frozenset(Tier)
    origin_classes: frozenset[OriginClass] = frozenset(OriginClass)
    with_superseded: bool = False
    session_entries: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One near entry; ``cosine`` is 1 for the same direction."""

    entry_id: int
    cosine: float


def faults_of(vectors: Sequence[Sequence[float] | Vector], dimensions: int) -> tuple[list[VectorFault | None], Vectors]:
    """Return why each vector can't be stored, or ``None``, and the vectors that can, one a row.

    They are judged as they would be stored: a number outside float32 is not finite, one below it is zero.
    """
    faults: list[VectorFault | None] = [_length_fault(len(vector), dimensions) for vector in vectors]
    fitting = [place for place, fault in enumerate(faults) if fault is None]
    if not fitting:
        return faults, np.zeros((0, dimensions), dtype=np.float32)
    with np.errstate(over="ignore"):
        matrix: Vectors = np.array([vectors[place] for place in fitting], dtype=np.float32)
    finite = np.all(np.isfinite(matrix), axis=1)
    good = np.logical_and(finite, np.any(matrix, axis=1))
    for row in np.flatnonzero(~good).tolist():
        faults[fitting[row]] = VectorFault.ZERO if finite[row] else VectorFault.NOT_FINITE
    return faults, matrix[good]


def _length_fault(length: int, dimensions: int) -> VectorFault | None:
    if length == dimensions:
        return None
    return VectorFault.SHORT if length < dimensions else VectorFault.LONG


def dots(rows: Vectors, query: Vector) -> Vectors:
    """Return the scalar product of each row with ``query``, in this thread alone.

    ``rows @ query`` spreads over the threads of the linear algebra library and then waits for the slowest of them:
    where another process uses the processors too, 0.4 ms become 20 (docs/decisions.md).
    """
    products: Vectors = np.vecdot(rows, query)
    return products


def has_extension(connection: apsw.Connection) -> bool:
    """Return whether sqlite-vec is loaded on ``connection``."""
    try:
        list(connection.execute("SELECT vec_version()"))
    except apsw.SQLError:
        return False
    return True


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Return whether a table called ``name`` exists."""
    return bool(list(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (name,))))


def prepare(connection: apsw.Connection, dimensions: int) -> None:
    """Create the table of vectors of this length, in the layout the machine can write."""
    if has_table(connection, _NATIVE) or has_table(connection, _PLAIN):
        return
    if has_extension(connection):
        connection.execute(
            f"CREATE VIRTUAL TABLE {_NATIVE} USING vec0(entry_id INTEGER PRIMARY KEY, tier TEXT PARTITION KEY,"
            " origin_class TEXT, session_kind TEXT, status TEXT,"
            f" embedding FLOAT[{int(dimensions)}] distance_metric=cosine)"
        )
        return
    connection.execute(
        f"CREATE TABLE {_PLAIN} (entry_id INTEGER PRIMARY KEY, tier TEXT NOT NULL, origin_class TEXT NOT NULL,"
        " session_kind TEXT NOT NULL, status TEXT NOT NULL, embedding BLOB NOT NULL) STRICT"
    )


def put(connection: apsw.Connection, rows: Iterable[VectorRow], dimensions: int) -> dict[int, VectorFault]:
    """Store ``rows`` in place of what their entries had; return the refused ones by entry.

    Vectors are scaled to length 1. Runs inside the caller's transaction.

    Raises:
        StoreError: the table needs the extension, and it isn't loaded.
    """
    table = _writable_table(connection)
    rows = list(rows)
    faults, matrix = faults_of([row.vector for row in rows], dimensions)
    delete(connection, [row.entry_id for row in rows])
    connection.executemany(
        f"INSERT INTO {table}(entry_id, tier, origin_class, session_kind, status, embedding)"  # noqa: S608 - ours
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                row.entry_id,
                row.tier.value,
                (row.origin_class or OriginClass.UNTRUSTED).value,
                row.session_kind.value,
                row.status.value,
                unit.tobytes(),
            )
            for row, unit in zip(
                (row for row, fault in zip(rows, faults, strict=True) if fault is None), unit_rows(matrix), strict=True
            )
        ),
    )
    return {row.entry_id: fault for row, fault in zip(rows, faults, strict=True) if fault is not None}


def delete(connection: apsw.Connection, entry_ids: Iterable[int]) -> None:
    """Delete the vectors of ``entry_ids``; unknown ones are no error. Runs inside the caller's transaction."""
    if not (has_table(connection, _NATIVE) or has_table(connection, _PLAIN)):
        return
    table = _writable_table(connection)
    connection.executemany(
        f"DELETE FROM {table} WHERE entry_id = ?",  # noqa: S608 - one of our two table names
        ((entry_id,) for entry_id in entry_ids),
    )


def _writable_table(connection: apsw.Connection) -> str:
    if not has_table(connection, _NATIVE):
        return _PLAIN
    if not has_extension(connection):
        raise StoreError(
            "The index holds vectors of sqlite-vec, which can't be loaded here",
            "Install the package sqlite-vec, or run `dreamline index --force`.",
        )
    return _NATIVE


@dataclass(frozen=True, slots=True)
class Matrix:
    """All vectors of an index in memory, for the exact scan; rows are in the order of their entry ids.

    ``tiers``, ``origin_classes`` and ``statuses`` hold the position of the member in its closed set.
    """

    entry_ids: NDArray[np.int64]
    tiers: NDArray[np.int8]
    origin_classes: NDArray[np.int8]
    statuses: NDArray[np.int8]
    vectors: Vectors

    def nearest(self, query: Vector, k: int, wanted: VectorFilter) -> list[Neighbour]:
        """Return the ``k`` nearest rows that ``wanted`` allows, nearest first."""
        allowed = np.array([tier in wanted.tiers for tier in Tier])[self.tiers]
        allowed &= np.array([origin in wanted.origin_classes for origin in OriginClass])[self.origin_classes]
        if not wanted.with_superseded:
            allowed &= self.statuses == _STATUSES[EntryStatus.ACTIVE.value]
        if wanted.session_entries is not None:
            readable = np.isin(self.entry_ids, np.array(wanted.session_entries, dtype=np.int64))
            allowed &= readable | (self.tiers != _TIERS[Tier.SESSIONS.value])
        rows = np.flatnonzero(allowed)
        if not rows.size or k < 1:
            return []
        few = rows.size * 8 < len(self.vectors)  # copying few rows is cheaper than scanning all of them
        cosines = dots(self.vectors[rows], query) if few else dots(self.vectors, query)[rows]
        if k < rows.size:
            part = np.argpartition(-cosines, k - 1)[:k]
            rows, cosines = rows[part], cosines[part]
        found = [
            Neighbour(entry_id, cosine)
            for entry_id, cosine in zip(self.entry_ids[rows].tolist(), cosines.tolist(), strict=True)
        ]
        return _ordered(found, k)


def load_matrix(connection: apsw.Connection) -> Matrix:
    """Read all vectors, from either layout and without the extension.

    The chunks of vec0 0.1 are read as blobs: 1024 vectors, their entry ids, a bit for each that is in use, and 16
    bytes for each short text (length, then up to 12 bytes). ``tests/index/test_vectors.py`` compares with its KNN.
    """
    if has_table(connection, _NATIVE):
        return _load_native(connection)
    rows: list[tuple[Any, ...]] = []
    if has_table(connection, _PLAIN):
        rows = connection.execute(
            f"SELECT entry_id, tier, origin_class, status, embedding FROM {_PLAIN} ORDER BY entry_id"  # noqa: S608 - ours
        ).fetchall()
    if not rows:
        return _EMPTY
    return Matrix(
        np.array([row[0] for row in rows], dtype=np.int64),
        np.array([_TIERS[row[1]] for row in rows], dtype=np.int8),
        np.array([_ORIGINS[row[2]] for row in rows], dtype=np.int8),
        np.array([_STATUSES[row[3]] for row in rows], dtype=np.int8),
        np.stack([np.frombuffer(row[4], dtype="<f4") for row in rows]).astype(np.float32, copy=False),
    )


_NOTHING = np.array([], dtype=np.int8)
_EMPTY = Matrix(np.array([], dtype=np.int64), _NOTHING, _NOTHING, _NOTHING, np.zeros((0, 0), dtype=np.float32))


def _load_native(connection: apsw.Connection) -> Matrix:
    chunks: list[tuple[int, NDArray[np.int64]]] = []
    ids: list[Any] = []
    tiers: list[Any] = []
    origins: list[Any] = []
    statuses: list[Any] = []
    query = (
        "SELECT c.chunk_id, c.partition00, c.validity, c.rowids, o.data, s.data FROM vectors_chunks c"
        " JOIN vectors_metadatachunks00 o ON o.rowid = c.chunk_id"
        " JOIN vectors_metadatachunks02 s ON s.rowid = c.chunk_id ORDER BY c.chunk_id"
    )
    for chunk, tier, validity, rowids, origin, status in connection.execute(query):
        used = np.flatnonzero(np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little"))
        if not used.size:
            continue
        chunks.append((chunk, used))
        ids.append(np.frombuffer(rowids, dtype="<i8")[used])
        tiers.append(np.full(used.size, _TIERS[tier], dtype=np.int8))
        origins.append(_codes(origin, _ORIGINS)[used])
        statuses.append(_codes(status, _STATUSES)[used])
    if not chunks:
        return _EMPTY
    entry_ids = np.concatenate(ids)
    order = np.argsort(entry_ids)
    return Matrix(
        entry_ids[order],
        np.concatenate(tiers)[order],
        np.concatenate(origins)[order],
        np.concatenate(statuses)[order],
        _vectors_in(connection, chunks, np.argsort(order)),
    )


def _vectors_in(
    connection: apsw.Connection, chunks: Sequence[tuple[int, NDArray[np.int64]]], places: NDArray[np.int64]
) -> Vectors:
    """Return the vectors in use in ``chunks``, each put to the next of ``places``.

    Every chunk is read into the same memory: a new process pays more for each page of memory than for reading a page.
    """
    done, room, out = 0, np.zeros((0, 0), dtype="<f4"), np.zeros((0, 0), dtype=np.float32)
    for chunk, used in chunks:
        with connection.blob_open("main", "vectors_vector_chunks00", "vectors", chunk, False) as blob:
            if not room.size:
                room = np.empty((_CHUNK, blob.length() // (4 * _CHUNK)), dtype="<f4")
                out = np.empty((len(places), room.shape[1]), dtype=np.float32)
            blob.read_into(room.data.cast("B"))
        out[places[done : done + used.size]] = room[used]
        done += used.size
    return out


def _codes(blob: bytes, known: dict[str, int]) -> NDArray[np.int8]:
    """Return the positions of the short texts in ``blob``; places not in use give 0."""
    inline = np.frombuffer(blob, dtype=[("length", "<i4"), ("text", "S12")])["text"]
    codes = np.zeros(len(inline), dtype=np.int8)
    for text, code in known.items():
        codes[inline == text.encode("ascii")] = code
    return codes


def nearest(
    connection: apsw.Connection, query: Vector, k: int, wanted: VectorFilter, matrix: Matrix | None = None
) -> list[Neighbour]:
    """Return the ``k`` nearest entries that ``wanted`` allows, nearest first; fewer when fewer exist.

    Args:
        connection: A reader or writer of the index.
        query: A vector of length 1; a zero or non-finite one finds nothing.
        k: How many; above 4096 the exact scan answers, because sqlite-vec refuses.
        wanted: The filter.
        matrix: The vectors in memory, when the caller keeps them; it is the fastest way.
    """
    query = np.asarray(query, dtype=np.float32)
    if k < 1 or not np.isfinite(query).all() or not np.any(query):
        return []
    if matrix is None and (k > MAX_K or not has_extension(connection) or not has_table(connection, _NATIVE)):
        matrix = load_matrix(connection)
    if matrix is not None:
        return matrix.nearest(query, k, wanted) if len(matrix.entry_ids) else []
    found: list[Neighbour] = []
    for tier in sorted(wanted.tiers):  # one search a partition: k counts within each
        found.extend(_nearest_in(connection, query, k, tier, wanted))
    return _ordered(found, k)


def _nearest_in(
    connection: apsw.Connection, query: Vector, k: int, tier: Tier, wanted: VectorFilter
) -> list[Neighbour]:
    classes = sorted(origin.value for origin in wanted.origin_classes)
    sql = f"SELECT entry_id, distance FROM {_NATIVE} WHERE embedding MATCH ? AND k = ? AND tier = ?"  # noqa: S608 - ours
    values: list[Any] = [query.tobytes(), k, tier.value]
    if len(classes) < len(OriginClass):
        sql += f" AND origin_class IN ({', '.join('?' * len(classes))})"
        values += classes
    if not wanted.with_superseded:
        sql += " AND status = ?"
        values.append(EntryStatus.ACTIVE.value)
    if tier is Tier.SESSIONS and wanted.session_entries is not None:
        sql += " AND entry_id IN (SELECT value FROM json_each(?))"
        values.append(json.dumps(wanted.session_entries))
    return [
        Neighbour(entry_id, 1.0 - distance)
        for entry_id, distance in connection.execute(sql, values)
        if distance is not None and math.isfinite(distance)
    ]


def _ordered(found: list[Neighbour], k: int) -> list[Neighbour]:
    return sorted(found, key=lambda item: (-round(item.cosine, 6), item.entry_id))[:k]


def fetch(connection: apsw.Connection, entry_ids: Sequence[int], matrix: Matrix | None = None) -> dict[int, Vector]:
    """Return the stored vectors of ``entry_ids``; entries without one are left out."""
    if matrix is None and has_table(connection, _NATIVE) and has_extension(connection):
        out: dict[int, Vector] = {}
        for entry_id in entry_ids:
            for (blob,) in connection.execute(f"SELECT embedding FROM {_NATIVE} WHERE entry_id = ?", (entry_id,)):  # noqa: S608 - ours
                out[entry_id] = np.frombuffer(blob, dtype="<f4")
        return out
    matrix = matrix or load_matrix(connection)
    if not len(matrix.entry_ids):
        return {}
    wanted = np.array(entry_ids, dtype=np.int64)
    places = np.minimum(np.searchsorted(matrix.entry_ids, wanted), len(matrix.entry_ids) - 1)
    return {
        int(entry_id): matrix.vectors[place]
        for entry_id, place in zip(wanted, places, strict=True)
        if matrix.entry_ids[place] == entry_id
    }


def counts(connection: apsw.Connection) -> Counter[str]:
    """Return how many vectors are stored (``live``) and how many places the table has allocated (``allocated``)."""
    if has_table(connection, _NATIVE):
        live = _one(connection, "SELECT count(*) FROM vectors_rowids")
        return Counter(live=live, allocated=_CHUNK * _one(connection, "SELECT count(*) FROM vectors_chunks"))
    live = _one(connection, f"SELECT count(*) FROM {_PLAIN}") if has_table(connection, _PLAIN) else 0  # noqa: S608 - ours
    return Counter(live=live, allocated=live)


def _one(connection: apsw.Connection, sql: str) -> int:
    return int(next(iter(connection.execute(sql)))[0])
