"""Values that tell something by themselves.

Belongs here: which of a text's specific values are telling.
Does not belong here: finding values (``recall_runtime.notes.identity``).
"""

import re

from recall_runtime.notes.identity import value_tokens

_SHORTEST = 4  # characters; a shorter number is a count, a temperature, a floor
_DATE = r"(?:19|20)\d\d(?:[-/.]\d\d?(?:[-/.]\d\d?)?)?(?:t[\d:.]+z?)?|\d\d?\.\d\d?\.(?:\d\d){1,2}"
_CLOCK = r"\d\d?:\d\d(?::\d\d)?(?:[-/]\d\d?:\d\d)?"
_WHEN = re.compile(f"{_DATE}|{_CLOCK}")


def telling_values(text: str) -> list[str]:
    """Return the values of ``text`` that hardly two things share by chance, sorted: no counts, dates or clocks."""
    return sorted(value for value in value_tokens(text) if len(value) >= _SHORTEST and not _WHEN.fullmatch(value))
