"""A headless Chromium, where the machine has one."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def find_chromium() -> str | None:
    """Return the path of a Chromium, or ``None``."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


def screenshot(url: str, target: Path, *, size: tuple[int, int] = (1500, 900)) -> None:
    """Save what a browser shows of ``url`` after its scripts ran."""
    _run(url, f"--screenshot={os.fspath(target)}", f"--window-size={size[0]},{size[1]}")


def dom(url: str) -> str:
    """Return the document of ``url`` after its scripts ran."""
    return _run(url, "--dump-dom")


def _run(url: str, *options: str) -> str:
    chromium = find_chromium()
    assert chromium is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [chromium, *_FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=25000", *options, url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
