"""Real processes that match at once never overspend a budget."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from recall_runtime.intents.store import list_intents
from tests.intents.helpers import NOW, arm, state

PROGRAM = """
import json, sys
from pathlib import Path
from recall_runtime.errors import StoreLockedError
from tests.intents.helpers import NOW, say
from recall_runtime.storage.schema import open_state
connection = open_state(Path(sys.argv[1]))
sys.stdin.readline()
fired = 0
for step in range(60):
    try:
        fired += len(say(connection, "invoice", NOW + step).fired)
    except StoreLockedError:
        pass
print(json.dumps(fired))
connection.close()
"""


@pytest.mark.slow
def test_processes_that_match_at_once_never_overspend(tmp_path: Path) -> None:
    with state(tmp_path) as connection:
        for index in range(4):
            arm(connection, "invoice", cooldown_seconds=0, max_fires=5, description=f"{index} of four.")  # type: ignore[arg-type]  # a text among numbers
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "state.sqlite")]
        root = Path(__file__).parents[2]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True)
            for _ in range(3)
        ]
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        counts = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
        rows = list_intents(connection, NOW + 100)
    assert sum(counts) == 20
    assert [row.fire_count for row in rows] == [5, 5, 5, 5]
