"""Directives restated next to the message they apply to."""

from pathlib import Path

import pytest

from recall_runtime.index.embedders.static import StaticEmbedder
from recall_runtime.recall.applies import FURTHER_MAX, Applying, DirectiveScorer, applies_block
from recall_runtime.recall.turn import turn
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
    found = scorer.applying(message).near
    assert [item.text for item in found][:1] == [directive]


@pytest.mark.parametrize("message", ["", "Fix the failing test in the parser", "\u200b"])
def test_nothing_is_restated_for_a_message_about_something_else(tmp_path: Path, message: str) -> None:
    assert DirectiveScorer(view(tmp_path), StaticEmbedder()).applying(message) == Applying()


def test_a_superseded_directive_is_never_restated(tmp_path: Path) -> None:
    content = (
        "<!-- observed: 2026-01-01 | status: superseded -->\n- Always give prices in dollars.\n\n"
        "<!-- observed: 2026-02-01 | status: active -->\n- Always give prices in euro.\n"
    )
    found = DirectiveScorer(view(tmp_path, content), None).applying("What are the prices?").near
    assert [item.text for item in found] == ["Always give prices in euro."]


def test_the_block_is_bounded(tmp_path: Path) -> None:
    content = "".join(f"- Always give prices of thing {n} {'x' * 150} in full.\n" for n in range(9))
    found = DirectiveScorer(view(tmp_path, content), None).applying("prices of thing").near
    assert len(found) <= 3
    assert sum(len(item.text) for item in found) <= 600
    assert applies_block(Applying()) == ""


def test_what_the_copy_left_out_is_said_here_best_first_and_bounded(tmp_path: Path) -> None:
    """Nineteen directives of which the prompt holds two: the nearest eight of the others, none of the two."""
    things = (
        "lamp sofa vase mirror carpet stove kettle spoon ladder bucket shovel rake hose gutter door bell fence lock key"
    )
    texts = [f"Never mention the {thing}." for thing in things.split()]
    scorer = DirectiveScorer(view(tmp_path, "".join(f"- {text}\n" for text in texts)), None)
    found = scorer.applying("Please look at the fence with the red paint", "\n".join(f"- {text}" for text in texts[:2]))
    said = [item.text for item in (*found.near, *found.further)]
    assert said[0] == "Never mention the fence."
    assert len(found.further) == FURTHER_MAX
    assert not set(said) & set(texts[:2])
    assert len(said) == len(set(said))
    assert applies_block(found).count("\n- ") == len(said)


@pytest.mark.parametrize(
    ("message", "copy"),
    [
        pytest.param("What about the harbour?", None, id="the prompt holds all of it"),
        pytest.param("What about the harbour?", "\n".join(USER.splitlines()[2:]), id="every one is in the copy"),
        pytest.param("ok!", "", id="a message that says nothing"),
    ],
)
def test_nothing_further_is_said(tmp_path: Path, message: str, copy: str | None) -> None:
    assert DirectiveScorer(view(tmp_path), None).applying(message, copy).further == ()


def test_a_directive_is_only_in_the_copy_as_a_whole_line(tmp_path: Path) -> None:
    """One whose words begin another's is still left out."""
    content = "- Prefer green tea.\n- Never play loud music.\n"
    found = DirectiveScorer(view(tmp_path, content), None).applying(
        "a question about dinner", "- Prefer green tea. And cake."
    )
    assert [item.text for item in found.further] == ["Prefer green tea.", "Never play loud music."]


def test_a_turn_says_what_the_cap_of_the_user_file_left_out(tmp_path: Path) -> None:
    """Sixty directives, far over the cap: the one about the message is in the block, whole, and not in the copy."""
    names = [f"{first}{second}" for first in ("ka", "lo", "mi", "ren", "tas", "vel") for second in "bcdfghjklm"]
    texts = [f"Never mention the {name}o factory in Springfield, {'its owners, ' * 6}or its trucks." for name in names]
    wanted = f"Never recommend restaurants with seafood{', or with mussels, or with oysters' * 5}."
    lines = "".join(f"- {text}\n" for text in [*texts, wanted])
    workspace = write_files(tmp_path / "ws", {"USER.md": f"# User\n\n## Directives\n\n{lines}"})
    made = turn(
        agent_over(workspace, tmp_path / "home"),
        "Which of the restaurants near the harbour would you take?",
        session_key="agent:main:main",
        sender="owner",
        record=False,
    )
    assert "seafood" not in made.bootstrap
    assert f"- {wanted}" in made.applies_now.splitlines()
    assert len(made.applies_now) <= 2_000
