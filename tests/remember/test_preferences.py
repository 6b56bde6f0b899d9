"""Preferences that change, from the owner's words to what a turn injects; and what no longer holds."""

import datetime as dt
import random
from dataclasses import replace
from pathlib import Path

import pytest

from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, FixedClock, format_instant
from recall_runtime.index.sync import sync
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.tools import memory_search
from recall_runtime.recall.turn import turn
from recall_runtime.remember.request import remember
from tests.support.index_agents import NOW, agent_over, write_files

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
