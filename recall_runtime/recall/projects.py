"""Project scope: which repository a memory belongs to, and which repositories a session is in.

Belongs here: the repository key (openclaw-algorithms 16.1), the active set of a session (16.2), eligibility (16.3).
Does not belong here: the annotation grammar (``recall_runtime.notes.annotations``), ranking (``recall_runtime.index``).

Git runs only in ``repository_key``, when a session enters a folder, never for a message.
"""

import contextlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from recall_runtime.errors import ConflictError
from recall_runtime.storage.atomic import content_hash, read_bytes, replace_file

GIT_TIMEOUT_SECONDS = 4.0
MAX_ACTIVE = 4
MAX_SESSIONS = 64
_TRIES = 3

_DEFAULT_PORTS = {"ssh": 22, "https": 443, "http": 80, "git": 9418}
_SCP_FORM = re.compile(r"(?:[^@/\s]+@)?(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<path>(?!/{2}).+)")
_ESCAPES = {"%": "%25", ";": "%3b", "<": "%3c", ">": "%3e", "\r": "%0d", "\n": "%0a"}


def escape_key(text: str) -> str:
    """Escape what could end a comment or separate two keys; everything else stays as written."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def key_from_remote(remote: str) -> str | None:
    """Return the key of a remote address: lower-cased host, then the path with its case, or ``None`` if it has no host.

    User, password, scheme, default port, a trailing slash and ``.git`` do not matter; another port or path does.
    """
    remote = remote.strip()
    scheme, host, port, path = _split_remote(remote)
    if not host:
        return None
    path = path.strip("/").removesuffix(".git").rstrip("/")
    if not path:
        return None
    shown_port = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return escape_key(f"{host.lower()}{shown_port}/{path}")


def _split_remote(remote: str) -> tuple[str, str, int | None, str]:
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            return parts.scheme.lower(), parts.hostname or "", parts.port, unquote(parts.path)
        except ValueError:
            return "", "", None, ""
    found = _SCP_FORM.fullmatch(remote)
    if found is None or re.fullmatch(r"[A-Za-z]", found["host"]):  # a one-letter host is a Windows drive
        return "", "", None, ""
    return "ssh", found["host"].strip("[]"), None, found["path"]


@lru_cache(maxsize=128)
def repository_key(root: Path) -> str | None:
    """Return the key of the repository that holds ``root``: from ``origin``, else ``path:`` and its absolute root.

    Linked work trees of one repository share a key. ``None`` outside any repository. Cached for the process's life.
    """
    common = _git(root, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is None:
        return None
    remote = _git(root, "config", "--get", "remote.origin.url")
    key = key_from_remote(remote) if remote else None
    folder = Path(common)
    return key or "path:" + escape_key(str(folder.parent if folder.name == ".git" else folder))


def _git(root: Path, *arguments: str) -> str | None:
    import subprocess  # a turn never needs it, and it is slow to import

    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def split_keys(project_key: str | None) -> tuple[str, ...]:
    """Return the keys of a stored project column."""
    return tuple(key for key in (part.strip() for part in (project_key or "").split(";")) if key)


def is_eligible(project_key: str | None, active: Iterable[str]) -> bool:
    """Return whether an entry may be injected: untagged, or every one of its keys is active. Invalid tags never are."""
    return set(split_keys(project_key)) <= set(active)


class ActiveProjects:
    """The repositories each session is in: at most four, most recent first; of 64 sessions."""

    def __init__(self, sessions: Iterable[tuple[str, tuple[str, ...]]] = ()) -> None:
        self._sessions: OrderedDict[str, tuple[str, ...]] = OrderedDict(sessions)

    def enter(self, session_key: str, project_key: str | None) -> tuple[str, ...]:
        """Move ``project_key`` to the front of the session's set and return the set; no key leaves it unchanged."""
        active = self._sessions.pop(session_key, ())
        if project_key:
            active = (project_key, *(key for key in active if key != project_key))[:MAX_ACTIVE]
        self._sessions[session_key] = active
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return active

    def of(self, session_key: str) -> tuple[str, ...]:
        """Return the active set of the session, most recent first."""
        return self._sessions.get(session_key, ())

    def dumps(self) -> bytes:
        """Return the sets as JSON."""
        return json.dumps(list(self._sessions.items()), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def loads(cls, data: bytes | None) -> "ActiveProjects":
        """Return the sets in ``data``; none when there is nothing or nothing readable: they are a convenience."""
        try:
            rows = json.loads(data or b"[]")
            return cls((str(session), tuple(map(str, keys))[:MAX_ACTIVE]) for session, keys in rows)
        except (ValueError, TypeError):
            return cls()


def kept_file(agent_home: Path) -> Path:
    """Return the place of the active sets of hosts that start a process for every message."""
    return agent_home / "projects.json"


def enter_folder(agent_home: Path, session_key: str, folder: Path) -> tuple[str, ...]:
    """Keep that the session is in the repository of ``folder``, and return its active set. Runs Git.

    Raises:
        WorkspaceError: the state folder can't be written.
    """
    path, key = kept_file(agent_home), repository_key(folder)
    for _ in range(_TRIES):
        present = read_bytes(path)
        projects = ActiveProjects.loads(present)
        active = projects.enter(session_key, key)
        with contextlib.suppress(ConflictError):  # another session began in this very moment
            replace_file(path, projects.dumps(), expected_hash=None if present is None else content_hash(present))
            break
    return active


def kept_projects(agent_home: Path, session_key: str) -> tuple[str, ...]:
    """Return the active set that ``enter_folder`` kept for the session. Never runs Git."""
    with contextlib.suppress(OSError):
        return ActiveProjects.loads(read_bytes(kept_file(agent_home))).of(session_key)
    return ()
