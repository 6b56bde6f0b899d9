"""The guarded writer: steps, crashes, conflicts, links, history."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from recall_runtime.agent import Agent
from recall_runtime.curated.effects import ClaimChange, Effects, LedgerEntry, Source
from recall_runtime.curated.history import as_of, undo
from recall_runtime.curated.writer import PRE_IMAGES_KEPT, Base, Step, WritePlan, apply, read_base, recover
from recall_runtime.errors import RefusedError, WorkspaceError
from recall_runtime.storage.schema import open_state
from recall_runtime.vocabulary import CandidateStatus, Operation
from tests.support.curated import NOW, ROOT, agent_in, insert_claim, run_child

CLAIM = "aaaaaaaaaaaa"
KEY = f"memory:claim:{CLAIM}"
LINE = "- The ram is called Otto. Source: memory/2026-03-18.md#L3-L3"
BEFORE = b"# Memory\n\n- By hand.\n"
DAY = 86_400_000


def effects(key: str = KEY, claim: str = CLAIM) -> Effects:
    """Effects of one promotion."""
    row = LedgerEntry(Operation.ADDED, key, LINE, claim, (Source("memory/2026-03-18.md", 3, 3, "2026-03-18"),))
    return Effects((row,), (ClaimChange(claim, CandidateStatus.PROMOTED, None, NOW, key),))


def adding(base: Base) -> WritePlan:
    """A plan that appends one entry."""
    return WritePlan(
        base, (base.content or b"") + f"<!-- openclaw-memory-promotion:{KEY} -->\n{LINE}\n".encode(), effects()
    )


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """An agent with a hand-written MEMORY.md."""
    agent = agent_in(tmp_path)
    (agent.workspace / "MEMORY.md").write_bytes(BEFORE)
    return agent


@pytest.fixture
def state(agent: Agent) -> Iterator[apsw.Connection]:
    """Its state database with one waiting claim."""
    connection = open_state(agent.folders.state_db)
    insert_claim(connection, CLAIM, "The ram is called Otto.")
    yield connection
    connection.close()


def outcome(agent: Agent, state: apsw.Connection) -> tuple[bytes, list[tuple[str, str]], tuple[str, str | None], int]:
    """File, ledger, claim and journal rows: what must agree."""
    content = (agent.workspace / "MEMORY.md").read_bytes()
    ledger = list(state.execute("SELECT operation, entry_key FROM ledger ORDER BY ledger_id"))
    claim = state.execute("SELECT status, entry_key FROM claims WHERE claim_id = ?", (CLAIM,)).fetchone()
    journal = state.execute("SELECT count(*) FROM write_journal").fetchone()
    return content, ledger, claim, journal[0]


def written(agent: Agent, state: apsw.Connection) -> bool:
    """Whether the promotion is complete; anything between all and nothing fails."""
    content, ledger, claim, journal = outcome(agent, state)
    assert journal == 0
    if content.count(LINE.encode()):
        assert content.count(LINE.encode()) == 1
        assert (ledger, claim) == ([("added", KEY)], ("promoted", KEY))
        return True
    assert (content, ledger, claim) == (BEFORE, [], ("waiting", None))
    return False


def test_a_write_stores_pre_image_ledger_and_claim(agent: Agent, state: apsw.Connection) -> None:
    """The three places agree after the last step."""
    result = apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    assert written(agent, state)
    row = state.execute("SELECT content, after_content FROM pre_images WHERE pre_image_id = ?", (result.pre_image_id,))
    before, after = row.fetchone()
    assert before == BEFORE
    assert after == (agent.workspace / "MEMORY.md").read_bytes()


CRASH = """
import sys
from pathlib import Path
from tests.curated.test_writer import adding
from tests.support.curated import NOW, agent_in, die_at
from recall_runtime.curated.writer import Step, apply, read_base
from recall_runtime.storage.schema import open_state
agent = agent_in(Path(sys.argv[1]))
state = open_state(agent.folders.state_db)
apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW, on_step=die_at(Step(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "finished"), [(Step.PREPARED, False), (Step.REPLACED, True), (Step.PUBLISHED, True)], ids=str
)
def test_a_killed_write_is_rolled_back_or_finished(
    agent: Agent, state: apsw.Connection, tmp_path: Path, step: Step, finished: bool
) -> None:
    """SIGKILL after any step, then recovery and the same plan again: written once, nothing left over."""
    assert run_child(CRASH, str(tmp_path), step.value) == -9
    recover(agent, state)
    assert written(agent, state) is finished
    if not finished:
        apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s2", now_ms=NOW)
    assert written(agent, state)
    assert recover(agent, state) == ()
    assert sorted(path.name for path in agent.workspace.iterdir()) == ["MEMORY.md", "memory"]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "finished"), [(Step.PREPARED, False), (Step.REPLACED, True)], ids=str)
