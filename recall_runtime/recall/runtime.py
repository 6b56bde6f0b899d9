"""The warm state of an agent's recall lanes, kept by a server between turns.

Belongs here: connections of each thread, the embedder, the image of the index, trigger sets, views of curated files,
the workers, the recorder. Does not belong here: what a lane does with them (``recall.turn``, ``recall.tools``).

Everything here is derived and checked against the disk on use: a replaced index is opened again, changed vectors and
files are read again. A ``Runtime`` may be used from any number of threads.
"""

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import apsw

from recall_runtime.agent import Agent
from recall_runtime.errors import EmbedderError, ModelError, StoreError
from recall_runtime.index import image, store
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.image import IndexImage
from recall_runtime.models.protocol import ChatModel
from recall_runtime.recall import triggers
from recall_runtime.recall.applies import DirectiveScorer
from recall_runtime.recall.bootstrap import InjectedFile, bootstrap_files
from recall_runtime.recall.deep import DeepRecall
from recall_runtime.recall.project_memory import ProjectBlock, project_block
from recall_runtime.recall.remembering import RememberingEmbedder
from recall_runtime.recall.views import CuratedView, CuratedViews
from recall_runtime.recall.workers import Workers
from recall_runtime.storage.binding import read_own_index
from recall_runtime.storage.schema import open_state, read_state

LOCAL_EMBEDDERS = frozenset({"static", "minilm", "e5"})
BUSY_MS = 100  # how long a lane waits for a locked database
INLINE_ENTRIES = 20_000  # up to so many the image of the index is loaded by the first turn, above in the background
RELOAD_SECONDS = 1.0  # at most so often in the background, however fast a writer commits
WORDS_SECONDS = 30.0  # the same where only the word lists are out of date
RETRY_SECONDS = 30.0  # after an embedder or a model's settings failed

MAX_RENDERED = 64  # sets of active projects for which the files are kept rendered

_Made = tuple[tuple[InjectedFile, ...], ProjectBlock]
_Rendered = tuple[CuratedView | None, CuratedView | None, _Made]
_Opened = tuple[tuple[int, int], apsw.Connection]  # device and inode of the file, connection


