"""Entry annotations: ``<!-- trigger: a, b --> <!-- importance: 7 --> <!-- project: host/owner/repo -->``.

Belongs here: the grammar of openclaw-algorithms 6.2, reading, removing and writing it.
Does not belong here: markers on lines of their own (``markers``), which entries are eligible (``recall``).

A comment inside a code span is text. A trigger or importance counts when it belongs to the run of comments that ends
its line; a project counts anywhere in the entry. A comment ends at its first ``-->``; one that never closes costs its
own line's metadata and nothing else.
"""

import re
from collections.abc import Iterable, Sequence

from recall_runtime.notes.conditions import mark_of
from recall_runtime.records import INVALID_PROJECT, Annotations

MAX_TRIGGERS = 3
MAX_TRIGGER = 64

_COMMENT = re.compile(r"<!--(.*?)-->")
_CARRIER = re.compile(r"\s*(trigger|importance|project)\s*:(.*)", re.IGNORECASE | re.DOTALL)
_OPEN_CARRIER = re.compile(r"<!--\s*(trigger|importance|project)\s*:", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_PHRASE_SEPARATORS = re.compile("[,;\uff0c\uff1b]")
_NOT_IN_KEY = re.compile("[<>\r\n]")
_NOT_IN_PHRASE = re.compile(r"<!-*|-*->|[,;\r\n\uff0c\uff1b\x00]")


def parse_annotations(lines: Sequence[str], *, curated: bool) -> Annotations:
    """Return the annotations of one entry, given as its lines. Never raises.

    Args:
        lines: the entry's lines without line ends.
        curated: whether the file is ``MEMORY.md`` or ``USER.md``; elsewhere only the project counts.
    """
    triggers: dict[str, str] = {}
    importances: list[int] = []
    projects: list[str] = []
    valid = True
    for line in lines:
        if "<!--" not in line:
            continue
        masked = mask_code(line)
        comments = list(_COMMENT.finditer(masked))
        tail = _trailing_run(masked, comments)
        last = 0
        for match in comments:
            last = match.end()
            carrier = _CARRIER.fullmatch(match[1])
            if carrier is None:
                continue
            kind, value = carrier[1].lower(), line[match.start(1) + carrier.start(2) : match.start(1) + carrier.end(2)]
            if kind == "project":
                projects.append(value)
            elif curated and match.start() >= tail:
                if kind == "trigger":
                    for phrase in _phrases(value):
                        triggers.setdefault(phrase.casefold(), phrase)
                elif (number := _importance(value)) is not None:
                    importances.append(number)
        opened = _OPEN_CARRIER.search(masked, last)
        valid = valid and not (opened and opened[1].lower() == "project")
    return Annotations(
        triggers=tuple(triggers.values()),
        importance=max(importances, default=None),
        project_key=_project_key(projects, valid),
    )


def strip_annotations(line: str) -> str:
    """Return the line without comments that close on it, without unclosed carriers, and without trailing blanks.

    A condition or an expiry (``conditions``) stays as a mark behind the text: nobody reads the one without the other.
    """
    if "<!--" not in line:
        return line.rstrip()
    masked = mask_code(line)
    kept: list[str] = []
    marks: list[str] = []
    position = 0
    for match in _COMMENT.finditer(masked):
        kept.append(line[position : match.start()])
        mark = mark_of(line[match.start(1) : match.end(1)])
        marks += [mark] if mark else []
        position = match.end()
    opened = _OPEN_CARRIER.search(masked, position)
    kept.append(line[position : opened.start() if opened else len(line)])
    text = _joined(kept)
    return " ".join([text, *marks]) if text.strip() else text


def render_annotations(annotations: Annotations) -> str:
    """Return the comments in the order trigger, importance, project, joined by blanks; empty when there are none."""
    comments: list[str] = []
    phrases = [clean_phrase(phrase) for phrase in annotations.triggers]
    if any(phrases):
        comments.append(f"<!-- trigger: {', '.join(phrase for phrase in phrases if phrase)} -->")
    if annotations.importance is not None:
        comments.append(f"<!-- importance: {annotations.importance} -->")
    if annotations.project_key:
        key = "" if annotations.project_key == INVALID_PROJECT else annotations.project_key
        comments.append(f"<!-- project: {_NOT_IN_KEY.sub('', key)} -->" if key else "<!-- project: -->")
    return " ".join(comments)


def clean_phrase(phrase: str) -> str:
    """Return a trigger phrase without separators and comment signs, cut to 64 signs (openclaw-algorithms 25.2)."""
    return " ".join(_NOT_IN_PHRASE.sub(" ", phrase).split())[:MAX_TRIGGER].rstrip()


def mask_code(line: str) -> str:
    """Return ``line`` with the inside of its code spans blanked, of the same length."""
    spans = code_spans(line)
    if not spans:
        return line
    kept: list[str] = []
    position = 0
    for start, end in spans:
        kept.append(line[position:start] + " " * (end - start))
        position = end
    return "".join(kept) + line[position:]


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each code span, backticks included: a run of backticks closed by an equal run."""
    if "`" not in text:
        return []
    runs = [match.span() for match in _BACKTICKS.finditer(text)]
    next_equal: dict[int, int] = {}
    closing = [-1] * len(runs)
    for position in range(len(runs) - 1, -1, -1):
        length = runs[position][1] - runs[position][0]
        closing[position] = next_equal.get(length, -1)
        next_equal[length] = position
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(runs):
        other = closing[position]
        if other >= 0:
            spans.append((runs[position][0], runs[other][1]))
            position = other
        position += 1
    return spans


def _trailing_run(masked: str, comments: Sequence[re.Match[str]]) -> int:
    """Return where the run of comments that ends the line begins; past the end when there is none."""
    begin = len(masked)
    run = len(masked) + 1
    for match in reversed(comments):
        if masked[match.end() : begin].strip():
            break
        begin = run = match.start()
    return run


def _phrases(value: str) -> Iterable[str]:
    for part in _PHRASE_SEPARATORS.split(value):
        phrase = " ".join(part.split())
        if phrase:
            yield phrase


def _importance(value: str) -> int | None:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 4:
        return None
    number = int(digits)
    return number if 1 <= number <= 10 else None


def _project_key(values: Sequence[str], valid: bool) -> str | None:
    if not values:
        return None if valid else INVALID_PROJECT
    keys = [_normalise_key(key) for value in values for key in value.split(";")]
    if not valid or not all(keys):
        return INVALID_PROJECT
    return "; ".join(dict.fromkeys(key for key in keys if key))


def _normalise_key(key: str) -> str | None:
    key = key.strip()
    if not key or any(sign in key for sign in "<>\r\n"):
        return None
    host, slash, rest = key.partition("/")
    if key.startswith("path:") or not slash or not host:
        return key
    return f"{host.lower()}/{rest}"


def _joined(parts: Sequence[str]) -> str:
    text = ""
    for part in parts:
        text = text.rstrip() + " " + part.lstrip() if text.strip() and part.strip() else text + part
    return text.rstrip()
