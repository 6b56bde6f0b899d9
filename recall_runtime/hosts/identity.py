"""Who a request comes from: what the host's configuration or its headers say, never the text of a call.

Belongs here: the caller and reading it from headers.
Does not belong here: what a caller may see (``recall.visibility``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

SESSION_HEADER = "x-dreamline-session"
SENDER_HEADER = "x-dreamline-sender"
CHANNEL_HEADER = "x-dreamline-channel"
PROJECTS_HEADER = "x-dreamline-projects"
MAX_VALUE = 500


@dataclass(frozen=True, slots=True)
class Caller:
    """The session, speaker and place of a request, as the host hands them over. Missing ones open nothing."""

    session_key: str | None = None
    sender: str | None = None
    channel: str | None = None
    projects: tuple[str, ...] = ()


def caller_of(headers: Mapping[str, str], default: Caller) -> Caller:
    """Return the caller that ``headers`` (names in lower case) name, and ``default`` where they say nothing.

    A request that names another session than the default takes nothing else from the default: its sender is not
    the one the server was started for.
    """
    session = _value(headers, SESSION_HEADER)
    base = default if session in (None, default.session_key) else Caller()
    projects = tuple(part.strip() for part in (_value(headers, PROJECTS_HEADER) or "").split(";") if part.strip())
    return Caller(
        session_key=session or base.session_key,
        sender=_value(headers, SENDER_HEADER) or base.sender,
        channel=_value(headers, CHANNEL_HEADER) or base.channel,
        projects=projects or base.projects,
    )


def _value(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name, "").strip()
    return value if value and len(value) <= MAX_VALUE else None
