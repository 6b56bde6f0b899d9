"""What a later line of the same note retires, and what it must leave alone."""

import pytest

from recall_runtime.notes.blocks import Block, read_note
from recall_runtime.notes.outdated import outdated
from recall_runtime.vocabulary import OriginClass

TABLE = "| Task | State |\n| --- | --- |\n| Pump controller v2.1.0 | done |\n| Weekly report | open |\n"
COPY = TABLE.replace("v2.1.0", "v2.1.1")


def lines_out_of_date(text: str, classes: dict[int, OriginClass | None] | None = None) -> list[int]:
    """Return the first lines of the outdated blocks of a note; lines are the agent's unless ``classes`` says else."""
    blocks = read_note(text.encode()).blocks

    def trust(block: Block) -> OriginClass | None:
        return (classes or {}).get(block.start_line, OriginClass.AGENT)

    return [blocks[position].start_line for position in sorted(outdated(blocks, trust))]


def test_the_last_copy_of_a_table_stands_for_its_earlier_ones() -> None:
    assert lines_out_of_date(f"## Done\n{TABLE}\n## Done (update 1)\n{COPY}\n## Done (update 2)\n{COPY}") == [
        4,
        5,
        10,
        11,
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"## Alice\n{TABLE}\n## Bob\n{COPY}", id="another heading is another matter"),
        pytest.param(f"## Done\n{TABLE}\n## Done\n{COPY.replace('State', 'Owner')}", id="another head, another table"),
        pytest.param(
            "## Ports\n| Name | Port |\n| --- | --- |\n| web 1 | 8001 |\n| web 2 | 8002 |\n", id="rows of one table"
        ),
        pytest.param(
            "\n".join(f"## Day\n| At | What |\n| --- | --- |\n| {at} |\n" for at in ("08:10 | rain", "09:10 | sun")),
            id="a first cell without words names nothing",
        ),
    ],
)
def test_tables_that_are_no_copies_stay(text: str) -> None:
    assert lines_out_of_date(text) == []


@pytest.mark.parametrize(
    "correction",
    [
        "The greenhouse is not 15902 but 15990.",
        "Gewächshaus: nicht 15902, sondern 15990.",
        "El invernadero no 15902 sino 15990.",
        "Теплица: не 15902, а 15990.",
        "温室不是15902，而是15990。",
        "温室のチャンネルは 15902 ではなく 15990。",
    ],
)
def test_a_value_named_as_wrong_beside_the_right_one_is_dead_above(correction: str) -> None:
    text = f"- Greenhouse on channel 15902\n- Barn on channel 15903\n- {correction}\n- Later 15902 again\n"
    assert lines_out_of_date(text) == [1]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- Seven of 159020 boxes.\n- It is not 15902 but 15990.\n", id="part of a longer number"),
        pytest.param("- At 12 the gate opens.\n- It is not 12 but 13.\n", id="a short number may mean anything"),
        pytest.param("- Port 15902 was 15990 before.\n- It is not 15902 but 15990.\n", id="names both already"),
        pytest.param("- Port 15902. The key is in the shed.\n- It is not 15902 but 15990.\n", id="holds another fact"),
    ],
)
def test_a_line_that_is_not_clearly_meant_stays(text: str) -> None:
    assert lines_out_of_date(text) == []


@pytest.mark.parametrize(
    ("newer", "older", "dead"),
    [
        (OriginClass.UNTRUSTED, OriginClass.AGENT, False),
        (None, OriginClass.AGENT, False),
        (OriginClass.AGENT, OriginClass.OWNER, False),
        (OriginClass.OWNER, OriginClass.AGENT, True),
        (OriginClass.AGENT, OriginClass.UNTRUSTED, True),
        (OriginClass.AGENT, None, True),
    ],
)
def test_no_line_retires_a_more_trusted_one(newer: OriginClass | None, older: OriginClass | None, dead: bool) -> None:
    text = "- Greenhouse on channel 15902\n- It is not 15902 but 15990.\n"
    assert lines_out_of_date(text, {1: older, 2: newer}) == ([1] if dead else [])
