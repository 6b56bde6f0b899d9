"""Making the owner's words the one active directive on their matter in ``USER.md``.

Belongs here: planning that write.
Does not belong here: the grammar of directives and what one replaces (``user_model``), facts (``facts``).
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import apsw

from recall_runtime.agent import Agent
from recall_runtime.clock import day_of
from recall_runtime.curated.effects import drops
from recall_runtime.curated.writer import Base, WritePlan
from recall_runtime.errors import RefusedError
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.identity import claim_id, normalise
from recall_runtime.notes.markers import entry_key_of, promotion_marker
from recall_runtime.paths import USER_FILE
from recall_runtime.remember.writes import Asked, CuratedWrite, Planned, effects_of, write, write_id_of
from recall_runtime.user_model.contract import Directive, directives
from recall_runtime.user_model.update import Outcome, Pruned, find_directive, prune, set_directive


def write_directive(
    agent: Agent, state: apsw.Connection, text: str, asked: Asked, *, supersedes: str | None, now_ms: int
) -> CuratedWrite:
    """Make ``text`` the one active directive on its matter.

    Args:
        agent: Whose memory it is.
        state: Its open state database.
        text: The directive on one line.
        asked: Who asked for it.
        supersedes: Words of the one directive it replaces in any case.
        now_ms: Instant of the write.

    Raises:
        RefusedError: no room, or ``supersedes`` names no directive or several.
        ConflictError: the file kept changing.
    """
    claim = claim_id(text)
    entry_key = entry_key_of(claim)
    cap = agent.settings.dreaming.deep.user_budget_characters
    today = day_of(now_ms, agent.zone)

    def plan_on(base: Base) -> Planned:
        data = base.content or b""
        found = directives(data)
        replaces = (find_directive(found, supersedes),) if supersedes else ()
        marks = (promotion_marker(entry_key),)
        change = set_directive(data, text, _observed(found, today), replaces=replaces, marks=marks)
        if change.outcome is Outcome.UNCHANGED:
            at = next(one.start_line for one in found if one.is_active and normalise(one.text) == normalise(text))
            return Planned(None, CuratedWrite(USER_FILE, entry_key, at, None))
        pruned = _within(cap, change.data)
        gone = {directive.start_line for directive in change.replaced}
        replaced = [entry for entry in parse_curated(data, user_file=True).entries if entry.start_line in gone]
        effects = effects_of(
            state, asked, claim=claim, entry_key=entry_key, line=f"- {change.text}", replaced=replaced, now_ms=now_ms
        )
        effects = replace(effects, ledger=(*drops(pruned.gone), *effects.ledger))
        at = next(one.start_line for one in directives(pruned.data) if one.is_active and one.text == change.text)
        words = tuple(directive.text for directive in change.replaced)
        outcome = CuratedWrite(USER_FILE, entry_key, at, write_id_of(state, now_ms, claim), words)
        return Planned(WritePlan(base, pruned.data, effects), outcome)

    return write(agent, state, USER_FILE, plan_on, now_ms)


def _observed(found: Sequence[Directive], today: dt.date) -> dt.date:
    """Return the day of the request: what the owner says now is the last word, also beside a date in the future."""
    return max((one.observed for one in found if one.observed is not None and one.observed > today), default=today)


def _within(cap: int, data: bytes) -> Pruned:
    """Return ``data`` without superseded directives it has no room for; active ones never go."""
    pruned = prune(data, cap) if cap else Pruned(data)
    if cap and len(pruned.data.decode("utf-8", errors="replace")) > cap:
        raise RefusedError(
            f"{USER_FILE} has no room for it ({cap} characters)",
            "Remove a directive that no longer holds, then ask again.",
        )
    return pruned
