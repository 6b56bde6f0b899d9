"""How well a message holds a trigger phrase."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall_runtime.recall.phrase_match import forms_of_message, phrase_score, phrases_of
from recall_runtime.recall.triggers import entry_scores


def best(message: str, *triggers: str) -> float:
    forms = forms_of_message(message)
    return max((phrase_score(phrase, forms) for phrase in phrases_of(triggers)), default=0.0)


@pytest.mark.parametrize(
    ("message", "triggers", "relevance", "phrase", "score"),
    [
        ("Can you help when booking a flight?", "when booking a flight; seat preferences", 0.8, 1.0, 0.96),
        ("Project status", "project", 0.0, 0.85, 0.68),
        ("gateway network setup please", "gateway setup; network safety", 0.0, 1.0, 0.8),
        ("booking my flight", "when booking a flight", 0.0, 0.7333, 0.5867),
        ("booking my flight", "when booking a flight", 0.4, 0.7333, 0.6667),
        ("seat options", "seat preferences", 1.0, 0.5, 0.6),
        ("This party starts at eight", "art", 0.2, 0.0, 0.04),
        ("Explain SQLite indexes", "when booking a flight; seat preferences", 0.8, 0.0, 0.16),
    ],
)
def test_worked_values(message: str, triggers: str, relevance: float, phrase: float, score: float) -> None:
    """openclaw-algorithms 13.5, literally."""
    found = best(message, triggers)
    assert found == pytest.approx(phrase, abs=5e-5)
    assert entry_scores(np.array([found]), np.array([relevance]))[0] == pytest.approx(score, abs=5e-5)


def test_a_lone_word_with_relevance_a_fifth_reaches_the_threshold_exactly() -> None:
    assert entry_scores(np.array([0.85]), np.array([0.2])).tolist() == [0.72]


@pytest.mark.parametrize(
    ("message", "trigger", "score"),
    [
        pytest.param("Sind die Rechnungen raus?", "Rechnung", 0.85, id="German plural"),
        pytest.param("Нужно бронирование билета", "бронирование билетов", 1.0, id="Russian case"),
        pytest.param("帮我预订机票吧", "预订机票", 1.0, id="a run of Chinese signs"),
        pytest.param("发票在哪", "发票", 0.85, id="a Chinese word of two signs is one word"),
        pytest.param("航空券の予約を手伝って", "航空券の予約", 1.0, id="Japanese"),
        pytest.param("항공권을 예약", "항공권 예약", 1.0, id="Korean particle"),
        pytest.param("Ｇａｔｅｗａｙ　ｓｅｔｕｐ", "gateway setup", 1.0, id="full width"),
        pytest.param("Which C++ style?", "c++", 0.85, id="signs belong to the word"),
        pytest.param("vitamin c", "c++", 0.0, id="a bare letter is another word"),
        pytest.param("¿Riego el jardin?", "jardín", 0.85, id="accents do not matter"),
    ],
)
def test_words_of_every_script_count(message: str, trigger: str, score: float) -> None:
    assert best(message, trigger) == pytest.approx(score)


def test_the_words_of_a_phrase_must_stand_near_each_other() -> None:
    far = f"the gateway {'is here and there and everywhere ' * 10} setup"
    assert best(far, "gateway setup") == pytest.approx(0.5)


def test_a_very_long_message_is_looked_at_from_both_ends() -> None:
    filler = "nothing of note " * 100_000
    assert best(f"gateway setup {filler}", "gateway setup") == 1.0
    assert best(f"{filler} gateway setup", "gateway setup") == 1.0


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_is_compared_without_error_within_zero_and_one(message: str, trigger: str) -> None:
    assert 0.0 <= best(message, trigger) <= 1.0
