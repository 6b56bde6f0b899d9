"""Vectors: refusal, replacement, filters inside the search, and the same answers without the extension."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from recall_runtime.index import vectors
from recall_runtime.index.embedders.protocol import unit_rows
from recall_runtime.index.vectors import VectorFault, VectorFilter, VectorRow
from recall_runtime.storage.connection import load_vectors, open_writer
from recall_runtime.vocabulary import EntryStatus, OriginClass, SessionKind, Tier

CASE = Path(__file__).parents[1] / "cases" / "27-vector-edges"
GIVEN = json.loads((CASE / "vectors.json").read_text(encoding="utf-8"))
QUERY = np.array(GIVEN["query"], dtype=np.float32)
IDS = {row["id"]: number for number, row in enumerate(GIVEN["rows"], start=1)}
TRUSTED = VectorFilter(origin_classes=frozenset({OriginClass.OWNER, OriginClass.AGENT}))
EVERYTHING = VectorFilter()
READABLE = VectorFilter(tiers=frozenset({Tier.SESSIONS}), session_entries=tuple(range(1, 3_000, 7)))


def row_of(given: dict[str, Any]) -> VectorRow:
    return VectorRow(
        entry_id=IDS[given["id"]],
        tier=Tier.EPISODIC,
        origin_class=OriginClass(given["origin"]) if given.get("origin") else None,
        session_kind=SessionKind.INTERACTIVE,
        status=EntryStatus.ACTIVE,
        vector=[float(number) for number in given["vector"]],
    )


@pytest.fixture(params=["extension", "no extension"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[apsw.Connection]:
    """A database with the case's rows, written and read with or without sqlite-vec."""
    database = open_writer(tmp_path / "index.sqlite", vectors=request.param == "extension")
    vectors.prepare(database, GIVEN["dims"])
    yield database
    database.close()


def names(found: list[vectors.Neighbour]) -> list[str]:
    by_id = {number: name for name, number in IDS.items()}
    return [by_id[item.entry_id] for item in found]


def test_zero_nan_infinite_short_and_long_vectors_are_refused_by_kind(connection: apsw.Connection) -> None:
    refused = vectors.put(connection, map(row_of, GIVEN["rows"]), GIVEN["dims"])
    assert {name: refused[IDS[name]] for name in ("zero", "nan", "inf", "short", "long")} == {
        "zero": VectorFault.ZERO,
        "nan": VectorFault.NOT_FINITE,
        "inf": VectorFault.NOT_FINITE,
        "short": VectorFault.SHORT,
        "long": VectorFault.LONG,
    }
    assert len(refused) == 5
    assert vectors.counts(connection)["live"] == len(GIVEN["rows"]) - 5


def test_an_origin_of_none_is_stored_as_untrusted(connection: apsw.Connection) -> None:
    vectors.put(connection, [row_of(row) for row in GIVEN["rows"] if row["id"] == "null-origin"], GIVEN["dims"])
    untrusted = VectorFilter(origin_classes=frozenset({OriginClass.UNTRUSTED}))
    assert names(vectors.nearest(connection, QUERY, 5, untrusted)) == ["null-origin"]
    assert vectors.nearest(connection, QUERY, 5, TRUSTED) == []


def test_the_order_is_by_direction_and_huge_or_tiny_lengths_do_not_matter(connection: apsw.Connection) -> None:
    vectors.put(connection, map(row_of, GIVEN["rows"]), GIVEN["dims"])
    found = vectors.nearest(connection, QUERY, 50, TRUSTED)
    assert [name for name in names(found) if name.endswith("owner")] == ["near-owner", "mid-owner", "far-owner"]
    assert {"huge", "tiny"} <= set(names(found)[:3])
    assert len(found) == 5  # more were asked for than exist


def test_embedding_again_replaces_the_old_vector(connection: apsw.Connection) -> None:
    vectors.put(connection, map(row_of, GIVEN["rows"]), GIVEN["dims"])
    again = [row_of(row | {"origin": "owner"}) for row in GIVEN["then_again"]]
    assert vectors.put(connection, again, GIVEN["dims"]) == {}
    owners = [item for item in vectors.nearest(connection, QUERY, 50, TRUSTED) if item.entry_id <= 3]
    assert names(owners)[0] == "mid-owner"
    near = next(item for item in owners if item.entry_id == IDS["near-owner"])
    assert near.cosine == pytest.approx(0.0, abs=1e-6)


def test_a_refused_vector_also_takes_the_old_one_away(connection: apsw.Connection) -> None:
    vectors.put(connection, map(row_of, GIVEN["rows"][:1]), GIVEN["dims"])
    broken = row_of(GIVEN["rows"][0] | {"vector": [0, 0, 0, 0]})
    assert vectors.put(connection, [broken], GIVEN["dims"]) == {1: VectorFault.ZERO}
    assert vectors.nearest(connection, QUERY, 5, EVERYTHING) == []


