"""Changing ``USER.md``: bytes in, bytes out, every untouched line kept.

Belongs here: superseding in place, adding, pruning whole superseded directives.
Does not belong here: writing the file, pre-images, undo (``curated.writer``), who may ask for it (the callers).
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.errors import RefusedError
from recall_runtime.notes.curated import CuratedEntry, CuratedFile, parse_curated
from recall_runtime.notes.identity import normalise
from recall_runtime.user_model.contract import DIRECTIVES_HEADING, Directive, directives_of, standing
from recall_runtime.user_model.matter import same_matter

MAX_DIRECTIVE = 640
_ACTIVE = re.compile(rb"(status\s*:\s*)[^|>]*?(\s*(?:\||-->))", re.IGNORECASE)
_COMMENT_SIGNS = re.compile(r"<!-*|-*->|[\r\n\x00]")
_LIST_SIGN = re.compile(r"^(?:[-*+]\s+)+")


class Outcome(StrEnum):
    """What became of a directive that was to be set."""

    ADDED = "added"
    SUPERSEDED = "superseded"  # it replaced another one
    UNCHANGED = "unchanged"  # it stands already
    LATE = "late"  # the file holds a newer one on the matter


@dataclass(frozen=True, slots=True)
class DirectiveChange:
    """The new bytes of the file and what happened; ``replaced`` are the directives that no longer hold."""

    data: bytes
    outcome: Outcome
    text: str
    replaced: tuple[Directive, ...] = ()


def set_directive(
    data: bytes,
    text: str,
    observed: dt.date,
    *,
    replaces: Sequence[Directive] = (),
    marks: Sequence[str] = (),
    tail: str = "",
) -> DirectiveChange:
    """Make ``text`` the one active directive on its matter.

    The active directives on the matter (and those in ``replaces``) become superseded where they stand; the new one
    stands right after the last of them, or at the end of the section "Directives" when there is none. A text observed
    earlier than an active one on the matter changes nothing; on the same day the later call wins.

    Args:
        data: bytes of the file, empty when there is none.
        text: the directive, without list sign and comments.
        observed: the day on which the owner said so.
        replaces: directives of this file that it replaces whatever its matter is.
        marks: comment lines to put above the metadata.
        tail: what follows the text on its line (source reference, annotations).

    Raises:
        RefusedError: nothing to say, too long, or the file holds an unresolved merge.
    """
    text = clean_directive(text)
    file = parse_curated(data, user_file=True)
    if file.conflicted or file.reading.undecodable:
        raise RefusedError(
            "USER.md holds an unresolved merge or is no text", "Resolve it by hand, nothing was changed."
        )
    found = directives_of(file)
    chosen = {directive.start_line for directive in replaces}
    rivals = [
        directive
        for directive in found
        if directive.is_active and (directive.start_line in chosen or same_matter(directive.text, text))
    ]
    same = [directive for directive in rivals if normalise(directive.text) == normalise(text)]
    if same and len(rivals) == 1:
        return DirectiveChange(data, Outcome.UNCHANGED, text)
    if any(directive.observed and directive.observed > observed for directive in rivals):
        return DirectiveChange(data, Outcome.LATE, text)
    added = [*marks, f"<!-- observed: {observed.isoformat()} | status: active -->", "", f"- {text}{tail}"]
    pieces = [data[line.start : line.end] for line in file.reading.lines]
    for directive in rivals:
        _retire(pieces, directive, file.newline)
    place = max((directive.end_line for directive in rivals), default=0) or _end_of_directives(file)
    _insert(pieces, place, added, file.newline, at_end=not rivals)
    outcome = Outcome.SUPERSEDED if rivals else Outcome.ADDED
    return DirectiveChange(b"".join(pieces), outcome, text, tuple(rivals))


@dataclass(frozen=True, slots=True)
class Pruned:
    """The bytes that are left, and the entries that went, in the order in which they went."""

    data: bytes
    gone: tuple[CuratedEntry, ...] = ()


def prune(data: bytes, cap: int) -> Pruned:
    """Remove superseded directives of ours, oldest first and whole, until the file has at most ``cap`` characters.

    Active directives and everything that the owner typed stay, so the result may still be longer. A superseded one
    without a readable date counts as the newest, for nobody knows how stale it is.
    """
    file = parse_curated(data, user_file=True)
    length = len(data.decode("utf-8", errors="replace"))
    ours = {entry.start_line: entry for entry in file.entries if entry.entry_keys}
    stale = [d for d in directives_of(file) if not d.is_active and not d.problems and d.start_line in ours]
    stale.sort(key=lambda d: (d.observed or dt.date.max, d.start_line))
    pieces = [data[line.start : line.end] for line in file.reading.lines]
    gone = []
    for directive in stale:
        if length <= cap:
            break
        gone.append(ours[directive.start_line])
        last = directive.end_line
        while last < len(pieces) and not pieces[last].strip() and directive.first_line > 1:
            last += 1  # the blank lines behind go along, so the gap does not grow
        for index in range(directive.first_line - 1, last):
            length -= len(pieces[index].decode("utf-8", errors="replace"))
            pieces[index] = b""
    return Pruned(b"".join(pieces), tuple(gone))


def clean_directive(text: str) -> str:
    """Return ``text`` as one line that can neither close a comment nor start a list.

    Raises:
        RefusedError: nothing is left, or it is longer than ``MAX_DIRECTIVE``.
    """
    line = _LIST_SIGN.sub("", " ".join(_COMMENT_SIGNS.sub(" ", text).split()))
    if not any(sign.isalnum() for sign in line):
        raise RefusedError("The directive is empty", "Say what to do, such as: Prefer short answers.")
    if len(line) > MAX_DIRECTIVE:
        raise RefusedError(f"The directive is longer than {MAX_DIRECTIVE} characters", "Give one short instruction.")
    return line


def find_directive(found: Sequence[Directive], text: str) -> Directive:
    """Return the one standing directive that ``text`` means: equal, else containing it.

    Raises:
        RefusedError: none or several fit.
    """
    wanted = normalise(text)
    active = standing(found) or tuple(directive for directive in found if directive.is_active)
    fits = [directive for directive in active if normalise(directive.text) == wanted]
    fits = fits or [directive for directive in active if wanted and wanted in normalise(directive.text)]
    if len(fits) != 1:
        raise RefusedError(
            f"{len(fits)} active directives fit", "Give the words of exactly one; see `dreamline user list`."
        )
    return fits[0]


def _retire(pieces: list[bytes], directive: Directive, newline: str) -> None:
    """Mark one directive superseded in its own metadata; one without metadata gets a line above it."""
    if directive.metadata_line is not None:
        index = directive.metadata_line - 1
        changed, hits = _ACTIVE.subn(rb"\1superseded\2", pieces[index], count=1)
        if not hits:
            changed = pieces[index].replace(b"-->", b"| status: superseded -->", 1)
        pieces[index] = changed
    else:
        index = directive.start_line - 1
        pieces[index] = b"<!-- status: superseded -->" + newline.encode() + pieces[index]


def _insert(pieces: list[bytes], place: int, added: list[str], newline: str, *, at_end: bool) -> None:
    """Put ``added`` behind line ``place``, with one blank line between and the file's own line end."""
    end = newline.encode()
    lines = [line.encode("utf-8", errors="surrogateescape") for line in added]
    if not pieces:
        heading = [b"# User", b"", f"## {DIRECTIVES_HEADING}".encode(), b""]
        pieces.append(end.join([*heading, *lines]) + end)
        return
    ends_file = place == len(pieces)
    head = b"" if not pieces[place - 1].strip() else end
    if not pieces[place - 1].endswith(b"\n"):
        head = end + end
    body = head + end.join(lines)
    if not (ends_file and not pieces[place - 1].endswith(b"\n")):
        body += end
    if at_end and not ends_file:
        body += end
    pieces[place - 1] += body


def _end_of_directives(file: CuratedFile) -> int:
    """Return the last non-blank line of the section "Directives", or of the file."""
    last = len(file.reading.lines)
    for section in file.sections:
        if section.title == DIRECTIVES_HEADING:
            last = section.end_line
    while last > 1 and not file.reading.lines[last - 1].text.strip():
        last -= 1
    return last
