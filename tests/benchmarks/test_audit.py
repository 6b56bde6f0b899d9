"""The audited month: its mix is the published one, and an entry is counted for what it holds."""

import random
from collections import Counter

from benchmarks.audit import AMOUNTS, Category, Line, categories_of, facts, month


def seeded(seed: int) -> random.Random:
    """Return a generator for a reproducible month."""
    return random.Random(seed)  # noqa: S311 - a reproducible month, no secret


def test_the_month_has_the_published_size_and_shares() -> None:
    generator = seeded(1)
    lines = [line for day in month(generator, facts(generator)) for line in day]
    written = Counter(line.category for line in lines)
    assert written == AMOUNTS
    assert len(lines) == 10_134
    assert round(written[Category.BOOT] / len(lines), 3) == 0.527
    assert written[Category.LOOP] == 668
    assert round(written[Category.PROFILE] / len(lines), 3) == 0.052


def test_the_same_seed_is_the_same_month() -> None:
    first, second = seeded(7), seeded(7)
    assert month(first, facts(first)) == month(second, facts(second))


def test_every_fact_is_told_apart_from_every_other() -> None:
    statements = [text for fact in facts(seeded(3)) for text in fact.statements]
    assert len(set(statements)) == len(statements)


def test_an_entry_counts_for_the_line_it_holds_and_a_second_one_of_a_fact_as_a_near_duplicate() -> None:
    lines = [
        Line(Category.TRUE, "The kayak is stored in the loft on shelf 12.", 4),
        Line(Category.NEAR, "On shelf 12 in the loft is where the kayak is stored.", 4),
        Line(Category.PASSING, "Looking into it now. (10:00)"),
    ]
    entries = [
        "The kayak is stored in the loft on shelf 12.",
        "On shelf 12 in the loft is where the kayak is stored. [from memory/2026-06-01.md]",
        "Looking into it now. (10:00)",
        "Nobody ever wrote this line.",
    ]
    assert categories_of(entries, lines) == {Category.TRUE: 1, Category.NEAR: 1, Category.PASSING: 1, None: 1}