def test_an_edit_after_the_crash_does_not_hide_what_happened(
    agent: Agent, state: apsw.Connection, tmp_path: Path, step: Step, finished: bool
) -> None:
    """A person edits the file before the next run: the lines still tell whether the rename took place."""
    assert run_child(CRASH, str(tmp_path), step.value) == -9
    file = agent.workspace / "MEMORY.md"
    file.write_bytes(file.read_bytes() + b"- Typed after the crash.\n")
    (recovery,) = recover(agent, state)
    assert recovery.finished is finished
    assert b"- Typed after the crash." in file.read_bytes()
    ledger = list(state.execute("SELECT operation FROM ledger"))
    assert ledger == ([("added",)] if finished else [])


def test_a_leftover_temporary_file_of_a_rolled_back_write_goes(agent: Agent, state: apsw.Connection) -> None:
    """A process killed while it wrote the temporary file leaves nothing behind."""
    plan = adding(read_base(agent, "MEMORY.md"))
    with pytest.raises(InterruptedError):
        apply(agent, state, plan, sweep_id="s1", now_ms=NOW, on_step=_interrupt)
    (agent.workspace / ".MEMORY.md.x1.dreamline-tmp").write_bytes(b"# Mem")
    recover(agent, state)
    assert not list(agent.workspace.glob(".*tmp"))


def _interrupt(step: Step) -> None:
    raise InterruptedError(step)


def test_a_swapped_out_edit_is_kept_aside(agent: Agent, state: apsw.Connection) -> None:
    """What the rename took out and nobody knows is never deleted."""

    def stop_after_replacing(step: Step) -> None:
        if step is Step.REPLACED:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        apply(
            agent,
            state,
            adding(read_base(agent, "MEMORY.md")),
            sweep_id="s1",
            now_ms=NOW,
            on_step=stop_after_replacing,
        )
    (agent.workspace / ".MEMORY.md.x1.dreamline-tmp").write_bytes(b"an edit of a person\n")
    (recovery,) = recover(agent, state)
    assert recovery.kept_aside == (".MEMORY.md.x1.dreamline-tmp",)
    assert written(agent, state)


def test_a_conflict_is_built_again_on_the_new_base(agent: Agent, state: apsw.Connection) -> None:
    """Case 25: the human's edit survives, the entry is appended to it."""
    stale = adding(read_base(agent, "MEMORY.md"))
    (agent.workspace / "MEMORY.md").write_bytes(BEFORE + b"- Typed by hand.\n")
    result = apply(agent, state, stale, sweep_id="s1", now_ms=NOW, rebuild=adding)
    assert result.conflicts == 1
    assert (agent.workspace / "MEMORY.md").read_bytes().startswith(BEFORE + b"- Typed by hand.\n<!--")
    images = list(state.execute("SELECT content FROM pre_images"))
    assert images == [(BEFORE + b"- Typed by hand.\n",)]


@pytest.mark.parametrize("edit", [b"# Memory\n\n- By hanD.\n", None], ids=["same-length", "file-removed"])
def test_a_conflict_without_rebuild_writes_nothing(agent: Agent, state: apsw.Connection, edit: bytes | None) -> None:
    """Same length and time do not hide an edit; the claim stays eligible."""
    file = agent.workspace / "MEMORY.md"
    before = file.stat()
    stale = adding(read_base(agent, "MEMORY.md"))
    if edit is None:
        file.unlink()
    else:
        file.write_bytes(edit)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert apply(agent, state, stale, sweep_id="s1", now_ms=NOW).plan is None
    assert (file.read_bytes() if file.exists() else None) == edit
    assert list(state.execute("SELECT * FROM ledger")) == []
    assert state.execute("SELECT count(*) FROM pre_images").fetchone() == (0,)


