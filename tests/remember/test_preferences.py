"""Preferences that change, from the owner's words to what a turn injects; and what no longer holds."""

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path

import pytest

from memory_assets.sweep import run_sweep
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, FixedClock, format_instant
from recall_runtime.index.sync import sync
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.tools import memory_search
from recall_runtime.recall.turn import turn
from recall_runtime.remember.request import remember
from recall_runtime.vocabulary import Operation
from tests.support.index_agents import NOW, agent_over, write_files
from tests.support.workspace_days import DIRECT, Days

MAIN = "agent:main:main"
# Three versions of each preference, as an owner says them, with what must be injected in the end.
MATTERS = [
    (("I prefer window seats.", "Actually aisle seats", "Prefer seats at the exit."), "Prefer seats at the exit."),
    (
        ("Always answer in German.", "From now on answer in English.", "Always answer in French."),
        "Always answer in French.",
    ),
    (
        ("Give prices in euro.", "Actually dollars.", "Give prices in yen from now on."),
        "Give prices in yen from now on.",
    ),
    (
        ("Never schedule calls before 9.", "Never schedule calls before 10:30.", "Never schedule calls after 16:00."),
        "Never schedule calls after 16:00.",
    ),
    (
        ("Prefer summaries as a list.", "Prefer summaries as one paragraph.", "I prefer summaries as a table"),
        "Prefer summaries as a table.",
    ),
    (("Immer Tee anbieten.", "Nie Tee anbieten.", "Immer Tee anbieten."), "Immer Tee anbieten."),
]
FILLERS = [
    "Remember that the server stands in room 12.",
    "The ram is called Otto.",
    "Still waiting for the invoice today.",
    "When the boiler comes up, remind me to ask about the warranty.",
    "Just for this trip, answer in Latin.",
    "Remind me tomorrow at 9 to call Robin.",
]


# What the notes of three days say in between, in the order of MATTERS: whole statements, as an agent notes them.
NOTED = [
    "Prefer aisle seats.",
    "Always answer in English.",
    "Always give prices in dollars.",
    "Never schedule calls before 10:30.",
    "Prefer summaries as one paragraph.",
    "Nie Tee anbieten.",
]


def at(agent: Agent, day: int) -> Agent:
    return replace(agent, clock=FixedClock(NOW + day * MS_PER_DAY))


@pytest.mark.parametrize("seed", range(50))
def test_after_two_changes_a_turn_injects_exactly_the_newest(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311 - a reproducible dialogue
    agent = agent_over(write_files(tmp_path / "workspace", {}), tmp_path / "home")
    chosen = generator.sample(MATTERS, generator.randint(1, 3))
    said = [(version, matter[0][version]) for version in range(3) for matter in generator.sample(chosen, len(chosen))]
    for number, (version, text) in enumerate(said):
        for filler in generator.sample(FILLERS, generator.randint(0, 2)):
            remember(at(agent, number), filler, session_key=MAIN, sender="owner")
        made = remember(at(agent, number), text, session_key=MAIN, sender="owner")
        assert len(made.superseded) == (version > 0), (text, made)
    shown = turn(at(agent, len(said)), "hello", session_key=MAIN, sender="owner", record=False).bootstrap
    directives = [line for line in shown.partition("## MEMORY.md")[0].splitlines() if line.startswith("- ")]
    assert sorted(directives) == sorted(f"- {newest}" for _, newest in chosen)


@pytest.mark.parametrize("seed", range(10))
def test_the_newest_is_injected_also_when_a_sweep_made_the_change_before(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311 - a reproducible dialogue
    days = Days(tmp_path, sources={"owner_ids": ["owner"], "session_folders": []})
    chosen = generator.sample(list(zip(MATTERS, NOTED, strict=True)), generator.randint(1, 3))

    def say(instant: str, text: str) -> tuple[str, ...]:
        return remember(days.at(instant), text, session_key=DIRECT, sender="owner").superseded

    def injected(instant: str) -> list[str]:
        made = turn(days.at(instant), "hello", session_key=DIRECT, sender="owner", record=False)
        return sorted(
            line for line in made.bootstrap.partition("## MEMORY.md")[0].splitlines() if line.startswith("- ")
        )

    for (versions, _), _ in generator.sample(chosen, len(chosen)):
        assert say("2026-03-02T09:00:00Z", versions[0]) == ()
    for day in ("03", "04", "05"):
        for _, noted in generator.sample(chosen, len(chosen)):
            days.note(f"2026-03-{day}T10:00:00Z", f"- {noted}", f"session-{day}")
    swept = run_sweep(days.at("2026-03-06T03:00:00Z"), publishing=False).curated
    assert swept is not None
    assert swept.count(Operation.SUPERSEDED) == len(chosen)
    assert injected("2026-03-06T09:00:00Z") == sorted(f"- {noted}" for _, noted in chosen)
    for (versions, _), noted in generator.sample(chosen, len(chosen)):
        assert say("2026-03-07T09:00:00Z", versions[2]) == (noted,)
    assert injected("2026-03-08T09:00:00Z") == sorted(f"- {newest}" for (_, newest), _ in chosen)


def test_what_has_expired_is_found_and_marked_but_injected_nowhere(tmp_path: Path) -> None:
    lines = (
        "- Deploys of the shop are frozen. <!-- trigger: shop deploys --> <!-- expires: 2026-03-25 -->\n"
        "- The shop stands on vega. <!-- trigger: shop deploys -->\n"
    )
    user = (
        "## Directives\n\n- Always ask Robin about the shop until 2026-03-25.\n- Prefer short answers about the shop.\n"
    )
    workspace = write_files(tmp_path / "workspace", {"MEMORY.md": lines, "USER.md": user})
    agent = agent_over(workspace, tmp_path / "home")
    sync(agent)
    message = "what about the shop deploys?"
    last_day = dt.date(2026, 3, 25)
    assert format_instant(NOW + 5 * MS_PER_DAY).startswith(last_day.isoformat())
    with Runtime(agent) as runtime:  # one server lives through both days
        for day, holds in ((5, True), (6, False)):
            now = at(agent, day)
            made = turn(now, message, session_key=MAIN, sender="owner", record=False, runtime=runtime)
            for block in (made.bootstrap, made.triggers):
                assert ("frozen" in block) is holds
                assert "vega" in block
                assert ("(expires: 2026-03-25)" in block) is holds
            assert ("ask Robin" in made.text) is holds
            assert "Prefer short answers" in made.text
            assert ("expired" in {omission.reason for omission in made.omissions}) is not holds
            found = memory_search(now, runtime, "shop deploys frozen", session_key=MAIN, sender="owner", record=False)
            hit = next(one for one in found["results"] if "frozen" in one["snippet"])
            assert (hit["expires"], hit["expired"]) == ("2026-03-25", not holds)
