"""What a sync did, as one record.

Belongs here: the counts and reasons that commands, sweeps and checks show.
Does not belong here: the sync (``index.sync``), comparing without writing (``index.freshness``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(slots=True)
class SyncReport:
    """What a sync did.

    ``skipped`` and ``problems`` name every source that isn't indexed, or not wholly, with the reason. ``vector_error``
    says why vectors are missing; the keyword lane answers all the same. ``changed`` tells whether anything was written.
    """

    transcripts_read: int = 0
    notes_read: int = 0
    unchanged: int = 0
    removed: int = 0
    entries_written: int = 0
    vectors_made: int = 0
    vectors_refused: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    rebuilt: bool = False
    vector_error: str | None = None
    changed: bool = False

    def count_faults(self, faults: Mapping[str, int]) -> None:
        """Add the faults of one source, by kind."""
        for kind, count in faults.items():
            self.faults[kind] = self.faults.get(kind, 0) + count
