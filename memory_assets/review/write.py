"""Writing the review of one sweep.

Belongs here: which file, in which order, what is reported when one can't be written.
Does not belong here: wording and layout (the other modules of this room).
"""

from pathlib import Path

from memory_assets.review.diary import diary_entry
from memory_assets.review.dreams import ARCHIVE, is_shown, last_entries, repeats, rotated, with_report
from memory_assets.review.files import rewrite
from memory_assets.review.phases import targets, with_block
from memory_assets.review.records import ReviewResult, SweepReport
from recall_runtime.agent import Agent
from recall_runtime.errors import ConflictError, WorkspaceError
from recall_runtime.models.protocol import ChatModel
from recall_runtime.paths import DREAMS_FILE
from recall_runtime.storage.atomic import read_bytes


def write_review(agent: Agent, report: SweepReport, *, model: ChatModel | None = None) -> ReviewResult:
    """Write ``DREAMS.md`` and the phase reports of ``report``; return what changed. Nothing here ends a sweep.

    An empty sweep creates and changes no file. A file that can't be written is named in ``problems``; the others are
    still written. The same report again changes no byte and asks no model.
    """
    if report.is_empty:
        return ReviewResult()
    changed: list[str] = []
    problems: list[str] = []
    name = dreams_name(agent.workspace)
    try:
        changed += _write_dreams(agent, name, report, model)
    except (WorkspaceError, ConflictError) as error:
        problems.append(str(error))
    for path, block, body in targets(report, agent.settings.dreaming.storage_mode):
        try:
            target = agent.workspace / path
            if rewrite(target, lambda data, p=path, b=block, t=body: with_block(data, p, b, t)):  # type: ignore[misc]  # defaults bind the loop's values
                changed.append(path)
        except (WorkspaceError, ConflictError) as error:
            problems.append(f"{path}: {error}")
    return ReviewResult(tuple(dict.fromkeys(changed)), tuple(problems))


def dreams_name(workspace: Path) -> str:
    """Return the name of the diary file: an existing ``DREAMS.md``, else ``dreams.md``, else ``DREAMS.md``."""
    names = {entry.name for entry in workspace.iterdir()} if workspace.is_dir() else set()
    return DREAMS_FILE if DREAMS_FILE in names or DREAMS_FILE.lower() not in names else DREAMS_FILE.lower()


def _write_dreams(agent: Agent, name: str, report: SweepReport, model: ChatModel | None) -> list[str]:
    path = agent.workspace / name
    changed: list[str] = []
    rewrite(path, lambda data: data)  # refuses links, folders and giants before a model is asked
    present = read_bytes(path) or b""
    entry = None
    if not is_shown(present, report) and repeats(present, report) is None:
        entry = diary_entry(report, agent.zone, model, earlier=last_entries(present))
    if rewrite(path, lambda data: with_report(data, report, entry)):
        changed.append(name)
    moved = rotated(read_bytes(path) or b"")[1]
    if moved:
        if rewrite(agent.workspace / ARCHIVE, lambda data: data if moved in data else data + moved):
            changed.append(ARCHIVE)
        rewrite(path, lambda data: rotated(data)[0])
    return changed
