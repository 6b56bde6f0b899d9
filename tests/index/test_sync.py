"""Sync: incremental, complete, harmless to sources, named refusals, building beside and swapping."""

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.index import store
from recall_runtime.index.rows import MAX_CHARACTERS
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.storage.connection import open_reader
from recall_runtime.text.escaping import is_border
from recall_runtime.vocabulary import Corpus
from tests.support.index_agents import agent_over, write_files, write_session

CASES = Path(__file__).parents[1] / "cases"
NOTE = "# 2026-03-18\n\n## Garden\n\n- The rake is in the shed.\n- Water the fern on Mondays.\n"


def rows(agent: Agent, sql: str) -> list[tuple[Any, ...]]:
    reader = open_reader(agent.folders.index_db)
    try:
        return reader.execute(sql).fetchall()
    finally:
        reader.close()


def found(agent: Agent, query: str, corpus: Corpus = Corpus.ALL) -> list[tuple[str, int]]:
    return [(hit.entry.path, hit.entry.start_line) for hit in search(agent, query, corpus=corpus, max_results=50).hits]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    workspace = write_files(tmp_path / "ws", {"memory/2026-03-18.md": NOTE, "MEMORY.md": "- The office key is blue.\n"})
    return agent_over(workspace, tmp_path / "home", sessions=tmp_path / "sessions")


def test_every_block_is_a_row_with_exact_lines_heading_and_day(agent: Agent) -> None:
    report = sync(agent)
    assert (report.notes_read, report.skipped, report.problems) == (2, {}, {})
    assert rows(
        agent,
        "SELECT e.start_line, e.end_line, e.text, e.heading_path, s.day, e.origin_class, e.session_kind FROM entries e"
        " JOIN sources s USING (source_id) WHERE s.path LIKE 'memory/%' AND e.block = 'bullet' ORDER BY e.ordinal",
    ) == [
        (5, 5, "The rake is in the shed.", '["2026-03-18", "Garden"]', "2026-03-18", "agent", "interactive"),
        (6, 6, "Water the fern on Mondays.", '["2026-03-18", "Garden"]', "2026-03-18", "agent", "interactive"),
    ]


def test_a_second_sync_writes_nothing(agent: Agent, tmp_path: Path) -> None:
    write_session(tmp_path / "sessions", "s1", [("user", "The bike is in the cellar.")])
    assert sync(agent).changed
    before = {path: path.read_bytes() for path in (agent.folders.index_db, agent.folders.state_db)}
    again = sync(agent)
    assert not again.changed
    assert again.unchanged == 3
    assert {path: path.read_bytes() for path in before} == before


def test_a_changed_note_is_read_anew_and_only_it(agent: Agent) -> None:
    sync(agent)
    note = agent.workspace / "memory/2026-03-18.md"
    note.write_text(NOTE.replace("rake", "spade"), encoding="utf-8")
    report = sync(agent)
    assert (report.notes_read, report.unchanged) == (1, 1)
    assert found(agent, "spade") == [("memory/2026-03-18.md", 5)]
    assert found(agent, "rake") == []


def test_a_new_time_stamp_on_the_same_bytes_writes_no_entry(agent: Agent) -> None:
    sync(agent)
    entries = rows(agent, "SELECT entry_id FROM entries")
    os.utime(agent.workspace / "memory/2026-03-18.md", ns=(1, 1))
    assert sync(agent).notes_read == 0
    assert rows(agent, "SELECT entry_id FROM entries") == entries
    assert not sync(agent).changed


