"""Cutting text so that no visible character is split.

Belongs here: pieces of a long text, a bounded snippet. Does not belong here: where a character ends
(``text.escaping``), what is a block (``notes.blocks``), which text is shown (``index.search``).
"""

from collections.abc import Iterator

from recall_runtime.text.escaping import is_border

_LOOK_BACK = 200  # a cluster longer than this is cut all the same, or one hostile cluster could make a piece endless


def safe_cut(text: str, limit: int) -> int:
    """Return the largest safe length of at most ``limit`` characters; ``limit`` itself when no border is near."""
    if len(text) <= limit:
        return len(text)
    for at in range(limit, max(0, limit - _LOOK_BACK), -1):
        if is_border(text, at):
            return at
    return limit


def pieces(text: str, limit: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of consecutive pieces of at most ``limit`` characters that cover ``text``.

    A piece ends after a line end or a blank in its last fifth when there is one, else at a safe border.
    """
    start = 0
    while len(text) - start > limit:
        window = text[start : start + limit + 1]
        at = max(window.rfind("\n", limit * 4 // 5, limit), window.rfind(" ", limit * 4 // 5, limit)) + 1
        if at <= 0 or not is_border(text, start + at):
            at = safe_cut(window, limit)
        yield start, start + at
        start += at
    if start < len(text):
        yield start, len(text)


def snippet_of(text: str, limit: int, terms: frozenset[str] = frozenset()) -> str:
    """Return at most ``limit`` characters of ``text``, around the first of ``terms`` where the text is longer."""
    if len(text) <= limit:
        return text
    lowered = text.lower()
    found = [at for term in terms if (at := lowered.find(term)) >= 0] if len(lowered) == len(text) else []
    start = max(0, min(found) - limit // 4) if found else 0
    start = min(start, len(text) - limit + 2)
    while start > 0 and not is_border(text, start):
        start -= 1
    head = "…" if start else ""
    body = text[start:]
    if len(head) + len(body) <= limit:
        return head + body
    return head + body[: safe_cut(body, limit - len(head) - 1)] + "…"
