"""Where things lie: the workspace layout, the state folder, and what a path says about a file.

Belongs here: names and places of files, the one rule that reads a date from a file name.
Does not belong here: reading the files, deciding trust (``recall_runtime.provenance``).
"""

import datetime as dt
import functools
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from recall_runtime.errors import ConfigError
from recall_runtime.vocabulary import Tier

MEMORY_FILE = "MEMORY.md"
USER_FILE = "USER.md"
DREAMS_FILE = "DREAMS.md"
NOTES_FOLDER = "memory"
REPORTS_FOLDER = "memory/dreaming"
MACHINE_FOLDER = "memory/.dreams"
IMPORTS_FOLDER = "memory/imports"
SESSIONS_PREFIX = "sessions"

_AGENT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[-_ ][^/]*)?\.md", re.IGNORECASE)


class PathKind(StrEnum):
    """What a workspace-relative path is, by name alone."""

    MEMORY = "memory_file"
    USER = "user_file"
    DREAMS = "dreams_file"
    DAILY_NOTE = "daily_note"
    TOPIC_NOTE = "topic_note"
    REPORT = "report"
    MACHINE = "machine"
    IMPORT = "import"
    TRANSCRIPT = "transcript"
    OTHER = "other"


def normalise(path: str) -> str:
    """Return ``path`` with forward slashes and without a leading ``./``."""
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path


def note_day(path: str) -> dt.date | None:
    """Return the date in the file name of a dated note at any depth, or ``None``.

    ``YYYY-MM-DD.md`` and ``YYYY-MM-DD-anything.md`` are dated (a blank or underscore may stand for the dash before
    the suffix); an impossible date is no date.
    """
    match = _DATED.fullmatch(PurePosixPath(normalise(path)).name)
    if not match:
        return None
    try:
        return dt.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


@functools.lru_cache(maxsize=16_384)
def kind_of(path: str) -> PathKind:
    """Return what the workspace-relative ``path`` is. Case matters except for ``dreams.md``."""
    path = normalise(path)
    if path in (MEMORY_FILE, "memory.md"):
        return PathKind.MEMORY
    if path == USER_FILE:
        return PathKind.USER
    if path.lower() == DREAMS_FILE.lower():
        return PathKind.DREAMS
    if path.startswith(SESSIONS_PREFIX + "/"):
        return PathKind.TRANSCRIPT
    if not path.startswith(NOTES_FOLDER + "/"):
        return PathKind.OTHER
    if path.startswith(MACHINE_FOLDER + "/"):
        return PathKind.MACHINE
    if path.startswith(REPORTS_FOLDER + "/"):
        return PathKind.REPORT
    if not path.lower().endswith(".md"):
        return PathKind.OTHER
    if path.startswith(IMPORTS_FOLDER + "/"):
        return PathKind.IMPORT
    return PathKind.DAILY_NOTE if note_day(path) else PathKind.TOPIC_NOTE


_TIERS = {
    PathKind.MEMORY: Tier.CURATED,
    PathKind.USER: Tier.CURATED,
    PathKind.DREAMS: Tier.REVIEW,
    PathKind.REPORT: Tier.REVIEW,
    PathKind.MACHINE: Tier.REVIEW,
    PathKind.IMPORT: Tier.IMPORTS,
    PathKind.TRANSCRIPT: Tier.SESSIONS,
    PathKind.DAILY_NOTE: Tier.EPISODIC,
    PathKind.TOPIC_NOTE: Tier.EPISODIC,
}


def tier_of(path: str) -> Tier | None:
    """Return the tier of a workspace-relative path, or ``None`` when it is no memory."""
    return _TIERS.get(kind_of(path))


def require_agent_id(agent_id: str) -> None:
    """Refuse a name that would lead out of the state folder, or be read otherwise on another system.

    Raises:
        ConfigError: ``agent_id`` is no such name.
    """
    if not _AGENT_ID.fullmatch(agent_id) or ".." in agent_id:
        raise ConfigError(
            f"{agent_id!r} is no name for an agent",
            "Use letters A-Z, digits, '.', '_' and '-', and begin with neither dot nor dash.",
        )


@dataclass(frozen=True, slots=True)
class AgentFolders:
    """All places of one agent: its workspace, its transcripts, its state.

    Raises:
        ConfigError: ``agent_id`` would lead out of the state folder.
    """

    home: Path
    agent_id: str
    workspace: Path
    sessions: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        require_agent_id(self.agent_id)

    @property
    def agent_home(self) -> Path:
        """Folder of this agent's databases."""
        return self.home / "agents" / self.agent_id

    @property
    def index_db(self) -> Path:
        """Derived database: may be deleted at any time."""
        return self.agent_home / "index.sqlite"

    @property
    def state_db(self) -> Path:
        """Original database: signals, ledger, pre-images, intents. Never deleted by us."""
        return self.agent_home / "state.sqlite"

    @property
    def spool(self) -> Path:
        """Folder where recall events wait while the state database is busy."""
        return self.agent_home / "spool"

    @property
    def analytics(self) -> Path:
        """Folder of the published snapshot and its Parquet twins."""
        return self.home / "analytics" / self.agent_id

    @property
    def dagster_home(self) -> Path:
        """Default ``DAGSTER_HOME``."""
        return self.home / "dagster"
