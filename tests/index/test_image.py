"""The index in memory: the same answers as from its tables, after any change, and what the shortlist finds."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.agent import Agent
from recall_runtime.index import image
from recall_runtime.index.embedders.protocol import unit_rows
from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.index.hits import SearchAnswer
from recall_runtime.index.image import IndexImage
from recall_runtime.index.lanes import Scope
from recall_runtime.index.search import search
from recall_runtime.index.signs import signs_of
from recall_runtime.index.sync import sync
from recall_runtime.recall.runtime import Runtime
from recall_runtime.storage.connection import open_reader, open_writer, write_transaction
from recall_runtime.vocabulary import Corpus
from tests.support.index_agents import agent_over, write_files, write_session

FILES = {
    "MEMORY.md": "- The gateway listens on port 8443. <!-- importance: 9 -->\n- Ada owns the mill.\n",
    "memory/2026-03-01.md": "# Mill\n\n- The mill grinds at night.\n- The gateway was moved to host beta.\n",
    "memory/2026-03-18.md": "- The gateway got a new certificate.\n- Grain prices rose.\n",
    "memory/crane.md": "- The crane is rented from a yard in Bristol.\n",
}
TALK = [("user", "Where is the crane?"), ("assistant", "In the yard."), ("user", "And the gateway certificate?")]
QUESTIONS = (
    "gateway",
    "Where is the crane rented?",
    "price of cereals",
    "crane",
    "memory/2026-03-18.md",
    "zzqx",
    "the",
)
EMBEDDER = StaticEmbedder()


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    sessions = tmp_path / "sessions"
    write_session(sessions, "s1", TALK)
    made = agent_over(
        write_files(tmp_path / "ws", dict(FILES)),
        tmp_path / "home",
        settings={"embedder": {"name": "static"}},
        sessions=sessions,
    )
    sync(made)
    return made


@pytest.fixture
def reader(agent: Agent) -> Iterator[apsw.Connection]:
    with contextlib.closing(open_reader(agent.folders.index_db, vectors=True)) as opened:
        yield opened


def loaded(reader: apsw.Connection) -> IndexImage:
    made = image.load(reader)
    assert made is not None
    return made


def shown(answer: SearchAnswer) -> list[object]:
    return [
        (hit.citation, round(hit.score, 6), round(hit.relevance, 6), hit.keyword_score is None) for hit in answer.hits
    ] + [answer.notice, dict(answer.lanes)]


def assert_same_answers(agent: Agent, reader: apsw.Connection, kept: IndexImage) -> None:
    """Assert that an image answers every question like the tables do, and that there is something to answer."""
    found = 0
    for question in QUESTIONS:
        for corpus in (Corpus.MEMORY, Corpus.ALL):
            stored = search(agent, question, corpus=corpus, embedder=EMBEDDER, connection=reader)
            warm = search(agent, question, corpus=corpus, embedder=EMBEDDER, connection=reader, image=lambda _: kept)
            assert shown(warm) == shown(stored)
            found += len(stored.hits)
    assert found


def texts(agent: Agent, reader: apsw.Connection, kept: IndexImage, question: str) -> list[str]:
    answer = search(agent, question, embedder=EMBEDDER, connection=reader, image=lambda _: kept, max_results=20)
    return [hit.entry.text for hit in answer.hits]


def test_an_image_answers_like_the_tables(agent: Agent, reader: apsw.Connection) -> None:
    assert_same_answers(agent, reader, loaded(reader))


def test_transcripts_of_sessions_that_may_not_be_shown_are_not_found_by_an_image(
    agent: Agent, reader: apsw.Connection
) -> None:
    kept = loaded(reader)

    def found(sessions: frozenset[str]) -> int:
        hits = search(
            agent,
            "crane",
            corpus=Corpus.SESSIONS,
            sessions=sessions,
            connection=reader,
            embedder=EMBEDDER,
            image=lambda _: kept,
        ).hits
        return len(hits)

    assert found(frozenset({"agent:main:main"})) > 0
    assert found(frozenset()) == 0


GROUP, OWN = "agent:main:telegram:group:77", "agent:main:explicit:ui"
CROWD = {
    GROUP: [f"The kitten is resting on a couch, part {number}." for number in range(200)],
    OWN: ["My cat sleeps on the sofa.", "The gateway listens on port 8443."],
    "agent:main:main": [f"A feline naps upon the settee, part {number}." for number in range(40)],
    "agent:main:telegram:direct:eve": ["The kitten is resting on a couch for Eve."],
}


class Crowded:
    """An agent whose transcripts crowd each other, its index, and the image of it."""

    def __init__(self, agent: Agent, reader: apsw.Connection) -> None:
        self.agent, self.reader, self.kept = agent, reader, loaded(reader)

    def search(self, question: str, corpus: Corpus, sessions: frozenset[str], *, from_image: bool) -> SearchAnswer:
        """Search the transcripts of ``sessions``."""
        return search(
            self.agent,
            question,
            corpus=corpus,
            sessions=sessions,
            connection=self.reader,
            embedder=EMBEDDER,
            image=(lambda _: self.kept) if from_image else None,
        )


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowded]:
    folder = tmp_path_factory.mktemp("crowd")
    for number, (key, said) in enumerate(CROWD.items()):
        write_session(folder / "sessions", f"s{number}", [("user", text) for text in said], key=key)
    agent = agent_over(
        write_files(folder / "ws", {"MEMORY.md": "- The cat is called Tom.\n"}),
        folder / "home",
        settings={"embedder": {"name": "static"}},
        sessions=folder / "sessions",
    )
    sync(agent)
    with contextlib.closing(open_reader(agent.folders.index_db, vectors=True)) as opened:
        yield Crowded(agent, opened)


@settings(deadline=None, max_examples=40)
@given(
    st.frozensets(st.sampled_from([*CROWD, "agent:main:nobody"])),
    st.sampled_from(["feline naps upon a settee", "kitten couch", "gateway port", "part 7", "sofa"]),
    st.sampled_from([Corpus.SESSIONS, Corpus.ALL]),
)
def test_tables_and_image_give_the_same_of_the_sessions_that_may_be_shown(
    crowded: Crowded, sessions: frozenset[str], question: str, corpus: Corpus
) -> None:
    stored = crowded.search(question, corpus, sessions, from_image=False)
    warm = crowded.search(question, corpus, sessions, from_image=True)
    assert [hit.citation for hit in warm.hits] == [hit.citation for hit in stored.hits]
    assert [hit.score for hit in warm.hits] == pytest.approx([hit.score for hit in stored.hits], abs=1e-5)
    readable = {text for key in sessions & CROWD.keys() for text in CROWD[key]} | {"The cat is called Tom."}
    assert {hit.entry.text for hit in stored.hits} <= readable


@pytest.mark.parametrize("from_image", [False, True], ids=["tables", "image"])
def test_a_crowd_of_lines_that_may_not_be_shown_can_not_empty_the_answer(crowded: Crowded, from_image: bool) -> None:
    question = "feline naps upon a settee kitten couch resting"
    hits = crowded.search(question, Corpus.SESSIONS, frozenset({OWN}), from_image=from_image).hits
    assert hits[0].entry.text == "My cat sleeps on the sofa."


def test_what_another_connection_wrote_is_added_without_loading_anew(agent: Agent, reader: apsw.Connection) -> None:
    before = loaded(reader)
    write_files(agent.workspace, {"memory/lamp.md": "- The lamp in the hall is broken.\n"})
    sync(agent)
    after = image.refreshed(before, reader)
    assert after is not None
    assert after.revision > before.revision
    assert "The lamp in the hall is broken." in texts(agent, reader, after, "broken lamp")
    assert_same_answers(agent, reader, after)


def test_what_a_session_said_later_is_found_like_in_the_tables(
    agent: Agent, reader: apsw.Connection, tmp_path: Path
) -> None:
    before = loaded(reader)
    assert_same_answers(agent, reader, before)  # the scores of these words are known now
    write_session(tmp_path / "sessions", "s1", [*TALK, ("assistant", "The crane and the gateway are for sale.")])
    sync(agent)
    after = image.refreshed(before, reader)
    assert after is not None
    assert len(after.columns) == len(before.columns) + 1
    assert_same_answers(agent, reader, after)


def test_a_deleted_row_is_never_returned(agent: Agent, reader: apsw.Connection) -> None:
    before = loaded(reader)
    query = EMBEDDER.embed_query("The crane is rented from a yard in Bristol.")
    gone = next(iter(before.nearest(query, 1, Scope())))
    (agent.workspace / "memory/crane.md").unlink()
    sync(agent)
    after = image.refreshed(before, reader)
    assert after is not None
    assert gone not in after.nearest(query, 100, Scope())
    assert not len(after.of([gone], Scope()))
    assert not any("rented" in text for text in texts(agent, reader, after, "crane rented yard Bristol"))
    assert_same_answers(agent, reader, after)


def test_a_changed_file_is_answered_as_it_is_now_though_its_number_may_be_used_again(
    agent: Agent, reader: apsw.Connection
) -> None:
    kept = loaded(reader)
    for wording in ("The crane was returned.", "The crane was sold.", "The crane was scrapped."):
        write_files(agent.workspace, {"memory/crane.md": f"- {wording}\n"})
        sync(agent)
        fresh = image.refreshed(kept, reader)
        assert fresh is not None
        kept = fresh
        assert [text for text in texts(agent, reader, kept, "crane") if "crane" in text] == [wording]
    assert_same_answers(agent, reader, kept)


def test_vectors_that_are_made_later_are_added(agent: Agent, reader: apsw.Connection) -> None:
    write_files(agent.workspace, {"memory/lamp.md": "- The lamp in the hall is broken.\n"})
    sync(agent, vectors=False)
    before = loaded(reader)
    query = EMBEDDER.embed_query("The lamp in the hall is broken.")
    assert max(before.nearest(query, 1, Scope()).values()) < 0.9
    sync(agent)
    after = image.refreshed(before, reader)
    assert after is not None
    assert max(after.nearest(query, 1, Scope()).values()) > 0.9
    assert_same_answers(agent, reader, after)


def test_a_source_that_now_belongs_to_another_session_makes_the_image_void(
    agent: Agent, reader: apsw.Connection
) -> None:
    before = loaded(reader)
    with contextlib.closing(open_writer(agent.folders.index_db)) as writer, write_transaction(writer):
        writer.execute("UPDATE sources SET session_key = 'agent:main:other' WHERE session_key IS NOT NULL")
        writer.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    assert image.refreshed(before, reader) is None


def test_many_new_entries_make_the_image_void(agent: Agent, reader: apsw.Connection) -> None:
    before = loaded(reader)
    lines = "".join(f"- Line {number} of the ledger.\n" for number in range(image.MOST_ADDED + 1))
    write_files(agent.workspace, {"memory/ledger.md": lines})
    sync(agent)
    assert image.refreshed(before, reader) is None


def test_a_reader_of_an_earlier_state_is_not_given_a_later_image(agent: Agent, reader: apsw.Connection) -> None:
    with (
        Runtime(agent) as runtime,
        contextlib.closing(open_reader(agent.folders.index_db, vectors=True)) as late,
    ):
        assert runtime.image(reader) is not None
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM entries").fetchall()  # the state is fixed here
        write_files(agent.workspace, {"memory/lamp.md": "- The lamp in the hall is broken.\n"})
        sync(agent)
        assert runtime.image(late) is not None
        assert runtime.image(reader) is None
        reader.execute("ROLLBACK")
        assert runtime.image(reader) is not None


def test_a_process_for_a_single_turn_keeps_no_image(agent: Agent, reader: apsw.Connection) -> None:
    with Runtime(agent, one_turn=True) as runtime:
        assert runtime.image(reader) is None


def test_the_shortlist_holds_the_nearest_of_the_exact_order() -> None:
    """Recall at 24 of at least 0.99 with a fifth of the vectors, which lie in one cone as those of texts do."""
    made = np.random.default_rng(3)
    topics = made.standard_normal((60, 128), dtype=np.float32)
    known = unit_rows(
        topics[made.integers(0, 60, 20_000)] + 1.2 * made.standard_normal((20_000, 128), dtype=np.float32) + 0.7
    )
    signs, everyone = signs_of(known, np.ones(len(known), dtype=bool)), np.ones(len(known), dtype=bool)
    shares = []
    for query in unit_rows(known[:60] + 0.3 * made.standard_normal((60, 128)) / np.sqrt(128)):
        exact = np.argsort(-(known @ query))[:24]
        shares.append(np.isin(exact, signs.shortlist(query, everyone, 4_000)).mean())
    assert np.mean(shares) >= 0.99


def test_the_shortlist_holds_only_allowed_vectors_as_long_as_there_are_enough() -> None:
    made = np.random.default_rng(4)
    known = unit_rows(made.standard_normal((500, 70), dtype=np.float32))
    allowed = np.arange(500) % 3 == 0
    signs = signs_of(known, np.ones(500, dtype=bool))
    assert allowed[signs.shortlist(known[1], allowed, 100)].all()
    assert 0 in signs.with_vectors(np.array([0]), known[1:2]).shortlist(known[1], allowed, 1)
