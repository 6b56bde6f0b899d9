"""Commands of the owner: ``remember``, ``undo``, ``asof``, ``user``, ``intent``.

Belongs here: their arguments and answers.
Does not belong here: where a request to remember goes (``remember``), the history of curated files
(``curated.history``), the contract of ``USER.md`` (``user_model``), the lifecycle of intents (``intents``).
"""

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from recall_runtime.cli.command import (
    Commands,
    Invocation,
    Reply,
    add_command,
    add_group,
    day,
    instant,
    plain,
    positive,
)
from recall_runtime.cli.output import table

if TYPE_CHECKING:
    from recall_runtime.agent import Agent
    from recall_runtime.curated.history import FileUndo
    from recall_runtime.intents.store import StandingIntent

CURATED_FILES = ("MEMORY.md", "USER.md")


def add_commands(commands: Commands, after: argparse.ArgumentParser) -> None:
    """Add the commands of this group."""
    parser = add_command(commands, after, "remember", remember, "keep what the owner asks for, where it belongs")
    parser.add_argument("text", metavar="TEXT", help="the owner's words; - reads standard input")
    parser.add_argument("--session", required=True, metavar="KEY", help="the owner's conversation")
    parser.add_argument("--sender", metavar="ID", help="who speaks (default: the owner, who runs this command)")
    parser.add_argument("--channel", metavar="ID", help="chat or channel of the conversation")
    parser.add_argument("--supersedes", metavar="KEY", help="key or words of the entry that it replaces")
    parser.add_argument("--no-scheduler", action="store_true", help="the host runs no scheduled tasks")
    parser = add_command(commands, after, "undo", undo, "take back what a sweep or `remember` wrote")
    parser.add_argument("sweep", metavar="SWEEP", help="id of the sweep (see `dreamline status`) or of `remember`")
    parser = add_command(commands, after, "asof", asof, "show the curated files as of the end of a day")
    parser.add_argument("day", type=day, metavar="DAY", help="such as 2026-05-31, in the zone of the workspace")

    user = add_group(commands, "user", "the directives of USER.md")
    parser = add_command(user, after, "list", user_list, "list the directives")
    parser.add_argument("--all", action="store_true", help="superseded ones too")
    parser = add_command(user, after, "set", user_set, "make a directive the one that holds on its matter")
    parser.add_argument("text", metavar="TEXT", help="such as: Prefer short answers.")
    parser = add_command(user, after, "supersede", user_supersede, "put a directive in the place of another")
    parser.add_argument("old", metavar="OLD", help="words of the directive that no longer holds")
    parser.add_argument("text", metavar="TEXT", help="the directive that holds now")
    add_command(user, after, "lint", user_lint, "check the file against its contract")

    intent = add_group(commands, "intent", "standing intents: what to be reminded of when something comes up")
    parser = add_command(intent, after, "add", intent_add, "make a standing intent")
    parser.add_argument("description", metavar="TEXT", help="what to be reminded of")
    parser.add_argument("--when", action="append", required=True, metavar="WORDS", help="words that bring it up")
    parser.add_argument("--sender", metavar="ID", help="for messages of this sender only (default: anyone)")
    parser.add_argument("--max-fires", type=positive, default=3, metavar="N", help="how often at most")
    parser.add_argument("--expires", type=instant, metavar="ISO", help="when it ends (default: in 90 days)")
    parser = add_command(intent, after, "list", intent_list, "list the intents")
    parser = add_command(intent, after, "give-back", intent_give_back, "take back the fires of a reply never given")
    parser.add_argument("fired", metavar="FIRED", help="`fired` of `turn --json`, as JSON")
    parser = add_command(intent, after, "cancel", intent_cancel, "cancel an intent")
    parser.add_argument("intent", metavar="ID", help="its id, see `intent list`")