class Runtime:
    """What the lanes of one agent keep between turns. Close it when done.

    Args:
        agent: The agent.
        one_turn: It serves a single turn, so nothing is made that pays off only later.
    """

    def __init__(self, agent: Agent, *, one_turn: bool = False) -> None:
        self._agent, self._one_turn = agent, one_turn
        self._lock = threading.Lock()
        self._local = threading.local()
        self.workers = Workers(self._close_thread)
        self.views = CuratedViews()
        self._embedder: tuple[Embedder | None, str] | None = None
        self._embedder_at = 0.0
        self._triggers: tuple[tuple[object, ...], triggers.TriggerSet] | None = None
        self._image: tuple[tuple[int, int], IndexImage | None] | None = None
        self._image_lock = threading.Lock()
        self._loading = False
        self._loaded_at = 0.0
        self._scorer: DirectiveScorer | None = None
        self._rendered: OrderedDict[tuple[str, ...], _Rendered] = OrderedDict()
        self._deep: DeepRecall | None = None
        self._deep_error = ""
        self._recorder: threading.Thread | None = None
        self._pending: list[Callable[[], object]] = []
        self._wake = threading.Condition(self._lock)
        self._closed = False

    def close(self) -> None:
        """Finish what is to be recorded, end the workers, close the connections."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()
            recorder = self._recorder
        if recorder is not None:
            recorder.join(2.0)
        self.workers.close()
        self._close_thread()

    def __enter__(self) -> "Runtime":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def index_reader(self) -> apsw.Connection:
        """Return this thread's reader of the index, opened again when the file was replaced.

        Raises:
            StoreError: there is no index of this workspace, or it can't be opened.
        """
        folders = self._agent.folders
        return self._connection("index", folders.index_db, lambda _: read_own_index(folders, vectors=True))

    def state_reader(self) -> apsw.Connection | None:
        """Return this thread's reader of the state database, or ``None`` before there is one.

        Raises:
            StoreError: it can't be opened.
        """
        path = self._agent.folders.state_db
        return self._connection("state", path, read_state) if path.exists() else None

    def state_writer(self) -> apsw.Connection:
        """Return this thread's writer of the existing state database.

        Raises:
            StoreError: it can't be opened.
        """
        return self._connection("writer", self._agent.folders.state_db, open_state)

    def embedder(self) -> tuple[Embedder | None, str]:
        """Return the embedder of the settings, or ``None`` and why there is none. A failure is tried again later."""
        with self._lock:
            known, at = self._embedder, self._embedder_at
        if known is not None and (known[0] is not None or not known[1] or time.monotonic() - at < RETRY_SECONDS):
            return known
        try:
            found = resolve(self._agent.settings.embedder)
            fresh: tuple[Embedder | None, str] = (RememberingEmbedder(found) if found else None, "")
        except EmbedderError as error:
            fresh = (None, str(error))
        with self._lock:
            self._embedder, self._embedder_at = fresh, time.monotonic()
        return fresh

    def local_embedder(self) -> Embedder | None:
        """Return the embedder when it needs no network: lane 1 never waits for one."""
        return self.embedder()[0] if self._agent.settings.embedder.name in LOCAL_EMBEDDERS else None

    def trigger_set(self, reader: apsw.Connection) -> triggers.TriggerSet:
        """Return the entries with triggers as the index has them now."""
        embedder = self.local_embedder()
        key = (triggers.fingerprint(reader), embedder.identity if embedder else None)
        with self._lock:
            known = self._triggers
        if known is not None and known[0] == key:
            return known[1]
        fresh = triggers.TriggerSet(triggers.load_entries(reader), embedder)
        with self._lock:
            self._triggers = key, fresh
        return fresh

    def rendered(
        self, user: CuratedView | None, memory: CuratedView | None, active: tuple[str, ...]
    ) -> tuple[tuple[InjectedFile, ...], ProjectBlock]:
        """Return the curated files and the project block for these projects, rendered once for each state of them."""
        with self._lock:
            known = self._rendered.get(active)
        if known is not None and known[0] is user and known[1] is memory:
            return known[2]
        block = ProjectBlock()
        if memory is not None and not memory.file.conflicted:
            block = project_block(memory, active, self._agent.settings.bootstrap.project_max_chars)
        made = bootstrap_files(self._agent, user, memory, active, block.lines), block
        with self._lock:
            self._rendered[active] = user, memory, made
            while len(self._rendered) > MAX_RENDERED:
                self._rendered.popitem(last=False)
        return made

    def directive_scorer(self, view: CuratedView) -> DirectiveScorer:
        """Return the scorer of the directives in ``view``, kept until the file or its records change."""
        with self._lock:
            known = self._scorer
        if known is None or known.view is not view:
            known = DirectiveScorer(view, self.local_embedder())
            with self._lock:
                self._scorer = known
        return known

    def image(self, reader: apsw.Connection) -> IndexImage | None:
        """Return the image of the index for the state that ``reader`` sees, or ``None`` when there is none for it.

        Small changes are taken over at once, large ones by loading the image anew in the background; until then the
        index itself is asked, which gives the same answers.
        """
        if self._one_turn:
            return None
        try:
            kept = self._image_of(reader)
        except (StoreError, apsw.Error, ValueError):
            return None  # a damaged part is named by the lane that reads it
        if kept is None:
            self._load_in_background(RELOAD_SECONDS)
        elif kept.words is None:  # it answers, but asks FTS5 about every new word
            self._load_in_background(WORDS_SECONDS)
        return kept

    def _image_of(self, reader: apsw.Connection) -> IndexImage | None:
        identity, revision = _identity(self._agent.folders.index_db), store.revision(reader)
        with self._image_lock:
            known = self._image
            if known is None and store.next_entry_id(reader) <= INLINE_ENTRIES:
                known = self._image = identity, image.load(reader)
            if known is not None and known[0] == identity:
                if known[1] is None or revision < known[1].revision:  # too large, or a state before the image's
                    return None
                fresh = image.refreshed(known[1], reader)
                if fresh is not None:
                    self._image = identity, fresh
                return fresh
        return None

    def deep(self) -> DeepRecall:
        """Return lane 2 with its breaker and cache."""
        with self._lock:
            if self._deep is None:
                model: ChatModel | None = None
                if self._agent.settings.model.provider != "none":  # without one, its clients aren't even imported
                    from recall_runtime.models.registry import model_from

                    try:
                        model = model_from(self._agent.settings.model)
                    except ModelError as error:
                        self._deep_error = str(error)
                self._deep = DeepRecall(self._agent.folders.agent_id, self._agent.settings.recall, model)
            return self._deep

    @property
    def model_problem(self) -> str:
        """Why the configured model can't be used; empty when it can, or when none is configured."""
        return self._deep_error

    def afterwards(self, work: Callable[[], object]) -> None:
        """Run ``work`` after the answer was given, in order, in the recorder's thread."""
        with self._wake:
            self._pending.append(work)
            if self._recorder is None:
                self._recorder = threading.Thread(target=self._record, name="dreamline-recorder", daemon=True)
                self._recorder.start()
            self._wake.notify_all()

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything handed to ``afterwards`` is done; return whether it is."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._pending, seconds)

    def _record(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._pending) or self._closed)
                if not self._pending:
                    return
                work = self._pending[0]
            with contextlib.suppress(Exception):  # a recall that can't be written is spooled by the writer itself
                work()
            with self._wake:
                self._pending.pop(0)
                self._wake.notify_all()

    def _load_in_background(self, at_most_every: float) -> None:
        with self._lock:
            if self._loading or time.monotonic() - self._loaded_at < at_most_every:
                return
            self._loading = True

        def load() -> None:
            path = self._agent.folders.index_db
            try:
                identity = _identity(path)
                with contextlib.closing(read_own_index(self._agent.folders, vectors=True)) as reader:
                    loaded = image.load(reader)
                with self._image_lock:
                    self._image = identity, loaded
            except (StoreError, apsw.Error):
                pass  # the index itself goes on answering; a later turn tries again
            finally:
                with self._lock:
                    self._loading, self._loaded_at = False, time.monotonic()

        threading.Thread(target=load, name="dreamline-image", daemon=True).start()

    def _connection(self, name: str, path: Path, opener: Callable[[Path], apsw.Connection]) -> apsw.Connection:
        opened: dict[str, _Opened] = self._local.__dict__.setdefault("opened", {})
        identity = _identity(path)
        known = opened.get(name)
        if known is not None:
            if known[0] == identity:
                return known[1]
            known[1].close()
            del opened[name]
        connection = opener(path)
        connection.set_busy_timeout(BUSY_MS)
        opened[name] = identity, connection
        return connection

    def _close_thread(self) -> None:
        for _, connection in self._local.__dict__.pop("opened", {}).values():
            connection.close()


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
