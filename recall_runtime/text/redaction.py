"""Masking of secrets before text is stored, shown, embedded or sent to a model.

Belongs here: what a secret looks like, how it is masked.
Does not belong here: whether a text may be promoted (``recall_runtime.notes.hygiene``).

Rules: openclaw-algorithms 2.5 and 18.1, plus passwords in addresses, payment card numbers and passwords in prose.
Every expression is anchored at a literal and bounded, so the work is linear; text without any of the literals
costs one scan for each of them.
"""

import re

from recall_runtime.text.patterns import lazily
from recall_runtime.text.word_sets import word_set

MASK = "***"
_SHORTENED = "\u2026"
_PLAIN_BELOW = 18

_HINTS = (
    *(
        "key",
        "token",
        "secret",
        "passw",
        "bearer",
        "sk-",
        "ghp_",
        "github_pat_",
        "xox",
        "xapp-",
        "gsk_",
        "pplx-",
        "npm_",
    ),
    *("aiza", "akia", "eyj", "passphrase", "pwd", "passwort", "kennwort", "contraseña", "senha", "mot de passe"),
    *("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호", "authorization"),
)
_OPEN_ENDS = (":", "=", "：", "is", "ist")
_DIGIT_RUN = lazily(r"(?<!\w)\d[\d -]{11,22}\d(?!\w)")
_BOT_TOKEN = lazily(r"(?<![\w-])\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])")

