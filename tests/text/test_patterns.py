"""Patterns compiled at their first use."""

import re

import pytest

from recall_runtime.text.patterns import lazily


def test_a_lazy_pattern_does_what_the_pattern_does() -> None:
    lazy, made = lazily(r"(?P<word>[a-z]+)(\d)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)(\d)", re.IGNORECASE)
    text = "Ab1 cd2; ef"
    for _ in range(2):  # before and after it was compiled
        assert [match.groups() for match in lazy.finditer(text)] == [match.groups() for match in made.finditer(text)]
        assert lazy.sub("-", text) == made.sub("-", text) == "- -; ef"
        assert lazy.split(text) == made.split(text)
        assert (lazy.fullmatch("x9") is None, lazy.match(" x9"), lazy.search("??") is None) == (False, None, True)
        assert (lazy.pattern, lazy.flags, lazy.groups, lazy.groupindex) == (
            made.pattern,
            made.flags,
            made.groups,
            made.groupindex,
        )


def test_a_lazy_pattern_is_not_compiled_before_its_use() -> None:
    wrong = lazily("(")
    with pytest.raises(re.error):
        wrong.search("")
