"""One call that returns everything a host injects for one message.

Belongs here: the order of the lanes, their deadlines, what is left out and why, recording afterwards.
Does not belong here: what a lane does (its own module), warm state (``recall.runtime``), servers and hooks.

Nothing here fails a turn: a lane that is late, locked, broken or missing is left out and named.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.errors import DreamlineError, EmbedderError
from recall_runtime.index.embedders.protocol import plain
from recall_runtime.index.hits import SearchHit
from recall_runtime.notes.conditions import is_over
from recall_runtime.notes.markers import RELEVANT_MEMORIES_TAG
from recall_runtime.paths import USER_FILE
from recall_runtime.recall import bootstrap, deep, project_memory, triggers
from recall_runtime.recall.applies import applies_block
from recall_runtime.recall.bootstrap import InjectedFile
from recall_runtime.recall.deep import Decision, DeepNote
from recall_runtime.recall.intent import asks_about_past
from recall_runtime.recall.live import is_row_of, same_records
from recall_runtime.recall.projects import MAX_ACTIVE
from recall_runtime.recall.query import Turns, clean_message
from recall_runtime.recall.reading import automatic_memory
from recall_runtime.recall.runtime import Runtime
from recall_runtime.recall.views import CuratedView, stamp_of
from recall_runtime.recall.visibility import Access, Audience, access_of, speaker_of
from recall_runtime.recall.workers import LaneHangsError, LaneTimeoutError, Plan, Step
from recall_runtime.storage.connection import one_state, query
from recall_runtime.vocabulary import SessionKind

if TYPE_CHECKING:
    from recall_runtime.intents.matching import IntentMatch, VectorTrigger

T = TypeVar("T")
FILES_SECONDS = 1.5  # a full memory takes 0.1 s; the rest is for a machine that is busy
TRIGGERS_SECONDS = 1.5  # openclaw-algorithms 13.1; a cold embedder loads in it
INTENTS_SECONDS = 0.5
RECORD_SECONDS = 1.0
SEARCH_SECONDS = 2.0  # lane 2 without a model
GRACE_SECONDS = 0.3  # for the client of a model to give up on its own
WHOLE_SECONDS = 3.0  # without lane 2's own limit
STILL_HANGS = "not begun: an earlier one still hangs"
_OURS = (DreamlineError, apsw.Error, OSError, ValueError)


class Lane(StrEnum):
    """The parts of a turn."""

    BOOTSTRAP = "bootstrap"
    PROJECT = "project"
    TRIGGERS = "triggers"
    INTENTS = "intents"
    APPLIES_NOW = "applies_now"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class LaneReport:
    """What a lane decided and how long it took. ``detail`` names the reason or what degraded."""

    decision: str
    elapsed_ms: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Omission:
    """Something that was left out: what, why, how many."""

    what: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What a lane showed, for the record of recalls."""

    lane: str
    hits: tuple[SearchHit, ...]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The blocks for one message, each empty when there is nothing, and how they came about.

    ``fired`` lets a host give fires back when its reply failed (the tool ``intent``, ``dreamline intent give-back``).
    """

    bootstrap: str = ""
    project: str = ""
    deep: str = ""
    triggers: str = ""
    intents: str = ""
    applies_now: str = ""
    lanes: dict[str, LaneReport] = field(default_factory=dict)
    omissions: tuple[Omission, ...] = ()
    files: tuple[InjectedFile, ...] = ()
    audience: Audience = Audience.UNKNOWN
    elapsed_ms: float = 0.0
    query: str = ""
    session_key: str | None = None
    shown: tuple[Shown, ...] = ()
    fired: "IntentMatch | None" = None

    @property
    def text(self) -> str:
        """Everything to inject: what stays the same first, what belongs to this message last."""
        blocks = (self.bootstrap, self.project, self.deep, self.triggers, self.intents, self.applies_now)
        return "\n\n".join(block for block in blocks if block)

    @property
    def fires(self) -> list[dict[str, str | int | None]]:
        """The fires as plain data, in the form in which a host gives them back."""
        return [
            {"id": one.intent_id, "fired_at": one.fired_at, "previous_fired_at": one.previous_fired_at}
            for one in (self.fired.fired if self.fired else ())
        ]


def turn(
    agent: Agent,
    message: str,
    *,
    session_key: str | None,
    channel: str | None = None,
    sender: str | None = None,
    active_projects: Sequence[str] = (),
    record: bool = True,
    runtime: Runtime | None = None,
    fresh_start: bool = False,
    recent: Turns = (),
) -> TurnResult:
    """Return what to inject for ``message``. Never raises for anything outside this process.

    Args:
        agent: Whose memory it is.
        message: The message, any text.
        session_key: Key of the session it arrived in; decides what may be shown.
        channel: The chat or channel id, as the host knows it.
        sender: The sender's id, authenticated by the host.
        active_projects: Keys of the session's repositories, most recent first; the first four count.
        record: Whether to write down what was shown, after the answer.
        runtime: Warm state of a server; without it everything is opened and closed here.
        fresh_start: Whether the conversation has just begun: the notes of today and yesterday are added.
        recent: The turns before, (role, text), oldest first; for the query of lane 2.
    """
    if runtime is None:
        with contextlib.closing(Runtime(agent, one_turn=True)) as own:
            lanes = _Turn(agent, own, message, session_key, channel, sender, active_projects, recent)
            result = own.workers.follow(lanes.run(fresh_start))
            if record:
                with contextlib.suppress(Exception):  # the answer stands, whatever happens to its record
                    own.workers.run(lambda: record_turn(agent, result), RECORD_SECONDS, "record")
            return result
    lanes = _Turn(agent, runtime, message, session_key, channel, sender, active_projects, recent)
    result = runtime.workers.follow(lanes.run(fresh_start))
    if record and result.shown:
        runtime.afterwards(lambda: record_turn(agent, result))
    return result


def record_turn(agent: Agent, result: TurnResult) -> None:
    """Write down what ``result`` showed. Call it after the answer was given; a busy database makes it spool."""
    from recall_runtime.signals.recalls import record_recalls

    if not result.shown:
        return
    record_recalls(
        agent,
        query=result.query,
        shown=[(shown.lane, shown.hits) for shown in result.shown],
        session_key=result.session_key,
        now_ms=agent.clock.now_ms(),
    )


class _Turn:
    """One turn in progress."""

    def __init__(
        self,
        agent: Agent,
        runtime: Runtime,
        message: str,
        session_key: str | None,
        channel: str | None,
        sender: str | None,
        active: Sequence[str],
        recent: Turns,
    ) -> None:
        self._agent, self._runtime = agent, runtime
        self._message = plain(message)
        self._session_key, self._channel, self._sender = session_key, channel, sender
        self._active, self._recent = tuple(dict.fromkeys(active))[:MAX_ACTIVE], recent
        self._access: Access = access_of(agent, session_key, sender)
        self._began = time.monotonic()
        self._now_ms = agent.clock.now_ms()
        self._reports: dict[str, LaneReport] = {}
        self._omissions: list[Omission] = []
        self._user: CuratedView | None = None
        self._shown: list[Shown] = []

    def run(self, fresh_start: bool) -> Plan[TurnResult]:
        """Run all lanes in order, each as a step."""
        began = time.perf_counter()
        files, project = yield from self._files(fresh_start)
        applies = yield from self._applies_now(files)
        block = yield from self._triggers()
        fired = yield from self._intents()
        note = yield from self._deep(strong_hit=bool(block and block.hits))
        inside = bootstrap.render(files)
        return TurnResult(
            bootstrap=memory_frame(inside),
            project=memory_frame(project),
            deep=triggers.frame(note.body) if note else "",
            triggers=block.text if block else "",
            intents=fired.block if fired else "",
            applies_now=memory_frame(applies),
            lanes=self._reports,
            omissions=tuple(self._omissions),
            files=files,
            audience=self._access.audience,
            elapsed_ms=(time.perf_counter() - began) * 1000,
            query=self._message[:4_000],
            session_key=self._session_key,
            shown=tuple(self._shown),
            fired=fired if fired and fired.fired else None,
        )

    def _left(self) -> float:
        return WHOLE_SECONDS - (time.monotonic() - self._began)

    def _lane(self, lane: Lane, seconds: float, work: Callable[[], T]) -> Plan[T | None]:
        """Return what ``work`` gives within its time, or ``None`` with the reason in the report."""
        began = time.perf_counter()
        decision, detail, result = "ran", "", None
        try:
            result = yield Step(lane, max(0.0, seconds), work)
        except LaneHangsError:
            decision, detail = "timeout", STILL_HANGS
        except LaneTimeoutError:
            decision, detail = "timeout", f"not done within {max(0.0, seconds):.3g} s"
        except _OURS as error:
            decision, detail = "failed", str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001 - a fault of ours costs this lane, never the reply
            decision, detail = "failed", f"{type(error).__name__}: {error}"
        self._reports[lane] = LaneReport(decision, (time.perf_counter() - began) * 1000, detail)
        if result is None and decision != "ran":
            self._omissions.append(Omission(lane, decision))
        return result

    def _skip(self, lane: Lane, reason: str) -> None:
        self._reports[lane] = LaneReport("skipped", 0.0, reason)
        self._omissions.append(Omission(lane, reason))

    def _files(self, fresh_start: bool) -> Plan[tuple[tuple[InjectedFile, ...], str]]:
        if not self._access.is_private:
            self._skip(Lane.BOOTSTRAP, self._access.reason)
            self._skip(Lane.PROJECT, self._access.reason)
            return (), ""
        made = yield from self._lane(
            Lane.BOOTSTRAP, min(FILES_SECONDS, self._left()), lambda: self._read_files(fresh_start)
        )
        if made is None:
            self._skip(Lane.PROJECT, "bootstrap_failed")
            return (), ""
        files, project = made
        self._reports[Lane.PROJECT] = LaneReport("ran" if project.text else "nothing")
        for file in files:
            if file.omitted:
                self._omissions.append(Omission(file.name, file.omitted))
            self._omissions += [Omission(file.name, reason, count) for reason, count in sorted(file.left_out.items())]
        if project.left_out:
            self._omissions.append(Omission(Lane.PROJECT, "budget", project.left_out))
        return files, project.text

    def _read_files(self, fresh_start: bool) -> tuple[tuple[InjectedFile, ...], project_memory.ProjectBlock]:
        agent, state = self._agent, self._runtime.state_reader()
        agent.workspace.stat()  # a workspace that is gone is a failure, not a memory without files
        self._user, memory, problems = bootstrap.curated_views(agent, self._runtime.views, state)
        files, block = self._runtime.rendered(self._user, memory, self._active)
        files = bootstrap.with_problems(files, problems)
        if fresh_start:
            files += bootstrap.recent_notes(agent, state, self._now_ms, self._active)
        return files, block

    def _applies_now(self, files: tuple[InjectedFile, ...]) -> Plan[str]:
        view = self._user
        if view is None:
            made = next((file.omitted for file in files if file.name == USER_FILE), "bootstrap_failed")
            reason = self._access.reason or ("no_user_file" if made == "missing" else made or "")
            self._reports[Lane.APPLIES_NOW] = LaneReport("skipped", 0.0, reason)
            return ""
        if view.file.conflicted:
            self._skip(Lane.APPLIES_NOW, "conflict")
            return ""
        copy = next((file.text for file in files if file.name == USER_FILE), "")
        found = yield from self._lane(
            Lane.APPLIES_NOW,
            min(TRIGGERS_SECONDS, self._left()),
            lambda: self._runtime.directive_scorer(view).applying(self._message, copy),
        )
        return applies_block(found) if found else ""

    def _triggers(self) -> Plan[triggers.TriggerBlock | None]:
        if not self._access.is_private:
            self._skip(Lane.TRIGGERS, self._access.reason)
            return None
        block = yield from self._lane(Lane.TRIGGERS, min(TRIGGERS_SECONDS, self._left()), self._find_triggers)
        if block is None:
            return None
        if block.left_out:
            self._omissions.append(Omission(Lane.TRIGGERS, "budget", block.left_out))
        if block.hits:
            self._shown.append(Shown("trigger", tuple(hit.as_recall for hit in block.hits)))
        else:
            self._reports[Lane.TRIGGERS] = LaneReport("nothing", self._reports[Lane.TRIGGERS].elapsed_ms)
        return block

    def _find_triggers(self) -> triggers.TriggerBlock:
        settings = self._agent.settings.triggers
        reader = self._runtime.index_reader()
        with one_state(reader):
            hits = self._runtime.trigger_set(reader).hits(
                clean_message(self._message),
                threshold=settings.threshold,
                max_entries=settings.max_entries,
                active=self._active,
            )
            today = day_of(self._now_ms, self._agent.zone)
            valid = tuple(hit for hit in hits if not is_over(hit.entry.text, today))
            live = tuple(hit for hit in valid if self._is_live(reader, hit))
        if len(valid) < len(hits):
            self._omissions.append(Omission(Lane.TRIGGERS, "expired", len(hits) - len(valid)))
        if len(live) < len(valid):
            self._omissions.append(Omission(Lane.TRIGGERS, "changed_since_index", len(valid) - len(live)))
        return triggers.trigger_block(live, settings.max_characters)

    def _is_live(self, reader: apsw.Connection, hit: triggers.TriggerHit) -> bool:
        """Whether the file and the records of writes still say so: the index may be older than either."""
        path, state = hit.entry.path, self._runtime.state_reader()
        rows = query(reader, "SELECT mtime_ns, size, provenance_hash, session_id FROM sources WHERE path = ?", (path,))
        try:
            stamp = stamp_of(self._agent.workspace / path)
            if stamp is None:
                return False
            if rows and rows[0][:2] == stamp[:2] and same_records(state, path, *rows[0][2:]):
                return True
            view = self._runtime.views.load(self._agent, path, state)
        except OSError:  # other files' entries still stand
            return False
        if view is None or view.file.conflicted:
            return False
        active = self._active if path != USER_FILE else ()
        return any(
            is_row_of(entry.text, hit.entry.text) and view.reason_against(entry, active) is None
            for entry in view.file.entries
        )

    def _intents(self) -> "Plan[IntentMatch | None]":
        if not self._access.is_private:
            self._skip(Lane.INTENTS, self._access.reason)
            return None
        seconds = min(INTENTS_SECONDS, self._left())
        ends_at = time.monotonic() + seconds
        found = yield from self._lane(Lane.INTENTS, seconds, lambda: self._match_intents(ends_at))
        if found is None:
            if self._reports[Lane.INTENTS].decision == "ran":
                self._reports[Lane.INTENTS] = LaneReport("nothing", self._reports[Lane.INTENTS].elapsed_ms)
            return None
        if found.left_out:
            self._omissions.append(Omission(Lane.INTENTS, "budget", found.left_out))
        if found.skipped:
            self._skip(Lane.INTENTS, found.skipped)
        return found

    def _match_intents(self, ends_at: float) -> "IntentMatch | None":
        state = self._runtime.state_reader()
        if state is None or not state.execute(_ANY_INTENT).fetchall():
            return None
        from recall_runtime.intents import matching  # most owners have none, and a new process would wait for it

        asked = matching.Turn(
            self._message,
            speaker_of(self._access, self._session_key, self._channel, self._sender),
            SessionKind.INTERACTIVE,
            self._session_key or "",
        )
        writer = self._runtime.state_writer()

        def match(vector: "VectorTrigger | None" = None) -> "IntentMatch":
            now, zone = self._now_ms, self._agent.zone
            return matching.match(writer, asked, now, zone, too_late=lambda: time.monotonic() >= ends_at, vector=vector)

        found = match()
        if found.fired or found.skipped:
            return found  # an embedder that has yet to load costs no intent its words
        near = self._vector_trigger(writer)
        return found if near is None else match(near)

    def _vector_trigger(self, writer: apsw.Connection) -> "VectorTrigger | None":
        embedder = self._runtime.local_embedder() if self._agent.settings.intents.vector_trigger else None
        if embedder is None:
            return None
        from recall_runtime.intents.vectors import vector_trigger

        try:
            return vector_trigger(writer, embedder, self._message)
        except EmbedderError:
            return None  # words alone; the lanes that search say what is wrong with it

    def _deep(self, *, strong_hit: bool) -> Plan[DeepNote | None]:
        if not self._access.is_private:
            self._skip(Lane.DEEP, self._access.reason)
            return None
        settings = self._agent.settings.recall
        message = clean_message(self._message)
        decision = deep.decide(
            settings,
            chat_type=self._access.facts.chat_type,
            strong_hit=strong_hit,
            intent=asks_about_past(message),
        )
        if decision is not Decision.RECALL:
            self._reports[Lane.DEEP] = LaneReport("skipped", 0.0, decision)
            return None
        lane = self._runtime.deep()
        has_model = self._agent.settings.model.provider != "none" and not self._runtime.model_problem
        seconds = settings.timeout_ms / 1000 if has_model else min(SEARCH_SECONDS, settings.timeout_ms / 1000)
        cancel = threading.Event()
        errors: list[str] = []
        memory = automatic_memory(
            self._agent, self._runtime, self._access, self._session_key or "", self._active, errors
        )
        note = yield from self._lane(
            Lane.DEEP,
            seconds + GRACE_SECONDS,
            lambda: lane.recall(
                message,
                self._recent,
                memory,
                session_key=self._session_key or "",
                now_ms=self._now_ms,
                seconds=seconds,
                cancel=cancel,
            ),
        )
        if note is None:
            cancel.set()
            report = self._reports[Lane.DEEP]
            if report.decision == "timeout" and report.detail != STILL_HANGS:
                lane.note_timeout(self._now_ms)
            return None
        detail = self._runtime.model_problem or note.detail
        elapsed = self._reports[Lane.DEEP].elapsed_ms
        self._reports[Lane.DEEP] = LaneReport("cached" if note.cached else note.status, elapsed, detail)
        if errors:  # what words alone found still stands in the block
            self._reports[Lane.DEEP] = LaneReport("failed", elapsed, errors[0])
            self._omissions.append(Omission("vectors", "failed"))
        if note.status not in deep.WITH_NOTE:
            self._omissions.append(Omission(Lane.DEEP, note.status))
            return None
        if note.shown:
            self._shown.append(Shown("recall", note.shown))
        return note


_ANY_INTENT = "SELECT 1 FROM standing_intents WHERE status IN ('pending', 'armed', 'fired') LIMIT 1"


def memory_frame(text: str) -> str:
    """Return ``text`` between the marker lines by which a later transcript is cut; nothing for nothing."""
    return f"<{RELEVANT_MEMORIES_TAG}>\n{bootstrap.neutral(text)}\n</{RELEVANT_MEMORIES_TAG}>" if text else ""
