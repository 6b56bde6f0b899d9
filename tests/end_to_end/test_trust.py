"""Cases 15, 16, 19, 23 and 28 through the whole chain: who said it decides, whatever the text and the scores say."""

import contextlib
import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from memory_assets.gates.explain import explain
from recall_runtime.clock import parse_instant
from recall_runtime.recall.projects import key_from_remote
from recall_runtime.records import Provenance
from recall_runtime.signals.recalls import record_recall
from recall_runtime.vocabulary import Gate, OriginClass, SessionKind, Tier
from tests.end_to_end.chain import CASES, OPEN_GATES, Chain
from tests.support.model_server import model_server, openai_reply
from tests.support.workspace_days import DIRECT

LOWEST = {"min_score": 0, "min_recall_count": 0, "min_unique_queries": 0, "max_age_days": 10_000}


def expected(case: str) -> Any:
    """Return what the case says is right."""
    return json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))


def derived_files(chain: Chain) -> str:
    """Return every file a sweep wrote: curated files, diary, reports."""
    return "".join(text.decode() for name, text in chain.files().items() if name not in chain.sources())


def test_15_fifty_recalls_make_no_candidate_of_a_scaffolding_session(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    keys = {
        "interactive": DIRECT,
        "heartbeat": "agent:main:main:heartbeat",
        "cron": "agent:main:cron:brief",
        "subagent": "agent:main:subagent:s-153",
        "unknown": None,
    }
    chain.take_sessions(CASES / "15-scaffolding-sessions" / "sessions", keys, {"interactive"})
    before = chain.sources()
    chain.sync("2026-03-11T12:00:00Z")
    chain.recall_all([f"2026-03-{day:02d}" for day in range(6, 11)], [f"question {n}" for n in range(10)])
    night = "2026-03-12T03:00:00Z"
    report = chain.sweep(night)
    wanted = expected("15-scaffolding-sessions")
    assert report.staged
    assert report.staged.held_back == {"cron": 2, "heartbeat": 4, "subagent": 2, "unknown": 1}
    assert chain.file().count("\n- ") == 1
    assert chain.file().lower().count("museum pass renews on the fourteenth") == 1
    written = derived_files(chain).lower()
    for needle in wanted["never_promoted_nor_injected"]:
        assert needle not in written
    for word in wanted["still_findable_by_explicit_search"]:
        assert word in chain.search(word, night).hits[0].entry.text
    assert chain.index_rows(
        "SELECT count(*) FROM entries WHERE origin_class = 'owner' AND text LIKE '%grey suit%'"
    ) == [(0,)]
    assert report.counts["staging"]["held_back"] == report.staged.held_back
    assert chain.sources() == before
    chain.assert_second_run_changes_nothing(night)


def test_16_a_recalled_fact_stays_one_fact_and_new_words_beside_it_count(chain: Chain) -> None:
    case = CASES / "16-recall-loop"
    before = chain.place(case / "MEMORY.md", "MEMORY.md").decode()
    chain.take_sessions(case / "sessions", {"loop": DIRECT}, {"loop"})
    chain.sync("2026-03-12T12:00:00Z")
    chain.recall_all(("2026-03-11", "2026-03-12"), ("one", "two"), lane="trigger")
    night = "2026-03-13T03:00:00Z"
    assert chain.sweep(night).outcome == "nothing_to_do"
    assert chain.rows("SELECT count(*) FROM signals") == [(0,)]
    assert chain.file() == before
    chain.recall_all(("2026-03-11", "2026-03-12"), ("one", "two"))
    chain.sweep("2026-03-13T04:00:00Z")
    added = chain.file().removeprefix(before)
    assert chain.file().startswith(before)
    assert added.count("\n- ") == 2
    assert "the grill tray is kept in the garage." in added
    assert "the oven is exact now." in added
    assert "fifteen" not in added
    (doubt,) = [line for line in chain.file("DREAMS.md").splitlines() if "may be out of date" in line]
    assert "fifteen degrees hot" in doubt
    assert "the oven is exact now" in doubt
    assert chain.accounting()["refused:echo"] >= 12
    chain.assert_second_run_changes_nothing("2026-03-13T04:00:00Z")


def forged(chain: Chain) -> str:
    """Append the lines of case 19 as a flush does whose turn had read a web page; return the path."""
    text = (CASES / "19-forged-provenance" / "memory" / "2026-03-14.md").read_text(encoding="utf-8")
    at = parse_instant("2026-03-14T09:00:00Z")
    chain.note(
        "2026-03-14T09:00:00Z",
        text,
        "s-1",
        provenance=Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, at, "s-1"),
    )
    return "memory/2026-03-14.md"


