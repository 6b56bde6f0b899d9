"""The nightly sweep and the owner's request go by the same rules: what one replaces, the other does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.notes.identity import claim_id
from recall_runtime.remember.request import remember
from recall_runtime.storage.schema import open_state
from tests.support.curated import agent_in
from tests.support.night import Night

PROJECT = "github.com/example/boathouse"
MARK = f" <!-- project: {PROJECT} -->"

PAIRS = [
    ("Nightly backups of boathouse land in s3://keep-1.", "boathouse restores from s3://keep-2.", True, "strong-slot"),
    (
        "The boathouse db listens on port 12.",
        "Connect to the boathouse db on 14, not the default port.",
        True,
        "paraphrase",
    ),
    ("boathouse 的数据库端口是 12。", "The boathouse db listens on port 14.", True, "another-language"),
    ("Budget cap for boathouse is 500 EUR.", "The boathouse budget cap was raised to 600 EUR.", True, "weak-slot"),
    ("Budget cap for boathouse is 500 EUR.", "Hosting of boathouse costs 40 EUR.", False, "another-attribute"),
    ("The boathouse db listens on port 12.", "The boathouse gateway listens on port 14.", False, "another-part"),
    ("boathouse staging runs postgres 14.", "boathouse production runs postgres 16.", False, "another-environment"),
    ("Mia's extension at boathouse is 401.", "Uwe's extension at boathouse is 402.", False, "another-person"),
    ("The boathouse db listens on port 12.", "The windmill db listens on port 14.", False, "another-project"),
    ("The boathouse db listens on port 12.", "The boathouse db also listens on port 14.", False, "beside"),
    ("The boathouse staging DB is Postgres 15.", "Staging of boathouse runs on Postgres 17 now.", True, "version"),
    ("Staging DB: Postgres 15.", "Production runs on Postgres 17 now.", False, "no-project-other-words"),
    ("Since May, Ida has locker 12.", "In June, Ida got locker 14.", True, "person"),
]


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """Two projects are known from other lines; the older fact of the pair stands in the file."""
    agent = agent_in(tmp_path)
    state = open_state(agent.folders.state_db)
    night = Night(agent, state)
    night.note(f"The boathouse has an owner, Mia.{MARK}")
    night.note("The windmill has an owner, Uwe. <!-- project: github.com/example/windmill -->")
    yield night
    state.close()


def in_the_file(night: Night, text: str) -> bool:
    return any(line.startswith(f"- {text}") for line in night.memory.splitlines())


@pytest.mark.parametrize(("older", "newer", "replaced"), [row[:3] for row in PAIRS], ids=[row[3] for row in PAIRS])
def test_the_sweep_and_the_request_replace_the_same(night: Night, older: str, newer: str, replaced: bool) -> None:
    """The newer line once from a note by the next sweep, once asked for directly."""
    night.sweep(night.note(older, "2026-03-18"))
    assert in_the_file(night, older)
    before = (night.agent.workspace / "MEMORY.md").read_bytes()

    made = remember(night.agent, newer, session_key="agent:main:main", sender="owner")
    assert (made.superseded == (older,)) is replaced
    assert in_the_file(night, older) is not replaced
    assert in_the_file(night, newer)

    night.state.execute("DELETE FROM ledger WHERE sweep_id LIKE 'remember-%'")
    night.state.execute("UPDATE claims SET status = 'promoted', reason = NULL WHERE entry_key IS NOT NULL")
    (night.agent.workspace / "MEMORY.md").write_bytes(before)
    night.sweep(night.note(newer, "2026-03-19"))
    assert in_the_file(night, older) is not replaced
    assert in_the_file(night, newer)


def test_what_replaces_an_entry_of_a_project_belongs_to_the_project(night: Night) -> None:
    """The request names the project in words only; the old entry was noted for it."""
    night.sweep(night.note(f"The boathouse db listens on port 12.{MARK}"))
    remember(night.agent, "The boathouse db listens on port 14.", session_key="agent:main:main", sender="owner")
    (line,) = [line for line in night.memory.splitlines() if "port 14" in line]
    assert f"project: {PROJECT}" in line


def test_a_computed_key_is_not_written_into_the_file(night: Night) -> None:
    """The lineage mark is for the keys that writers give; a computed one stays in the ledger."""
    text = "The boathouse db listens on port 14."
    night.note(text)
    night.sweep(night.note("The wood is oak, ordered twice."))
    remember(night.agent, text, session_key="agent:main:main", sender="owner")
    assert "openclaw-memory-lineage" not in night.memory
    key = night.state.execute("SELECT lineage_key FROM ledger WHERE text LIKE '%port 14%'").fetchone()
    assert key == (f"{PROJECT}|port #|{claim_id(text)}",)


def test_a_newer_note_never_takes_away_what_the_owner_asked_for(night: Night) -> None:
    """Both stand, and the owner is told which two contradict each other."""
    remember(night.agent, "The boathouse db listens on port 12.", session_key="agent:main:main", sender="owner")
    late = parse_instant("2026-03-26T03:00:00Z")
    report = night.sweep(night.note("boathouse 的数据库端口是 14。", "2026-03-25"), now_ms=late)
    assert [conflict.newer for conflict in report.conflicts] == ["boathouse 的数据库端口是 14。"]
    assert "port 12" in night.memory
