"""What of ``USER.md`` reaches a prompt: standing directives, whole or not at all, and the ones that apply now.

Belongs here: choosing and rendering under a cap.
Does not belong here: the wrapper, escaping, and whether the file may be injected at all (``recall``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from recall_runtime.notes.curated import parse_curated
from recall_runtime.user_model.contract import Directive, directives_of, says_something, standing

APPLIES_MAX = 3
APPLIES_CHARACTERS = 600
APPLIES_THRESHOLD = 0.35


@dataclass(frozen=True, slots=True)
class Injectable:
    """Text for the prompt, and how many whole pieces did not fit."""

    text: str
    left_out: int


def injectable(data: bytes, cap: int) -> Injectable:
    """Return the standing directives and the owner's other lines of ``USER.md`` in at most ``cap`` characters.

    Directives come first, the ones observed last before older ones when not all fit; shown in file order. Superseded
    directives, contradictions, comments and template slots never reach the text.
    """
    file = parse_curated(data, user_file=True)
    found = directives_of(file)
    by_age = sorted(standing(found), key=lambda d: (d.observed is not None, d.observed, -d.start_line), reverse=True)
    taken = {directive.start_line for directive in found}
    others = [entry for entry in file.entries if entry.start_line not in taken and says_something(entry)]
    pieces = [(directive.start_line, f"- {directive.text}") for directive in by_age]
    pieces += [(entry.start_line, f"- {entry.text}") for entry in others]
    used, chosen = 0, []
    for line, text in pieces:
        if used + len(text) + 1 <= cap:
            chosen.append((line, text))
            used += len(text) + 1
    return Injectable("\n".join(text for _, text in sorted(chosen)), len(pieces) - len(chosen))


def best_within(
    scored: Iterable[tuple[float, Directive]],
    *,
    max_directives: int = APPLIES_MAX,
    max_characters: int = APPLIES_CHARACTERS,
    threshold: float = APPLIES_THRESHOLD,
) -> tuple[Directive, ...]:
    """Return the directives to restate next to a message, best first, bounded in number and characters.

    Args:
        scored: (score 0..1, directive) of standing directives; equal scores go by line.
        max_directives: How many at most.
        max_characters: How many characters of text at most; a directive is shown whole or not at all.
        threshold: The least score.
    """
    ranked = sorted((pair for pair in scored if pair[0] >= threshold), key=lambda pair: (-pair[0], pair[1].start_line))
    chosen: list[Directive] = []
    used = 0
    for _, directive in ranked:
        if len(chosen) < max_directives and used + len(directive.text) <= max_characters:
            chosen.append(directive)
            used += len(directive.text)
    return tuple(chosen)
