"""Comparing the disk with the index without writing anything.

Belongs here: what a status shows, whether a sync would find something, starting one in the background.
Does not belong here: the sync itself.
"""

import contextlib
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError, StoreError
from recall_runtime.index import store
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.embedding import identity_changed, retry_at
from recall_runtime.index.files import find_files
from recall_runtime.provenance.note_lines import ProvenanceHashes
from recall_runtime.storage.binding import is_own_index
from recall_runtime.storage.schema import read_index, read_state
from recall_runtime.transcripts.sources import list_transcripts


@dataclass(frozen=True, slots=True)
class FreshnessReport:
    """Paths that differ between disk and index, by name and time stamp, and what is left out on purpose.

    ``reclassified`` are notes whose records of who wrote them changed, ``skipped`` gives reasons by path,
    ``without_vector`` the entries the vector lane can't find yet, ``vectors_refused`` those it never will; ``embedder``
    is the identity of the vectors inside. ``outdated``: this version or embedder would make the rows differently.
    ``vectors_due``: it is time to make the vectors that are missing.
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    reclassified: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    sources: int = 0
    entries: int = 0
    without_vector: int = 0
    vectors_refused: int = 0
    embedder: str | None = None
    revision: int = 0
    missing_index: bool = False
    outdated: bool = False
    vectors_due: bool = False

    @property
    def is_fresh(self) -> bool:
        """Whether a sync would find nothing to do, as far as names, sizes, time stamps and records tell."""
        differ = self.new or self.changed or self.gone or self.reclassified
        return not (self.missing_index or differ or self.outdated or self.vectors_due)


def compare(agent: Agent) -> FreshnessReport:
    """Compare the files of ``agent`` with its index. Reads no file, writes nothing.

    Raises:
        StoreError: a database is there and can't be read.
    """
    found = find_files(agent.workspace)
    embedder = _embedder(agent)
    on_disk = {file.path: (file.mtime_ns, file.size) for file in found.files}
    on_disk |= {file.name: (file.mtime_ns, file.size) for file in list_transcripts(agent)}
    if not agent.folders.index_db.exists():
        return FreshnessReport(new=tuple(sorted(on_disk)), missing_index=True)
    with contextlib.closing(read_index(agent.folders.index_db)) as reader:
        if not is_own_index(agent.folders, reader):  # as good as none: the next sync builds it anew
            return FreshnessReport(new=tuple(sorted(on_disk)), missing_index=True)
        known = store.known_sources(reader)
        states = dict(reader.execute("SELECT embedded, count(*) FROM entries GROUP BY embedded"))
        return FreshnessReport(
            new=tuple(sorted(set(on_disk) - set(known))),
            changed=tuple(
                sorted(
                    path
                    for path, stamp in on_disk.items()
                    if path in known and stamp != (known[path].mtime_ns, known[path].size)
                )
            ),
            gone=tuple(sorted(set(known) - set(on_disk))),
            reclassified=_reclassified(agent, known, {file.path for file in found.files}),
            skipped=tuple(sorted((path, row.skipped) for path, row in known.items() if row.skipped)),
            sources=len(known),
            entries=sum(states.values()),
            without_vector=states.get(0, 0),
            vectors_refused=states.get(2, 0),
            embedder=store.get_meta(reader, "embedder"),
            revision=int(store.get_meta(reader, "revision") or 0),
            outdated=identity_changed(reader, embedder),
            vectors_due=bool(embedder and states.get(0)) and agent.clock.now_ms() >= retry_at(reader),
        )


def _embedder(agent: Agent) -> Embedder | None:
    """Return the embedder of the settings; ``None`` also when it is missing, since a sync could do nothing with it."""
    try:
        return resolve(agent.settings.embedder)
    except EmbedderError:
        return None


def _reclassified(agent: Agent, known: Mapping[str, store.KnownSource], notes: Collection[str]) -> tuple[str, ...]:
    with contextlib.ExitStack() as stack:
        state = None
        if agent.folders.state_db.exists():
            state = stack.enter_context(contextlib.closing(read_state(agent.folders.state_db)))
        hashes = ProvenanceHashes(state)
    return tuple(
        sorted(
            path
            for path, source in known.items()
            if path in notes and source.hash and source.provenance_hash != hashes.of(path, source.session_id)
        )
    )


def sync_in_background(agent: Agent) -> bool:
    """Start a sync in a process of its own when the disk is newer than the index; never wait for it.

    Returns:
        Whether one was started. A sync that already runs makes the new one end at once.
    """
    try:
        if compare(agent).is_fresh:
            return False
        import subprocess  # most turns need none

        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "recall_runtime.cli.main",
                "--home",
                str(agent.folders.home),
                "--agent",
                agent.folders.agent_id,
                "--workspace",
                str(agent.workspace),
                "index",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, StoreError):
        return False
    return True
