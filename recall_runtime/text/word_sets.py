"""Short word lists in code, written as running text.

Belongs here: turning such a text into a set. Longer lists are ``.txt`` files beside their module.
Does not belong here: folding (``words``).
"""


def word_set(listed: str) -> frozenset[str]:
    """Return the words of ``listed``, parted by blanks, as they are written."""
    return frozenset(listed.split())
