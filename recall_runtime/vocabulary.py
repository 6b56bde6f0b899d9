"""Closed sets of the product, each defined once.

Belongs here: every ``StrEnum`` that more than one room uses, and the order of trust.
Does not belong here: the rules that assign a member (``recall_runtime.provenance`` and the rooms that decide).
"""

from collections.abc import Iterable
from enum import StrEnum


class OriginClass(StrEnum):
    """Who is behind a piece of text. Assigned by code where the text enters, never read from the text."""

    OWNER = "owner"
    AGENT = "agent"
    SYSTEM = "system"
    UNTRUSTED = "untrusted"


_TRUST_ORDER = (OriginClass.OWNER, OriginClass.AGENT, OriginClass.SYSTEM, OriginClass.UNTRUSTED)
ELIGIBLE_ORIGINS = frozenset({OriginClass.OWNER, OriginClass.AGENT})


def worst_origin(classes: Iterable[OriginClass]) -> OriginClass:
    """Return the least trusted of ``classes``; nothing at all is untrusted."""
    return max(classes, key=_TRUST_ORDER.index, default=OriginClass.UNTRUSTED)


class SessionKind(StrEnum):
    """What kind of session produced a text. Only interactive ones yield durable candidates."""

    INTERACTIVE = "interactive"
    CRON = "cron"
    HEARTBEAT = "heartbeat"
    SUBAGENT = "subagent"
    UNKNOWN = "unknown"


class ChatType(StrEnum):
    """Where a conversation takes place."""

    DIRECT = "direct"
    GROUP = "group"
    CHANNEL = "channel"
    EXPLICIT = "explicit"
    UNKNOWN = "unknown"


class Tier(StrEnum):
    """The tier a source belongs to. It is the only partition key of the vector table, so keep it small."""

    CURATED = "curated"
    EPISODIC = "episodic"
    SESSIONS = "sessions"
    REVIEW = "review"
    IMPORTS = "imports"


class Corpus(StrEnum):
    """What a search covers."""

    MEMORY = "memory"
    SESSIONS = "sessions"
    ALL = "all"


class SignalKind(StrEnum):
    """Kinds of evidence that a claim is needed; each is counted once per its own key (docs/concepts.md)."""

    RECALL = "recall"
    OBSERVATION = "observation"
    GROUNDED = "grounded"


class StatementKind(StrEnum):
    """What a statement asks of the future: a fact informs, a directive tells the agent how to act."""

    FACT = "fact"
    DIRECTIVE = "directive"


class CandidateStatus(StrEnum):
    """Where a staged claim stands. Every claim is in exactly one state, so seen = the sum of the states."""

    WAITING = "waiting"
    PROMOTED = "promoted"
    SUPERSEDED = "superseded"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


class Operation(StrEnum):
    """What a sweep did with an entry of a curated file."""

    ADDED = "added"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    RECONCILED = "reconciled"
    DROPPED = "dropped"
    UNDONE = "undone"


class EntryStatus(StrEnum):
    """Whether a curated entry counts. Superseded ones stay in the file, are not injected."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"


class Refusal(StrEnum):
    """Why a piece of text is not a candidate. Every refused piece has exactly one, the first that applies."""

    EMPTY = "empty"
    HEADING = "heading"
    TABLE_RULE = "table_rule"
    RULE_LINE = "rule_line"
    FENCED_CODE = "fenced_code"
    COMMENT = "comment"
    FRONT_MATTER = "front_matter"
    MANAGED_BLOCK = "managed_block"
    OWN_RECORD = "own_record"
    SESSION_HEADER = "session_header"
    ENVELOPE = "envelope"
    CONTROL_TOKEN = "control_token"
    SHELL_LINE = "shell_line"
    LOG_LINE = "log_line"
    DIAGNOSTIC = "diagnostic"
    TEMPLATE_SLOT = "template_slot"
    LABEL_ONLY = "label_only"
    FRAGMENT = "fragment"
    STRUCK = "struck"
    QUESTION = "question"
    PLAN = "plan"
    ROUTINE = "routine"
    SECRET_ONLY = "secret_only"
    UNDECODABLE = "undecodable"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    CONFLICT = "conflict"
    OUTDATED = "outdated"
    ECHO = "echo"
    NOT_INDEXED = "not_indexed"
    ORIGIN = "origin"
    SESSION_KIND = "session_kind"


class Gate(StrEnum):
    """Gates of the deep phase in the order in which they are tried; the first failing one is reported."""

    SOURCE = "source"
    ORIGIN = "origin"
    SESSION_KIND = "session_kind"
    CONTAMINATED = "contaminated"
    ALREADY_PROMOTED = "already_promoted"
    SUPERSEDED = "superseded"
    MIN_RECALL_COUNT = "min_recall_count"
    MIN_UNIQUE_QUERIES = "min_unique_queries"
    MAX_AGE_DAYS = "max_age_days"
    MIN_SCORE = "min_score"
    LIMIT = "limit"
    REHYDRATION = "rehydration"
    BUDGET = "budget"
    WRITE = "write"
