"""Who a request comes from: what the host's configuration or its headers say, never the text of a call.

Belongs here: the caller and reading it from headers.
Does not belong here: what a caller may see (``recall.visibility``).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from recall_runtime.errors import DreamlineError

SESSION_HEADER = "x-dreamline-session"
SENDER_HEADER = "x-dreamline-sender"
CHANNEL_HEADER = "x-dreamline-channel"
PROJECTS_HEADER = "x-dreamline-projects"
MAX_VALUE = 500


class BadCallerError(DreamlineError):
    """A header names a caller that can't be taken. It never falls back to the default."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The session, speaker and place of a request, as the host hands them over. Missing ones open nothing."""

    session_key: str | None = None
    sender: str | None = None
    channel: str | None = None
    projects: tuple[str, ...] = ()


def caller_of(headers: Mapping[str, str], default: Caller) -> Caller:
    """Return the caller that ``headers`` (names in lower case) name, and ``default`` where a header is missing.

    A header that is there takes the place of the default, whatever it holds: an empty channel or project list is none.
    A request that names another session than the default takes nothing else from the default: its sender is not
    the one the server was started for.

    Raises:
        BadCallerError: a header can't be taken: a session or sender without a sign, or a value over 500 characters.
    """
    session = _identity(headers, SESSION_HEADER)
    base = default if session in (None, default.session_key) else Caller()
    channel, projects = headers.get(CHANNEL_HEADER), headers.get(PROJECTS_HEADER)
    return Caller(
        session_key=session or base.session_key,
        sender=_identity(headers, SENDER_HEADER) or base.sender,
        channel=base.channel if channel is None else _bounded(CHANNEL_HEADER, channel) or None,
        projects=base.projects
        if projects is None
        else tuple(key for part in projects.split(";") if (key := _bounded(PROJECTS_HEADER, part))),
    )


def _identity(headers: Mapping[str, str], name: str) -> str | None:
    """Return who the header ``name`` says it is; only a missing one says nothing."""
    value = headers.get(name)
    if value is None:
        return None
    bounded = _bounded(name, value)
    if not bounded:
        raise BadCallerError(f"The header {name} is empty", "Give it a value, or leave it out.")
    return bounded


def _bounded(name: str, value: str) -> str:
    value = value.strip()
    if len(value) > MAX_VALUE:
        raise BadCallerError(
            f"The header {name} holds a value of {len(value)} characters", f"Give at most {MAX_VALUE}."
        )
    return value
