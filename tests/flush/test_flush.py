"""The pre-compaction flush."""

from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.config import FlushSettings
from recall_runtime.flush.plan import FlushPlan, plan_flush, token_threshold
from recall_runtime.flush.write import FlushResult, write_flush
from recall_runtime.storage.schema import open_state
from recall_runtime.transcripts.envelopes import cut_user
from tests.support.sessions import START, SessionBuilder, agent_at

MAIN = "agent:main:main"
TODAY = "memory/2026-03-04.md"


@pytest.mark.parametrize(
    ("window", "threshold"),
    [(200_000, 176_000), (128_000, 104_000), (32_000, 8_000), (24_001, 1), (24_000, None), (8_000, None)],
)
def test_worked_thresholds(window: int, threshold: int | None) -> None:
    """openclaw-algorithms 29."""
    assert token_threshold(FlushSettings(), window) == threshold


def plan(agent: Agent, **values: object) -> FlushPlan:
    given = {
        "session_key": MAIN,
        "context_window": 200_000,
        "total_tokens": 180_000,
        "compaction_count": 0,
    } | values
    return plan_flush(agent, **given)  # type: ignore[arg-type]  # values of one call, by name


@pytest.mark.parametrize(
    ("values", "due", "reason"),
    [
        pytest.param({}, True, "tokens", id="over the threshold"),
        pytest.param({"total_tokens": 176_000}, True, "tokens", id="at the threshold"),
        pytest.param({"total_tokens": 175_999}, False, "below_threshold", id="below it"),
        pytest.param({"context_window": 24_000}, False, "below_threshold", id="a small window never by tokens"),
        pytest.param({"total_tokens": 1, "transcript_bytes": 2 * 1024 * 1024}, True, "transcript_size", id="size"),
        pytest.param({"total_tokens": 1, "transcript_bytes": 2 * 1024 * 1024 - 1}, False, "below_threshold", id="less"),
        pytest.param({"session_key": "agent:main:main:heartbeat"}, False, "heartbeat", id="heartbeat"),
        pytest.param({"session_key": "agent:main:subagent:1"}, False, "subagent", id="sub-agent"),
        pytest.param({"read_only": True}, False, "read_only", id="read-only workspace"),
    ],
)
def test_a_flush_is_due_by_tokens_or_size(tmp_path: Path, values: dict[str, object], reason: str, *, due: bool) -> None:
    found = plan(agent_at(tmp_path), **values)
    assert (found.due, found.reason) == (due, reason)
    assert bool(found.prompt) is due


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"enabled": False}, "disabled"), ({"force_transcript_bytes": 0}, "below_threshold")],
)
def test_settings_switch_it_off(tmp_path: Path, settings: dict[str, object], reason: str) -> None:
    agent = agent_at(tmp_path, flush=settings)
    found = plan(agent, total_tokens=1, transcript_bytes=10**9)
    assert (found.due, found.reason) == (False, reason)


def test_the_plan_names_the_one_file_and_the_one_tool(tmp_path: Path) -> None:
    found = plan(agent_at(tmp_path, zone="Pacific/Auckland", now=START + 12 * 3_600_000))
    assert (found.path, found.tool) == ("memory/2026-03-05.md", "note")
    assert found.path in found.prompt
    assert found.silent_token in found.prompt


def test_our_own_order_is_never_taken_for_the_users_words(tmp_path: Path) -> None:
    assert cut_user(plan(agent_at(tmp_path)).prompt).text == ""


def write(agent: Agent, text: str = "- the key hangs left", count: int = 0, key: str = MAIN) -> FlushResult:
    return write_flush(agent, text, session_key=key, session_id="s-1", compaction_count=count)


def test_a_session_is_flushed_once_in_each_compaction(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    assert [write(agent).outcome, write(agent).outcome, write(agent, count=1).outcome] == [
        "written",
        "skipped:already_flushed",
        "written",
    ]
    assert (agent.workspace / TODAY).read_text() == "- the key hangs left\n" * 2
    assert plan(agent, session_id="s-1").reason == "already_flushed"
    assert plan(agent, session_id="s-1", compaction_count=2).reason == "tokens"


@pytest.mark.parametrize("text", ["NO_REPLY", " no_reply\n", "", "\n"])
def test_nothing_to_keep_writes_nothing_and_counts(tmp_path: Path, text: str) -> None:
    agent = agent_at(tmp_path)
    assert write(agent, text).outcome == "nothing"
    assert write(agent).outcome == "skipped:already_flushed"
    assert not (agent.workspace / TODAY).exists()


@pytest.mark.parametrize(
    ("key", "outcome"),
    [("agent:main:main:heartbeat", "skipped:heartbeat"), ("agent:main:subagent:1", "skipped:subagent")],
)
def test_scaffold_sessions_are_never_flushed(tmp_path: Path, key: str, outcome: str) -> None:
    assert write(agent_at(tmp_path), key=key).outcome == outcome


def test_a_disabled_flush_writes_nothing(tmp_path: Path) -> None:
    assert write(agent_at(tmp_path, flush={"enabled": False})).outcome == "skipped:disabled"


def session(agent: Agent, *, web: bool, compacted: bool = False) -> None:
    builder = SessionBuilder("s-1", start=START - 500_000)
    builder.user("read it")
    if web:
        builder.tool("web_fetch", {}, "page")
    builder.assistant("Gist.")
    if compacted:
        builder.row("compaction", summary="x", firstKeptEntryId="y", tokensBefore=1)
    builder.user("and now?")
    builder.assistant("Fine.")
    builder.save(agent.folders.sessions[0])


@pytest.mark.parametrize(
    ("web", "compacted", "origin"),
    [
        pytest.param(False, False, "agent", id="clean"),
        pytest.param(True, False, "untrusted", id="an earlier turn read the web"),
        pytest.param(True, True, "agent", id="that was before the last compaction"),
    ],
)
def test_what_is_flushed_has_the_least_trusted_class_of_its_turns(
    tmp_path: Path, origin: str, *, web: bool, compacted: bool
) -> None:
    agent = agent_at(tmp_path)
    session(agent, web=web, compacted=compacted)
    appended = write(agent).appended
    assert appended is not None
    assert appended.provenance.origin_class.value == origin


def test_an_untrusted_flush_downgrades_only_its_own_segment(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    (agent.workspace / TODAY).write_text("- by hand\n")
    session(agent, web=True)
    write(agent)
    state = open_state(agent.folders.state_db)
    try:
        found = [row[0] for row in state.execute("SELECT origin_class FROM note_segments ORDER BY start_offset")]
    finally:
        state.close()
    assert found == ["agent", "untrusted"]


def test_a_failed_flush_is_reported_not_raised_and_may_be_tried_again(tmp_path: Path) -> None:
    agent = agent_at(tmp_path)
    target = agent.workspace / TODAY
    target.write_bytes("x".encode("utf-16"))
    assert write(agent).outcome.startswith("failed: ")
    state = open_state(agent.folders.state_db)
    try:
        assert [row[0][:7] for row in state.execute("SELECT outcome FROM flushes")] == ["failed:"]
    finally:
        state.close()
    target.unlink()
    assert write(agent).outcome == "written"
