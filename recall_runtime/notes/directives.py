"""Directives: sentences that tell the agent how to act from now on.

Belongs here: recognising them by their form and giving them the imperative form ``USER.md`` wants.
Does not belong here: whether the speaker may give directives (``provenance``), which matter one is about
(``user_model``).

A polite wish that leaves its verb out ("Prices in dollars, please.") is one as well, in a speaker's own words.
Conservative: an imperative about a thing of a project ("Never migrate x in one go; use batch 39057") is a fact.
"""

import re

from recall_runtime.notes.identity import value_tokens
from recall_runtime.notes.leads import correction_lead_end
from recall_runtime.text.patterns import lazily

_IMPERATIVES = (
    r"always|never|prefer|do not|don't|avoid|stop|immer|nie|niemals|bevorzuge|vermeide|siempre|nunca|prefiere"
    r"|evita|no uses"
    r"|toujours|jamais|préfère|évite|sempre|prefira|evite|всегда|никогда|предпочитай|избегай"
)
_CJK_IMPERATIVES = "总是|始终|永远不要|永远|一律|不要|请勿|优先|務必|务必|總是|必ず|決して|常に|いつも|항상|절대"
_IMPERATIVE = lazily(rf"(?:{_IMPERATIVES})(?!\w)|(?:{_CJK_IMPERATIVES})", re.IGNORECASE)
_ATTRIBUTED = lazily(
    r"\w{1,40}(?: \w{1,40})? (?:asked|asks|said|says|wants|wishes|requested|told (?:me|us)|insists|bat|sagte"
    r"|möchte|pidió|dijo|pediu|disse"
    r"|a demandé|a dit|попросил[аи]?|просит|сказал[аи]?)(?: (?:me|us|that|to|mich))?[:：]\s+|\w{1,20}(?:要求|说"
    r"|請求|は言った)[:：]\s*",
    re.IGNORECASE,
)
_LASTING = lazily(
    r"(?:from now on|from today(?: on)?|in (?:the )?future|going forward|henceforth|ab jetzt|ab sofort|von nun an"
    r"|ab heute|künftig"
    r"|a partir de (?:ahora|hoy|agora|hoje)|de ahora en adelante|de agora em diante|désormais"
    r"|à partir de maintenant|с этого момента|отныне|впредь)"
    r"[,:]?\s+|(?:从现在起|从今以后|今后|以后请|これからは|今後は|앞으로는?)[，,、]?\s*",
    re.IGNORECASE,
)
_LASTING_INSIDE = lazily(
    r"\b(?:from now on|from today on|ab jetzt|ab sofort|von nun an|künftig|a partir de ahora|desde ahora"
    r"|de agora em diante|впредь|отныне)\b",
    re.IGNORECASE,
)
_POLITE = lazily(r"(?:please|bitte|por favor|пожалуйста|s'il te plaît|请|請|どうか)[,]?\s*", re.IGNORECASE)
_POLITE_END = lazily(r"[,\s]+(?:please|bitte|por favor|пожалуйста)(?=[.!]?$)", re.IGNORECASE)
_ASKING = lazily(
    r"(?:could|can|would|will|shall|should) (?:you|we|i)\b|(?:kannst|könntest) du\b|let me know\b|i (?:was|am"
    r"|have|had|think)\b",
    re.IGNORECASE,
)
# "Prices in dollars, please": a wish without its verb, such as stands before each form here.
_FEW_WORDS = r"(?!(?:the|my|your|this|that)\b)\w[\w-]*(?: [\w-]+)?"
_VERBLESS = (
    (
        "Prefer",
        lazily(rf"(?:(?:the|all|my|your) )?(?:\w+ )?\w+s (?:in|as|with|without) {_FEW_WORDS}", re.IGNORECASE),
    ),
    ("Bevorzuge", lazily(r"[A-ZÄÖÜ]\w+ (?:in|auf|als|ohne|mit) [A-ZÄÖÜ]\w+")),
    ("Prefiere", lazily(rf"\w+s en {_FEW_WORDS}", re.IGNORECASE)),
    ("Prefira", lazily(rf"\w+s em {_FEW_WORDS}", re.IGNORECASE)),
    ("Предпочитай", lazily(rf"\w+[ыи] (?:в|на|без) {_FEW_WORDS}", re.IGNORECASE)),
)
_LONG_NUMBER = lazily(r"\d{4,}")


def directive_of(text: str, *, is_message: bool, project_key: str | None) -> str | None:
    """Return the directive that ``text`` states, in imperative form, or ``None`` when it states none.

    Args:
        text: one sentence without leads.
        is_message: whether the sentence is a speaker's own words, so that a wish may be a directive.
        project_key: scope of the entry; a scoped imperative is a fact of the project.
    """
    body = text[correction_lead_end(text) :]
    attributed = _ATTRIBUTED.match(body)
    if attributed:
        rest = body[attributed.end() :]
        wish = _wish(rest, is_message=True)
        return _sentence_case(wish) if wish else None
    if project_key:
        return None
    wish = _wish(body, is_message=is_message)
    return _sentence_case(wish) if wish and not _is_about_a_thing(wish) else None


def _wish(text: str, *, is_message: bool) -> str | None:
    plain, lasting = text, False
    for _ in range(3):
        before = plain
        lead = _LASTING.match(plain)
        if lead:
            plain, lasting = plain[lead.end() :], True
        plain = _POLITE.sub("", plain, count=1) if _POLITE.match(plain) else plain
        if plain == before:
            break
    polite = _POLITE_END.search(plain) is not None
    plain = _POLITE_END.sub("", plain)
    if _IMPERATIVE.match(plain):
        return plain
    if is_message and polite and (unsaid := _unsaid_verb(plain)):
        noun = plain if unsaid == "Bevorzuge" else plain[:1].lower() + plain[1:]
        return f"{unsaid} {noun}"
    if is_message and (lasting or _LASTING_INSIDE.search(plain)) and not _ASKING.match(plain):
        return plain
    return None


def _unsaid_verb(text: str) -> str | None:
    """Return the imperative that a polite wish without a verb leaves out, or ``None`` when it is no such wish."""
    bare = text.rstrip(".!")
    return next((verb for verb, form in _VERBLESS if form.fullmatch(bare)), None)


def _is_about_a_thing(text: str) -> bool:
    """Whether the text names something specific: a number of four digits, a path, an address, an identifier."""
    return any(
        _LONG_NUMBER.search(token) or "/" in token or "_" in token or "://" in token or token.startswith("--")
        for token in value_tokens(text)
    )


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]