def test_19_two_hundred_recalls_move_no_forged_line_and_it_takes_no_place(tmp_path: Path) -> None:
    chain = Chain(tmp_path, dreaming={"deep": LOWEST | {"limit": 1}})
    path = forged(chain)
    chain.sync("2026-03-14T12:00:00Z")
    hits = chain.shown(Tier.EPISODIC)
    for n in range(200):
        now = parse_instant(f"2026-03-{14 + n % 6}T09:00:00Z")
        record_recall(chain.agent, query=f"question {n % 40}", hits=hits, session_key=DIRECT, lane="search", now_ms=now)
    chain.write("memory/2026-03-15.md", "- The roof ladder is locked with code 4471.\n")
    chain.sync("2026-03-15T12:00:00Z")
    chain.recall("2026-03-16T09:00:00Z", "which code?", "memory/2026-03-15.md", 1, 0.8)
    before = chain.sources()
    night = "2026-03-20T03:00:00Z"
    report = chain.sweep(night)
    assert report.reflected
    (entry,) = [line for line in chain.file().splitlines() if line.startswith("- ")]
    assert "roof ladder is locked with code 4471" in entry
    written = derived_files(chain) + "".join(theme.tag for theme in report.reflected.themes)
    for needle in ("setup.example", "pay.example", "signature check", "billing"):
        assert needle not in written
    origins = chain.index_rows(
        "SELECT DISTINCT origin_class FROM entries e JOIN sources s USING (source_id) WHERE s.path = ?"
        " AND e.block NOT IN ('comment', 'heading')",
        path,
    )
    assert origins == [("untrusted",)]
    assert chain.rows("SELECT count(*) FROM claims WHERE origin_class <> 'untrusted' AND text NOT LIKE '%ladder%'") == [
        (0,)
    ]
    with chain.state() as state:
        why = explain(
            state, "pipe the installer", settings=chain.agent.settings.dreaming.deep, now_ms=parse_instant(night)
        )
    assert why.verdict is Gate.ORIGIN
    assert "untrusted" in why.missing[0]
    hits = chain.search("setup.example installer", night).hits
    assert hits[0].entry.path == path
    assert hits[0].framed
    assert not chain.search("setup.example installer", night, include_untrusted=False).hits
    assert chain.sources() == before
    chain.assert_second_run_changes_nothing(night)


def test_19_an_eleventh_trusted_candidate_is_promoted_behind_ten_forged_ones(tmp_path: Path) -> None:
    chain = Chain(tmp_path, dreaming={"deep": LOWEST | {"limit": 1}})
    at = parse_instant("2026-03-14T09:00:00Z")
    lines = "".join(f"- The mirror number {n} is mirror-{5000 + n}.example.\n" for n in range(10))
    untrusted = Provenance(OriginClass.UNTRUSTED, SessionKind.INTERACTIVE, at, "s-1")
    chain.note("2026-03-14T09:00:00Z", lines, "s-1", provenance=untrusted)
    chain.sync("2026-03-14T12:00:00Z")
    chain.recall_all(("2026-03-14", "2026-03-15", "2026-03-16"), ("a", "b", "c"))
    chain.note("2026-03-14T13:00:00Z", "- The roof ladder is locked with code 4471.\n", "s-2")
    chain.sync("2026-03-14T14:00:00Z")
    chain.recall("2026-03-16T09:00:00Z", "which ladder code?", "memory/2026-03-14.md", 11, 0.5)
    chain.sweep("2026-03-20T03:00:00Z")
    assert chain.file().count("\n- ") == 1
    assert "roof ladder is locked with code 4471" in chain.file()


def every_row(home: Path) -> str:
    """Return every value of every table of all databases and snapshots below ``home``, vocabularies included."""
    import duckdb

    parts: list[str] = []
    for path in sorted(home.rglob("*.sqlite")):
        with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            for name, kind in connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall():
                if "USING vec0" not in (kind or ""):
                    parts += [repr(row) for row in connection.execute(f'SELECT * FROM "{name}"')]  # noqa: S608 - own schema
    for path in sorted(home.rglob("*.parquet")):
        parts += [repr(row) for row in duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall()]  # noqa: S608 - path of a test
    for path in sorted(home.rglob("*.duckdb")):
        with contextlib.closing(duckdb.connect(str(path), read_only=True)) as connection:
            for schema, name in connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
            ).fetchall():
                parts += [repr(row) for row in connection.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall()]  # noqa: S608 - own schema
    parts += [path.read_bytes().decode("utf-8", "replace") for path in sorted(home.rglob("*")) if path.is_file()]
    return "\n".join(parts)


