"""The demo: one sweep over the example month, or over a copy of the user's own workspace.

Belongs here: copying, and running the same ``dreamline`` commands a user would type, each shown before it runs.
Does not belong here: anything ``dreamline`` itself should do.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from recall_runtime.cli.progress import Progress
from recall_runtime.cli.setup import openclaw_places

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
END_OF_EXAMPLE = "2026-05-31T03:00:00+02:00"


def main() -> int:
    """Copy, adopt, index, dream, and say what to look at next."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--workspace", type=Path)
    wanted: Path | None = parser.parse_args().workspace
    source = (wanted or ROOT / "examples" / "workspace").expanduser().resolve()
    if not source.is_dir():
        sys.stderr.write(f"demo: {source} is no folder. Name one: make demo WORKSPACE=DIR\n")
        return 1
    if DEMO.resolve().is_relative_to(source):
        sys.stderr.write(f"demo: {source} holds the demo's own folder. Name the workspace itself.\n")
        return 1
    for name in ("openclaw", "home"):
        shutil.rmtree(DEMO / name, ignore_errors=True)
    workspace, session_folders = openclaw_places(source, "main")
    copy_memory(workspace, DEMO / "openclaw" / "workspace")
    for folder in session_folders:
        files = [(path, path.name) for path in sorted(folder.iterdir()) if path.is_file()]
        copy_files(files, DEMO / "openclaw" / "agents" / "main" / "sessions")
    clock: tuple[str, ...] = ()
    zone: tuple[str, ...] = ()
    if wanted is None:
        clock = ("--now", END_OF_EXAMPLE)
        story = tomllib.loads((ROOT / "examples" / "story.toml").read_text(encoding="utf-8"))
        zone = ("--timezone", story["zone"])
    dreamline(*clock, "init", "--from-openclaw", ".demo/openclaw", "--embedder", "static", *zone)
    dreamline(*clock, "index")
    dreamline(*clock, "import", "openclaw", ".demo/openclaw")
    dreamline(*clock, "dream")
    about, question = ("WORDS", "WORDS") if wanted else ("HV-2207", '"how many guests may the Lomvi take"')
    sys.stdout.write(FAREWELL.format(about=about, question=question))
    return 0


FAREWELL = """
The files are in .demo/openclaw/workspace: MEMORY.md, USER.md, DREAMS.md. Look closer:

  Dagster UI    .venv/bin/dreamline --home .demo/home ui          then http://127.0.0.1:3000
  analytics     .venv/bin/dreamline --home .demo/home query "SELECT status, count(*) FROM candidates GROUP BY ALL"
  one verdict   .venv/bin/dreamline --home .demo/home explain {about}
  one entry     .venv/bin/dreamline --home .demo/home trace {about}
  search        .venv/bin/dreamline --home .demo/home search {question}
"""


def copy_memory(source: Path, target: Path) -> None:
    """Copy the Markdown at the root and the folder ``memory``. A linked file is copied, so no link leads back."""
    files = [(path, path.name) for path in sorted(source.glob("*.md")) if path.is_file()]
    files += list(_below(source / "memory", "memory"))
    copy_files(files, target)


def _below(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    for where, _, names in os.walk(folder):  # linked folders are not followed: they may lead anywhere
        for file in sorted(names):
            path = Path(where) / file
            if path.is_file():
                yield path, f"{name}/{path.relative_to(folder).as_posix()}"


def copy_files(files: list[tuple[Path, str]], target: Path) -> None:
    """Copy (file, name) pairs below ``target``."""
    show = Progress(f"copy to {target.relative_to(ROOT)}")
    target.mkdir(parents=True, exist_ok=True)
    for number, (path, name) in enumerate(files, start=1):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        show(number, len(files))


def dreamline(*arguments: str) -> None:
    """Show and run one command; stop the demo when it fails."""
    command = ["--home", ".demo/home", *arguments]
    sys.stdout.write(f"\n$ dreamline {shlex.join(command)}\n")
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "recall_runtime.cli.main", *command], cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    raise SystemExit(main())
