"""Cutting text so that no visible character is split.

Belongs here: borders between grapheme clusters (a rule that never cuts inside one), pieces of a long text, a bounded
snippet. Does not belong here: what is a block (``notes.blocks``), which text is shown (``index.search``).
"""

import unicodedata
from collections.abc import Iterator

_JOINERS = frozenset("\u200d\u200c\ufe0e\ufe0f\u20e3")
_LOOK_BACK = 200  # a cluster longer than this is cut all the same, or one hostile cluster could make a piece endless


def is_border(text: str, at: int) -> bool:
    """Return whether ``text`` may be cut before position ``at`` without splitting a visible character."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\r" and after == "\n":
        return False
    if after in _JOINERS or before == "\u200d" or unicodedata.combining(after):
        return False
    category = unicodedata.category(after)
    if category in ("Mn", "Me", "Mc") or 0x1F3FB <= ord(after) <= 0x1F3FF or 0xE0020 <= ord(after) <= 0xE007F:
        return False
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, at) % 2 == 0
    if _is_jamo(before) and _is_jamo(after):
        return 0x1100 <= ord(after) <= 0x115F and not 0x1100 <= ord(before) <= 0x115F
    return not (0xAC00 <= ord(before) <= 0xD7A3 and 0x1160 <= ord(after) <= 0x11FF)


def _is_flag_half(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _is_jamo(character: str) -> bool:
    return 0x1100 <= ord(character) <= 0x11FF


def _flag_halves_before(text: str, at: int) -> int:
    count = 0
    while count < _LOOK_BACK and at - count > 0 and _is_flag_half(text[at - count - 1]):
        count += 1
    return count


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