def test_a_deleted_note_leaves_every_table(agent: Agent) -> None:
    sync(agent)
    (agent.workspace / "memory/2026-03-18.md").unlink()
    assert sync(agent).removed == 1
    assert found(agent, "rake") == []
    for table in ("entries", "entries_fts", "documents_fts", "paths_fts"):
        count = rows(agent, f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 - table names above
        assert count == 1, table  # what MEMORY.md gave


def test_a_hit_whose_file_is_gone_is_not_shown_before_the_next_sync(agent: Agent) -> None:
    sync(agent)
    (agent.workspace / "memory/2026-03-18.md").unlink()
    assert found(agent, "rake") == []


def test_a_growing_transcript_is_resumed_and_gives_the_rows_of_a_rebuild(agent: Agent, tmp_path: Path) -> None:
    said = [("user", "We meet at the canal."), ("assistant", "Noted: canal."), ("user", "Bring the green lamp.")]
    write_session(tmp_path / "sessions", "s1", said[:2])
    sync(agent)
    first = rows(agent, "SELECT entry_id, text FROM entries WHERE block = 'message' ORDER BY ordinal")
    write_session(tmp_path / "sessions", "s1", said)
    assert sync(agent).transcripts_read == 1
    grown = rows(agent, "SELECT entry_id, text FROM entries WHERE block = 'message' ORDER BY ordinal")
    assert grown[:2] == first
    assert [text for _, text in grown] == [text for _, text in said]
    words = "SELECT e.text, f.body, f.context FROM entries e JOIN entries_fts f ON f.rowid = e.entry_id ORDER BY e.text"
    incremental = rows(agent, words)
    sync(agent, force=True)
    assert rows(agent, words) == incremental


def test_deleting_the_index_changes_no_answer(agent: Agent, tmp_path: Path) -> None:
    write_session(tmp_path / "sessions", "s1", [("user", "The rake broke."), ("assistant", "Buy a new rake.")])
    sync(agent)
    before = search(agent, "rake", corpus=Corpus.ALL)
    for suffix in ("", "-wal", "-shm"):
        agent.folders.index_db.with_name(f"index.sqlite{suffix}").unlink(missing_ok=True)
    sync(agent)
    after = search(agent, "rake", corpus=Corpus.ALL)
    assert len(after.hits) == 3
    assert [(hit.citation, hit.score, hit.snippet) for hit in after.hits] == [
        (hit.citation, hit.score, hit.snippet) for hit in before.hits
    ]


def test_a_source_whose_write_records_changed_is_classified_again(agent: Agent) -> None:
    sync(agent)
    query = (
        "SELECT DISTINCT e.origin_class FROM entries e JOIN sources s USING (source_id) WHERE s.path LIKE 'memory/%'"
    )
    assert rows(agent, query) == [("agent",)]
    from recall_runtime.provenance.segments import line_hash

    state = apsw.Connection(str(agent.folders.state_db))
    state.execute(
        "INSERT INTO reported_writes(path, line_hash, session_id, origin_class, session_kind, observed_at)"
        " VALUES ('memory/2026-03-18.md', ?, 'web', 'untrusted', 'interactive', 1)",
        (line_hash("- The rake is in the shed."),),
    )
    state.close()
    assert sync(agent).notes_read == 1
    worst = "SELECT e.text FROM entries e WHERE e.origin_class = 'untrusted'"
    assert rows(agent, worst) == [("The rake is in the shed.",)]


def test_force_builds_beside_and_an_open_reader_keeps_a_whole_state(agent: Agent) -> None:
    """A real process reads before, during and after the swap; it never sees half an index."""
    sync(agent)
    script = (
        "import sys, apsw\n"
        "db = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)\n"
        "one = lambda sql: next(iter(db.execute(sql)))[0]\n"
        "count = lambda: one(\"SELECT count(*) FROM entries_fts WHERE entries_fts MATCH 'rake OR spade'\")\n"
        "db.execute('BEGIN'); print(count(), flush=True); sys.stdin.readline(); print(count(), flush=True)\n"
        "db.execute('COMMIT'); print(count(), one(\"SELECT value FROM meta WHERE key='revision'\"))\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", script, str(agent.folders.index_db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stdout.readline() == "1\n"
    revision = int(rows(agent, "SELECT value FROM meta WHERE key = 'revision'")[0][0])
    more = NOTE + "- The spade is in the shed.\n"
    (agent.workspace / "memory/2026-03-18.md").write_text(more, encoding="utf-8")
    report = sync(agent, force=True)
    assert report.rebuilt
    out, _ = reader.communicate("\n", timeout=20)
    during, after = out.splitlines()
    assert during == "1"
    assert after.split()[0] == "2"
    assert int(after.split()[1]) > revision
    assert not list(agent.folders.agent_home.glob("*building*"))


def test_entry_numbers_are_never_used_again(agent: Agent) -> None:
    sync(agent)
    old = {row[0] for row in rows(agent, "SELECT entry_id FROM entries")}
    sync(agent, force=True)
    assert old.isdisjoint(row[0] for row in rows(agent, "SELECT entry_id FROM entries"))


def test_another_way_of_cutting_builds_anew(agent: Agent) -> None:
    sync(agent)
    writer = apsw.Connection(str(agent.folders.index_db))
    store.set_meta(writer, "chunking", "0")
    writer.close()
    assert sync(agent).rebuilt
    assert rows(agent, "SELECT value FROM meta WHERE key = 'chunking'") == [(store.CHUNKING_VERSION,)]


def test_two_syncs_at_once_do_not_double_anything(agent: Agent) -> None:
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3])\n"
        "from tests.support.index_agents import agent_over\n"
        "from recall_runtime.index.sync import sync\n"
        "sync(agent_over(Path(sys.argv[1]), Path(sys.argv[2])))\n"
    )
    root = str(Path(__file__).parents[2])
    arguments = [sys.executable, "-c", code, str(agent.workspace), str(agent.folders.home), root]
    processes = [subprocess.Popen(arguments) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert rows(agent, "SELECT path, count(*) FROM sources GROUP BY path HAVING count(*) > 1") == []
    assert rows(agent, "SELECT count(*) FROM entries WHERE text LIKE '%rake%'") == [(1,)]


# -- bad input


def test_case_12_bad_bytes_are_named_once_and_the_others_are_indexed(tmp_path: Path) -> None:
    workspace = write_files(
        tmp_path / "ws",
        {f"memory/{file.name}": file.read_bytes() for file in (CASES / "12-invalid-utf8/memory").iterdir()},
    )
    before = {file: file.read_bytes() for file in workspace.rglob("*.md")}
    agent = agent_over(workspace, tmp_path / "home")
    report = sync(agent)
    expected = json.loads((CASES / "12-invalid-utf8/expected.json").read_text(encoding="utf-8"))
    for query in expected["must_hit"]:
        assert found(agent, query), query
    assert report.skipped == {"memory/2026-03-07-utf16.md": "undecodable"}
    assert re.fullmatch(r"not UTF-8 from byte \d+", report.problems["memory/2026-03-07.md"])
    assert {file: file.read_bytes() for file in before} == before


def test_case_13_no_link_stops_the_run_and_no_file_is_two_sources(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(CASES / "13-symlinks/build.py"), str(tmp_path / "x")], check=True)
    agent = agent_over(tmp_path / "x/workspace", tmp_path / "home")
    report = sync(agent)
    assert ("memory/2026-03-10.md", 3) in found(agent, "Plain note beside the links")
    assert {path for (path,) in rows(agent, "SELECT path FROM sources")} == {"MEMORY.md", "memory/2026-03-10.md"}
    assert report.problems["memory/2026-03-09.md"] == "link leaves the workspace"
    assert report.problems["memory/2026-03-12.md"] == "link leaves the workspace"
    assert report.problems["memory/loop"] == "folder loop"
    assert "memory/2026-03-11.md" in report.problems
    assert "USER.md" not in report.problems
    assert found(agent, "secret") == []