EDITOR = """
import fcntl, os, sys, tempfile
from pathlib import Path
file, name = Path(sys.argv[1]), sys.argv[2]
with open(sys.argv[3], "w") as lock:  # the editors agree among themselves, not with the sweep
    for number in range(25):
        fcntl.flock(lock, fcntl.LOCK_EX)
        while True:
            seen = file.read_bytes()
            handle, temporary = tempfile.mkstemp(dir=file.parent)
            with os.fdopen(handle, "wb") as stream:
                stream.write(seen + f"- {name} line {number}\\n".encode())
            if file.read_bytes() == seen:
                os.replace(temporary, file)
                break
            os.unlink(temporary)
        fcntl.flock(lock, fcntl.LOCK_UN)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the atomic swap of two files")
def test_eight_editors_lose_no_line_to_the_writer(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    """Editors that replace the file while sweeps write it: every line of theirs is there at the end."""
    file = agent.workspace / "MEMORY.md"
    editors = [
        subprocess.Popen([sys.executable, "-c", EDITOR, str(file), f"editor{n}", str(tmp_path / "lock")], cwd=ROOT)
        for n in range(8)
    ]
    number = 0
    while any(editor.poll() is None for editor in editors):
        number += 1

        def rebuild(base: Base, number: int = number) -> WritePlan:
            return WritePlan(base, (base.content or b"") + f"- sweep {number}\n".encode(), Effects())

        apply(agent, state, rebuild(read_base(agent, "MEMORY.md")), sweep_id=f"s{number}", now_ms=NOW, rebuild=rebuild)
    assert [editor.wait() for editor in editors] == [0] * 8
    lines = file.read_text().splitlines()
    assert all(lines.count(f"- editor{n} line {k}") == 1 for n in range(8) for k in range(25))


def test_writing_goes_through_a_link_and_keeps_the_mode(agent: Agent, state: apsw.Connection, tmp_path: Path) -> None:
    """Case 13: the link stays a link, the vault file has the new bytes and mode 640."""
    vault = tmp_path / "vault" / "MEMORY.md"
    vault.parent.mkdir()
    vault.write_bytes(BEFORE)
    vault.chmod(0o640)
    link = agent.workspace / "MEMORY.md"
    link.unlink()
    link.symlink_to("../vault/MEMORY.md")
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    assert link.is_symlink()
    assert written(agent, state)
    assert stat.S_IMODE(vault.stat().st_mode) == 0o640
    assert LINE.encode() in vault.read_bytes()


def test_a_dangling_link_is_a_missing_file_and_its_target_is_made(
    agent: Agent, state: apsw.Connection, tmp_path: Path
) -> None:
    """Case 13: USER.md points into a vault where nothing is yet."""
    (agent.workspace / "USER.md").symlink_to("../vault/USER.md")
    base = read_base(agent, "USER.md")
    assert base.content is None
    apply(agent, state, WritePlan(base, b"- Prefer tea.\n", Effects()), sweep_id="s1", now_ms=NOW)
    assert (agent.workspace / "USER.md").is_symlink()
    assert (tmp_path / "vault" / "USER.md").read_bytes() == b"- Prefer tea.\n"


def test_a_link_loop_is_one_clear_error(agent: Agent) -> None:
    """Case 13: a self-link ends at once."""
    (agent.workspace / "USER.md").symlink_to("USER.md")
    with pytest.raises(WorkspaceError, match=r"USER\.md can't be read"):
        read_base(agent, "USER.md")


def test_effects_without_new_bytes_touch_no_file(agent: Agent, state: apsw.Connection) -> None:
    """A claim that the file states already is recorded, not written again."""
    base = read_base(agent, "MEMORY.md")
    before = (agent.workspace / "MEMORY.md").stat()
    result = apply(agent, state, WritePlan(base, base.content, effects()), sweep_id="s1", now_ms=NOW)
    after = (agent.workspace / "MEMORY.md").stat()
    assert result.pre_image_id is None
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    assert list(state.execute("SELECT entry_key FROM ledger")) == [(KEY,)]


def test_pre_images_nobody_refers_to_are_kept_eight_deep(agent: Agent, state: apsw.Connection) -> None:
    """Eight per file beyond those of the ledger."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s0", now_ms=NOW)
    for number in range(12):
        base = read_base(agent, "MEMORY.md")
        plan = WritePlan(base, (base.content or b"") + b"x\n", Effects())
        apply(agent, state, plan, sweep_id=f"s{number + 1}", now_ms=NOW)
    kept = [sweep for (sweep,) in state.execute("SELECT sweep_id FROM pre_images ORDER BY pre_image_id")]
    assert kept == ["s0", *[f"s{number}" for number in range(13 - PRE_IMAGES_KEPT, 13)]]


