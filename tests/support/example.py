"""The example month as a test fixture: a copy of it, and the commands on it.

Belongs here: copying ``examples/`` and running ``dreamline`` as a real process.
Does not belong here: what the commands should say (tests/cli, tests/docs).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
END_OF_EXAMPLE = "2026-05-31T03:00:00+02:00"


def copy_example(target: Path) -> Path:
    """Copy workspace and sessions of the example below ``target``; return ``target``."""
    for folder in ("workspace", "sessions"):
        shutil.copytree(ROOT / "examples" / folder, target / folder)
    return target


def dreamline(
    *arguments: str, cwd: Path, now: str | None = END_OF_EXAMPLE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``dreamline`` with its state in ``cwd/home``, in a process of its own."""
    clock = ("--now", now) if now else ()
    clean = {key: value for key, value in os.environ.items() if not key.startswith("DREAMLINE_")}
    return subprocess.run(
        [sys.executable, "-m", "recall_runtime.cli.main", *clock, *arguments],
        cwd=cwd,
        env=clean | {"DREAMLINE_HOME": str(cwd / "home"), "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
