"""Patterns that are compiled when they are first used.

Belongs here: this one idiom. A new process needs few of the patterns that the modules it imports define, and compiling
all of them takes longer than an answer. Does not belong here: any pattern.
"""

import re
from typing import Any, cast


def lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what :func:`re.compile` returns, compiled at its first use; a mistake in it shows only then."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        for known in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn"):
            self.__dict__[known] = getattr(compiled, known)  # from now on as fast as the pattern itself
        return getattr(compiled, name)
