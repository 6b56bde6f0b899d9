"""Whether a sync would find something to do, told without reading a file."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock
from recall_runtime.config import EmbedderSettings
from recall_runtime.index.freshness import compare
from recall_runtime.index.sync import sync
from recall_runtime.provenance.segments import line_hash
from tests.support.index_agents import NOW, agent_over, write_files

NOTE = "# 2026-03-18\n\n- The rake stands in the shed.\n"
CLOSED = {"name": "openai-compatible", "base_url": "http://127.0.0.1:9/v1", "model": "m"}  # nobody listens there


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    files = {"memory/2026-03-18.md": NOTE, "MEMORY.md": "- The ladder is red.\n"}
    return agent_over(write_files(tmp_path / "ws", files), tmp_path / "home")


def test_freshness_names_what_changed_since_the_last_sync(agent: Agent) -> None:
    assert compare(agent).missing_index
    sync(agent)
    assert compare(agent).is_fresh
    (agent.workspace / "memory/2026-03-18.md").write_text(NOTE + "- More.\n", encoding="utf-8")
    (agent.workspace / "memory/2026-03-19.md").write_text("- New.\n", encoding="utf-8")
    (agent.workspace / "MEMORY.md").unlink()
    report = compare(agent)
    assert (report.changed, report.new, report.gone) == (
        ("memory/2026-03-18.md",),
        ("memory/2026-03-19.md",),
        ("MEMORY.md",),
    )
    assert not report.is_fresh


def with_embedder(agent: Agent, **settings: str) -> Agent:
    section = EmbedderSettings.model_validate(settings)
    return replace(agent, settings=agent.settings.model_copy(update={"embedder": section}))


def at(agent: Agent, now_ms: int) -> Agent:
    return replace(agent, clock=FixedClock(now_ms))


def static(agent: Agent) -> Agent:
    """Another embedder than before: the entries have no vectors of it."""
    return with_embedder(agent, name="static")


def older_cutting(agent: Agent) -> Agent:
    """A version that cut texts differently built the index."""
    with contextlib.closing(apsw.Connection(str(agent.folders.index_db))) as index:
        index.execute("UPDATE meta SET value = '1' WHERE key = 'chunking'")
    return agent


def other_vectors(agent: Agent) -> Agent:
    """Vectors of another embedder are inside."""
    agent = static(agent)
    sync(agent)
    with contextlib.closing(apsw.Connection(str(agent.folders.index_db))) as index:
        index.execute("UPDATE meta SET value = 'other' WHERE key = 'embedder'")
    return agent


def a_record(agent: Agent) -> Agent:
    """It became known who wrote a line."""
    with contextlib.closing(apsw.Connection(str(agent.folders.state_db))) as state:
        state.execute(
            "INSERT INTO reported_writes(path, line_hash, session_id, origin_class, session_kind, observed_at)"
            " VALUES ('memory/2026-03-18.md', ?, 's', 'untrusted', 'interactive', 1)",
            (line_hash("- The rake stands in the shed."),),
        )
    return agent


def nothing(agent: Agent) -> Agent:
    return agent


@pytest.mark.parametrize(
    ("change", "fresh"),
    [
        pytest.param(nothing, True, id="nothing"),
        pytest.param(static, False, id="entries without vectors"),
        pytest.param(older_cutting, False, id="another version of cutting"),
        pytest.param(other_vectors, False, id="vectors of another embedder"),
        pytest.param(a_record, False, id="a record of who wrote a line"),
    ],
)
def test_what_a_sync_would_do_is_seen_and_is_over_after_it(
    agent: Agent, change: Callable[[Agent], Agent], fresh: bool
) -> None:
    sync(agent)
    changed = change(agent)
    assert compare(changed).is_fresh is fresh
    sync(changed)
    assert compare(changed).is_fresh


def test_without_an_embedder_no_vectors_are_missed(agent: Agent) -> None:
    sync(agent)
    assert (compare(agent).without_vector, compare(agent).vectors_due) == (3, False)


def test_an_embedder_that_is_not_installed_makes_nothing_to_do(agent: Agent) -> None:
    sync(agent)
    assert compare(with_embedder(agent, name="openai-compatible")).is_fresh  # neither model nor base_url


def test_a_failed_endpoint_is_tried_again_later_and_later(agent: Agent) -> None:
    remote, now = with_embedder(agent, **CLOSED), NOW
    for seconds in (30, 60, 120, 240, 480, 960, 1920, 3600, 3600):
        assert sync(at(remote, now)).vector_error
        assert compare(at(remote, now + 1000 * seconds - 1)).is_fresh
        now += 1000 * seconds
        assert compare(at(remote, now)).vectors_due


def test_vectors_that_could_be_made_end_the_waiting(agent: Agent) -> None:
    sync(with_embedder(agent, **CLOSED))
    sync(static(agent))
    (agent.workspace / "memory/2026-03-19.md").write_text("- New.\n", encoding="utf-8")
    sync(agent)  # with words alone
    assert compare(static(agent)).vectors_due


def test_a_failed_endpoint_counts_as_no_change(agent: Agent) -> None:
    remote = with_embedder(agent, **CLOSED)
    sync(remote)
    assert not sync(remote).changed
