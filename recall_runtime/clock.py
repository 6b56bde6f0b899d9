"""Time: the clock, and the one rule that says which day an instant belongs to.

Belongs here: reading the current instant, parsing and writing instants, the day of an instant.
Does not belong here: schedules (``memory_assets``), recency formulas (``recall_runtime.index``).

Instants are integers: milliseconds since the epoch, UTC. They are stored like that everywhere.
Only ``SystemClock`` reads the machine's time; everything else is handed a ``Clock``.
"""

import datetime as dt
import time
from dataclasses import dataclass
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from recall_runtime.errors import ConfigError

MS_PER_DAY = 86_400_000


class Clock(Protocol):
    """Source of the current instant."""

    def now_ms(self) -> int:
        """Return the current instant in milliseconds since the epoch, UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the current instant in milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that stands still, for replays and tests."""

    instant_ms: int

    def now_ms(self) -> int:
        """Return the fixed instant."""
        return self.instant_ms


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone called ``name``.

    Raises:
        ConfigError: the zone is unknown.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"Time zone {name!r} is unknown", "Set timezone in dreamline.toml to a name such as Europe/Berlin or UTC."
        ) from error


def day_of(instant_ms: int, zone: ZoneInfo) -> dt.date:
    """Return the calendar day in ``zone`` that ``instant_ms`` belongs to. The only place that decides this."""
    return dt.datetime.fromtimestamp(instant_ms / 1000, tz=zone).date()


def start_of_day_ms(day: dt.date, zone: ZoneInfo) -> int:
    """Return the first instant of ``day`` in ``zone``."""
    return int(dt.datetime.combine(day, dt.time(), tzinfo=zone).timestamp() * 1000)


def parse_instant(text: str) -> int:
    """Return the instant written as ISO 8601; a time without an offset is taken as UTC.

    Raises:
        ValueError: the text is no ISO 8601 date or time.
    """
    moment = dt.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1000)


def format_instant(instant_ms: int) -> str:
    """Return ``instant_ms`` as ISO 8601 in UTC with milliseconds, such as ``2026-03-04T07:12:31.000Z``."""
    moment = dt.datetime.fromtimestamp(instant_ms / 1000, tz=dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant_ms % 1000:03d}Z"


def age_days(instant_ms: int, now_ms: int) -> float:
    """Return the age in days, never negative: an instant in the future has age 0."""
    return max(0, now_ms - instant_ms) / MS_PER_DAY
