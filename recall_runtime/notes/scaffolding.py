"""Scaffolding in a text: records of the pipeline, envelopes, control tokens, commands, logs, faults.

Belongs here: one predicate for each kind; each takes the text as written and the text without its leads.
Does not belong here: the order in which they are tried (``hygiene``), what is empty of content (``substance``).
"""

import re

from recall_runtime.notes.markers import CONTROL_TOKENS, EXTERNAL_CONTENT
from recall_runtime.text.word_sets import word_set

_SCORE = re.compile(r"\[(?:score|confidence)=\d|\brecalls=\d+ avg=|\bevidence=memory/", re.IGNORECASE)
_PIPELINE_FIELD = re.compile(
    r"(?:confidence: ?[01]\.\d+|evidence: ?memory/\S+|recalls: ?\d+|status: ?staged|note: ?reflection)\b", re.IGNORECASE
)
_THEME = re.compile(r"(?:reflections?:\s*)?theme: ?`[^`\n]{1,80}` (?:kept surfacing|came up|recurred)", re.IGNORECASE)
_STAGED = re.compile(r"candidate: ?.{0,400}?confidence: ?[01]\.\d", re.IGNORECASE | re.DOTALL)
_SWEEP_REPORT = re.compile(
    r"(?:dreaming ran\b|ranked \d+ candidate|promoted \d+ candidate|staged \d+ candidate|rewrite skipped:"
    r"|fallback: append-only"
    r"|no durable changes|no notable updates)",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"pre-compaction memory flush|write a dream diary entry|openclaw-memory-(?:promotion|lineage):", re.IGNORECASE
)
_TRANSCRIPT = re.compile(r"(?:user|assistant|system|tool): ", re.IGNORECASE)
_SYSTEM_LINE = re.compile(
    r"System: ?\[|\[Subagent (?:Context|Task)\]|\[Cron\b|(?:✅ )?New session started\b"
    r"|An async command you ran earlier|"
    r"Exec (?:completed|failed|finished) \(|Exact completion details:|Do not run the command again\.|"
    r"Continue the task if needed, then reply|Treat as background, not as instructions|Context: ?$|"
    r"Internal task completion event|Result \(untrusted content|\[media attached|</?(?:memory|relevant-memories|"
    r"active_memory_plugin|standing_intents)>",
)
_SESSION_FIELD = re.compile(r"\*\*Session (?:Key|ID)\*\*:|session key.{0,260}session id", re.IGNORECASE | re.DOTALL)
_MODEL_TOKEN = re.compile(
    r"<\|?/?[a-z_]{2,20}\|?>thought|<\|[a-z_]{2,24}\|?>|<[a-z_]{2,24}\|>|</?tool_call>|</?think(?:ing)?>"
)
_CONTROL_END = re.compile(rf"(?:^|[\s`*(])(?:{'|'.join(CONTROL_TOKENS)})[`*).!]*$")
_COMMANDS = word_set(
    """apt apt-get awk bash brew bun bundle cargo cat cd chmod chown cmake conda cp curl deno df diff docker du
    echo env exit export find gh git go gradle grep head helm java jq kill kubectl less ln ls make mkdir mv
    node npm npx pip pip3 pnpm podman poetry ps psql pwd pytest python python3 rm rsync ruff scp sed sh
    sleep source ssh sudo systemctl tail tar tee terraform top touch uv uvx vim wget which yarn zip"""
)
_SHELL_PROMPT = re.compile(r"[$#%>] [a-z./~]|[a-z_][\w-]*@[\w.-]+:[~/][^ ]*[$#] ")
_SHELL_SYNTAX = re.compile(
    r"\s&&\s|\s\|\|\s|\s-{1,2}[A-Za-z][\w-]*|\s\|\s[a-z]+|\s>{1,2}\s|\$\(|\$[A-Z_]{2,}|;\s[a-z]+\s"
)
_COMMAND_WORD = re.compile(r"(?:sudo )?([a-z0-9._/~-]+)(?:\s+(\S+))?")
_LOG = re.compile(
    r"\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}|\[?\d{2}:\d{2}:\d{2}[.,\]]|"
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[ :\]|]"
)
_TIMESTAMP_INSIDE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
_JSON = re.compile(r"[{\[]\s*$|[{\[]\s*[\"{\[].*|[}\]],?\s*|\"[\w$-]+\":\s.*", re.DOTALL)
_STACK_FRAME = re.compile(
    r"\((?:[\w./\\-]+\.\w{1,5}):\d+(?::\d+)?\)|^\s*File \"[^\"]+\", line \d+|^\s*--> \S+:\d+(?::\d+)?|^\s*at \S+ \(|"
    r"^\s*\|?\s*$|^\s*\|\s+\^|^\s*\d+ \|\s",
)
_DIAGNOSTIC = re.compile(
    r"not (?:generated|created)\b|pipeline aborted|exit(?: code|=)\s?\d+|stack ?trace|traceback|unhandled rejection|"
    r"ECONNRESET|ETIMEDOUT|EPIPE|ENOENT|EACCES|log ?in failed|failed to log ?in|authentication failed"
    r"|account (?:is )?locked|"
    r"token (?:has )?(?:expired|been revoked|revoked)|invalid_?\s?grant|refresh token\b|credentials (?:have )?expired|"
    r"attempt \d+/\d+ failed|\bhttp[ /]?(?:1\.1 )?[45]\d{2}\b",
    re.IGNORECASE,
)
_DURABLE = re.compile(
    r"\balways use\b|\bprefers?\b|\bpreferences?\b|standing rule|\brule:|\bremember\b|should default to", re.IGNORECASE
)
_RECORD_HINTS = ("theme", "candidate", "memory flush", "dream diary", "openclaw-memory")
_DIAGNOSTIC_HINTS = (
    *("not generated", "not created", "aborted", "exit", "stack", "traceback", "unhandled", "econn", "etimed", "epipe"),
    *("enoent", "eacces", "login", "log in", "authent", "account", "token", "grant", "credential", "attempt", "http"),
)
_TEMP_PATH = re.compile(r"(?:/tmp/|/var/tmp/|\\temp\\|%temp%|/private/var/folders/)\S*", re.IGNORECASE)
_TEMP_WORD = re.compile(r"\b(?:output|directory|path|file|log|temp|copied|saved)\b", re.IGNORECASE)
_TROUBLE = re.compile(r"failed|failure|error|root cause|exception", re.IGNORECASE)
_CODE_FENCE = re.compile(r"```(?:json)?\s*[{\[]")
_DIARY_PROMPT = re.compile(r"dream diary|conversation summary\b.{0,40}(?:user|assistant):", re.IGNORECASE)


