"""Cases 01 to 06, 09 to 14 and 24 through the whole chain: what was written is what is found, cited and kept."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recall_runtime.vocabulary import Corpus
from tests.end_to_end.chain import CASES, OPEN_GATES, Chain, every_stored_text
from tests.support.sessions import save_rows
from tests.support.workspace_days import DIRECT

DAYS = ("2026-03-10", "2026-03-11", "2026-03-12")
QUESTIONS = ("where was that?", "which one was it?")
NIGHT = "2026-03-20T03:00:00Z"
FACT = "The ferry to Harbourline leaves from pier 41877."


def expected(case: str, name: str = "expected.json") -> Any:
    """Return what the case says is right."""
    return json.loads((CASES / case / name).read_text(encoding="utf-8"))


def case_note(chain: Chain, case: str) -> str:
    """Place the note of a case; return its path."""
    (file,) = sorted((CASES / case / "memory").glob("*.md"))
    chain.place(file, f"memory/{file.name}")
    return f"memory/{file.name}"


def recalled_fact(chain: Chain, text: str = FACT, path: str = "memory/2026-03-09.md") -> None:
    """Write one fact by hand and let it be asked for until it passes."""
    chain.write(path, f"- {text}\n")
    chain.sync("2026-03-09T12:00:00Z")
    for day in DAYS:
        chain.recall(f"{day}T09:00:00Z", f"what of {day}", path, 1, 1.0)


def rows_by_line(chain: Chain, path: str) -> dict[int, tuple[Any, ...]]:
    """Return text, triggers, importance and project of the rows of ``path`` by first line."""
    rows = chain.index_rows(
        "SELECT e.start_line, e.text, e.triggers, e.importance, e.project_key FROM entries e JOIN sources s"
        " USING (source_id) WHERE s.path = ? ORDER BY e.ordinal",
        path,
    )
    return {row[0]: row[1:] for row in rows}


def test_01_windows_line_ends_stay_and_are_no_part_of_any_text(chain: Chain) -> None:
    before = chain.place(CASES / "01-crlf-no-final-newline" / "MEMORY.md", "MEMORY.md")
    assert chain.sweep("2026-03-08T03:00:00Z").outcome == "nothing_to_do"
    assert (chain.root / "MEMORY.md").read_bytes() == before
    rows = rows_by_line(chain, "MEMORY.md")
    for entry in expected("01-crlf-no-final-newline")["entries"]:
        text, triggers, importance, _ = rows[entry["line"]]
        assert (text, importance) == (entry["text"], entry["importance"])
        assert triggers == ("; ".join(entry["triggers"]) if entry["triggers"] else None)
    assert len(rows) == 4
    assert not any("\r" in str(value) for row in rows.values() for value in row)
    recalled_fact(chain)
    chain.sweep(NIGHT)
    after = (chain.root / "MEMORY.md").read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == after.count(b"\r\n")
    assert f"\r\n- {FACT} Source: ".encode() in after
    chain.assert_second_run_changes_nothing(NIGHT)


def test_02_front_matter_is_no_memory_and_is_kept_byte_for_byte(chain: Chain) -> None:
    folder = CASES / "02-bom-front-matter"
    memory = chain.place(folder / "MEMORY.md", "MEMORY.md")
    user = chain.place(folder / "USER.md", "USER.md")
    chain.place(folder / "memory" / "2026-03-01.md", "memory/2026-03-01.md")
    assert chain.sweep("2026-03-08T03:00:00Z").outcome == "nothing_to_do"
    assert ((chain.root / "MEMORY.md").read_bytes(), (chain.root / "USER.md").read_bytes()) == (memory, user)
    assert [row[0] for row in rows_by_line(chain, "MEMORY.md").values()] == expected("02-bom-front-matter")[
        "MEMORY.md"
    ]["entries"]
    assert [row[0] for row in rows_by_line(chain, "USER.md").values()] == ["Prefer short answers before breakfast."]
    problems = dict(chain.index_rows("SELECT path, problems FROM sources"))
    assert json.loads(problems["USER.md"])["broken_front_matter"] == 1
    for word in ("router", "hallway shelf"):
        assert chain.search(word, NIGHT).hits[0].citation == "memory/2026-03-01.md#L4-L4"
    recalled_fact(chain)
    recalled_fact(chain, "Always give prices in euro.", "memory/2026-03-10.md")
    chain.sweep(NIGHT)
    new_memory, new_user = (chain.root / "MEMORY.md").read_bytes(), (chain.root / "USER.md").read_bytes()
    assert new_memory.startswith(memory)
    assert FACT.encode() in new_memory
    assert new_memory.count(b"\xef\xbb\xbf") == new_memory.count(b"tags: [home") == 1
    assert new_user.startswith(user)
    assert b"- Always give prices in euro." in new_user
    assert new_user.count(b"never closed") == 1
    chain.assert_second_run_changes_nothing(NIGHT)


def test_03_annotations_are_metadata_of_their_own_entry_and_never_text(chain: Chain) -> None:
    before = chain.place(CASES / "03-annotation-comments" / "MEMORY.md", "MEMORY.md").decode()
    recalled_fact(chain)
    chain.sweep(NIGHT)
    rows = rows_by_line(chain, "MEMORY.md")
    for entry in expected("03-annotation-comments")["must"]:
        text, triggers, importance, project = rows[entry["line"]]
        if entry["text"] is not None:
            assert text == entry["text"]
        assert text.startswith(entry.get("text_starts", ""))
        assert entry.get("text_contains", "") in text
        assert triggers == ("; ".join(entry["triggers"]) if entry["triggers"] else None)
        assert importance == entry["importance"]
        if isinstance(entry.get("projects"), list):
            assert project == "; ".join(entry["projects"])
    assert rows[21][3] not in (None, "")  # scoped to what is never active, so never global
    assert rows[18][1] == "中继设置; 内网安全; 端口"
    in_text = "- The syntax is written"
    assert not any("<!--" in row[0] for row in rows.values() if not row[0].startswith(in_text[2:]))
    assert chain.file().startswith(before)
    chain.assert_second_run_changes_nothing(NIGHT)


def test_04_only_prose_outside_fences_and_comments_is_promoted(chain: Chain) -> None:
    path = case_note(chain, "04-code-fences")
    chain.sync("2026-03-03T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    before = chain.sources()
    chain.sweep(NIGHT)
    wanted = expected("04-code-fences")
    entries = [line for line in chain.file().splitlines() if line.startswith("- ")]
    assert len(entries) == len(wanted["facts"])
    for fact in wanted["facts"]:
        assert any(f"- {fact['text']} Source: {path}#L{fact['line']}-" in entry for entry in entries)
    for needle in wanted["never_a_candidate_nor_an_annotation"]:
        assert chain.rows("SELECT count(*) FROM claims WHERE instr(text, ?)", needle) == [(0,)]
        assert needle not in chain.file()
    assert chain.search("Still inside the outer fence", NIGHT).hits[0].entry.start_line == 14
    assert chain.index_rows("SELECT count(*) FROM entries WHERE triggers IS NOT NULL AND block <> 'entry'") == [(0,)]
    assert chain.sources() == before
    chain.assert_second_run_changes_nothing(NIGHT)


def test_05_every_script_is_found_by_the_keyword_lane_alone(chain: Chain) -> None:
    path = case_note(chain, "05-cjk-note")
    chain.sweep(NIGHT)
    queries = expected("05-cjk-note", "queries.json")
    for query in queries["must_hit"] + queries["should_hit"]:
        hits = [hit for hit in chain.search(query["q"], NIGHT).hits if hit.entry.path == path]
        assert query["line"] in {hit.entry.start_line for hit in hits}, query
        assert not any("\\u" in hit.snippet for hit in hits)
    for query in queries["must_not_hit_any_line"]:
        assert not chain.search(query["q"], NIGHT).hits


def test_06_a_broken_and_growing_transcript_is_read_exactly_once(chain: Chain) -> None:
    folder = CASES / "06-broken-transcript"
    transcript = chain.folder / "sessions" / "s-60.jsonl"
    (chain.folder / "sessions" / "sessions.json").write_text(
        json.dumps({DIRECT: {"sessionId": "s-60", "chatType": "direct"}}), encoding="utf-8"
    )
    seen = []
    for stage, night in (("stage-1", "05"), ("stage-2", "06"), ("stage-2", "07")):
        shutil.copyfile(folder / f"{stage}.jsonl", transcript)
        report = chain.sweep(f"2026-03-{night}T03:00:00Z")
        assert report.staged
        assert report.staged.seen == report.staged.totals.total()
        seen.append([row[0] for row in chain.index_rows("SELECT message_id FROM entries ORDER BY ordinal")])
        assert transcript.read_bytes() == (folder / f"{stage}.jsonl").read_bytes()
        if stage == "stage-1":
            faults = json.loads(chain.rows("SELECT faults FROM transcripts")[0][0])
    wanted = expected("06-broken-transcript")
    assert seen[0] == wanted["after_stage_1"]["messages_with_text"]
    assert seen[1] == seen[2] == seen[0] + wanted["after_stage_2 (same file, grown)"]["new"]
    for kind, count in wanted["after_stage_1"]["reported"].items():
        assert faults[kind] == count
    assert chain.rows("SELECT max(n) FROM (SELECT count(*) n FROM evidence GROUP BY claim_id, message_id)") == [(1,)]


def test_09_a_huge_line_is_cut_between_characters_and_found_whole(chain: Chain) -> None:
    path = case_note(chain, "09-huge-line")
    before = chain.sources()
    chain.sweep(NIGHT)
    for query in expected("09-huge-line")["memory/2026-03-05.md"]["must_hit"]:
        hit = chain.search(query, NIGHT).hits[0]
        assert (hit.entry.path, query in hit.entry.text) == (path, True)
        assert len(hit.snippet) <= 800
    texts = [row[0] for row in chain.index_rows("SELECT text FROM entries ORDER BY ordinal")]
    assert max(map(len, texts)) <= 4_000
    assert not any(text[0] in "\u200d\ufe0f" or text[-1] == "\u200d" for text in texts)
    assert chain.sources() == before


def test_09_a_note_above_the_size_limit_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    chain = Chain(tmp_path, dreaming=OPEN_GATES, sources={"max_file_bytes": 1_000_000})
    script = CASES / "09-huge-line" / "make_big_note.py"
    subprocess.run([sys.executable, script, chain.root / "big", "1"], check=True, timeout=60)
    for file in (chain.root / "big" / "memory").glob("*.md"):
        shutil.move(file, chain.root / "memory" / file.name)
    shutil.rmtree(chain.root / "big")
    recalled_fact(chain)
    report = chain.sweep(NIGHT)
    assert report.indexed
    large = {f"memory/{p.name}" for p in (chain.root / "memory").iterdir() if p.stat().st_size > 1_000_000}
    assert large
    assert set(report.indexed.skipped) == large
    assert all("1000000" in reason or "1,000,000" in reason for reason in report.indexed.skipped.values())
    assert FACT in chain.file()


def test_10_emoji_and_right_to_left_text_keep_their_bytes(chain: Chain) -> None:
    before = chain.place(CASES / "10-emoji-rtl" / "MEMORY.md", "MEMORY.md")
    recalled_fact(chain)
    chain.sweep(NIGHT)
    assert (chain.root / "MEMORY.md").read_bytes().startswith(before)
    for query in expected("10-emoji-rtl")["must_hit"]:
        lines = [hit.entry.start_line for hit in chain.search(query["q"], NIGHT).hits]
        assert query["line"] in lines, query
    promoted = chain.rows("SELECT count(*) FROM ledger WHERE operation = 'added'")
    assert promoted == [(1,)]


def test_10_a_direction_override_is_shown_as_such_in_the_diary(chain: Chain) -> None:
    chain.place(CASES / "10-emoji-rtl" / "MEMORY.md", "memory/2026-03-05.md")
    chain.sync("2026-03-06T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    chain.sweep(NIGHT)
    assert "Hidden order" in chain.file()
    assert "Hidden order" in chain.file("DREAMS.md")
    reports = "".join(chain.file(name) for name in chain.files() if name.startswith("memory/dreaming/"))
    assert not {"\u202e", "\u202c"} & set(chain.file("DREAMS.md") + reports)


def test_11_control_bytes_shift_no_anchor_and_reach_no_report(chain: Chain) -> None:
    path = case_note(chain, "11-nul-control-bytes")
    chain.sync("2026-03-07T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    before = chain.sources()
    chain.sweep(NIGHT)
    for text, line in expected("11-nul-control-bytes")["anchors"].items():
        rows = [row[0] for row in rows_by_line(chain, path).items() if text.split()[-1] in row[1][0]]
        assert line in rows, text
    for query, line in (("sticks in wet weather", 3), ("coiled", 10)):
        hit = next(hit for hit in chain.search(query, NIGHT).hits if hit.entry.path == path)
        assert hit.citation == f"{path}#L{line}-L{line}"
        assert "\x1b" not in hit.snippet
    assert "hose is coiled" in chain.file()
    for name, data in chain.files().items():
        assert name == path or b"\x1b" not in data, name
    for name, data in every_stored_text(chain.agent.folders.home):
        assert b"\x1b[31mred" not in data, name
    assert chain.sources() == before


def test_12_bad_bytes_stop_nothing_and_are_never_promoted(chain: Chain) -> None:
    for file in sorted((CASES / "12-invalid-utf8" / "memory").glob("*.md")):
        chain.place(file, f"memory/{file.name}")
    before = chain.sources()
    chain.sync("2026-03-09T12:00:00Z")
    chain.recall_all(DAYS, QUESTIONS)
    report = chain.sweep(NIGHT)
    assert report.indexed
    for query in ("bus pass renews", "healthy note"):
        assert query in chain.search(query, NIGHT).hits[0].entry.text
    problems = dict(chain.index_rows("SELECT path, problems FROM sources"))
    data = (CASES / "12-invalid-utf8" / "memory" / "2026-03-07.md").read_bytes()
    assert json.loads(problems["memory/2026-03-07.md"])["first_bad_byte"] == data.index(b"\xe9")
    skipped = chain.index_rows("SELECT path FROM sources WHERE skipped = 'undecodable'")
    assert skipped == [("memory/2026-03-07-utf16.md",)]
    entries = [line for line in chain.file().splitlines() if line.startswith("- ")]
    assert any("bus pass renews" in entry for entry in entries)
    assert not any("\ufffd" in entry for entry in entries)
    assert chain.sources() == before
    chain.assert_second_run_changes_nothing(NIGHT)


def test_13_links_stop_nothing_and_are_written_through(chain: Chain) -> None:
    out = chain.folder / "linked"
    subprocess.run([sys.executable, CASES / "13-symlinks" / "build.py", out], check=True, timeout=60)
    shutil.rmtree(chain.root)
    (out / "workspace").rename(chain.root)
    for name in ("vault", "outside"):
        (out / name).rename(chain.folder / name)
    path = "memory/2026-03-10.md"
    chain.sync("2026-03-10T12:00:00Z")
    for day in DAYS:
        chain.recall(f"{day}T13:00:00Z", f"what of {day}", path, 3, 1.0)
    chain.sweep(NIGHT)
    vault = chain.folder / "vault" / "MEMORY.md"
    assert (chain.root / "MEMORY.md").is_symlink()
    assert stat.S_IMODE(vault.stat().st_mode) == 0o640
    assert "- Plain note beside the links." in vault.read_text(encoding="utf-8")
    assert (chain.root / "USER.md").is_symlink()
    assert not (chain.folder / "vault" / "USER.md").exists()
    paths = [row[0] for row in chain.index_rows("SELECT path FROM sources WHERE skipped IS NULL ORDER BY path")]
    assert path in paths
    assert len({row for row in paths if row.endswith("2026-03-10.md")}) == 1
    for name, data in every_stored_text(chain.agent.folders.home):
        assert b"never meant to be read" not in data, name


ZONES = expected("14-timezone-boundary")["note_date_by_zone"]


@pytest.mark.parametrize("zone", sorted(ZONES["z1"]))
def test_14_one_zone_names_every_day(tmp_path: Path, zone: str) -> None:
    chain = Chain(tmp_path, zone=zone, dreaming=OPEN_GATES)
    rows = [json.loads(line) for line in (CASES / "14-timezone-boundary" / "transcript.jsonl").read_text().splitlines()]
    for row in rows[1:]:
        row["message"]["__openclaw"] = {"senderIsOwner": True}
        row["message"]["provenance"] = {"kind": "external_user", "sourceChannel": "telegram"}
    save_rows(chain.folder / "sessions" / "s-140.jsonl", rows)
    (chain.folder / "sessions" / "sessions.json").write_text(
        json.dumps({DIRECT: {"sessionId": "s-140", "chatType": "direct"}}), encoding="utf-8"
    )
    night = "2026-11-02T12:00:00Z"
    report = chain.sweep(night)
    days = dict(chain.rows("SELECT message_id, day FROM evidence"))
    for message, dates in ZONES.items():
        assert days[message] == dates[zone], message
    assert days["n2"] == days["z2"]
    assert chain.index_rows("SELECT count(*) FROM entries WHERE message_id IN ('n1', 'n3', 'n4', 'n5')") == [(4,)]
    assert all(0 <= row.recency <= 1 and row.age_days >= 0 for row in report.scored)
    chain.note("2026-03-08T04:59:59Z", "A line on the boundary.", "s-141")
    assert (chain.root / "memory" / f"{ZONES['z1'][zone]}.md").is_file()
    assert report.day.isoformat() in (chain.file("DREAMS.md") or report.day.isoformat())


def test_24_names_of_notes_decide_dates_and_what_is_a_source(chain: Chain) -> None:
    subprocess.run(
        [sys.executable, CASES / "24-daily-file-names" / "build.py", chain.folder / "named"], check=True, timeout=60
    )
    shutil.rmtree(chain.root)
    (chain.folder / "named").rename(chain.root)
    before = chain.sources()
    clock = "2026-03-20T12:00:00Z"
    chain.sync("2026-03-20T09:00:00Z")
    chain.recall_all(("2026-03-17", "2026-03-18", "2026-03-19"), QUESTIONS)
    chain.sweep(clock)
    wanted = expected("24-daily-file-names")
    found: dict[int, list[str | None]] = {}
    for text, day in chain.index_rows(
        "SELECT e.text, s.day FROM entries e JOIN sources s USING (source_id) WHERE s.tier = 'episodic'"
        " AND e.text LIKE 'Named fact%'"
    ):
        found.setdefault(int(text.split()[-1].rstrip(".")), []).append(day)
    dated = {int(number): [day] for number, day in wanted["dated_daily_notes"].items()}
    undated = {number: [None] for number in wanted["indexed_but_undated (no decay, never a daily note)"]}
    assert {number: days for number, days in found.items() if number not in (12, 18, 22)} == dated | undated
    assert found[18] == ["2031-01-01"]
    promoted = {
        int(text.split()[2].rstrip(".")) for (text,) in chain.rows("SELECT text FROM claims") if "Named" in text
    }
    assert promoted == set(found)
    for number in (*wanted["never_indexed"], *wanted["a_report_not_a_source"]):
        assert f"Named fact {number}." not in chain.file()
    assert chain.sources() == before
    assert chain.search("Named fact 12", clock, corpus=Corpus.MEMORY).hits
