"""The access token of the servers on loopback: any program of this machine can reach a port, not only its owner's.

Belongs here: finding or making the token, comparing it.
Does not belong here: who speaks behind it (``hosts.identity``).
"""

import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from recall_runtime.errors import ConfigError

TOKEN_ENV = "DREAMLINE_HTTP_TOKEN"
TOKEN_FILE = "http-token"
MIN_LENGTH = 16
_TOO_OPEN = stat.S_IRWXG | stat.S_IRWXO


def load_token(home: Path, environ: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return the token and where it comes from: ``$DREAMLINE_HTTP_TOKEN``, else ``HOME/http-token``, made when missing.

    Raises:
        ConfigError: the token is too short, or others can read its file.
    """
    given = (os.environ if environ is None else environ).get(TOKEN_ENV, "").strip()
    if given:
        return _checked(given, f"${TOKEN_ENV}"), f"${TOKEN_ENV}"
    path = home / TOKEN_FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path), str(path)
    except OSError as error:
        raise ConfigError(f"{path} can't be written ({error.strerror})", f"Set ${TOKEN_ENV} instead.") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        token = secrets.token_urlsafe(32)
        stream.write(token + "\n")
    return token, str(path)


def is_authorised(header: str | None, token: str) -> bool:
    """Return whether an ``Authorization`` header carries ``token``; the time does not tell how near it was."""
    scheme, _, given = (header or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _read(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read", "Remove it; the next start makes a new one.") from error
    if os.name == "posix" and mode & _TOO_OPEN:
        raise ConfigError(f"{path} can be read by others", f"Run `chmod 600 {path}`, or remove it for a new one.")
    return _checked(text, str(path))


def _checked(token: str, where: str) -> str:
    if len(token) < MIN_LENGTH or not token.isascii() or any(sign.isspace() for sign in token):
        raise ConfigError(f"The token in {where} is too short or no plain text", f"Use {MIN_LENGTH} signs or more.")
    return token