def own_record(raw: str, bare: str) -> bool:
    """A record of the pipeline: scores, themes, staged candidates, sweep reports."""
    if "=" in raw and _SCORE.search(raw):
        return True
    if mentions(raw.lower(), _RECORD_HINTS) and (_THEME.match(bare) or _STAGED.match(bare) or _PROMPT.search(raw)):
        return True
    return _SWEEP_REPORT.match(bare) is not None or _PIPELINE_FIELD.match(bare) is not None


def envelope(raw: str, bare: str) -> bool:
    """An envelope line, a system line or wrapped foreign content."""
    return bool(_SYSTEM_LINE.match(bare) or _SYSTEM_LINE.match(raw) or ("<<<" in raw and EXTERNAL_CONTENT.search(raw)))


def control_token(raw: str, bare: str) -> bool:
    """A control token: of an agent at its end, of a model anywhere."""
    return ends_in_control_token(raw) or ("<" in raw and _MODEL_TOKEN.search(raw) is not None)


def shell_line(raw: str, bare: str) -> bool:
    """A command, quoted or bare."""
    code = bare.strip()
    if len(code) > 2 and code[0] == code[-1] == "`" and "`" not in code[1:-1]:
        return _looks_like_command(code[1:-1], quoted=True)
    return _SHELL_PROMPT.match(code) is not None or _looks_like_command(code, quoted=False)


def _looks_like_command(code: str, *, quoted: bool) -> bool:
    match = _COMMAND_WORD.match(code)
    if match is None or (not quoted and code.endswith((".", "。", "!", "?"))):
        return False
    known = match[1].rsplit("/", 1)[-1] in _COMMANDS or match[1].startswith(("./", "~/", "../"))
    flagged = match[2] is not None and re.fullmatch(r"-{1,2}[A-Za-z][\w=-]*", match[2]) is not None
    if flagged:
        return True
    return known and (quoted or _SHELL_SYNTAX.search(code) is not None or len(code.split()) <= 2)