def test_undo_puts_the_pre_image_back_and_withdraws(agent: Agent, state: apsw.Connection) -> None:
    """The bytes are those of before, the ledger says undone, the claim does not come back by itself."""
    insert_claim(state, "bbbbbbbbbbbb", "The ram is called Anton.")
    state.execute(
        "UPDATE claims SET status = 'superseded', entry_key = 'memory:claim:b', reason = ?, promoted_at = 5"
        " WHERE claim_id = 'bbbbbbbbbbbb'",
        (f"superseded_by:{KEY}",),
    )
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    (done,) = undo(agent, state, "s1", now_ms=NOW + 1)
    assert done.restored
    content, ledger, claim, _ = outcome(agent, state)
    assert content == BEFORE
    assert ledger == [("added", KEY), ("undone", KEY)]
    assert claim == ("withdrawn", None)
    prior = state.execute("SELECT status, reason, promoted_at FROM claims WHERE claim_id = 'bbbbbbbbbbbb'").fetchone()
    assert prior == ("promoted", None, 5)
    with pytest.raises(RefusedError, match="nothing to take back"):
        undo(agent, state, "s1", now_ms=NOW + 2)


def test_undo_of_the_first_write_removes_the_file(agent: Agent, state: apsw.Connection) -> None:
    """A file that did not exist before does not exist after."""
    (agent.workspace / "MEMORY.md").unlink()
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    undo(agent, state, "s1", now_ms=NOW + 1)
    assert not (agent.workspace / "MEMORY.md").exists()


def test_undo_after_an_edit_of_what_it_wrote_shows_the_three_way_difference(
    agent: Agent, state: apsw.Connection
) -> None:
    """Somebody edited the very entry since: what we changed, what they changed, and nothing is written."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"
    file.write_bytes(file.read_bytes().replace(b"called Otto", b"called Anton"))
    edited = file.read_bytes()
    (done,) = undo(agent, state, "s1", now_ms=NOW + 1)
    assert not done.restored
    assert f"+{LINE}" in done.ours
    assert f"-{LINE}" in done.theirs
    assert f"+{LINE.replace('Otto', 'Anton')}" in done.theirs
    assert file.read_bytes() == edited
    assert list(state.execute("SELECT operation FROM ledger")) == [("added",)]


def test_undo_after_an_edit_elsewhere_keeps_the_edit(agent: Agent, state: apsw.Connection) -> None:
    """A person's words are not the sweep's."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"
    file.write_bytes(file.read_bytes().replace(b"By hand", b"By my hand") + b"- Typed.\n")
    (done,) = undo(agent, state, "s1", now_ms=NOW + 1)
    assert (done.restored, done.kept_later) == (True, True)
    assert file.read_bytes() == BEFORE.replace(b"By hand", b"By my hand") + b"- Typed.\n"
    assert outcome(agent, state)[1:] == ([("added", KEY), ("undone", KEY)], ("withdrawn", None), 0)


