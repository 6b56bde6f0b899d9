"""Why a piece of text can't stand alone as a statement. Structure and shape only, never who said it.

Belongs here: the refusals of a sentence, each with exactly one reason in the order of ``vocabulary.Refusal``, and the
contamination filter of openclaw-algorithms 18.
Does not belong here: the refusals of whole blocks (``blocks``), trust (``provenance``), numeric gates.
"""

import re
from collections.abc import Callable

from recall_runtime.notes.leads import is_echo, strip_leads
from recall_runtime.notes.scaffolding import (
    control_token,
    diagnostic,
    ends_in_control_token,
    envelope,
    holds_json_fence,
    is_diagnostic,
    is_durable,
    is_record_text,
    is_staged_record,
    is_structural_line,
    log_line,
    own_record,
    session_field,
    shell_line,
    transcript_form,
)
from recall_runtime.notes.substance import (
    fragment,
    holds_live_secret,
    label_only,
    plan,
    question,
    routine,
    secret_only,
    template_slot,
    too_short,
)
from recall_runtime.text.lines import REPLACEMENT
from recall_runtime.vocabulary import Refusal

MAX_LENGTH = 2_000
_MAX_WHOLE = 400
_TWO_SENTENCES = re.compile(r"[a-zà-ÿ]{3}[.!?]\s+[A-ZÀ-Þ]|[。！？]\s*\S")
_TURN_FORM = re.compile(r"(?:user|assistant): ", re.IGNORECASE)
_HEADING_INSIDE = re.compile(r"#{1,6}\s")
_TABLE_RULE = re.compile(r"\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?")
_RULE = re.compile(r"([-*_=])\s*(?:\1\s*){2,}")


def refusal_of(text: str, *, transcript_form_allowed: bool = False) -> Refusal | None:
    """Return the one reason why ``text`` can't be a statement, the first that applies, or ``None`` when it is fit.

    Args:
        text: a sentence or table cell, leads still in front.
        transcript_form_allowed: whether a line such as ``user: …`` is the expected form (messages, corpus files).
    """
    stripped = text.strip()
    is_long = len(stripped) > MAX_LENGTH
    if is_long:
        stripped = stripped[:MAX_LENGTH]  # what a text is shows at its start; the work stays bounded
    bare = strip_leads(stripped)
    for refusal, applies in _RULES:
        if applies(stripped, bare):
            return refusal
    if not transcript_form_allowed and transcript_form(bare):
        return Refusal.ENVELOPE
    return Refusal.TOO_LONG if is_long else None


def contaminated(text: str, *, transcript_form_allowed: bool = False) -> bool:
    """Return whether the snippet is unfit for promotion (openclaw-algorithms 18, in its order)."""
    snippet = " ".join(text.split())
    if not snippet:
        return False
    if holds_live_secret(snippet, snippet):
        return True
    if is_durable(snippet):
        return is_staged_record(snippet)
    if is_diagnostic(snippet) or holds_json_fence(text):
        return True
    if not transcript_form_allowed and _TURN_FORM.match(snippet):
        return True
    return is_record_text(snippet) or is_staged_record(snippet)


def whole_refusal(text: str) -> Refusal | None:
    """Return the refusal of a block that is one thing as a whole, so that it is not split: a command, a log line.

    A block that ends in a control token is the agent saying that nothing is to be said.
    """
    flat = " ".join(text.split())
    if len(flat) <= _MAX_WHOLE and ends_in_control_token(flat):
        return Refusal.CONTROL_TOKEN
    if len(flat) > _MAX_WHOLE or _TWO_SENTENCES.search(flat):
        return None
    bare = strip_leads(flat)
    for refusal, applies in (
        (Refusal.OWN_RECORD, own_record),
        (Refusal.SHELL_LINE, shell_line),
        (Refusal.LOG_LINE, log_line),
    ):
        if flat and applies(flat, bare):
            return refusal
    return None


_RULES: tuple[tuple[Refusal, Callable[[str, str], bool]], ...] = (
    (Refusal.EMPTY, lambda raw, bare: not raw),
    (Refusal.HEADING, lambda raw, bare: _HEADING_INSIDE.match(bare) is not None),
    (Refusal.TABLE_RULE, lambda raw, bare: "|" in raw and _TABLE_RULE.fullmatch(bare) is not None),
    (Refusal.RULE_LINE, lambda raw, bare: _RULE.fullmatch(raw) is not None),
    (Refusal.OWN_RECORD, own_record),
    (Refusal.SESSION_HEADER, lambda raw, bare: session_field(bare)),
    (Refusal.ENVELOPE, envelope),
    (Refusal.CONTROL_TOKEN, control_token),
    (Refusal.SHELL_LINE, shell_line),
    (Refusal.LOG_LINE, log_line),
    (Refusal.DIAGNOSTIC, diagnostic),
    (Refusal.TEMPLATE_SLOT, template_slot),
    (Refusal.LABEL_ONLY, label_only),
    (Refusal.FRAGMENT, fragment),
    (Refusal.QUESTION, question),
    (Refusal.PLAN, plan),
    (Refusal.ROUTINE, routine),
    (Refusal.SECRET_ONLY, lambda raw, bare: holds_live_secret(raw, bare) or secret_only(raw, bare)),
    (Refusal.UNDECODABLE, lambda raw, bare: REPLACEMENT in raw),
    (Refusal.TOO_SHORT, too_short),
    (Refusal.ECHO, lambda raw, bare: is_echo(raw)),
)


__all__ = ["contaminated", "ends_in_control_token", "is_structural_line", "refusal_of", "whole_refusal"]
