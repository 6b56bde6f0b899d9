"""Directives restated next to the message they apply to."""

from pathlib import Path

import pytest

from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.recall.applies import DirectiveScorer, applies_block
from recall_runtime.recall.views import CuratedView, CuratedViews
from tests.support.index_agents import agent_over, write_files

USER = """# User

- Always give prices in euro.
- Never book flights before seven in the morning.
- Never recommend restaurants with seafood.
- Prefer short explanations unless asked.
"""


def view(tmp_path: Path, content: str = USER) -> CuratedView:
    agent = agent_over(write_files(tmp_path / "ws", {"USER.md": content}), tmp_path / "home")
    made = CuratedViews().load(agent, "USER.md", None)
    assert made is not None
    return made


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize(
    ("message", "directive"),
    [
        ("What prices do they ask for the bike?", "Always give prices in euro."),
        ("Find me a flight to Oslo on Monday", "Never book flights before seven in the morning."),
        ("Which restaurants near the harbour are good?", "Never recommend restaurants with seafood."),
    ],
)
def test_the_directive_about_the_message_comes_first(
    tmp_path: Path, message: str, directive: str, with_vectors: bool
) -> None:
    scorer = DirectiveScorer(view(tmp_path), StaticEmbedder() if with_vectors else None)
    found = scorer.applying(message)
    assert [item.text for item in found][:1] == [directive]


@pytest.mark.parametrize("message", ["", "Fix the failing test in the parser", "\u200b"])
def test_nothing_is_restated_for_a_message_about_something_else(tmp_path: Path, message: str) -> None:
    assert DirectiveScorer(view(tmp_path), StaticEmbedder()).applying(message) == ()


def test_a_superseded_directive_is_never_restated(tmp_path: Path) -> None:
    content = (
        "<!-- observed: 2026-01-01 | status: superseded -->\n- Always give prices in dollars.\n\n"
        "<!-- observed: 2026-02-01 | status: active -->\n- Always give prices in euro.\n"
    )
    found = DirectiveScorer(view(tmp_path, content), None).applying("What are the prices?")
    assert [item.text for item in found] == ["Always give prices in euro."]


def test_the_block_is_bounded(tmp_path: Path) -> None:
    content = "".join(f"- Always give prices of thing {n} {'x' * 150} in full.\n" for n in range(9))
    found = DirectiveScorer(view(tmp_path, content), None).applying("prices of thing")
    assert len(found) <= 3
    assert sum(len(item.text) for item in found) <= 600
    assert applies_block(()) == ""
