"""The block of memory about the repositories a session works in.

Belongs here: choosing and rendering it within its own budget (openclaw-algorithms 16.4).
Does not belong here: which repositories are active (``recall.projects``), the rest of the curated file (``bootstrap``).
"""

from dataclasses import dataclass

from recall_runtime.recall.views import CuratedView
from recall_runtime.text.escaping import clip

HEADING = "Memory of the active projects:"
MAX_ENTRIES = 48
MAX_ENTRY = 600


@dataclass(frozen=True, slots=True)
class ProjectBlock:
    """Text for the prompt; ``lines`` are the first lines of the entries in it; ``left_out`` counts what did not fit."""

    text: str = ""
    lines: frozenset[int] = frozenset()
    left_out: int = 0


def project_block(view: CuratedView, active: tuple[str, ...], budget: int) -> ProjectBlock:
    """Return the entries of ``MEMORY.md`` whose every project is active, within ``budget`` characters.

    Order: importance, highest first (none counts as 0), then line. An entry that does not fit is skipped; shorter ones
    behind it may still fit.
    """
    if not active:
        return ProjectBlock()
    found = [
        entry
        for entry in view.file.entries
        if entry.annotations.project_key and view.reason_against(entry, active) is None
    ]
    found.sort(key=lambda entry: (-(entry.annotations.importance or 0), entry.start_line))
    text, shown, left_out = HEADING, set[int](), max(0, len(found) - MAX_ENTRIES)
    for entry in found[:MAX_ENTRIES]:
        line = f"\n- {clip(' '.join(entry.text.split()), MAX_ENTRY)} (Source: {view.name}#L{entry.start_line})"
        if len(text) + len(line) > budget:
            left_out += 1
            continue
        text += line
        shown.add(entry.start_line)
    return ProjectBlock(text if shown else "", frozenset(shown), left_out)
