"""``remember``: one request of the owner, from the question who asks to the answer how to take it back.

Belongs here: identity and taint, secrets, dispatch, the answer.
Does not belong here: routing (``routing``), the curated files (``facts``, ``preferences``).

Identity is handed over by the host and never read from the text. A turn that has read content from outside can't
write: the words may then be somebody else's. The owner says it again in a message of its own.
"""

import contextlib
import json
from dataclasses import dataclass

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, day_of
from recall_runtime.curated.writer import read_base
from recall_runtime.errors import RefusedError
from recall_runtime.intents.scheduled import SPOOL_FILE, hand_over, scheduled_task
from recall_runtime.intents.scopes import UNKNOWN_SENDERS, Scope, SenderScope, Speaker
from recall_runtime.intents.store import IntentDraft, create
from recall_runtime.intents.when import resolve_when
from recall_runtime.notes.annotations import strip_annotations
from recall_runtime.notes.hygiene import refusal_of
from recall_runtime.notes.writer import append_note, session_provenance
from recall_runtime.paths import NOTES_FOLDER, USER_FILE
from recall_runtime.recall.visibility import access_of, speaker_of
from recall_runtime.remember.facts import write_fact
from recall_runtime.remember.preferences import write_directive
from recall_runtime.remember.routing import MAX_FACT, RememberedKind, Route, route
from recall_runtime.remember.wording import event_words, flat, is_passing
from recall_runtime.remember.writes import Asked, CuratedWrite
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.storage.schema import open_state
from recall_runtime.text.escaping import terminal
from recall_runtime.text.redaction import redact
from recall_runtime.user_model.contract import directives
from recall_runtime.user_model.update import clean_directive
from recall_runtime.vocabulary import ELIGIBLE_ORIGINS, Refusal

