"""The embedder that remembers its last questions."""

from collections.abc import Sequence

import numpy as np

from recall_runtime.index.embedders.protocol import Calibration, Vector, Vectors
from recall_runtime.recall.remembering import MOST_QUESTIONS, RememberingEmbedder


class Counting:
    """An embedder that counts what it is asked."""

    dimensions = 2
    identity = "counting"
    calibration: Calibration | None = Calibration(0.0, 1.0)
    worth_caching = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        return np.array([len(text), 1], dtype=np.float32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array([[len(text), 2] for text in texts], dtype=np.float32)


def test_a_question_is_embedded_once_and_another_one_by_itself() -> None:
    counting = Counting()
    made = RememberingEmbedder(counting)
    assert made.embed_query("oven").tolist() == [4, 1]
    assert made.embed_query("oven").tolist() == [4, 1]
    assert made.embed_query("gateway").tolist() == [7, 1]
    assert counting.asked == ["oven", "gateway"]


def test_only_the_last_questions_are_remembered() -> None:
    counting = Counting()
    made = RememberingEmbedder(counting)
    for number in range(MOST_QUESTIONS + 1):
        made.embed_query(str(number))
    made.embed_query("0")
    assert counting.asked.count("0") == 2
    made.embed_query(str(MOST_QUESTIONS))
    assert counting.asked.count(str(MOST_QUESTIONS)) == 1


def test_everything_else_is_the_embedder_s_own() -> None:
    made = RememberingEmbedder(Counting())
    assert (made.identity, made.dimensions, made.worth_caching) == ("counting", 2, True)
    assert made.calibration == Calibration(0.0, 1.0)
    assert made.embed_documents(["a"]).tolist() == [[1, 2]]