_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----"
_END = r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----"
KEY_START, KEY_END = lazily(_BEGIN), lazily(_END)
_PEM = lazily(rf"({_BEGIN})(.*?)({_END}|\Z)", re.DOTALL)
_KEY_MARK = lazily(rf"({_BEGIN}|{_END})")
_KEY_IN_LINE = lazily(rf"({_BEGIN})(.*?)(?={_BEGIN}|{_END}|$)")
_KEY_BODY = lazily(
    r"[ \t>|*-]{0,12}(?:[A-Za-z0-9+/=\\]{1,8192}|(?:Proc-Type|DEK-Info|Comment|Version):.{0,200})?[ \t\r]*"
)
_BEGINS_BLOCK = lazily(r"\s*(?:[-*+>|] |#{1,6} |<!--|```|~~~|[0-9]{1,9}[.)] )")  # its mark is no value
_JSON_FIELD = lazily(
    r'(["\'])([A-Za-z0-9_-]{0,32}(?:api[_-]?key|token|secret|passw(?:or)?d|private[_-]?key))\1(\s{0,4}:\s{0,4})(["\'])'
    r"([^\"'\n]{1,4096})\4",
    re.IGNORECASE,
)
_FLAG = lazily(
    r"(--(?:api-key|hook-token|access-token|auth-token|token|secret|password"
    r"|passwd)[ =]\s{0,2}[\"']?)([^\s\"']{1,4096})",
    re.IGNORECASE,
)
_BEARER = lazily(
    r"(authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)?\s{0,3})([^\s\"',;]{1,4096})", re.I
)
_BARE_BEARER = lazily(r"(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{18,4096})", re.IGNORECASE)
_PREFIXED = lazily(
    r"(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{8,4096}|ghp_[A-Za-z0-9]{20,4096}|github_pat_[A-Za-z0-9_]{20,4096}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,4096}|xapp-[A-Za-z0-9-]{10,4096}|gsk_[A-Za-z0-9]{10,4096}|pplx-[A-Za-z0-9]{10,4096}"
    r"|npm_[A-Za-z0-9]{10,4096}|AIza[A-Za-z0-9_-]{20,4096}|(?:AKIA|ASIA)[A-Z0-9]{16})(?!\u2026)"
)
_JWT = lazily(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{4,4096}\.[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{4,4096}")
_URL_PASSWORD = lazily(r"(://[^\s/:@\"'<>]{0,128}:)([^\s/@\"'<>]{1,256})(@)")
_NAME = (
    r"(?:api|access|secret|private|auth|client|encryption|signing|master|service|account|bot|license|ssh)[ _-]?key"
    r"|(?:access|refresh|auth|bearer|session|bot|api|id|hook)[ _-]?token|client[ _-]?secret"
    r"|passw(?:or)?d|passphrase|pwd|passwort|kennwort|contraseña|senha|mot de passe|пароль|密码|密碼|口令"
    r"|パスワード|비밀번호"
)
# A name that says enough, then `=`, `:` or a copula, then the value.
_NAMED = lazily(
    rf"((?:{_NAME})[\"'`*_\]]{{0,4}}(?:\s{{0,3}}[:=：]\s{{0,3}}|\s{{1,3}}(?:is|ist|es|est|lautet)\s{{1,3}}|\s{{0,2}}[是为為は]\s{{0,2}})"
    r"[*]{0,2}[\"'`]?)([^\s\"'`,;，；。）)<]{1,4096})",
    re.IGNORECASE,
)
# Environment names: capitals and underscores, or a lower-case name ended by `_token` and the like, with `=`.
_ENVIRONMENT = lazily(
    r"((?<![A-Za-z0-9_])(?:[A-Z0-9]{1,24}_){0,6}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)[\"']?\s{0,2}[=:]\s{0,2}[\"']?"
    r"|_(?:key|token|secret)[\"']?\s{0,2}=\s{0,2}[\"']?|\b(?:token|secret)=[\"']?)([^\s\"'`,;]{4,4096})"
)
# Words that stand where a value would and are none.
_NO_VALUES = word_set(
    """a an and are as ask at be been by changed changes expired for from gone has here in invalid is it its
    kept known lost missing must needed never no none not null of on or protected required reset revoked
    rotated rotation safe saved see set should shown stays stored the there they this to too true false
    unknown unset unchanged used was weak where with wrong you your abgelaufen bei falsch geändert im ist
    nicht siehe auf das der die en está guardada см в не у file vault manager string str undefined yes"""
)


def redact(text: str, *, keep_lines: bool = False) -> str:
    """Return ``text`` with secrets masked; text without secrets is returned as it is.

    A value shorter than 18 signs becomes ``***``, a longer one keeps its first six and last four around an ellipsis
    (openclaw-algorithms 2.5). Masking twice changes nothing more.

    Args:
        text: One statement, message or block; with ``keep_lines`` a whole file.
        keep_lines: Keep the number of lines: each line of a private key is masked by itself. A key that never ends
            reaches as far as lines look like one, so that whoever names its first line hides no file.
    """
    hints = _hints_in(text, _HINTS)
    if hints:
        text = _redact_named(text, hints, keep_lines)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{MASK}\3", text)
    if _DIGIT_RUN.search(text):
        text = _DIGIT_RUN.sub(_mask_card, text)
    if ":AA" in text:
        text = _BOT_TOKEN.sub(lambda match: _mask(match[0]), text)
    return text


def redact_file(data: bytes) -> bytes:
    """Return the bytes of a whole file with secrets masked, line by line (``keep_lines``); what is no text stays."""
    text = data.decode("utf-8", "surrogateescape")
    masked = redact(text, keep_lines=True)
    return data if masked == text else masked.encode("utf-8", "surrogateescape")


def is_masked(value: str) -> bool:
    """Return whether ``value`` is what masking leaves behind."""
    return value.startswith((MASK, "...")) or _SHORTENED in value


def _hints_in(text: str, hints: tuple[str, ...]) -> tuple[str, ...]:
    lowered = text.lower()
    return tuple([hint for hint in hints if hint in lowered])


def _redact_named(text: str, hints: tuple[str, ...], keep_lines: bool) -> str:
    """Run the expressions, which are slow, over the lines that hold a hint; a label may have its value a line below."""
    if "PRIVATE KEY-----" in text:
        text = _mask_keys_by_line(text) if keep_lines else _PEM.sub(_mask_pem, text)
    if "\n" not in text:
        return _redact_line(text)
    lines = text.split("\n")
    kept: list[str] = []
    position = 0
    while position < len(lines):
        part = lines[position]
        position += 1
        if not _hints_in(part, hints):
            kept.append(part)
            continue
        open_end = part.rstrip().endswith(_OPEN_ENDS) and position < len(lines)
        if open_end and not (keep_lines and _BEGINS_BLOCK.match(lines[position])):
            part = f"{part}\n{lines[position]}"
            position += 1
        kept.append(_redact_line(part))
    return "\n".join(kept)


def _redact_line(text: str) -> str:
    if "PRIVATE KEY-----" not in text:
        return _redact_words(text)
    # The marks of a key end any value beside them, and they stay: the key is found by them again.
    return "".join(part if place % 2 else _redact_words(part) for place, part in enumerate(_KEY_MARK.split(text)))


def _redact_words(text: str) -> str:
    text = _JSON_FIELD.sub(_mask_json, text)
    for rule in (_FLAG, _BEARER, _BARE_BEARER, _NAMED, _ENVIRONMENT):
        text = rule.sub(_mask_value, text)
    text = _JWT.sub(lambda match: _mask(match[0]), text)
    return _PREFIXED.sub(lambda match: _mask(match[0]), text)


def _mask(value: str) -> str:
    if is_masked(value):
        return value
    return MASK if len(value) < _PLAIN_BELOW else f"{value[:6]}{_SHORTENED}{value[-4:]}"


def _mask_value(match: re.Match[str]) -> str:
    value = match[2]
    bare = value.rstrip(".!?:*")
    if not bare or bare.lower() in _NO_VALUES or is_masked(bare):
        return match[0]
    return match[1] + _mask(bare) + value[len(bare) :]


def _mask_json(match: re.Match[str]) -> str:
    if is_masked(match[5]):
        return match[0]
    # The name goes as well: a pasted credential object says nothing worth finding.
    return f"{match[1]}{MASK}{match[1]}{match[3]}{match[4]}{_mask(match[5])}{match[4]}"


def _mask_pem(match: re.Match[str]) -> str:
    end = match[3] or ""
    return f"{match[1]}\n{_SHORTENED}\n{end}" if match[2].strip() != _SHORTENED else match[0]


def _mask_keys_by_line(text: str) -> str:
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if "-----BEGIN" in lines[at] and KEY_START.search(lines[at]):
            lines[at] = _KEY_IN_LINE.sub(lambda match: match[1] + _hidden(match[2]), lines[at])
            *_, start = KEY_START.finditer(lines[at])
            if not KEY_END.search(lines[at], start.end()):
                at = _mask_key_below(lines, at + 1)
                continue
        at += 1
    return "\n".join(lines)


def _mask_key_below(lines: list[str], first: int) -> int:
    """Mask the lines of a key that began above ``first``; return the position to go on at."""
    at = first
    while at < len(lines):
        start, end = KEY_START.search(lines[at]), KEY_END.search(lines[at])
        if end is not None and (start is None or end.start() < start.start()):
            lines[first:at] = map(_hidden, lines[first:at])
            lines[at] = _hidden(lines[at][: end.start()]) + lines[at][end.start() :]
            return at
        if start is not None:
            break
        at += 1
    at = first
    while at < len(lines) and _KEY_BODY.fullmatch(lines[at]):
        lines[at] = _hidden(lines[at])
        at += 1
    if at < len(lines) and (start := KEY_START.search(lines[at])):
        body, rest = lines[at][: start.start()], lines[at][start.start() :]
        if _KEY_BODY.fullmatch(body):
            lines[at] = _hidden(body) + rest
    return at


def _hidden(part: str) -> str:
    return _SHORTENED if part.strip() else part


def _mask_card(match: re.Match[str]) -> str:
    digits = [int(sign) for sign in match[0] if sign.isdigit()]
    return MASK if _is_card(match[0], digits) else match[0]


def _is_card(run: str, digits: list[int]) -> bool:
    """Card lengths and leading digits of the large brands, and the Luhn check sum; plain instants are no cards."""
    long_brand = len(digits) == 16 and (digits[0] in (2, 4, 5) or digits[:2] in ([3, 5], [6, 0], [6, 5]))
    if not long_brand and not (len(digits) == 15 and digits[:2] in ([3, 4], [3, 7])):
        return False
    if "  " in run or "--" in run:
        return False
    total = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return total % 10 == 0