UNDO_CRASH = """
import sys
from pathlib import Path
from tests.support.curated import NOW, agent_in, die_at
from recall_runtime.curated.history import undo
from recall_runtime.curated.writer import Step
from recall_runtime.storage.schema import open_state
agent = agent_in(Path(sys.argv[1]))
undo(agent, open_state(agent.folders.state_db), "s1", now_ms=NOW + 1, on_step=die_at(Step(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "finished"), [(Step.PREPARED, False), (Step.REPLACED, True), (Step.PUBLISHED, True)], ids=str
)
def test_a_killed_undo_of_an_earlier_write_is_rolled_back_or_finished(
    agent: Agent, state: apsw.Connection, tmp_path: Path, step: Step, finished: bool
) -> None:
    """SIGKILL after any step of an undo that keeps later lines: all or nothing, and then it can't be done twice."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"
    file.write_bytes(file.read_bytes() + b"- Typed.\n")
    assert run_child(UNDO_CRASH, str(tmp_path), step.value) == -9
    recover(agent, state)
    content, ledger, claim, journal = outcome(agent, state)
    if not finished:
        assert (LINE.encode() in content, ledger, claim[0], journal) == (True, [("added", KEY)], "promoted", 0)
        undo(agent, state, "s1", now_ms=NOW + 2)
        content, ledger, claim, journal = outcome(agent, state)
    assert content == BEFORE + b"- Typed.\n"
    assert (ledger, claim, journal) == ([("added", KEY), ("undone", KEY)], ("withdrawn", None), 0)
    with pytest.raises(RefusedError, match="nothing to take back"):
        undo(agent, state, "s1", now_ms=NOW + 3)


def test_an_edit_in_the_instant_of_the_undo_is_kept(agent: Agent, state: apsw.Connection) -> None:
    """The file changes between the plan and the rename: the merge is made again on what is there."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"

    def edit_once(step: Step) -> None:
        if step is Step.PREPARED and b"- Typed." not in file.read_bytes():
            file.write_bytes(file.read_bytes() + b"- Typed.\n")

    (done,) = undo(agent, state, "s1", now_ms=NOW + 1, on_step=edit_once)
    assert (done.restored, done.kept_later) == (True, True)
    assert file.read_bytes() == BEFORE + b"- Typed.\n"


@pytest.mark.parametrize("edited", [False, True], ids=["undisturbed", "edited-in-between"])
def test_undo_of_a_sweep_that_wrote_twice(agent: Agent, state: apsw.Connection, edited: bool) -> None:
    """A sweep run again at its instant is taken back whole, without what somebody typed in between."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"
    if edited:
        file.write_bytes(file.read_bytes() + b"- Typed.\n")
    base = read_base(agent, "MEMORY.md")
    apply(agent, state, WritePlan(base, (base.content or b"") + b"- two\n", Effects()), sweep_id="s1", now_ms=NOW)
    (done,) = undo(agent, state, "s1", now_ms=NOW + 1)
    assert (done.restored, done.kept_later) == (True, edited)
    assert file.read_bytes() == BEFORE + (b"- Typed.\n" if edited else b"")


def test_an_entry_that_a_later_write_made_its_own_stays(agent: Agent, state: apsw.Connection) -> None:
    """Taken out by hand and written again by another sweep: it is the other's now."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    file = agent.workspace / "MEMORY.md"
    file.write_bytes(BEFORE)
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s2", now_ms=NOW + 1)
    (first,) = undo(agent, state, "s1", now_ms=NOW + 2)
    assert not first.restored
    assert LINE.encode() in file.read_bytes()
    (second,) = undo(agent, state, "s2", now_ms=NOW + 3)
    assert second.restored
    assert file.read_bytes() == BEFORE


def test_undo_of_an_unknown_sweep_says_so(agent: Agent, state: apsw.Connection) -> None:
    """Nothing to take back is a refusal."""
    with pytest.raises(RefusedError):
        undo(agent, state, "never", now_ms=NOW)


def test_as_of_gives_the_file_of_each_day(agent: Agent, state: apsw.Connection) -> None:
    """Before the first write, after each, and for a file nobody wrote."""
    apply(agent, state, adding(read_base(agent, "MEMORY.md")), sweep_id="s1", now_ms=NOW)
    first = (agent.workspace / "MEMORY.md").read_bytes()
    base = read_base(agent, "MEMORY.md")
    apply(agent, state, WritePlan(base, first + b"- two\n", Effects()), sweep_id="s2", now_ms=NOW + DAY)
    assert as_of(state, "MEMORY.md", NOW - 1).content == BEFORE
    assert as_of(state, "MEMORY.md", NOW + 1).content == first
    assert as_of(state, "MEMORY.md", NOW + 2 * DAY).content == first + b"- two\n"
    assert not as_of(state, "USER.md", NOW).known
