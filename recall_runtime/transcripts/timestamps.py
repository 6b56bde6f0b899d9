"""Instants as transcripts write them.

Belongs here: the rule that reads a timestamp of any type. Does not belong here: naming days (``clock.day_of``).
"""

import math

from recall_runtime.clock import parse_instant

_SECONDS_BELOW = 1e11
# Between these every zone has a calendar day: nothing later can raise on them.
_EARLIEST_MS = 1
_LATEST_MS = 253_400_000_000_000


def instant_of(*values: object) -> int | None:
    """Return the first usable instant in milliseconds, or ``None`` (openclaw-algorithms 2.4).

    Numbers below 1e11 are seconds; ISO text without an offset is UTC; text of digits is a number. What is no time, or
    lies outside the years a calendar knows, is unknown. A time in the future is kept.
    """
    for value in values:
        instant = _instant(value)
        if instant is not None and _EARLIEST_MS <= instant <= _LATEST_MS:
            return instant
    return None


def _instant(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text or len(text) > 64:
            return None
        if not text.isascii() or not text.replace(".", "", 1).isdigit():
            try:
                return parse_instant(text)
            except (ValueError, OverflowError, OSError):
                return None
        value = float(text)
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if abs(value) > _LATEST_MS:
        return None
    return round(value * 1000) if abs(value) < _SECONDS_BELOW else round(value)
