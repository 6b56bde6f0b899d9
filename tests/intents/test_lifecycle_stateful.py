"""The lifecycle under random operations and a clock that jumps both ways."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from recall_runtime.intents.matching import IntentMatch, give_back
from recall_runtime.intents.store import cancel, list_intents
from recall_runtime.storage.schema import open_state
from tests.intents.helpers import DAY, NOW, arm, say

WORDS = ("parcel", "invoice", "boiler service", "锅炉")
FINAL = frozenset({"done", "cancelled", "expired"})


class Lifecycle(RuleBasedStateMachine):
    """Operations at arbitrary instants; the invariants hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.connection = open_state(Path(self.folder.name) / "state.sqlite")
        self.now = NOW
        self.final: dict[str, str] = {}
        self.last: IntentMatch | None = None

    def teardown(self) -> None:
        self.connection.close()
        self.folder.cleanup()

    @rule(step=st.integers(-40 * DAY, 40 * DAY))
    def move_the_clock(self, step: int) -> None:
        self.now = max(1, self.now + step)

    @rule(
        word=st.sampled_from(WORDS),
        fires=st.integers(1, 3),
        cooldown=st.sampled_from((0, 60, 86_400)),
        days=st.integers(1, 100),
        number=st.integers(0, 99),
    )
    def create(self, word: str, fires: int, cooldown: int, days: int, number: int) -> None:
        bounds = {"max_fires": fires, "cooldown_seconds": cooldown, "expires_at": self.now + days * DAY}
        arm(self.connection, word, at=self.now, description=f"Mention {number}.", **bounds)  # type: ignore[arg-type]  # a text among numbers

    @rule(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3))
    def message(self, words: list[str]) -> None:
        before = {row.intent_id: row for row in list_intents(self.connection, self.now)}
        self.last = say(self.connection, " and ".join(words), self.now)
        assert len(self.last.fired) <= 3
        assert len(self.last.block) <= 1_200
        for fired in self.last.fired:
            row = before[fired.intent_id]
            assert row.status == "armed"
            assert row.fire_count < row.max_fires
            assert row.expires_at is None or row.expires_at > self.now
            assert row.last_fired_at is None or row.last_fired_at + row.cooldown_seconds * 1_000 <= self.now

    @precondition(lambda self: self.last is not None and self.last.fired)
    @rule()
    def reply_failed(self) -> None:
        assert self.last is not None
        expired = {row.intent_id for row in list_intents(self.connection, self.now) if row.status == "expired"}
        restored = give_back(self.connection, self.last.fired)
        assert restored <= len(self.last.fired)
        for fired in self.last.fired:
            if fired.intent_id not in expired and self.final.get(fired.intent_id) == "done":
                del self.final[fired.intent_id]  # the only way back from a final state
        self.last = None

    @rule(index=st.integers(0, 20))
    def cancel_one(self, index: int) -> None:
        rows = list_intents(self.connection, self.now)
        if rows:
            row = rows[index % len(rows)]
            assert cancel(self.connection, row.intent_id, self.now) is (row.status not in FINAL)

    @invariant()
    def states_and_budgets_hold(self) -> None:
        rows = list_intents(self.connection, self.now)
        for row in rows:
            assert 0 <= row.fire_count <= row.max_fires
            assert (row.status == "done") <= (row.fire_count == row.max_fires)
            if row.intent_id in self.final:
                assert row.status == self.final[row.intent_id], "a final state was left"
            if row.status in FINAL:
                self.final[row.intent_id] = row.status
        found = {key for (key,) in self.connection.execute("SELECT DISTINCT intent_key FROM standing_intent_terms")}
        assert found == {row.intent_key for row in rows if row.status not in FINAL}


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
