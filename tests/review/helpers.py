"""A workspace and sweep reports for the tests of the review files."""

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

from memory_assets.review.records import LightCandidate, ReviewLine, SweepReport, Theme, Truth
from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock
from recall_runtime.config import DreamingSettings, Settings
from recall_runtime.paths import AgentFolders
from recall_runtime.records import Anchor
from recall_runtime.vocabulary import Operation

AT = 1_772_593_200_000  # 2026-03-04T03:00:00Z
DAY = dt.date(2026, 3, 4)
PLACE = Anchor("memory/2026-03-04.md", 12, 12)


def agent_of(folder: Path, storage_mode: str = "separate") -> Agent:
    """Return an agent whose workspace is ``folder``/workspace."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    settings = Settings(dreaming=DreamingSettings(storage_mode=storage_mode))  # type: ignore[arg-type]  # one of the literals
    folders = AgentFolders(folder / "home", "main", workspace)
    return Agent(folders, settings, ZoneInfo("UTC"), FixedClock(AT))


def added(text: str = "The shed key hangs right.", key: str = "memory:k1", *priors: str) -> ReviewLine:
    """Return one operation on MEMORY.md."""
    operation = Operation.SUPERSEDED if priors else Operation.ADDED
    return ReviewLine(operation, "MEMORY.md", key, text, (PLACE,), priors)


def sweep(number: int = 1, *lines: ReviewLine, **fields: object) -> SweepReport:
    """Return a sweep that promoted ``lines`` (one by default)."""
    given = {"ranked": 3, "failed_gates": {"min_recall_count": 2}} | fields
    return SweepReport(f"sweep-{number}", AT + number * 86_400_000, DAY, lines=lines or (added(),), **given)  # type: ignore[arg-type]  # fields of the record


LIGHT = (LightCandidate("The shed key hangs left of the door.", 0.62, (PLACE,), 1),)
THEMES = (Theme("shed", 0.8, 4, (PLACE,)),)
TRUTHS = (Truth("The shed key hangs left of the door.", 0.58, (PLACE,)),)
