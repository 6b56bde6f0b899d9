"""The optional vector trigger, from the setting to the fire."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors
from recall_runtime.intents.matching import Turn, match
from recall_runtime.intents.vectors import MAX_MADE, renew_vectors, vector_trigger
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.turn import turn
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import SessionKind
from tests.intents.helpers import NOW, OWNER, UTC, arm, state
from tests.support.index_agents import agent_over, write_files

OTHER_WORDS = "My automobile insurance"  # of an intent on "car insurance"
LEVELS = Calibration(unrelated=0.0, paraphrase=1.0)


@dataclass(frozen=True)
class Letters:
    """An embedder of two dimensions: how much of a text is its first letter, and the rest."""

    letter: str
    calibration: Calibration | None = LEVELS
    dimensions = 2
    worth_caching = False

    @property
    def identity(self) -> str:
        return f"letters:{self.letter}"

    def embed_query(self, text: str) -> Vector:
        share = text.count(self.letter) / max(1, len(text))
        return np.array([share, np.sqrt(1 - share * share)], np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])


def asked(text: str) -> Turn:
    return Turn(text, OWNER, SessionKind.INTERACTIVE, "agent:main:main")


@pytest.mark.parametrize(
    ("embedder", "switched_on", "message", "fires"),
    [
        ("static", True, OTHER_WORDS, True),
        ("static", False, OTHER_WORDS, False),  # off by default
        ("none", True, OTHER_WORDS, False),  # nothing to compare with
        ("static", True, "The weather is nice", False),
        ("static", False, "The car insurance is due", True),  # words alone
        ("static", True, "The car insurance is due", True),
        ("none", True, "The car insurance is due", True),
    ],
)
def test_one_setting_switches_the_vector_trigger_on(
    tmp_path: Path, embedder: str, switched_on: bool, message: str, fires: bool
) -> None:
    settings = {"embedder": {"name": embedder}} | ({"intents": {"vector_trigger": True}} if switched_on else {})
    agent = agent_over(write_files(tmp_path / "workspace", {}), tmp_path / "home", settings=settings, now_ms=NOW)
    writer = open_state(agent.folders.state_db)
    arm(writer, "car insurance")
    writer.close()
    with Runtime(agent) as runtime:
        embedding = runtime.local_embedder()
        if embedding is not None:
            embedding.embed_query("loaded before the turn, whose lanes do not wait for it")
        made = turn(agent, message, session_key="agent:main:main", sender="ada", record=False, runtime=runtime)
    assert bool(made.fires) is fires
    assert bool(made.intents) is fires


def test_another_embedder_makes_the_vectors_anew_and_matches_no_old_one(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        arm(connection, "zz")
        old = vector_trigger(connection, Letters("z"), "zzzz")
        assert renew_vectors(connection, Letters("z")) == 0
        new = vector_trigger(connection, Letters("q"), "zzzz")
        assert not match(connection, asked("zzzz"), NOW, UTC, vector=old).fired
        assert match(connection, asked("zzzz"), NOW, UTC, vector=new).fired


def test_an_intent_made_later_gets_its_vector_with_the_next_turn(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        vector_trigger(connection, Letters("z"), "zzzz")
        arm(connection, "zz")
        near = vector_trigger(connection, Letters("z"), "zzzz")
        assert match(connection, asked("zzzz"), NOW, UTC, vector=near).fired


def test_one_turn_makes_a_bounded_number_of_vectors(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        for number in range(MAX_MADE + 3):
            arm(connection, f"word{number}", description=f"Mention {number}.")  # type: ignore[arg-type]  # a text among numbers
        assert [renew_vectors(connection, Letters("w")) for _ in range(3)] == [MAX_MADE, 3, 0]


@pytest.mark.parametrize("message", ["", "  "])
def test_an_empty_message_means_nothing(tmp_path: Path, message: str) -> None:
    with state(tmp_path) as connection:
        arm(connection, "filter")
        assert vector_trigger(connection, Letters("z"), message) is None


def test_an_embedder_without_measured_levels_is_not_asked(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        arm(connection, "filter")
        assert vector_trigger(connection, Letters("z", calibration=None), "filter") is None