@pytest.mark.parametrize(
    ("vector", "fault"),
    [
        pytest.param([1e39, 1.0, 0.0, 0.0], VectorFault.NOT_FINITE, id="above float32, stored as infinite"),
        pytest.param([1e-60, 0.0, 0.0, 0.0], VectorFault.ZERO, id="below float32, stored as zero"),
        pytest.param([], VectorFault.SHORT, id="empty"),
    ],
)
def test_a_vector_is_judged_as_it_would_be_stored(
    connection: apsw.Connection, vector: list[float], fault: VectorFault
) -> None:
    good = row_of(GIVEN["rows"][0])
    bad = VectorRow(99, good.tier, good.origin_class, good.session_kind, good.status, vector)
    assert vectors.put(connection, [bad, good], 4) == {99: fault}
    assert names(vectors.nearest(connection, QUERY, 10, EVERYTHING)) == [GIVEN["rows"][0]["id"]]


def crowd() -> list[VectorRow]:
    generator = np.random.default_rng(27)
    wobble = generator.normal(scale=0.001, size=(GIVEN["crowd"]["make"], 4)) + QUERY
    return [
        VectorRow(100 + number, Tier.EPISODIC, OriginClass.UNTRUSTED, SessionKind.UNKNOWN, EntryStatus.ACTIVE, vector)
        for number, vector in enumerate(wobble.astype(np.float32))
    ]


def test_a_crowd_of_nearer_untrusted_rows_cannot_empty_a_trusted_answer(connection: apsw.Connection) -> None:
    vectors.put(connection, map(row_of, GIVEN["rows"][:3]), GIVEN["dims"])
    vectors.put(connection, crowd(), GIVEN["dims"])
    found = vectors.nearest(connection, QUERY, 3, TRUSTED)
    assert names(found) == ["near-owner", "mid-owner", "far-owner"]


def test_more_than_the_engine_allows_is_answered_by_the_exact_scan(connection: apsw.Connection) -> None:
    vectors.put(connection, crowd(), GIVEN["dims"])
    assert len(vectors.nearest(connection, QUERY, 4_500, EVERYTHING)) == 4_500


@pytest.mark.parametrize("query", [[0, 0, 0, 0], [float("nan"), 0, 0, 0], [float("inf"), 0, 0, 0]])
def test_a_query_without_direction_finds_nothing(connection: apsw.Connection, query: list[float]) -> None:
    vectors.put(connection, map(row_of, GIVEN["rows"]), GIVEN["dims"])
    assert vectors.nearest(connection, np.array(query, dtype=np.float32), 5, EVERYTHING) == []


def test_superseded_rows_and_other_tiers_are_left_out_inside_the_search(connection: apsw.Connection) -> None:
    one, two = row_of(GIVEN["rows"][0]), row_of(GIVEN["rows"][1])
    superseded = VectorRow(9, Tier.CURATED, one.origin_class, one.session_kind, EntryStatus.SUPERSEDED, one.vector)
    vectors.put(connection, [two, superseded], GIVEN["dims"])
    assert [item.entry_id for item in vectors.nearest(connection, QUERY, 5, EVERYTHING)] == [2]
    with_old = VectorFilter(tiers=frozenset({Tier.CURATED}), with_superseded=True)
    assert [item.entry_id for item in vectors.nearest(connection, QUERY, 5, with_old)] == [9]


def test_the_file_of_the_extension_is_read_alike_without_it(tmp_path: Path) -> None:
    """One file, three readers: KNN, the same file without the extension, the matrix in memory."""
    generator = np.random.default_rng(5)
    many = unit_rows(generator.normal(size=(3_000, 16)).astype(np.float32))
    tiers, classes, statuses = list(Tier), list(OriginClass), list(EntryStatus)
    rows = [
        VectorRow(n + 1, tiers[n % 5], classes[n % 4], SessionKind.UNKNOWN, statuses[n % 7 == 0], vector)
        for n, vector in enumerate(many)
    ]
    writer = open_writer(tmp_path / "index.sqlite", vectors=True)
    vectors.prepare(writer, 16)
    vectors.put(writer, rows, 16)
    vectors.delete(writer, range(500, 900))
    without = open_writer(tmp_path / "index.sqlite", vectors=False)
    matrix = vectors.load_matrix(without)
    query = unit_rows(generator.normal(size=(1, 16)).astype(np.float32))[0]
    for wanted in (EVERYTHING, TRUSTED, VectorFilter(tiers=frozenset({Tier.CURATED}), with_superseded=True), READABLE):
        native = vectors.nearest(writer, query, 20, wanted)
        scanned = vectors.nearest(without, query, 20, wanted)
        assert [item.entry_id for item in native] == [item.entry_id for item in scanned]
        assert [item.entry_id for item in vectors.nearest(writer, query, 20, wanted, matrix)] == [
            item.entry_id for item in native
        ]
        assert [item.cosine for item in scanned] == pytest.approx([item.cosine for item in native], abs=1e-5)
    fetched = vectors.fetch(writer, [1, 600, 2_000])
    assert sorted(fetched) == [1, 2_000]
    np.testing.assert_allclose(fetched[1], many[0], atol=1e-6)
    writer.close()
    without.close()


def test_writing_to_vectors_of_the_extension_without_it_is_a_clear_error(tmp_path: Path) -> None:
    writer = open_writer(tmp_path / "index.sqlite", vectors=True)
    vectors.prepare(writer, 4)
    writer.close()
    without = open_writer(tmp_path / "index.sqlite", vectors=False)
    with pytest.raises(vectors.StoreError, match="sqlite-vec"):
        vectors.put(without, [row_of(GIVEN["rows"][0])], 4)
    assert load_vectors(without)
    assert vectors.put(without, [row_of(GIVEN["rows"][0])], 4) == {}
    without.close()