@pytest.fixture(scope="module")
def names_agent(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    folder = tmp_path_factory.mktemp("names")
    subprocess.run([sys.executable, str(CASES / "24-daily-file-names/build.py"), str(folder / "ws")], check=True)
    agent = agent_over(folder / "ws", folder / "home")
    sync(agent)
    return agent


EXPECTED_NAMES = json.loads((CASES / "24-daily-file-names/expected.json").read_text(encoding="utf-8"))


def days_by_number(agent: Agent) -> dict[int, str | None]:
    query = "SELECT e.text, s.day FROM entries e JOIN sources s USING (source_id) WHERE e.text LIKE 'Named fact%'"
    return {int(text.removeprefix("Named fact ").rstrip(".")): day for text, day in rows(agent, query)}


def test_case_24_dated_notes_have_the_day_of_their_name_at_any_depth(names_agent: Agent) -> None:
    days = days_by_number(names_agent)
    for number, day in EXPECTED_NAMES["dated_daily_notes"].items():
        assert days[int(number)] == day, number
    assert days[18] == "2031-01-01"


def test_case_24_impossible_and_missing_dates_are_undated(names_agent: Agent) -> None:
    days = days_by_number(names_agent)
    undated = EXPECTED_NAMES["indexed_but_undated (no decay, never a daily note)"]
    assert {number: days[number] for number in undated} == dict.fromkeys(undated)


def test_case_24_backups_are_skipped_and_a_report_is_review(names_agent: Agent) -> None:
    days = days_by_number(names_agent)
    assert not set(EXPECTED_NAMES["never_indexed"]) & set(days)
    assert rows(names_agent, "SELECT tier FROM sources WHERE path LIKE 'memory/dreaming/%'") == [("review",)]


def test_case_24_composed_and_decomposed_names_are_one_row_a_file(names_agent: Agent) -> None:
    files = [name for name in (file.name for file in (names_agent.workspace / "memory").iterdir()) if "caf" in name]
    stored = [path for (path,) in rows(names_agent, "SELECT path FROM sources WHERE path LIKE '%caf%'")]
    assert sorted(stored) == sorted(f"memory/{name}" for name in files)
    assert len({unicodedata.normalize("NFC", name) for name in files}) == 1


def test_case_09_a_huge_line_is_cut_safely_and_found(tmp_path: Path) -> None:
    source = CASES / "09-huge-line/memory/2026-03-05.md"
    workspace = write_files(tmp_path / "ws", {"memory/2026-03-05.md": source.read_bytes()})
    agent = agent_over(workspace, tmp_path / "home")
    sync(agent)
    for query in json.loads((CASES / "09-huge-line/expected.json").read_text())["memory/2026-03-05.md"]["must_hit"]:
        hits = search(agent, query).hits
        assert any(query.lower() in hit.entry.text.lower() for hit in hits), query
        assert all(len(hit.snippet) <= 700 for hit in hits)
    lines = source.read_text(encoding="utf-8").split("\n")
    number = max(range(len(lines)), key=lambda at: len(lines[at])) + 1
    query = "SELECT start_line, end_line, text FROM entries ORDER BY ordinal"
    parts = [text for start, end, text in rows(agent, query) if start <= number <= end]
    assert len(parts) > 10
    assert max(map(len, parts)) <= MAX_CHARACTERS
    joined = "".join(parts)
    assert joined == lines[number - 1].removeprefix("- ").rstrip()
    at = 0
    for part in parts:
        assert is_border(joined, at)
        at += len(part)


def test_a_file_above_the_limit_is_named_with_size_and_limit_and_the_rest_goes_on(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/big.md": "- x" * 500, "memory/small.md": "- The well is dry.\n"})
    agent = agent_over(workspace, tmp_path / "home", settings={"sources": {"max_file_bytes": 1_000}})
    report = sync(agent)
    assert report.skipped == {"memory/big.md": "too large (1500 bytes, limit 1000)"}
    assert found(agent, "well") == [("memory/small.md", 1)]
    again = sync(agent)
    assert again.skipped == report.skipped
    assert not again.changed


def test_a_file_that_became_small_enough_is_no_longer_named_as_left_out(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "ws", {"memory/big.md": "- x" * 500})
    agent = agent_over(workspace, tmp_path / "home", settings={"sources": {"max_file_bytes": 1_000}})
    sync(agent)
    (workspace / "memory/big.md").write_text("- The well is dry.\n", encoding="utf-8")
    report = sync(agent)
    assert (report.skipped, report.notes_read) == ({}, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_named_like_a_note_is_named_and_never_waited_for(agent: Agent) -> None:
    os.mkfifo(agent.workspace / "memory/2026-03-19.md")
    report = sync(agent)
    assert report.problems == {"memory/2026-03-19.md": "not a regular file"}
    assert found(agent, "rake")