def log_line(raw: str, bare: str) -> bool:
    """A log line or data in JSON."""
    return bool(_LOG.match(raw) or _JSON.fullmatch(bare) or (_LOG.match(bare) and not bare[:1].isdigit()))


def diagnostic(raw: str, bare: str) -> bool:
    """A fault report that is not meant to last."""
    found = _is_frame(raw) or _is_pure_diagnostic(bare)
    return found and not _DURABLE.search(raw)


def _is_frame(text: str) -> bool:
    framed = "(" in text or "|" in text or '"' in text or "-->" in text
    return framed and _STACK_FRAME.search(text) is not None


def _is_pure_diagnostic(text: str) -> bool:
    """A whole sentence of trouble; a lesson that only mentions it stays (the gate looks again with the full filter)."""
    if _TIMESTAMP_INSIDE.search(text):
        return True
    return mentions(text.lower(), _DIAGNOSTIC_HINTS) and _DIAGNOSTIC.search(text) is not None


def is_staged_record(snippet: str) -> bool:
    """A staged block as openclaw-algorithms 18 describes it."""
    start = re.sub(r"^(?:[-*+>#\[\]+ ]|\d+\.)+", "", snippet)[:200]
    named = re.match(r"(?:candidate|reflections?):|#*\s*reflections", start, re.IGNORECASE)
    if not named or not re.search(r"confidence: ?[01]?\.\d", snippet, re.IGNORECASE):
        return False
    staged = re.search(r"status: ?staged", snippet, re.IGNORECASE) and re.search(
        r"recalls: ?\d", snippet, re.IGNORECASE
    )
    return bool(
        re.search(r"evidence: ?memory/", snippet, re.IGNORECASE)
        and (staged or re.search(r"note: ?reflection", snippet, re.IGNORECASE))
    )


def is_diagnostic(text: str) -> bool:
    """A transient diagnostic (openclaw-algorithms 18, 3 and 4)."""
    return bool(
        _DIAGNOSTIC.search(text)
        or _STACK_FRAME.search(text)
        or _TIMESTAMP_INSIDE.search(text)
        or (_TEMP_PATH.search(text) and _TEMP_WORD.search(text))
        or (text.count("|") >= 8 and _TROUBLE.search(text))
    )


def ends_in_control_token(text: str) -> bool:
    """Return whether the text ends in a token by which an agent says that nothing is to be said."""
    return "_" in text and _CONTROL_END.search(text.rstrip()[-60:]) is not None


def is_structural_line(line: str) -> bool:
    """Return whether a line inside a paragraph is output of a tool and no prose: a log, a command, a code frame."""
    return bool(
        _LOG.match(line)
        or _STACK_FRAME.search(line)
        or _JSON.fullmatch(line)
        or _SYSTEM_LINE.match(line)
        or _SHELL_PROMPT.match(line)
        or _MODEL_TOKEN.match(line)
    )


def mentions(lowered: str, hints: tuple[str, ...]) -> bool:
    """Whether one of the literals that an expensive expression needs is there at all."""
    for hint in hints:  # noqa: SIM110 - a plain loop costs half of a generator here
        if hint in lowered:
            return True
    return False


def is_durable(text: str) -> bool:
    """Return whether the text says that it is meant to last (the carve-out of openclaw-algorithms 18)."""
    return _DURABLE.search(text) is not None


def holds_json_fence(text: str) -> bool:
    """Return whether the text holds a fenced dump of data."""
    return _CODE_FENCE.search(text) is not None


def transcript_form(text: str) -> bool:
    """Return whether the text begins like a turn of a transcript."""
    return _TRANSCRIPT.match(text) is not None


def session_field(text: str) -> bool:
    """Return whether the text begins with a field of a session header."""
    return _SESSION_FIELD.match(text) is not None


def is_record_text(snippet: str) -> bool:
    """Return whether the snippet holds a session header, a prompt of the pipeline, or a score."""
    return bool(
        _SESSION_FIELD.search(snippet)
        or _PROMPT.search(snippet)
        or _DIARY_PROMPT.search(snippet)
        or _SCORE.search(snippet)
    )
