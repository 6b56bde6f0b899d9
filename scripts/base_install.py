"""Install the base set alone into a fresh environment and search with it.

Belongs here: the check that ring 1 stands on its own dependencies. Run by ``make base`` and in CI.
Does not belong here: the test suite (it runs in the full environment).
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".demo" / "base"
FORBIDDEN = ("dagster", "duckdb", "polars", "mcp", "onnxruntime")


def main() -> int:
    """Install, import, index, search; return 0 when all of it works without the extras."""
    shutil.rmtree(PLACE, ignore_errors=True)
    venv.create(PLACE / "venv", with_pip=True)
    python = PLACE / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"

    def run(*arguments: str) -> str:
        done = subprocess.run([python, *arguments], check=True, cwd=PLACE, stdout=subprocess.PIPE, text=True)
        return done.stdout

    quiet = ("--quiet", "--disable-pip-version-check")
    run("-m", "pip", "install", *quiet, "-c", str(ROOT / "constraints.txt"), str(ROOT))
    installed = run("-m", "pip", "list", "--format=freeze").lower()
    unwanted = [name for name in FORBIDDEN if f"\n{name}==" in f"\n{installed}"]
    if unwanted:
        sys.stderr.write(f"the base install brings {', '.join(unwanted)}\n")
        return 1
    shutil.copytree(ROOT / "examples" / "workspace", PLACE / "workspace")
    command = ("-m", "recall_runtime.cli.main", "--home", str(PLACE / "home"))
    run(*command, "--workspace", str(PLACE / "workspace"), "init")
    run(*command, "index")
    found = run(*command, "search", "harbour licence guests", "--json")
    if "HV-2207" not in found:
        sys.stderr.write(f"the base install does not find the example's licence:\n{found}\n")
        return 1
    sys.stdout.write(f"base install works: {len(installed.splitlines())} packages, search answers\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
