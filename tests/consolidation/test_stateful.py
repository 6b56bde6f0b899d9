"""Any order of notes, sweeps, undos, human edits, crashes and model answers: no human byte lost, nothing twice."""

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memory_assets.staging.reopening import reopen
from recall_runtime.curated.history import UNDONE_BY, undo
from recall_runtime.curated.writer import Step, recover
from recall_runtime.models.protocol import ChatAnswer, ChatRequest
from recall_runtime.notes.curated import parse_curated
from recall_runtime.paths import MEMORY_FILE, USER_FILE
from recall_runtime.storage.connection import write_transaction
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import EntryStatus, Operation
from tests.support.curated import NOW, agent_in
from tests.support.night import Night

PROJECTS = ("boathouse", "windmill")
KINDS = ("queue is jobs.{}", "listens on port {}")
FACTS = st.tuples(st.sampled_from(PROJECTS), st.sampled_from(KINDS), st.integers(1000, 1002), st.integers(1, 18))
DIRECTIVES = st.sampled_from(
    ["Always give prices in euro.", "Always give prices in Swiss francs.", "Always use metric units.", "Prefer tables."]
)


FILES = st.sampled_from([MEMORY_FILE, USER_FILE])


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
        self.typed: dict[str, str] = {}  # line and the file it was typed into
        self.lines = 0
        self.undos = 0
        self.crashed = False

    @rule(fact=FACTS)
    def note_a_fact(self, fact: tuple[str, str, int, int]) -> None:
        """A fact about a project on some day, possibly late."""
        project, kind, value, day = fact
        self.note(f"The {project} {kind.format(value)}. <!-- project: github.com/e/{project} -->", day)

    @rule(text=DIRECTIVES, day=st.integers(1, 18))
    def note_a_directive(self, text: str, day: int) -> None:
        """A wish of the owner."""
        self.note(text, day)

    def note(self, text: str, day: int) -> None:
        """Stage a statement as the light phase does: what was closed and is stated anew waits again."""
        claim = self.night.note(text, f"2026-03-{day:02d}")
        with write_transaction(self.night.state):
            reopen(self.night.state, [claim])
        self.claims.append(claim)

    def new_line(self, file: str, *, child: bool) -> str:
        """A line nobody typed before."""
        self.lines += 1
        line = f"{'  ' if child else ''}- Typed by hand number {self.lines}."
        self.typed[line] = file
        return line

    def content(self, file: str) -> str:
        """What a curated file holds now."""
        path = self.night.agent.workspace / file
        return path.read_text() if path.exists() else ""

    @rule(file=FILES, at_top=st.booleans(), child=st.booleans())
    def type_by_hand(self, file: str, at_top: bool, child: bool) -> None:
        """A person adds a line at the top or at the end, flush or as a child."""
        line, old = self.new_line(file, child=child), self.content(file)
        self.night.write(f"{line}\n{old}" if at_top else f"{old}{line}\n", file)

    @precondition(lambda self: self.typed)
    @rule(data=st.data(), delete=st.booleans(), child=st.booleans())
    def change_by_hand(self, data: Any, delete: bool, child: bool) -> None:
        """A person deletes a line typed earlier, or says something else in its place."""
        line = data.draw(st.sampled_from(sorted(self.typed)))
        file = self.typed.pop(line)
        fresh = "" if delete else self.new_line(file, child=child) + "\n"
        self.night.write(self.content(file).replace(line + "\n", fresh), file)

    @precondition(lambda self: not self.crashed and self.sweeps_to_undo())
    @rule(data=st.data())
    def take_back(self, data: Any) -> None:
        """The owner takes a sweep back, the last one or an earlier one."""
        self.undos += 1
        undo(
            self.night.agent,
            self.night.state,
            data.draw(st.sampled_from(self.sweeps_to_undo())),
            now_ms=NOW + 1000 + self.undos,
        )

    def sweeps_to_undo(self) -> list[str]:
        """The sweeps that wrote a file and of which nothing was taken back."""
        undone = {sweep for sweep, _ in self.undone()}
        rows = self.night.state.execute("SELECT DISTINCT sweep_id FROM pre_images ORDER BY sweep_id")
        return [sweep for (sweep,) in rows if not sweep.startswith(UNDONE_BY) and sweep not in undone]

    def undone(self) -> set[tuple[str, str]]:
        """Sweep and file of what was taken back."""
        rows = self.night.state.execute("SELECT sweep_id, file FROM ledger WHERE operation = 'undone'")
        return {(sweep.removeprefix(UNDONE_BY), file) for sweep, file in rows}

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), with_model=st.booleans(), stop=st.sampled_from([None, *Step]))
    def sweep(self, data: Any, with_model: bool, stop: Step | None) -> None:
        """A sweep over some claims, with or without a model, that may end in the middle."""
        everything = sorted(set(self.claims))
        passed = data.draw(st.just(everything) | st.lists(st.sampled_from(everything), max_size=5, unique=True))
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
    def typed_lines_are_as_their_owner_left_them(self) -> None:
        """Every line a person typed and did not delete is there once, in its own words and file, and no other."""
        found = [
            (line, file)
            for file in (MEMORY_FILE, USER_FILE)
            for line in self.content(file).split("\n")
            if "Typed" in line
        ]
        assert sorted(found) == sorted(self.typed.items())

    @invariant()
    def ledger_and_files_agree(self) -> None:
        """The entries with our marks that hold are exactly those that the ledger leaves standing, each once."""
        if self.night.state.execute("SELECT count(*) FROM write_journal").fetchone() != (0,):
            return
        for file in (MEMORY_FILE, USER_FILE):
            entries = parse_curated(self.content(file).encode(), user_file=file == USER_FILE).entries
            present = Counter(
                key for entry in entries if entry.status is EntryStatus.ACTIVE for key in entry.entry_keys
            )
            assert present == Counter(self.standing(file))

    def standing(self, file: str) -> set[str]:
        """Follow the ledger: nothing is written that stands already, and nothing replaced that does not."""
        undone = self.undone()
        standing: set[str] = set()
        keys: dict[str, str] = {}
        rows = self.night.state.execute(
            "SELECT sweep_id, operation, entry_key, claim_id, text, priors FROM ledger WHERE file = ?"
            " ORDER BY ledger_id",
            (file,),
        )
        for sweep, operation, key, claim, text, priors in rows:
            if operation == Operation.UNDONE or (sweep, file) in undone:
                continue
            if operation in (Operation.ADDED, Operation.SUPERSEDED):
                standing -= {keys[line.strip()] for line in json.loads(priors) if line.strip() in keys}
                if claim is not None:
                    assert key not in standing
                    standing.add(key)
                    keys[text.strip()] = key
            elif operation == Operation.DROPPED:
                standing.remove(key)
        return standing

    def teardown(self) -> None:
        """Close and remove everything."""
        self.night.state.close()
        shutil.rmtree(self.folder)


TestNights = Nights.TestCase
TestNights.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
