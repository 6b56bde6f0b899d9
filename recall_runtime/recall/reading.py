"""What a session may read of the memory, in the forms that lane 2 and the tools share.

Belongs here: searching and reading with the rules of visibility applied.
Does not belong here: who may ask (``recall.visibility``), ranking (``index.search``), windows (``index.reading``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.index import reading, store
from recall_runtime.index.hits import SearchAnswer, SearchHit
from recall_runtime.index.search import search
from recall_runtime.notes.blocks import read_note
from recall_runtime.notes.conditions import is_over
from recall_runtime.paths import normalise
from recall_runtime.provenance.note_lines import origins_of
from recall_runtime.recall.deep import Memory
from recall_runtime.recall.live import with_live_classes
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.visibility import Access, readable_sessions
from recall_runtime.storage.connection import one_state
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, Corpus, OriginClass

LEFT_OUT = "[left out: {origin} content]"
_AUTOMATIC = frozenset({"curated", "episodic", "imports", "sessions"})  # our own reports are no memory


def answer_for(
    agent: Agent,
    runtime: Runtime,
    query: str,
    *,
    max_results: int | None = None,
    min_score: float | None = None,
    corpus: Corpus = Corpus.MEMORY,
    active: Sequence[str] = (),
    injectable: bool = False,
    sessions: frozenset[str] | None = None,
) -> SearchAnswer:
    """Search with the warm state of ``runtime``. Each hit has the class that the records of this moment give it."""
    reader = runtime.index_reader()
    embedder, problem = runtime.embedder()
    with one_state(reader):
        answer = search(
            agent,
            query,
            max_results=max_results,
            min_score=min_score,
            corpus=corpus,
            active_projects=active,
            injectable=injectable,
            sessions=sessions,
            connection=reader,
            embedder="configured" if problem else embedder,
            image=runtime.image,
        )
        return replace(answer, hits=with_live_classes(agent, runtime.state_reader(), reader, answer.hits))


def automatic_memory(
    agent: Agent,
    runtime: Runtime,
    access: Access,
    session_key: str,
    active: Sequence[str],
    errors: list[str] | None = None,
) -> Memory:
    """Return what lane 2 may read for a private conversation: eligible text only, never the conversation itself.

    With ``remember_across_conversations`` also the transcripts of the owner's other private conversations. ``errors``
    takes what the embedder that the settings name failed with.
    """
    crosses = agent.settings.search.remember_across_conversations and access.is_private

    today = day_of(agent.clock.now_ms(), agent.zone)

    def find(query: str, max_results: int) -> tuple[SearchHit, ...]:
        sessions = readable_sessions(agent, runtime.index_reader(), without=session_key)[0] if crosses else None
        answer = answer_for(
            agent,
            runtime,
            query,
            max_results=max_results,
            corpus=Corpus.ALL if crosses else Corpus.MEMORY,
            active=active,
            injectable=True,
            sessions=sessions,
        )
        if answer.error and errors is not None:
            errors.append(answer.error)
        return tuple(
            hit
            for hit in answer.hits
            if hit.entry.provenance.origin_class in ELIGIBLE_ORIGINS
            and hit.entry.tier in _AUTOMATIC
            and not is_over(hit.entry.text, today)
        )

    def read(path: str, first: int, lines: int | None) -> str:
        return eligible_window(agent, runtime.state_reader(), path, first, lines)

    def version() -> str:
        return "\n".join((str(store.revision(runtime.index_reader())), *active))

    return Memory(find, read, crosses, version)


@dataclass(frozen=True, slots=True)
class ReadableFile:
    """A memory file as it may be shown: each line redacted, with its class."""

    path: str
    lines: tuple[str, ...]
    origins: tuple[OriginClass, ...]


def readable_file(agent: Agent, state: apsw.Connection | None, path: str) -> ReadableFile:
    """Read the memory file ``path`` once and return its lines. Secrets are masked in the whole, not in a window of it.

    Raises:
        RefusedError: the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    data, path = reading.read_file(agent, path), normalise(path.strip())
    lines = reading.lines_of(data)
    masked = redact("\n".join(lines), keep_lines=True).split("\n") if lines else []
    known = origins_of(agent.workspace, state, path, data, read_note(data, path=path))[: len(lines)]
    unknown = (OriginClass.UNTRUSTED,) * (len(lines) - len(known))
    return ReadableFile(path, tuple(masked), known + unknown)


def eligible_window(agent: Agent, state: apsw.Connection | None, path: str, first: int, lines: int | None) -> str:
    """Return a window of a memory file in which lines of an ineligible class are left out, redacted.

    Raises:
        RefusedError: the path is no memory file.
        SourceError: the file is missing or can't be read.
    """
    file = readable_file(agent, state, path)
    shown = [
        line if origin in ELIGIBLE_ORIGINS or not line.strip() else LEFT_OUT.format(origin=origin)
        for line, origin in zip(file.lines, file.origins, strict=True)
    ]
    return reading.window_of(file.path, shown, first, lines).text
