"""What events and specs may say.

Belongs here: keys of metadata and tags, and the one function that lets counts into an event.
Does not belong here: text of memories. The event log can't forget, so events carry numbers and identifiers only.
"""

from collections.abc import Mapping
from typing import Any

AGENT_TAG = "dreamline/agent"
SWEEP_TAG = "dreamline/sweep"
STATE_TAG = "dreamline/status"
SIGNATURE_TAG = "dreamline/signature"


def numbers_only(counts: Mapping[str, Any], prefix: str = "") -> dict[str, int | float]:
    """Return the numbers of ``counts`` with nested names joined by ``/``; everything that is no number is left out."""
    flat: dict[str, int | float] = {}
    for name, value in counts.items():
        if isinstance(value, Mapping):
            flat |= numbers_only(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            flat[f"{prefix}{name}"] = int(value) if isinstance(value, bool) else value
    return flat
