"""Untrusted text on its way to a reader: one function a target, and cutting that breaks nothing.

Belongs here: escaping for XML-like frames, terminals, Markdown shown by a browser; cutting to a length.
Does not belong here: masking of secrets (``recall_runtime.text.redaction``).

All lengths are code points.
"""

import unicodedata

from recall_runtime.text.patterns import lazily

_XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_XML_SIGNS = lazily("[&<>\"']")
_NOT_XML = lazily("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE_TERMINAL = lazily(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff{_BIDI}]")
_BIDI_SIGNS = lazily(f"[{_BIDI}]")
_MARKDOWN_SIGNS = lazily(r"[\\`*_{}\[\]()#+!|~<>&:@$=-]|(?<=\d)\.")
_MARKDOWN_BREAKS = lazily("[\r\n\t\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BACKTICKS = lazily("`+")
_OPENERS = {"\u202a": "\u202c", "\u202b": "\u202c", "\u202d": "\u202c", "\u202e": "\u202c"}
_OPENERS |= {"\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_CLOSERS = frozenset(_OPENERS.values())
_ZWJ = "\u200d"
ELLIPSIS = "\u2026"


def xml(text: str) -> str:
    """Return ``text`` for the inside of an XML-like element or attribute.

    Order of the signs: ``& < > " '`` (openclaw-algorithms 33).
    """
    return _XML_SIGNS.sub(lambda match: _XML[match[0]], _NOT_XML.sub("\ufffd", text))


def terminal(text: str) -> str:
    r"""Return ``text`` for a terminal: control signs and direction overrides are shown as ``\x1b``, ``\u202e``.

    Line feeds and tabs stay. What is shown can't move the cursor, colour, or display another order than is stored.
    """
    return _UNSAFE_TERMINAL.sub(lambda match: _visible(match[0]), text)


def markdown(text: str) -> str:
    """Return ``text`` so that a Markdown renderer shows it literally, on one line.

    Neither images, links, autolinks, HTML, tables, headings nor code can come out of it.
    """
    flat = _MARKDOWN_BREAKS.sub(" ", text).strip()
    visible = _BIDI_SIGNS.sub(lambda match: _visible(match[0]), flat)
    return _MARKDOWN_SIGNS.sub(lambda match: f"&#{ord(match[0])};", visible)


def code_span(text: str) -> str:
    """Return ``text`` as a Markdown code span on one line, with a fence longer than any run of backticks inside."""
    flat = _MARKDOWN_BREAKS.sub(" ", text).strip()
    flat = _BIDI_SIGNS.sub(lambda match: _visible(match[0]), flat)
    longest = max((len(run) for run in _BACKTICKS.findall(flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or not flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def cut(text: str, limit: int) -> str:
    """Return the longest start of ``text`` of at most ``limit`` code points that ends between grapheme clusters.

    Direction overrides that the cut leaves open are dropped.
    """
    if len(text) <= limit:
        return text
    end = max(limit, 0)
    while end > 0 and not is_border(text, end):
        end -= 1
    return _without_open_overrides(text[:end])


def clip(text: str, limit: int) -> str:
    """Return ``text`` unchanged when it fits, else cut (see :func:`cut`) and ended by an ellipsis within ``limit``."""
    if len(text) <= limit:
        return text
    return cut(text, limit - 1).rstrip() + ELLIPSIS if limit > 0 else ""


def _visible(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def is_border(text: str, at: int) -> bool:
    """Return whether ``text`` may be cut before position ``at`` without splitting a visible character."""
    if at <= 0 or at >= len(text):
        return True
    after, before = text[at], text[at - 1]
    if before == "\r" and after == "\n":
        return False
    if before == _ZWJ or after == _ZWJ or _extends(after):
        return False
    if _is_regional(after) and _is_regional(before):
        run = at
        while run > 0 and _is_regional(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 0
    return not _joins_hangul(before, after)


def _extends(sign: str) -> bool:
    return (
        unicodedata.category(sign) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
        or "\U000e0020" <= sign <= "\U000e007f"
        or sign in "\u200c\uff9e\uff9f"
    )


def _is_regional(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _joins_hangul(before: str, after: str) -> bool:
    lead = "\u1100" <= before <= "\u115f"
    syllable = "\uac00" <= before <= "\ud7a3" or "\u1160" <= before <= "\u11ff"
    return (lead and ("\u1100" <= after <= "\u11a7" or "\uac00" <= after <= "\ud7a3")) or (
        syllable and "\u1160" <= after <= "\u11ff"
    )


def _without_open_overrides(text: str) -> str:
    stack: list[tuple[int, str]] = []
    for position, sign in enumerate(text):
        if sign in _OPENERS:
            stack.append((position, _OPENERS[sign]))
        elif sign in _CLOSERS and stack and stack[-1][1] == sign:
            stack.pop()
    drop = {position for position, _ in stack}
    return "".join(sign for position, sign in enumerate(text) if position not in drop) if drop else text
