"""What the place of a file says about who is behind it.

Belongs here: the path classifier, links resolved.
Does not belong here: what a path is by name alone (``recall_runtime.paths``), records of writes (``segments``).
"""

from dataclasses import dataclass
from pathlib import Path

from recall_runtime.paths import PathKind, kind_of, normalise
from recall_runtime.vocabulary import OriginClass, worst_origin

_CLASSES = {
    PathKind.MEMORY: OriginClass.AGENT,
    PathKind.USER: OriginClass.AGENT,
    PathKind.DAILY_NOTE: OriginClass.AGENT,
    PathKind.TOPIC_NOTE: OriginClass.AGENT,
    PathKind.DREAMS: OriginClass.SYSTEM,
    PathKind.REPORT: OriginClass.SYSTEM,
    PathKind.MACHINE: OriginClass.SYSTEM,
}
_CURATED = frozenset({PathKind.MEMORY, PathKind.USER})


@dataclass(frozen=True, slots=True)
class PathProvenance:
    """Class of a file by its place, before any record of writes is asked.

    ``escapes`` says that the path leads out of the workspace through a link, or nowhere at all.
    """

    origin_class: OriginClass
    curated_root: bool = False
    escapes: bool = False


def classify_path(workspace: Path, path: str) -> PathProvenance:
    """Classify the workspace-relative ``path`` (openclaw-algorithms 2.3).

    Notes are the agent's by default; review files, reports and machine files are the system's; imports and
    everything else are untrusted. A path whose real place lies outside the workspace, or can't be resolved, is
    untrusted. One exception, ours: ``MEMORY.md`` and ``USER.md`` themselves may be links to anywhere, because people
    keep them in a vault and only the operator can put a link at the root. A link inside the workspace has the worse
    class of its two names.
    """
    name = normalise(path)
    kind = kind_of(name)
    by_name = _CLASSES.get(kind, OriginClass.UNTRUSTED)
    try:
        root = workspace.resolve(strict=True)
        real = (root / name).resolve(strict=kind not in _CURATED)
    except (OSError, RuntimeError, ValueError):
        return PathProvenance(OriginClass.UNTRUSTED, escapes=True)
    if ".." in Path(name).parts or Path(name).is_absolute() or real == root:
        return PathProvenance(OriginClass.UNTRUSTED, escapes=True)
    if kind in _CURATED:
        return PathProvenance(by_name, curated_root=True)
    if not real.is_relative_to(root):
        return PathProvenance(OriginClass.UNTRUSTED, escapes=True)
    by_place = _CLASSES.get(kind_of(real.relative_to(root).as_posix()), OriginClass.UNTRUSTED)
    return PathProvenance(worst_origin((by_name, by_place)))
