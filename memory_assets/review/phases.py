"""Reports of the phases: files of their own, or managed blocks in today's note.

Belongs here: which report goes where under the three storage modes, the bytes of each.
Does not belong here: wording (``review.render``), ``DREAMS.md`` (``review.dreams``).
"""

from memory_assets.review.records import SweepReport
from memory_assets.review.render import deep_body, light_body, rem_body
from recall_runtime.notes.markers import (
    BLOCK_HEADINGS,
    ManagedBlock,
    end_marker,
    managed_blocks,
    replace_block,
    start_marker,
)
from recall_runtime.paths import NOTES_FOLDER, REPORTS_FOLDER
from recall_runtime.text.lines import read_lines


def phase_bodies(report: SweepReport) -> dict[ManagedBlock, str]:
    """Return the bodies of the phases that have something to say."""
    bodies: dict[ManagedBlock, str] = {}
    if report.light:
        bodies[ManagedBlock.LIGHT] = light_body(report.light)
    if report.themes or report.truths:
        bodies[ManagedBlock.REM] = rem_body(report.themes, report.truths)
    if report.lines:
        bodies[ManagedBlock.DEEP] = deep_body(report)
    return bodies


def targets(report: SweepReport, storage_mode: str) -> list[tuple[str, ManagedBlock, str]]:
    """Return (path, block, body) of each report to write under ``storage_mode``: separate, inline or both."""
    found: list[tuple[str, ManagedBlock, str]] = []
    for block, body in phase_bodies(report).items():
        if storage_mode in ("separate", "both"):
            found.append((f"{REPORTS_FOLDER}/{block}/{report.day.isoformat()}.md", block, body))
        if storage_mode in ("inline", "both") and block is not ManagedBlock.DEEP:
            found.append((f"{NOTES_FOLDER}/{report.day.isoformat()}.md", block, body))
    return found


def with_block(data: bytes, path: str, block: ManagedBlock, body: str) -> bytes:
    """Return the file with the report in it; every other byte stays. A new report file gets its title."""
    has_block = any(span.name == block for span in managed_blocks([line.text for line in read_lines(data).lines]).spans)
    if path.startswith(REPORTS_FOLDER + "/") and not has_block and not data.strip():
        title = (BLOCK_HEADINGS[block] or "").removeprefix("#")
        text = f"{title}\n\n{start_marker(block)}\n{body}\n{end_marker(block)}\n"
        return data + text.encode("utf-8", errors="replace")
    return replace_block(data, block, body)
