"""``USER.md`` as directives: what each says, is about, since when, whether it counts, what is wrong with it.

Belongs here: the view of a directive on the entries of the file, which directives stand.
Does not belong here: Markdown (``notes.curated``), changing the file (``user_model.update``).

How directives count: with valid metadata, as it says. Without metadata a bullet that is an imperative (or stands under
a heading "Directives") is hand-written: active, date unknown. With damaged metadata the bullet is kept and reported; a
bad date only loses the date, a bad status or an unreadable comment is never silently active. Other bullets (profile
facts, template slots) are no directives.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recall_runtime.notes.blocks import BlockKind
from recall_runtime.notes.curated import CuratedEntry, CuratedFile, parse_curated
from recall_runtime.notes.directives import directive_of
from recall_runtime.user_model.matter import matter_of, same_matter, says_the_same
from recall_runtime.vocabulary import EntryStatus

DIRECTIVES_HEADING = "Directives"
_CARRIER = re.compile(r"[ ]{0,3}<!--.*\b(?:observed|status)\s*:.*-->\s*", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive of the owner. Lines are 1-based, ends included.

    ``first_line`` is the first of the comments above the bullet, ``metadata_line`` the one with observed and status.
    ``since`` is the first day of a date range, else ``observed``.
    """

    text: str
    matter: frozenset[str]
    observed: dt.date | None
    status: EntryStatus
    first_line: int
    start_line: int
    end_line: int
    metadata_line: int | None = None
    since: dt.date | None = None
    problems: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line, comments included."""
        return self.first_line, self.end_line

    @property
    def is_hand_written(self) -> bool:
        """Whether the directive has no metadata at all."""
        return self.metadata_line is None

    @property
    def is_active(self) -> bool:
        """Whether the file says that the directive counts."""
        return self.status is EntryStatus.ACTIVE


def directives(data: bytes) -> tuple[Directive, ...]:
    """Return the directives of the bytes of a ``USER.md``, in file order. Never raises."""
    return directives_of(parse_curated(data, user_file=True))


def directives_of(file: CuratedFile) -> tuple[Directive, ...]:
    """Return the directives of a file that is already parsed."""
    found = (_directive(entry, file) for entry in file.entries)
    return tuple(directive for directive in found if directive is not None)


def standing(found: Sequence[Directive]) -> tuple[Directive, ...]:
    """Return the directives that hold, one a matter at most, in file order.

    Of several active ones on one matter the one observed last holds; when dates don't decide, none does until the
    owner says (the linter reports it), unless they ask for the same in other words: then the last one stands for all.
    """
    losers: set[int] = set()
    for group in contradictions(found):
        dated = [directive for directive in group if directive.observed is not None]
        newest = max((directive.observed for directive in dated if directive.observed), default=None)
        winners = [directive for directive in dated if directive.observed == newest]
        keep = winners[0].start_line if len(dated) == len(group) and len(winners) == 1 else None
        if keep is None and all(says_the_same(group[0].text, directive.text) for directive in group[1:]):
            keep = group[-1].start_line
        losers.update(directive.start_line for directive in group if directive.start_line != keep)
    return tuple(directive for directive in found if directive.is_active and directive.start_line not in losers)


def contradictions(found: Sequence[Directive]) -> tuple[tuple[Directive, ...], ...]:
    """Return the groups of active directives that are about one matter."""
    groups: list[list[Directive]] = []
    groups_with: dict[str, list[list[Directive]]] = {}
    for directive in found:
        if not directive.is_active:
            continue
        near = [group for token in sorted(directive.matter) for group in groups_with.get(token, ())]
        home = next((group for group in near if any(same_matter(directive.text, other.text) for other in group)), None)
        if home is None:
            home = []
            groups.append(home)
        home.append(directive)
        for token in directive.matter:
            known = groups_with.setdefault(token, [])
            if not any(group is home for group in known):
                known.append(home)
    return tuple(tuple(group) for group in groups if len(group) > 1)


def says_something(entry: CuratedEntry) -> bool:
    """Return whether an entry is more than a template slot (a label with nothing behind it, a hint in italics)."""
    text = entry.text.strip()
    bare = text.strip("*_ ")
    hint = text.startswith(("_(", "*(")) or (text[:1] in "_*" and text[:1] != text[1:2] and text[-1:] == text[:1])
    return not entry.conflicted and bool(bare) and not hint and not bare.endswith((":", "：", ":**"))


def _directive(entry: CuratedEntry, file: CuratedFile) -> Directive | None:
    if entry.kind is not BlockKind.BULLET or not says_something(entry):
        return None
    metadata_line = _metadata_line(entry, file)
    under_heading = entry.heading_path[-1:] == (DIRECTIVES_HEADING,)
    first = entry.text.split("\n", 1)[0]
    if metadata_line is None and not under_heading and directive_of(first, is_message=False, project_key=None) is None:
        return None
    problems = [entry.damage] if entry.damage else []
    status = entry.status
    comment = file.reading.lines[metadata_line - 1].text if metadata_line else ""
    unread = metadata_line is not None and metadata_line < entry.first_line
    if unread:
        status = EntryStatus.SUPERSEDED
        problems.append("metadata can't be read")
    elif metadata_line is not None and "status" not in comment.lower():
        problems.append("no status")
    if metadata_line is not None and not unread and entry.observed is None and not entry.damage:
        problems.append("no date")
    first_line = min(entry.first_line, metadata_line or entry.first_line)
    return Directive(
        text=entry.text,
        matter=matter_of(first),
        observed=entry.observed,
        status=status,
        first_line=first_line,
        start_line=entry.start_line,
        end_line=entry.end_line,
        metadata_line=metadata_line,
        since=_first_date(comment) if entry.observed else None,
        problems=tuple(problems),
    )


def _metadata_line(entry: CuratedEntry, file: CuratedFile) -> int | None:
    """Return the line of the metadata comment above the entry: read by the parser, or there but unreadable."""
    for number in range(entry.start_line - 1, 0, -1):
        text = file.reading.lines[number - 1].text
        if _CARRIER.fullmatch(text):
            return number
        if text.strip() and number < entry.first_line:
            return None
        if not text.strip() and entry.start_line - number > 2 and number < entry.first_line:
            return None
    return None


def _first_date(comment: str) -> dt.date | None:
    found = _DATE.search(comment)
    return dt.date.fromisoformat(found[0]) if found else None
