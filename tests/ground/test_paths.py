"""What a path says by name alone, and where an agent's files lie."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall_runtime.paths import AgentFolders, PathKind, kind_of, note_day, tier_of
from recall_runtime.vocabulary import Tier


@pytest.mark.parametrize(
    ("path", "kind", "tier"),
    [
        ("MEMORY.md", PathKind.MEMORY, Tier.CURATED),
        ("memory.md", PathKind.MEMORY, Tier.CURATED),  # the older spelling
        ("Memory.md", PathKind.OTHER, None),  # no known spelling
        ("USER.md", PathKind.USER, Tier.CURATED),
        ("dreams.md", PathKind.DREAMS, Tier.REVIEW),
        ("memory/2026-03-04.md", PathKind.DAILY_NOTE, Tier.EPISODIC),
        ("memory/2026-03-04-deploy.md", PathKind.DAILY_NOTE, Tier.EPISODIC),
        ("memory\\2026-03-04.md", PathKind.DAILY_NOTE, Tier.EPISODIC),  # written on Windows
        ("./memory/projects/helm.md", PathKind.TOPIC_NOTE, Tier.EPISODIC),
        ("memory/2026-02-30.md", PathKind.TOPIC_NOTE, Tier.EPISODIC),  # no such day
        ("memory/dreaming/light/2026-03-04.md", PathKind.REPORT, Tier.REVIEW),  # dated, but our own report
        ("memory/.dreams/short-term-recall.json", PathKind.MACHINE, Tier.REVIEW),
        ("memory/imports/claude/CLAUDE.md", PathKind.IMPORT, Tier.IMPORTS),
        ("memory/picture.png", PathKind.OTHER, None),
        ("sessions/main/abc.jsonl", PathKind.TRANSCRIPT, Tier.SESSIONS),
        ("notes/2026-03-04.md", PathKind.OTHER, None),  # outside memory/
        ("memory/MEMORY.md", PathKind.TOPIC_NOTE, Tier.EPISODIC),  # the curated file lies at the root only
    ],
)
def test_a_path_is_what_its_name_says(path: str, kind: PathKind, tier: Tier | None) -> None:
    assert (kind_of(path), tier_of(path)) == (kind, tier)


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-03-04.md", "2026-03-04"),
        ("memory/2026/2026-03-04_standup.MD", "2026-03-04"),  # any depth, any case of the ending
        ("memory/2026-03-04 notes.md", "2026-03-04"),
        ("memory/x2026-03-04.md", None),
        ("memory/2026-03-04", None),
        ("memory/2026-03-041.md", None),
        ("memory/2026-00-10.md", None),
    ],
)
def test_a_date_is_read_from_the_whole_file_name(path: str, day: str | None) -> None:
    found = note_day(path)
    assert (found.isoformat() if found else None) == day


@given(path=st.text(max_size=60))
def test_any_text_is_some_path(path: str) -> None:
    assert (tier_of(path) is None) == (kind_of(path) is PathKind.OTHER)


def test_two_agents_share_no_database(tmp_path: Path) -> None:
    first, second = (AgentFolders(tmp_path, name, tmp_path / "workspace") for name in ("main", "ops"))
    places = [
        {folders.index_db, folders.state_db, folders.spool, folders.analytics, folders.agent_home}
        for folders in (first, second)
    ]
    assert not places[0] & places[1]