MAX_REQUEST = 8_000
COMMAND_LINE = "command-line"
REVIEW_AFTER_DAYS = 90  # when an aspiration names no time


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a request went.

    ``where`` is ``FILE#Lx``, ``intent:ID`` or ``task:ID``; ``undo`` the command that takes it back, or what to do when
    there is none; ``superseded`` the texts it replaced; ``unchanged`` is true when it was remembered already.
    """

    kind: RememberedKind
    where: str
    entry_key: str | None
    undo: str
    superseded: tuple[str, ...]
    answer: str
    unchanged: bool = False


def remember(
    agent: Agent,
    text: str,
    *,
    session_key: str,
    sender: str | None,
    channel: str | None = None,
    now_ms: int | None = None,
    supersedes: str | None = None,
    host_takes_tasks: bool = True,
) -> Remembered:
    """Keep ``text`` where it belongs, as the owner's direct request.

    Args:
        agent: Whose memory it is.
        text: What the owner asks for, in the owner's words.
        session_key: The session, as the host knows it.
        sender: Who speaks, as authenticated by the host.
        channel: The chat or channel id, as the host knows it; a standing intent holds there.
        now_ms: The instant; default the agent's clock.
        supersedes: Key or words of the entry or directive that it replaces.
        host_takes_tasks: Whether the host reads the spool of scheduled tasks.

    Raises:
        RefusedError: not the owner in a private conversation, a turn that read outside content, a secret, nothing to
            keep, or bounds of the place it belongs to.
        ConflictError, StoreLockedError, WorkspaceError: the write did not happen.
    """
    now = agent.clock.now_ms() if now_ms is None else now_ms
    speaker = require_owner(agent, session_key, sender, channel)
    words = flat(strip_annotations(text) if "\n" not in text.strip() else text)
    if not any(sign.isalnum() for sign in words):
        raise RefusedError("There is nothing to remember", "Say what to keep.")
    if len(text) > MAX_REQUEST:
        raise RefusedError(f"The request is longer than {MAX_REQUEST} characters", "Write a note instead.")
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        require_untainted(agent, state, session_key, now)
        chosen = route(words, directives(read_base(agent, USER_FILE).content or b""))
        if redact(text) != text and not _may_be_masked(chosen):
            raise RefusedError("It holds a secret", "Keep secrets in a password manager; say it without the secret.")
        asked = Asked(session_key, speaker.sender)
        if chosen.kind is RememberedKind.DIRECTIVE:
            made = write_directive(agent, state, chosen.text, asked, supersedes=supersedes, now_ms=now)
            return _curated(chosen.kind, made)
        if chosen.kind is RememberedKind.FACT:
            made = write_fact(agent, state, chosen.text, asked, supersedes=supersedes, now_ms=now)
            return _curated(chosen.kind, made)
        if supersedes:
            raise RefusedError(f"A {chosen.kind.value} replaces no entry", "Leave out what it supersedes.")
        if chosen.kind is RememberedKind.INTENT:
            return _intent(state, chosen, speaker, session_key, now)
    if chosen.kind is RememberedKind.TASK:
        return _task(agent, chosen, speaker, session_key, now, host_takes_tasks=host_takes_tasks)
    return _note(agent, chosen, session_key, now)


def set_user_directive(
    agent: Agent, text: str, *, supersedes: str | None = None, now_ms: int | None = None
) -> Remembered:
    """Make ``text`` a directive as it is, at the request of the operator at the command line.

    Args:
        agent: Whose memory it is.
        text: The directive.
        supersedes: Words of the one directive that it replaces in any case.
        now_ms: The instant; default the agent's clock.

    Raises:
        RefusedError: nothing to say, too long, a secret, no room, or ``supersedes`` does not name one directive.
    """
    now = agent.clock.now_ms() if now_ms is None else now_ms
    if redact(text) != text:
        raise RefusedError("It holds a secret", "Keep secrets in a password manager; say it without the secret.")
    asked = Asked(COMMAND_LINE, COMMAND_LINE)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        made = write_directive(agent, state, clean_directive(text), asked, supersedes=supersedes, now_ms=now)
    return _curated(RememberedKind.DIRECTIVE, made)


def require_owner(agent: Agent, session_key: str | None, sender: str | None, channel: str | None = None) -> Speaker:
    """Return the speaker when the host says that the owner speaks in a private conversation.

    Raises:
        RefusedError: anybody else, anywhere else.
    """
    access = access_of(agent, session_key, sender)
    if not access.is_private:
        raise RefusedError(
            f"Only the owner in a private conversation can do this (this session: {access.reason})",
            "Ask in a direct conversation; sources.owner_ids names the owner's accounts.",
        )
    if (sender or "").strip().lower() in UNKNOWN_SENDERS:
        raise RefusedError("The host did not say who speaks", "Hand over the sender it has authenticated.")
    return speaker_of(access, session_key, channel, sender)


def require_untainted(agent: Agent, state: apsw.Connection, session_key: str | None, now_ms: int) -> None:
    """Let the request of a session pass when its running turn has read nothing from outside, by its transcript.

    Raises:
        RefusedError: it has, so the words may be somebody else's.
    """
    origin = session_provenance(agent, state, session_key, None, now_ms).origin_class
    if origin not in ELIGIBLE_ORIGINS:
        raise RefusedError(
            "This turn has read content from outside", "Ask for it in a message of its own; nothing was written."
        )


def _may_be_masked(chosen: Route) -> bool:
    """A detail is still worth something without the secret in it; a text that is nothing else is not."""
    return (
        chosen.kind is RememberedKind.DETAIL
        and refusal_of(redact(chosen.text)) is not Refusal.SECRET_ONLY
        and (
            refusal_of(chosen.text) is not Refusal.SECRET_ONLY or len(chosen.text) > MAX_FACT or is_passing(chosen.text)
        )
    )


def _curated(kind: RememberedKind, made: CuratedWrite) -> Remembered:
    where = f"{made.file}#L{made.line}"
    beside = f" Still there, please check: {'; '.join(made.kept_beside).rstrip('.')}." if made.kept_beside else ""
    if made.write_id is None:
        answer = f"{where} says so already.{beside}"
        return Remembered(kind, where, made.entry_key, f"nothing was written; edit {made.file}", (), answer, True)
    undo = f"dreamline undo {made.write_id}"
    replaced = f" It replaces: {'; '.join(made.superseded).rstrip('.')}." if made.superseded else ""
    answer = f"Kept as a {kind.value} in {where}.{replaced}{beside} To take it back: {undo}"
    return Remembered(kind, where, made.entry_key, undo, made.superseded, answer)


def _intent(state: apsw.Connection, chosen: Route, speaker: Speaker, session_key: str, now: int) -> Remembered:
    keywords = event_words(chosen.text)
    if not keywords:
        raise RefusedError(
            "It is not clear what should bring it up", "Make it with the words: dreamline intent add TEXT --when WORDS."
        )
    before = state.execute("SELECT coalesce(max(intent_key), 0) FROM standing_intents").fetchone()
    draft = IntentDraft(chosen.text, keywords, Scope.CHANNEL if speaker.channel else Scope.ANYWHERE, SenderScope.SENDER)
    made = create(state, draft, speaker, now, session_id=session_key)
    undo = f"dreamline intent cancel {made.intent_id}"
    answer = f"A standing intent, brought up by: {', '.join(made.keywords)}. To take it back: {undo}"
    known = before is not None and made.intent_key <= int(str(before[0]))
    return Remembered(chosen.kind, f"intent:{made.intent_id}", None, undo, (), answer, unchanged=known)


def _task(
    agent: Agent, chosen: Route, speaker: Speaker, session_key: str, now: int, *, host_takes_tasks: bool
) -> Remembered:
    task = scheduled_task(chosen.text, speaker, now, agent.zone, session_id=session_key)
    undo = f"remove the task {task.task_id} in the host's scheduler"
    known = _spooled(agent, task.text, task.start, task.sender)
    if known is not None:
        answer = "Handed to the scheduler already."
        return Remembered(
            chosen.kind, f"task:{known}", None, undo.replace(task.task_id, known), (), answer, unchanged=True
        )
    handed = hand_over(task, agent.folders.spool, host_takes_tasks=host_takes_tasks)
    return Remembered(chosen.kind, f"task:{task.task_id}", None, undo, (), f"{handed.answer} To take it back: {undo}.")


def _spooled(agent: Agent, text: str, start: str | None, sender: str) -> str | None:
    """Return the id of a task in the spool that asks the same of the same time, or ``None``."""
    for line in (read_bytes(agent.folders.spool / SPOOL_FILE) or b"").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # a torn line is the host's to report
        if isinstance(row, dict) and (row.get("text"), row.get("start"), row.get("sender")) == (text, start, sender):
            return str(row.get("task_id"))
    return None


def _note(agent: Agent, chosen: Route, session_key: str, now: int) -> Remembered:
    text = redact(chosen.text)
    if chosen.kind is RememberedKind.ASPIRATION:
        when = resolve_when(chosen.text, now, agent.zone)
        review = when.start.date() if when else day_of(now + REVIEW_AFTER_DAYS * MS_PER_DAY, agent.zone)
        text = f"{text} <!-- review: {review.isoformat()} -->"
    line = f"- {terminal(text)}"
    path = f"{NOTES_FOLDER}/{day_of(now, agent.zone).isoformat()}.md"
    known = _line_in_note(agent, path, line)
    if known is not None:
        where = f"{path}#L{known}"
        return Remembered(chosen.kind, where, None, f"edit {path}", (), f"{where} says so already.", unchanged=True)
    written = append_note(agent, line, session_key=session_key, now_ms=now)
    where = f"{written.path}#L{written.start_line}"
    undo = f"delete line {written.start_line} of {written.path}"
    masked = " A secret in it was masked." if text != chosen.text and "<!-- review" not in text else ""
    what = "a wish with a review date" if chosen.kind is RememberedKind.ASPIRATION else "a detail of today"
    return Remembered(
        chosen.kind, where, None, undo, (), f"Noted as {what} in {where}.{masked} To take it back: {undo}."
    )


def _line_in_note(agent: Agent, path: str, line: str) -> int | None:
    content = (read_bytes(agent.workspace / path) or b"").decode("utf-8", errors="replace")
    return next((number for number, text in enumerate(content.split("\n"), start=1) if text.rstrip("\r") == line), None)
