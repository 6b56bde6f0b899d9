"""Where a request to remember goes (openclaw-facts 1.3), decided from its words without a model.

Belongs here: the order of the questions.
Does not belong here: writing (``facts``, ``preferences``), who may ask (``request``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from recall_runtime.intents.classify import RequestKind, classify_request
from recall_runtime.notes.hygiene import refusal_of
from recall_runtime.remember.wording import is_passing, without_lead
from recall_runtime.user_model.contract import Directive
from recall_runtime.user_model.requests import directive_from, is_one_off
from recall_runtime.user_model.update import MAX_DIRECTIVE

MAX_FACT = 640  # characters of one entry of MEMORY.md; longer is a record, and records are notes


class RememberedKind(StrEnum):
    """What a request is, and with it the place it goes to."""

    DIRECTIVE = "directive"  # USER.md
    FACT = "fact"  # MEMORY.md
    INTENT = "intent"  # a standing intent
    TASK = "task"  # a scheduled task, handed over to the host
    ASPIRATION = "aspiration"  # today's note, with a review date
    DETAIL = "detail"  # today's note


@dataclass(frozen=True, slots=True)
class Route:
    """The kind of a request and what is to be written."""

    kind: RememberedKind
    text: str


def route(text: str, found: Sequence[Directive]) -> Route:
    """Return where ``text`` goes.

    Times and events come first, for words like "always" may stand in them; then wishes for some day; then
    directives; what is left is a fact when it stands alone as a lasting statement, else a detail of today.

    Args:
        text: the owner's words on one line.
        found: the directives of ``USER.md``, to which "euro again" may refer.
    """
    bare = without_lead(text)
    asked = classify_request(bare)
    if asked is RequestKind.STATEMENT and bare != text:
        # "remember to water the plants tomorrow" asks only with its lead; "remember that" never does
        whole = classify_request(text)
        asked = whole if whole is RequestKind.TIME and _asks_to_act(text) else asked
    if asked is RequestKind.TIME:
        return Route(RememberedKind.TASK, bare)
    if asked is RequestKind.EVENT:
        return Route(RememberedKind.INTENT, bare)
    if asked is RequestKind.ASPIRATION:
        return Route(RememberedKind.ASPIRATION, bare)
    directive = directive_from(bare, found)
    if directive is not None and len(directive) <= MAX_DIRECTIVE:
        return Route(RememberedKind.DIRECTIVE, directive)
    lasting = len(bare) <= MAX_FACT and not is_one_off(bare) and not is_passing(bare) and refusal_of(bare) is None
    return Route(RememberedKind.FACT if lasting else RememberedKind.DETAIL, bare)


def _asks_to_act(text: str) -> bool:
    folded = text.casefold()
    return any(f" {lead} " in f" {folded}" for lead in ("remember to", "don't forget to", "do not forget to"))
