"""Search: every query of cases 05 and 21, lanes that say how they did, what is left out, any text at all."""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recall_runtime.agent import Agent
from recall_runtime.errors import RefusedError, SourceError
from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.index.hits import LaneState, SearchAnswer
from recall_runtime.index.image import IndexImage, load
from recall_runtime.index.reading import MAX_CHARACTERS, get
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.vocabulary import Corpus, OriginClass
from tests.support.index_agents import agent_over, write_files, write_session

CASES = Path(__file__).parents[1] / "cases"


def case_agent(folder: Path, case: str) -> Agent:
    files = {f"memory/{file.name}": file.read_bytes() for file in (CASES / case / "memory").iterdir()}
    agent = agent_over(write_files(folder / "ws", files), folder / "home")
    sync(agent)
    return agent


@pytest.fixture(scope="module")
def cjk(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return case_agent(tmp_path_factory.mktemp("cjk"), "05-cjk-note")


@pytest.fixture(scope="module")
def syntax(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return case_agent(tmp_path_factory.mktemp("syntax"), "21-fts-queries")


CJK = json.loads((CASES / "05-cjk-note/queries.json").read_text(encoding="utf-8"))
SYNTAX = json.loads((CASES / "21-fts-queries/queries.json").read_text(encoding="utf-8"))


def lines(answer: SearchAnswer) -> list[int]:
    return [hit.entry.start_line for hit in answer.hits]


@pytest.mark.parametrize("given_query", CJK["must_hit"] + CJK["should_hit"], ids=lambda item: item["q"])
def test_case_05_words_of_scripts_without_blanks_hit_their_line(cjk: Agent, given_query: dict[str, object]) -> None:
    answer = search(cjk, str(given_query["q"]))
    assert lines(answer)[:1] == [given_query["line"]]
    assert "\\u" not in answer.hits[0].snippet


@pytest.mark.parametrize("query", [item["q"] for item in CJK["must_not_hit_any_line"]])
def test_case_05_absent_words_hit_nothing_and_the_answer_says_why(cjk: Agent, query: str) -> None:
    answer = search(cjk, query)
    assert answer.hits == ()
    assert answer.notice is not None
    assert "word" in answer.notice


@pytest.mark.parametrize("given_query", SYNTAX["must_hit"], ids=lambda item: item["q"])
def test_case_21_text_that_breaks_full_text_syntax_hits_its_line(syntax: Agent, given_query: dict[str, object]) -> None:
    answer = search(syntax, str(given_query["q"]))
    assert lines(answer)[:1] == [given_query["line"]]
    assert answer.lanes["keyword"].state is LaneState.OK


@pytest.mark.parametrize("query", SYNTAX["must_not_raise"], ids=lambda query: query[:20])
def test_case_21_no_text_raises_and_an_empty_answer_says_why(syntax: Agent, query: str) -> None:
    answer = search(syntax, query)
    assert answer.lanes["keyword"].state is LaneState.OK
    assert answer.hits or answer.notice


@pytest.fixture(scope="module")
def semantic(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    folder = tmp_path_factory.mktemp("semantic")
    notes = "# 2026-03-16\n\n- The cat sleeps on the sofa.\n- Interest rates rose.\n"
    workspace = write_files(folder / "ws", {"memory/2026-03-16.md": notes})
    agent = agent_over(workspace, folder / "home", settings={"embedder": {"name": "static"}})
    sync(agent)
    return agent


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=300) | st.text(alphabet=string.punctuation + " abANDORNEAR*\"'\ud800\x00", max_size=60))
def test_any_text_is_a_question_and_never_raises(semantic: Agent, query: str) -> None:
    answer = search(semantic, query, corpus=Corpus.ALL)
    assert answer.hits or answer.notice
    assert answer.lanes["keyword"].state is LaneState.OK
    assert answer.lanes["vector"].state in (LaneState.OK, LaneState.OFF)
    assert all(0 <= hit.relevance <= 1 and len(hit.snippet) <= 700 for hit in answer.hits)


def test_a_question_of_a_megabyte_is_looked_up_by_its_beginning(semantic: Agent) -> None:
    answer = search(semantic, "sofa " + "filler words " * 80_000)
    assert answer.hits[0].entry.text == "The cat sleeps on the sofa."


# -- lanes


def test_without_an_embedder_the_vector_lane_is_off_and_says_so(cjk: Agent) -> None:
    lane = search(cjk, "pip").lanes["vector"]
    assert (lane.state, "keyword lane alone" in lane.reason) == (LaneState.OFF, True)


def test_meaning_finds_what_shares_no_word_and_both_scores_are_told(semantic: Agent) -> None:
    answer = search(semantic, "kitten resting on a couch")
    hit = answer.hits[0]
    assert hit.entry.text == "The cat sleeps on the sofa."
    assert answer.lanes["vector"].state is LaneState.OK
    assert hit.keyword_score is None
    assert hit.vector_score is not None
    assert hit.vector_score > 0.2


def test_an_index_without_vectors_answers_by_words_and_names_the_lane(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": "- The boiler hums.\n"})
    agent = agent_over(workspace, tmp_path / "home", settings={"embedder": {"name": "static"}})
    sync(agent, vectors=False)
    answer = search(agent, "boiler")
    assert len(answer.hits) == 1
    assert answer.lanes["vector"].state is LaneState.DEGRADED
    assert "no vectors yet" in answer.lanes["vector"].reason


def test_a_broken_lane_is_named_and_the_other_one_answers(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": "- The boiler hums loudly.\n"})
    agent = agent_over(workspace, tmp_path / "home", settings={"embedder": {"name": "static"}})
    sync(agent)
    writer = apsw.Connection(str(agent.folders.index_db))
    writer.execute("DROP TABLE entries_fts_idx")
    writer.close()
    answer = search(agent, "a furnace making noise boiler")
    assert answer.lanes["keyword"].state is LaneState.FAILED
    assert answer.lanes["vector"].state is LaneState.OK
    assert [hit.entry.path for hit in answer.hits] == ["memory/a.md"]


def test_a_missing_index_is_an_answer_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    answer = search(agent_over(tmp_path / "ws", tmp_path / "home"), "anything")
    assert answer.hits == ()
    assert answer.lanes["keyword"].state is LaneState.FAILED
    assert answer.notice is not None
    assert "dreamline index" in answer.notice


def test_an_endpoint_that_fails_is_named_and_words_still_answer(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/a.md": "- The boiler hums.\n"})
    agent = agent_over(workspace, tmp_path / "home")
    sync(agent)
    remote = {"embedder": {"name": "ollama", "base_url": "http://127.0.0.1:9"}}
    other = agent_over(workspace, tmp_path / "home", settings=remote)
    report = sync(other)
    assert report.vector_error is not None
    answer = search(other, "boiler")
    assert len(answer.hits) == 1
    assert answer.lanes["vector"].state in (LaneState.FAILED, LaneState.DEGRADED)


# -- what is left out, what comes first

CURATED = (
    "- The vault code is on the yellow card. <!-- importance: 9 -->\n"
    "- The relay project uses tabs. <!-- project: github.com/o/relay -->\n"
    "- The broken tag hides this harbour line. <!-- project: -->\n"
)


@pytest.fixture
def mixed(tmp_path: Path) -> Agent:
    workspace = write_files(
        tmp_path / "ws",
        {
            "MEMORY.md": CURATED,
            "memory/2026-03-19.md": "- The vault was cleaned.\n",
            "memory/2025-03-19.md": "- The vault was painted.\n",
            "memory/imports/codex/MEMORY.md": "- The vault is green, says an import.\n",
        },
    )
    write_session(tmp_path / "sessions", "s1", [("user", "Where is the vault?"), ("assistant", "Below the stairs.")])
    agent = agent_over(workspace, tmp_path / "home", sessions=tmp_path / "sessions")
    sync(agent)
    return agent


def test_an_entry_with_a_broken_project_annotation_is_never_found(mixed: Agent) -> None:
    assert search(mixed, "harbour", corpus=Corpus.ALL).hits == ()


def test_the_active_project_lifts_its_entries_and_another_one_lowers_them(mixed: Agent) -> None:
    def score(*active: str) -> float:
        return search(mixed, "relay tabs", active_projects=active).hits[0].score

    assert score("github.com/o/relay") / score() == pytest.approx(1.15)
    assert score("github.com/o/other") / score() == pytest.approx(0.9)


def test_untrusted_hits_are_framed_and_can_be_left_out(mixed: Agent) -> None:
    by_path = {hit.entry.path: hit for hit in search(mixed, "vault").hits}
    imported = by_path["memory/imports/codex/MEMORY.md"]
    assert (imported.framed, imported.entry.provenance.origin_class) == (True, OriginClass.UNTRUSTED)
    assert not by_path["MEMORY.md"].framed
    trusted = search(mixed, "vault", include_untrusted=False)
    assert "memory/imports/codex/MEMORY.md" not in [hit.entry.path for hit in trusted.hits]


RETIRED = "## Facts\n\n<!-- status: superseded -->\n- The pump is turquoise.\n"


@pytest.mark.parametrize("mode", ["dreamline", "openclaw"])
@pytest.mark.parametrize(
    ("files", "question", "options", "reason"),
    [
        pytest.param({"a.md": "- The pump is red.\n"}, " ", {}, "The question is empty", id="no question"),
        pytest.param({}, "turquoise", {}, "The index is empty", id="no index"),
        pytest.param({"a.md": "- The pump is red.\n"}, "?!", {}, "holds no word", id="no word"),
        pytest.param(
            {"a.md": "- The pump is red.\n"}, "turquoise", {}, "Nothing that may be shown here holds", id="no such word"
        ),
        pytest.param({"gone.md": "- The pump is turquoise.\n"}, "turquoise", {}, "files that are gone", id="gone"),
        pytest.param(
            {"imports/a.md": "- The pump is turquoise.\n"},
            "turquoise",
            {"include_untrusted": False},
            "not to be shown here hold a word",
            id="a stranger's text that is left out",
        ),
        pytest.param({"../MEMORY.md": RETIRED}, "turquoise", {}, "retired or not", id="a retired entry"),
    ],
)
def test_why_there_is_nothing_is_true(
    tmp_path: Path, files: dict[str, str], question: str, options: dict[str, Any], reason: str, mode: str
) -> None:
    workspace = write_files(tmp_path / "ws" / "memory", files).parent
    agent = agent_over(workspace, tmp_path / "home", settings={"search": {"mode": mode}})
    sync(agent)
    (workspace / "memory" / "gone.md").unlink(missing_ok=True)
    answer = search(agent, question, **options)
    assert answer.hits == ()
    assert reason in (answer.notice or "")


def test_a_score_that_is_too_low_is_named_as_a_reason(tmp_path: Path) -> None:
    agent = agent_over(write_files(tmp_path / "ws", {"memory/a.md": "- The pump is turquoise.\n"}), tmp_path / "home")
    sync(agent)
    answer = search(agent, "turquoise zebra quagga okapi", min_score=1.0)
    assert (answer.hits, "minimum score 1" in (answer.notice or "")) == ((), True)


@pytest.mark.parametrize("mode", ["dreamline", "openclaw"])
@pytest.mark.parametrize("image", [None, load], ids=["tables", "image"])
@pytest.mark.parametrize(
    ("path", "line"),
    [
        pytest.param("DREAMS.md", "- The garden pump is turquoise, sweep {n}.", id="our own report"),
        pytest.param("memory/dreaming/rem/2026-03-19.md", "- The garden pump is turquoise {n}.", id="a report's file"),
        pytest.param("memory/imports/web.md", "- The garden pump is turquoise {n}.", id="a stranger's text"),
        pytest.param(
            "memory/2026-03-19.md", "- Garden pump: turquoise {n} <!-- expires: 2026-03-19 -->", id="what is over"
        ),
    ],
)
def test_what_may_not_be_injected_takes_no_place_from_what_may(
    tmp_path: Path, path: str, line: str, image: Callable[[apsw.Connection], IndexImage | None] | None, mode: str
) -> None:
    told = "- After long talks with the neighbours the pump in the garden behind the house became a turquoise one.\n"
    better = "".join(line.format(n=n) + "\n" for n in range(40))
    workspace = write_files(tmp_path / "ws", {"memory/2026-01-10.md": told, path: better})
    agent = agent_over(workspace, tmp_path / "home", settings={"search": {"mode": mode}})
    sync(agent)
    asked = "garden pump turquoise"
    assert "memory/2026-01-10.md" not in [hit.entry.path for hit in search(agent, asked, max_results=3).hits]
    found = search(agent, asked, max_results=3, injectable=True, image=image)
    assert [hit.entry.path for hit in found.hits] == ["memory/2026-01-10.md"]


def test_the_corpus_decides_between_memory_and_transcripts(mixed: Agent) -> None:
    tiers = {corpus: {hit.entry.tier for hit in search(mixed, "vault", corpus=corpus).hits} for corpus in Corpus}
    assert tiers[Corpus.SESSIONS] == {"sessions"}
    assert "sessions" not in tiers[Corpus.MEMORY]
    assert tiers[Corpus.ALL] == tiers[Corpus.MEMORY] | tiers[Corpus.SESSIONS]


def test_transcripts_of_sessions_that_may_not_be_shown_are_never_found(mixed: Agent) -> None:
    hidden = search(mixed, "vault", corpus=Corpus.SESSIONS, sessions=frozenset({"agent:other:main"}))
    assert hidden.hits == ()
    shown = search(mixed, "vault", corpus=Corpus.SESSIONS, sessions=frozenset({"agent:main:main"}))
    assert shown.hits


def test_the_fresher_of_two_equal_notes_comes_first(mixed: Agent) -> None:
    order = [hit.entry.path for hit in search(mixed, "vault").hits]
    assert order.index("memory/2026-03-19.md") < order.index("memory/2025-03-19.md")


@pytest.mark.parametrize("query", ["2025-03-19", "memory/2025-03-19.md", "2025-03-19.md"])
def test_the_name_of_a_file_comes_first(mixed: Agent, query: str) -> None:
    assert search(mixed, query).hits[0].entry.path == "memory/2025-03-19.md"


def test_annotations_never_show_in_a_snippet(mixed: Agent) -> None:
    hit = search(mixed, "vault code yellow").hits[0]
    assert hit.snippet == "The vault code is on the yellow card."
    assert hit.entry.annotations.importance == 9
    assert search(mixed, "trigger").hits == ()


def test_superseded_entries_are_found_only_when_asked_for(tmp_path: Path) -> None:
    user = (
        "# User\n\n<!-- observed: 2026-01-01 | status: superseded -->\n\n- Use metric units.\n\n"
        "<!-- observed: 2026-02-01 | status: active -->\n\n- Use imperial units.\n"
    )
    agent = agent_over(write_files(tmp_path / "ws", {"USER.md": user}), tmp_path / "home")
    sync(agent)
    assert [hit.entry.text for hit in search(agent, "units").hits] == ["Use imperial units."]
    everything = search(agent, "units", include_superseded=True).hits
    assert {hit.entry.status.value for hit in everything} == {"active", "superseded"}


def test_the_minimum_is_on_relevance_and_the_answer_says_so(mixed: Agent) -> None:
    answer = search(mixed, "vault unicorn zeppelin", min_score=0.9)
    assert answer.hits == ()
    assert "minimum score" in str(answer.notice)


def test_the_original_mode_is_a_switch(tmp_path: Path) -> None:
    files = {"memory/2026-03-19.md": "- The vault was cleaned by Ada.\n- The garden was cleaned.\n"}
    workspace = write_files(tmp_path / "ws", files)
    agent = agent_over(workspace, tmp_path / "home", settings={"search": {"mode": "openclaw"}})
    sync(agent)
    hits = search(agent, "vault cleaned").hits
    assert [hit.entry.text for hit in hits] == ["The vault was cleaned by Ada."]  # all words or nothing
    ours = search(agent_over(workspace, tmp_path / "home"), "vault cleaned").hits
    assert [hit.entry.text for hit in ours] == ["The vault was cleaned by Ada.", "The garden was cleaned."]


def test_a_given_reader_and_embedder_are_used_and_left_open(semantic: Agent) -> None:
    from recall_runtime.storage.connection import open_reader

    reader = open_reader(semantic.folders.index_db, vectors=True)
    cold = search(semantic, "kitten on the couch")
    warm = search(semantic, "kitten on the couch", connection=reader, embedder=StaticEmbedder())
    assert [(hit.citation, round(hit.score, 5)) for hit in warm.hits] == [
        (hit.citation, round(hit.score, 5)) for hit in cold.hits
    ]
    assert list(reader.execute("SELECT 1")) == [(1,)]
    reader.close()


# -- reading


@pytest.fixture
def pages(tmp_path: Path) -> Agent:
    long = "".join(f"line {number}\r\n" for number in range(1, 301))
    files = {"memory/2026-03-19.md": long, "memory/wide.md": "x" * 30_000 + "\nend\n", "secret.md": "no"}
    (tmp_path / "outside.md").write_text("outside", encoding="utf-8")
    workspace = write_files(tmp_path / "ws", files)
    (workspace / "memory/out.md").symlink_to("../../outside.md")
    return agent_over(workspace, tmp_path / "home")


def test_a_window_is_120_lines_and_says_where_to_go_on(pages: Agent) -> None:
    first = get(pages, "memory/2026-03-19.md")
    assert (first.start_line, first.end_line, first.next_line, first.total_lines) == (1, 120, 121, 300)
    assert "\r" not in first.text
    last = get(pages, "memory/2026-03-19.md", from_line=290, lines=50)
    assert (last.end_line, last.next_line, last.text.splitlines()[-1]) == (300, None, "line 300")
    beyond = get(pages, "memory/2026-03-19.md", from_line=999)
    assert (beyond.text, beyond.next_line) == ("", None)


def test_a_window_is_bounded_and_a_long_line_does_not_block_the_way(pages: Agent) -> None:
    window = get(pages, "memory/wide.md")
    assert (len(window.text), window.cut, window.next_line) == (MAX_CHARACTERS, True, 1)
    assert get(pages, "memory/wide.md", from_line=2).text == "end"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 30_000), st.sampled_from("xé\U0001f469\u200d")), max_size=6))
