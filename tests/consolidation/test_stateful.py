"""Any order of notes, sweeps, human edits, crashes and model answers: no human byte lost, nothing promoted twice."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from recall_runtime.curated.writer import Step, recover
from recall_runtime.models.protocol import ChatAnswer, ChatRequest
from recall_runtime.notes.curated import parse_curated
from recall_runtime.storage.schema import open_state
from tests.support.curated import agent_in
from tests.support.night import Night

PROJECTS = ("boathouse", "windmill")
KINDS = ("queue is jobs.{}", "backups land in s3://keep-{}", "budget cap is {} EUR", "listens on port {}")
FACTS = st.tuples(st.sampled_from(PROJECTS), st.sampled_from(KINDS), st.integers(1000, 1008), st.integers(1, 18))
DIRECTIVES = st.sampled_from(
    ["Always give prices in euro.", "Always give prices in Swiss francs.", "Always use metric units.", "Prefer tables."]
)


class StopHereError(Exception):
    """Ends a write in the middle, as a crash does."""


class ScriptedModel:
    """A model at the edge: answers whatever the test drew."""

    name = "scripted"

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def complete(self, request: ChatRequest, **_: Any) -> ChatAnswer:
        """Return operations made of drawn actions and drawn lines of the file."""
        shown = json.loads(request.messages[1].text)
        lines = [line for line in shown["currentMemory"].split("\n") if line]
        operations = [
            {
                "candidateKey": candidate["key"],
                "action": self.draw(st.sampled_from(["added", "merged", "superseded"])),
                "priorEntries": self.draw(st.lists(st.sampled_from(lines), max_size=2)) if lines else [],
            }
            for candidate in shown["candidates"]
        ]
        data: Any = {"operations": operations[self.draw(st.integers(0, 1)) :]}
        return ChatAnswer(text=json.dumps(data), model="scripted", data=data)


class Nights(RuleBasedStateMachine):
    """Nights of one agent."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        agent = agent_in(self.folder)
        self.night = Night(agent, open_state(agent.folders.state_db))
        self.claims: list[str] = []
        self.typed: list[str] = []
        self.crashed = False

    @rule(fact=FACTS)
    def note_a_fact(self, fact: tuple[str, str, int, int]) -> None:
        """A fact about a project on some day, possibly late."""
        project, kind, value, day = fact
        text = f"The {project} {kind.format(value)}. <!-- project: github.com/e/{project} -->"
        self.claims.append(self.night.note(text, f"2026-03-{day:02d}"))

    @rule(text=DIRECTIVES, day=st.integers(1, 18))
    def note_a_directive(self, text: str, day: int) -> None:
        """A wish of the owner."""
        self.claims.append(self.night.note(text, f"2026-03-{day:02d}"))

    @rule(at_top=st.booleans(), child=st.booleans())
    def type_by_hand(self, at_top: bool, child: bool) -> None:
        """A person adds a line at the top or at the end, flush or as a child."""
        file = self.night.agent.workspace / "MEMORY.md"
        line = f"{'  ' if child else ''}- Typed by hand number {len(self.typed)}."
        self.typed.append(line)
        old = file.read_text() if file.exists() else ""
        file.write_text(f"{line}\n{old}" if at_top else f"{old}{line}\n")

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), with_model=st.booleans(), stop=st.sampled_from([None, *Step]))
    def sweep(self, data: Any, with_model: bool, stop: Step | None) -> None:
        """A sweep over some claims, with or without a model, that may end in the middle."""
        passed = data.draw(st.lists(st.sampled_from(self.claims), max_size=5, unique=True))
        model = ScriptedModel(data.draw) if with_model else None

        def hook(step: Step) -> None:
            if step is stop:
                raise StopHereError

        try:
            self.night.sweep(*passed, model=model, on_step=hook)
        except StopHereError:
            self.crashed = True

    @precondition(lambda self: self.crashed)
    @rule()
    def run_again(self) -> None:
        """The next run finishes or rolls back."""
        recover(self.night.agent, self.night.state)
        self.crashed = False

    @invariant()
    def no_typed_line_is_lost(self) -> None:
        """Every line a person typed is there once, in its own words."""
        file = self.night.agent.workspace / "MEMORY.md"
        lines = Counter(file.read_text().split("\n") if file.exists() else [])
        assert all(lines[line] == 1 for line in self.typed)

    @invariant()
    def ledger_and_file_agree(self) -> None:
        """Entries with our marks are exactly those the ledger says are there, each once."""
        if self.night.state.execute("SELECT count(*) FROM write_journal").fetchone() != (0,):
            return
        file = self.night.agent.workspace / "MEMORY.md"
        entries = parse_curated(file.read_bytes()).entries if file.exists() else ()
        present = Counter(key for entry in entries for key in entry.entry_keys)
        assert all(count == 1 for count in present.values())
        superseded = {
            key
            for (key,) in self.night.state.execute(
                "SELECT entry_key FROM claims WHERE status = 'superseded' AND entry_key IS NOT NULL"
            )
        }
        written = Counter(
            key
            for (key,) in self.night.state.execute(
                "SELECT entry_key FROM ledger WHERE file = 'MEMORY.md' AND operation IN ('added', 'superseded')"
            )
        )
        assert all(count == 1 for count in written.values())
        assert set(present) == set(written) - superseded

    def teardown(self) -> None:
        """Close and remove everything."""
        self.night.state.close()
        shutil.rmtree(self.folder)


TestNights = Nights.TestCase
TestNights.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