def remember(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Keep what the owner asks for. Whoever may run this command on this machine is its owner."""
    from recall_runtime.cli.writing import text_of
    from recall_runtime.remember.request import remember as keep

    agent = invocation.open()
    made = keep(
        agent,
        text_of(arguments.text),
        session_key=arguments.session,
        sender=arguments.sender or _owner_of(agent),
        channel=arguments.channel,
        supersedes=arguments.supersedes,
        host_takes_tasks=not arguments.no_scheduler,
    )
    return Reply(plain(made), [made.answer])


def _owner_of(agent: "Agent") -> str:
    """Return the id under which the owner of this machine is known."""
    return next(iter(agent.settings.sources.owner_ids), "owner")


def user_set(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Set a directive."""
    return _directive(invocation, arguments.text, None)


def user_supersede(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Replace the one directive that ``OLD`` means."""
    return _directive(invocation, arguments.text, arguments.old)


def _directive(invocation: Invocation, text: str, supersedes: str | None) -> Reply:
    from recall_runtime.remember.request import set_user_directive

    made = set_user_directive(invocation.open(), text, supersedes=supersedes)
    return Reply(plain(made), [made.answer])


def undo(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Take a sweep back, or show why that would lose somebody's edit."""
    from recall_runtime.curated.history import undo as take_back
    from recall_runtime.storage.schema import open_state

    agent = invocation.open()
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        files = take_back(agent, state, arguments.sweep, now_ms=agent.clock.now_ms())
    restored = all(file.restored for file in files)
    return Reply({"files": plain(files)}, _undone(files), exit_code=0 if restored else 1)


def _undone(files: "tuple[FileUndo, ...]") -> Iterator[str]:
    for file in files:
        if file.restored:
            yield f"{file.file}: taken back; what came later stays" if file.kept_later else f"{file.file}: put back"
            continue
        yield f"{file.file}: its lines were touched since, nothing written. Take what you need from these differences."
        yield from ("The sweep changed:", *file.ours.split("\n"))
        yield from ("Changed since:", *file.theirs.split("\n"))


def asof(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Show both curated files as the sweeps left them at the end of a day."""
    import datetime as dt

    from recall_runtime.clock import start_of_day_ms
    from recall_runtime.curated.history import as_of
    from recall_runtime.storage.atomic import read_bytes
    from recall_runtime.storage.schema import read_state

    agent = invocation.open()
    end = start_of_day_ms(arguments.day + dt.timedelta(days=1), agent.zone) - 1
    files: dict[str, str | None] = {}
    with contextlib.closing(read_state(agent.folders.state_db)) as state:
        for name in CURATED_FILES:
            snapshot = as_of(state, name, end)
            content = snapshot.content if snapshot.known else read_bytes(agent.workspace / name)
            files[name] = None if content is None else content.decode("utf-8", errors="replace")
    lines = [line for name, text in files.items() for line in (f"=== {name}", *(text or "(no file)").split("\n"))]
    return Reply({"day": arguments.day.isoformat(), "files": files}, lines)


def _user_file(invocation: Invocation) -> bytes:
    from recall_runtime.curated.writer import read_base

    return read_base(invocation.open(), "USER.md").content or b""


def user_list(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """List what holds, and with ``--all`` what held."""
    from recall_runtime.user_model.contract import directives, standing

    found = directives(_user_file(invocation))
    holding = standing(found)
    shown = found if arguments.all else holding
    rows = [(item.start_line, item.observed, "holds" if item in holding else item.status, item.text) for item in shown]
    return Reply({"directives": plain(shown)}, table(("line", "observed", "status", "directive"), rows))


def user_lint(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Check ``USER.md``; exit 1 when something is wrong."""
    from recall_runtime.user_model.lint import lint

    found = lint(_user_file(invocation))
    lines = [f"USER.md:{item.line}: {item.rule}: {item.message}" for item in found] or ["USER.md keeps its contract"]
    return Reply({"findings": plain(found)}, lines, exit_code=1 if found else 0)


def intent_add(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Make an intent. Whoever may run this command on this machine is its owner."""
    from recall_runtime.intents.scopes import Scope, SenderScope, Speaker
    from recall_runtime.intents.store import IntentDraft, create
    from recall_runtime.storage.schema import open_state

    agent = invocation.open()
    sender_scope = SenderScope.SENDER if arguments.sender else SenderScope.ANYONE
    draft = IntentDraft(
        description=arguments.description,
        keywords=tuple(arguments.when),
        scope=Scope.ANYWHERE,
        sender_scope=sender_scope,
        expires_at=arguments.expires,
        max_fires=arguments.max_fires,
    )
    speaker = Speaker(sender=arguments.sender or "owner", is_owner=True)
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        made = create(state, draft, speaker, agent.clock.now_ms())
    return Reply(_intent_data(made), [f"{made.intent_id}: armed, for {', '.join(made.keywords)}"])


def intent_list(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """List all intents after upkeep."""
    from recall_runtime.intents.store import list_intents
    from recall_runtime.storage.schema import open_state

    agent = invocation.open()
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        found = list_intents(state, agent.clock.now_ms())
    rows = [
        (item.intent_id, item.status, f"{item.fire_count}/{item.max_fires}", ", ".join(item.keywords), item.description)
        for item in found
    ]
    return Reply(
        {"intents": [_intent_data(item) for item in found]}, table(("id", "status", "fired", "when", "what"), rows)
    )


def intent_cancel(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Cancel one intent; the row stays."""
    from recall_runtime.errors import RefusedError
    from recall_runtime.intents.store import cancel
    from recall_runtime.storage.schema import open_state

    agent = invocation.open()
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        if not cancel(state, arguments.intent, agent.clock.now_ms()):
            raise RefusedError(f"No live intent {arguments.intent!r}", "Take the id from `dreamline intent list`.")
    return Reply({"intent_id": arguments.intent, "status": "cancelled"}, [f"{arguments.intent}: cancelled"])


def intent_give_back(invocation: Invocation, arguments: argparse.Namespace) -> Reply:
    """Give the fires of one turn back; those of a later turn stay."""
    from pydantic import TypeAdapter, ValidationError

    from recall_runtime.errors import RefusedError
    from recall_runtime.hosts.arguments import Fire
    from recall_runtime.hosts.intent_tool import give_back_fires
    from recall_runtime.storage.schema import open_state

    try:
        fired = TypeAdapter(tuple[Fire, ...]).validate_json(arguments.fired)
    except ValidationError as error:
        raise RefusedError("These are no fires of a turn", "Hand over `fired` of `turn --json` as it is.") from error
    agent = invocation.open()
    with contextlib.closing(open_state(agent.folders.state_db)) as state:
        restored = give_back_fires(state, fired)
    return Reply({"given_back": restored}, [f"{restored} of {len(fired)} given back"])


def _intent_data(intent: "StandingIntent") -> dict[str, object]:
    return {key: value for key, value in plain(intent).items() if key != "intent_key"}
