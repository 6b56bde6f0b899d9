"""The model seam against a real small model behind an OpenAI-compatible server; skipped unless one is named.

A small model parses a schema and judges at chance, so nothing here asks for a right judgement: whatever it answers, the
rules of a night and the limits of lane 2 hold. How to run a server: CONTRIBUTING.md.
"""

import os
import threading
import time
from pathlib import Path

import pytest

from memory_assets.consolidation.apply import IN_PART, NO_MODEL
from memory_assets.consolidation.records import Mode
from recall_runtime.config import ModelSettings, RecallSettings
from recall_runtime.models.protocol import ChatMessage, ChatModel, ChatRequest, ChatRole
from recall_runtime.models.registry import model_from
from recall_runtime.recall.deep import DeepRecall, Memory, RecallStatus
from recall_runtime.vocabulary import Operation
from tests.support.night import Night

VARIABLE = "DREAMLINE_TEST_MODEL_URL"
URL = os.environ.get(VARIABLE, "")
CASE = Path(__file__).parents[1] / "cases" / "25-consolidation-outputs"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not URL, reason=f"{VARIABLE} names no running OpenAI-compatible server (CONTRIBUTING.md)"),
]


@pytest.fixture
def model() -> ChatModel:
    """The client for the server."""
    name = os.environ.get("DREAMLINE_TEST_MODEL", "small")
    settings = ModelSettings(provider="openai-compatible", base_url=URL, model=name, timeout_seconds=120.0)
    made = model_from(settings)
    assert made is not None
    return made


def test_an_answer_of_the_schema_is_parsed(model: ChatModel) -> None:
    """The server enforces the schema (llama.cpp: as a grammar); the client gives its value and the counts."""
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["relation"],
        "properties": {"relation": {"type": "string", "enum": ["same", "newer", "different"]}},
    }
    question = (
        "Entry: The gate code is 4711. Candidate: The gate code is 9023. How does the candidate relate to the entry?"
    )
    answer = model.complete(
        ChatRequest((ChatMessage(ChatRole.USER, question),), schema=schema, max_tokens=64, temperature=0.0)
    )
    assert answer.data["relation"] in {"same", "newer", "different"}
    assert (answer.prompt_tokens or 0) > 0
    assert (answer.answer_tokens or 0) > 0


def test_a_night_keeps_its_rules_whatever_the_model_says(night: Night, model: ChatModel) -> None:
    """Old bytes first, each candidate once, hand-written entries stay, the mode is told."""
    before = (CASE / "before.md").read_text()
    night.write(before)
    ram = night.note("The ram is called Otto.", "2026-03-18")
    tank = night.note("Rainwater tank two was repaired.", "2026-03-19", supersedes="rainwater-tank-two")
    report = night.sweep(ram, tank, model=model)
    if report.mode is Mode.MODEL:
        assert report.why == "" or report.why.startswith(IN_PART)
    else:
        assert report.why not in ("", NO_MODEL)  # it says what was wrong with the answer
    assert 1 <= report.model_calls <= 4
    after = night.memory
    assert after.startswith(before)
    assert after.count("The ram is called Otto.") <= 1
    assert after.count("Rainwater tank two was repaired.") <= 1
    assert report.count(Operation.DROPPED) == 0
    night.sweep(ram, tank, model=model)
    assert night.memory.startswith(before)
    assert night.memory.count("The ram is called Otto.") <= 1


def test_lane_2_ends_within_its_deadline_in_a_closed_state(model: ChatModel) -> None:
    """The tool loop of a model that may call tools wrongly, endlessly, or not at all."""
    lane = DeepRecall("main", RecallSettings(), model)
    memory = Memory(lambda query, wanted: (), lambda path, first, lines: "- The gate code is 9023.", crosses=False)
    began = time.monotonic()
    note = lane.recall(
        "What was the gate code again?",
        (),
        memory,
        session_key="agent:main:main",
        now_ms=0,
        seconds=20.0,
        cancel=threading.Event(),
    )
    assert note.status in set(RecallStatus)
    assert time.monotonic() - began < 60.0  # far from exact: the deadline is 20 s, and the call ends with it