def test_going_on_where_a_window_says_reads_every_character_once(pages: Agent, lines: list[tuple[int, str]]) -> None:
    content = "".join(f"{sign * length}\n" for length, sign in lines)
    write_files(pages.workspace, {"memory/any.md": content})
    read, at_line, at_character = "", 1, 1
    for _ in range(60):
        window = get(pages, "memory/any.md", from_line=at_line, from_character=at_character)
        assert len(window.text) <= MAX_CHARACTERS
        read += window.text + ("" if window.cut else "\n")
        if window.next_line is None:
            break
        at_line, at_character = window.next_line, window.next_character
    assert read.rstrip("\n") == content.rstrip("\n")


@pytest.mark.parametrize(
    "path",
    [
        "secret.md",
        "../outside.md",
        "memory/../secret.md",
        "/etc/passwd",
        "memory/out.md",
        "sessions/main/s1.jsonl",
        "memory/.dreams/x.md",
        "memory//2026-03-19.md",
        "memory/a\x00b.md",
        "",
    ],
)
def test_only_memory_files_inside_the_workspace_are_read(pages: Agent, path: str) -> None:
    with pytest.raises(RefusedError):
        get(pages, path)


def test_a_missing_file_is_a_clear_error(pages: Agent) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        get(pages, "memory/2026-01-01.md")