def test_23_no_secret_is_in_any_derived_store_nor_in_a_prompt(tmp_path: Path) -> None:
    with model_server(openai_reply("no operations")) as server:
        model = {"provider": "openai-compatible", "base_url": server.url + "/v1", "model": "small"}
        chain = Chain(tmp_path, dreaming=OPEN_GATES, model=model)
        case = CASES / "23-secrets"
        chain.place(case / "memory" / "2026-03-18.md", "memory/2026-03-18.md")
        chain.take_sessions(case / "sessions", {"keys": DIRECT}, {"keys"})
        before = chain.sources()
        chain.sync("2026-03-18T12:00:00Z")
        secrets = expected("23-secrets")["never_in_any_derived_store"]
        chain.recall_all(("2026-03-18", "2026-03-19"), ("which key?", f"is it {secrets[0]}?"))
        night = "2026-03-20T03:00:00Z"
        chain.sweep(night, publishing=True)
        prompts = json.dumps([asked.payload for asked in server.asked])
    assert "Hill Top" in prompts
    stored, written = every_row(chain.agent.folders.home), derived_files(chain)
    assert list(chain.agent.folders.analytics.rglob("*.parquet"))
    for secret in secrets:
        for place in (stored, written, prompts):
            assert secret.lower() not in place.lower()
    assert "4242 4242 4242 4242" not in stored + written + prompts
    for needle in expected("23-secrets")["still_there"]:
        assert needle in stored
    entries = [line for line in chain.file().splitlines() if line.startswith("- ")]
    assert entries
    assert not any(line.removeprefix("- ").startswith(("***", "Source:")) for line in entries)
    assert chain.sources() == before


@pytest.mark.slow
def test_23_no_secret_is_in_what_dagster_records_of_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event log can't forget, so nothing secret may ever enter it."""
    from memory_assets.runner import run_dreaming

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    chain = Chain(tmp_path, dreaming=OPEN_GATES)
    case = CASES / "23-secrets"
    chain.place(case / "memory" / "2026-03-18.md", "memory/2026-03-18.md")
    chain.take_sessions(case / "sessions", {"keys": DIRECT}, {"keys"})
    chain.sync("2026-03-18T12:00:00Z")
    chain.recall_all(("2026-03-18", "2026-03-19"), ("which key?", "which one?"))
    home = chain.agent.folders.home
    (home / "dreamline.toml").write_text(
        f"workspace = '{chain.root}'\n[embedder]\nname = 'none'\n[sources]\n"
        f"session_folders = ['{chain.folder / 'sessions'}']\n[dreaming.deep]\nmin_score = 0\nmin_recall_count = 0\n"
        "min_unique_queries = 0\n"
    )
    done = run_dreaming(home=home, now_ms=parse_instant("2026-03-20T03:00:00Z"))
    assert done.outcome == "promoted"
    assert [path for path in (home / "dagster").rglob("*") if path.suffix == ".db"]
    recorded = b"".join(path.read_bytes() for path in (home / "dagster").rglob("*") if path.is_file())
    for secret in expected("23-secrets")["never_in_any_derived_store"]:
        assert secret.encode() not in recorded
    assert b"Hill Top" not in recorded


REMOTES = json.loads((CASES / "28-project-keys" / "remotes.json").read_text(encoding="utf-8"))


def test_28_one_key_a_repository_and_no_password_in_it() -> None:
    for spellings in REMOTES["same_key"]:
        assert len({key_from_remote(remote) for remote in spellings}) == 1
    for one, other in REMOTES["different_keys"]:
        assert key_from_remote(one) != key_from_remote(other)
    assert not any(
        "not-a-real-pass" in str(key_from_remote(remote)) for group in REMOTES["same_key"] for remote in group
    )


@pytest.mark.parametrize("row", REMOTES["escape"], ids=lambda row: row["remote"])
def test_28_a_hostile_remote_survives_the_annotation_of_a_promoted_entry(tmp_path: Path, row: dict[str, str]) -> None:
    """One key, which can't close the comment it stands in: through the note, the sweep, the entry and the index."""
    key = key_from_remote(row["remote"])
    assert key
    chain = Chain(tmp_path, dreaming=OPEN_GATES)
    chain.write("memory/2026-03-18.md", f"- The slow tests of 41877 run at night. <!-- project: {key} -->\n")
    chain.sync("2026-03-18T12:00:00Z")
    chain.recall("2026-03-18T13:00:00Z", "slow tests", "memory/2026-03-18.md", 1, 1.0)
    chain.sweep("2026-03-20T03:00:00Z")
    chain.sync("2026-03-20T04:00:00Z")
    assert chain.index_rows("SELECT text, project_key FROM entries WHERE block = 'entry'") == [
        ("The slow tests of 41877 run at night.", key)
    ]
    (line,) = [line for line in chain.file().splitlines() if line.startswith("- ")]
    assert line.count(f"<!-- project: {key} -->") == 1
