"""Hard MEMORY.md files under a sweep: bytes of people, generations of entries, links."""

import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recall_runtime.clock import parse_instant
from recall_runtime.config import DeepSettings, DreamingSettings, Settings
from recall_runtime.vocabulary import Operation
from tests.support.curated import agent_in
from tests.support.night import Night

CASES = Path(__file__).parents[1] / "cases"
REAL = Path(__file__).parents[1] / "cases_real"
FILES = {
    "01": CASES / "01-crlf-no-final-newline" / "MEMORY.md",
    "02": CASES / "02-bom-front-matter" / "MEMORY.md",
    "08": CASES / "08-nested-bullets" / "MEMORY.md",
    "17": CASES / "17-managed-blocks" / "MEMORY.md",
    "real-03": REAL / "03-memory-three-generations.md",
    "real-09": REAL / "09-struck-corrections-de.md",
}


def place(night: Night, case: str) -> bytes:
    """Put the file of ``case`` in place with the product's own markers; return its bytes."""
    data = FILES[case].read_bytes()
    if case == "17":
        data = data.replace(b"<!-- memory-promotion:", b"<!-- openclaw-memory-promotion:")
    night.write(data)
    return data


@pytest.mark.parametrize("case", sorted(FILES))
def test_a_sweep_with_nothing_to_write_leaves_the_bytes_alone(night: Night, case: str) -> None:
    """Identical bytes, mark and line ends included."""
    data = place(night, case)
    night.sweep()
    assert (night.agent.workspace / "MEMORY.md").read_bytes() == data


@pytest.mark.parametrize("case", sorted(FILES))
def test_an_added_entry_leaves_every_old_byte_in_place(night: Night, case: str) -> None:
    """Old bytes are a prefix of the new ones; the entry has its own line and the file's line end."""
    data = place(night, case)
    night.sweep(night.note("The ram is called Otto."))
    new = (night.agent.workspace / "MEMORY.md").read_bytes()
    assert new.startswith(data)
    end = b"\r\n" if case == "01" else b"\n"
    assert end + b"- The ram is called Otto. Source: " in new
    assert new.count(b"\n") == new.count(end)
    assert new.count(b"\xef\xbb\xbf") == data.count(b"\xef\xbb\xbf")
    assert new.count(b"tags: [home") == data.count(b"tags: [home")


@pytest.mark.parametrize("front", ["good", "broken"])
def test_front_matter_is_kept_byte_for_byte(night: Night, front: str) -> None:
    """P22: also front matter that does not parse, here in USER.md."""
    name = "MEMORY.md" if front == "good" else "USER.md"
    data = (CASES / "02-bom-front-matter" / name).read_bytes()
    night.write(data, name)
    text = "The ram is called Otto." if front == "good" else "Always use metric units."
    night.sweep(night.note(text))
    new = (night.agent.workspace / name).read_bytes()
    assert new.startswith(data.rstrip(b"\n"))
    assert text.encode() in new


def test_a_newer_lineage_value_replaces_only_the_generated_entry(night: Night) -> None:
    """Real 03: 42108 gives way to its successor; the hand-written 42102 and everything else stay."""
    data = place(night, "real-03").decode()
    claim = night.note("Boiler code is 42199 since October.", "2026-10-02", supersedes="house:boiler-code")
    report = night.sweep(claim, now_ms=parse_instant("2026-10-03T03:00:00Z"))
    gone = [line for line in data.splitlines() if line not in night.memory.splitlines()]
    assert report.count(Operation.SUPERSEDED) == 1
    assert len([line for line in gone if line.startswith("- ")]) == 1
    assert "42108" in gone[-1]
    assert "- Boiler code 42102 <!-- trigger" in night.memory
    assert "- a bullet in a fence 42110" in night.memory
    assert "- **Why**: the roofer asked for it (42107)" in night.memory


def test_budget_pressure_drops_whole_generated_sections_only(night: Night) -> None:
    """Real 03 and P36: the mixed section of August counts as hand-written, the pure ones of April may go."""
    data = place(night, "real-03").decode()
    settings = Settings(dreaming=DreamingSettings(deep=DeepSettings(memory_budget_characters=len(data) + 60)))
    night.agent = replace(night.agent, settings=settings)
    report = night.sweep(night.note("The ram is called Otto and lives in barn-7."))
    dropped = [change.line for change in report.changes if change.operation is Operation.DROPPED]
    assert dropped
    assert all("2026-04-1" in line for line in dropped)
    for kept in ("42101", "42102", "42103", "42105", "42106", "42107", "42110", "tab-indented child"):
        assert kept in night.memory


def test_no_pipeline_record_is_ever_written(night: Night) -> None:
    """Case 17: no score, confidence or Candidate in any entry we write."""
    place(night, "17")
    before = night.memory
    claims = [
        night.note("The canoe is stored at the boathouse now."),
        night.note("The paddle was borrowed from Ida in 2025."),
    ]
    night.sweep(*claims)
    added = night.memory.removeprefix(before)
    assert added.count("\n- ") == 2
    assert not [word for word in ("score=", "recalls=", "confidence:", "Candidate:") if word in added]


@pytest.mark.slow
def test_a_sweep_writes_through_a_link_and_keeps_its_mode(tmp_path: Path, night: Night) -> None:
    """Case 13: MEMORY.md and the dangling USER.md are links into a vault."""
    out = tmp_path / "linked"
    subprocess.run([sys.executable, CASES / "13-symlinks" / "build.py", out], check=True, timeout=60)
    shutil.rmtree(night.agent.workspace)
    night.agent = replace(agent_in(out), folders=replace(night.agent.folders, workspace=out / "workspace"))
    night.sweep(
        night.note("The ram is called Otto.", "2026-03-20"), night.note("Always use metric units.", "2026-03-20")
    )
    for name in ("MEMORY.md", "USER.md"):
        assert (out / "workspace" / name).is_symlink()
    assert "- The ram is called Otto." in (out / "vault" / "MEMORY.md").read_text()
    assert "- Always use metric units." in (out / "vault" / "USER.md").read_text()
    assert stat.S_IMODE((out / "vault" / "MEMORY.md").stat().st_mode) == 0o640
