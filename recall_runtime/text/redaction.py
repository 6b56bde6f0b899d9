"""Masking of secrets before text is stored, shown, embedded or sent to a model.

Belongs here: what a secret looks like, how it is masked.
Does not belong here: whether a text may be promoted (``recall_runtime.notes.hygiene``).

Rules: openclaw-algorithms 2.5 and 18.1, plus passwords in addresses, payment card numbers and passwords in prose.
Every expression is anchored at a literal and bounded, so the work is linear; text without any of the literals
costs one scan for each of them.
"""

import re

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
_DIGIT_RUN = re.compile(r"(?<!\w)\d[\d -]{11,22}\d(?!\w)")
_BOT_TOKEN = re.compile(r"(?<![\w-])\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])")

_PEM = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)(.*?)(-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
_JSON_FIELD = re.compile(
    r'(["\'])([A-Za-z0-9_-]{0,32}(?:api[_-]?key|token|secret|passw(?:or)?d|private[_-]?key))\1(\s{0,4}:\s{0,4})(["\'])'
    r"([^\"'\n]{1,4096})\4",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"(--(?:api-key|hook-token|access-token|auth-token|token|secret|password"
    r"|passwd)[ =]\s{0,2}[\"']?)([^\s\"']{1,4096})",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)?\s{0,3})([^\s\"',;]{1,4096})", re.I
)
_BARE_BEARER = re.compile(r"(\bbearer\s{1,3})([A-Za-z0-9._~+/=-]{18,4096})", re.IGNORECASE)
_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9_-])(?:sk-[A-Za-z0-9_-]{8,4096}|ghp_[A-Za-z0-9]{20,4096}|github_pat_[A-Za-z0-9_]{20,4096}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,4096}|xapp-[A-Za-z0-9-]{10,4096}|gsk_[A-Za-z0-9]{10,4096}|pplx-[A-Za-z0-9]{10,4096}"
    r"|npm_[A-Za-z0-9]{10,4096}|AIza[A-Za-z0-9_-]{20,4096}|(?:AKIA|ASIA)[A-Z0-9]{16})(?!\u2026)"
)
_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{4,4096}\.[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{4,4096}")
_URL_PASSWORD = re.compile(r"(://[^\s/:@\"'<>]{0,128}:)([^\s/@\"'<>]{1,256})(@)")
_NAME = (
    r"(?:api|access|secret|private|auth|client|encryption|signing|master|service|account|bot|license|ssh)[ _-]?key"
    r"|(?:access|refresh|auth|bearer|session|bot|api|id|hook)[ _-]?token|client[ _-]?secret"
    r"|passw(?:or)?d|passphrase|pwd|passwort|kennwort|contraseña|senha|mot de passe|пароль|密码|密碼|口令"
    r"|パスワード|비밀번호"
)
# A name that says enough, then `=`, `:` or a copula, then the value.
_NAMED = re.compile(
    rf"((?:{_NAME})[\"'`*_\]]{{0,4}}(?:\s{{0,3}}[:=：]\s{{0,3}}|\s{{1,3}}(?:is|ist|es|est|lautet)\s{{1,3}}|\s{{0,2}}[是为為は]\s{{0,2}})"
    r"[*]{0,2}[\"'`]?)([^\s\"'`,;，；。）)<]{1,4096})",
    re.IGNORECASE,
)
# Environment names: capitals and underscores, or a lower-case name ended by `_token` and the like, with `=`.
_ENVIRONMENT = re.compile(
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


def redact(text: str) -> str:
    """Return ``text`` with secrets masked; text without secrets is returned as it is.

    A value shorter than 18 signs becomes ``***``, a longer one keeps its first six and last four around an ellipsis
    (openclaw-algorithms 2.5). Masking twice changes nothing more.
    """
    hints = _hints_in(text, _HINTS)
    if hints:
        text = _redact_named(text, hints)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{MASK}\3", text)
    if _DIGIT_RUN.search(text):
        text = _DIGIT_RUN.sub(_mask_card, text)
    if ":AA" in text:
        text = _BOT_TOKEN.sub(lambda match: _mask(match[0]), text)
    return text


def holds_secret(text: str) -> bool:
    """Return whether :func:`redact` would mask anything."""
    return redact(text) != text


def is_masked(value: str) -> bool:
    """Return whether ``value`` is what masking leaves behind."""
    return value.startswith((MASK, "...")) or _SHORTENED in value


def _hints_in(text: str, hints: tuple[str, ...]) -> tuple[str, ...]:
    lowered = text.lower()
    return tuple([hint for hint in hints if hint in lowered])


def _redact_named(text: str, hints: tuple[str, ...]) -> str:
    """Run the expressions, which are slow, over the lines that hold a hint; a label may have its value a line below."""
    if "PRIVATE KEY-----" in text:
        text = _PEM.sub(_mask_pem, text)
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
        if part.rstrip().endswith(_OPEN_ENDS) and position < len(lines):
            part = f"{part}\n{lines[position]}"
            position += 1
        kept.append(_redact_line(part))
    return "\n".join(kept)


def _redact_line(text: str) -> str:
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
