"""From an owner's words to a directive: what is said once only, what refers to an earlier one, the imperative form.

Belongs here: reading one request against the directives that stand.
Does not belong here: who may ask (the callers check the origin first), changing the file (``user_model.update``).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from recall_runtime.notes.directives import directive_of
from recall_runtime.user_model.contract import Directive
from recall_runtime.user_model.matter import matter_of, same_matter, value_class_of, values_in


@lru_cache(maxsize=8)
def _wording(section: str) -> re.Pattern[str]:
    """Return the compiled wordings of one section of ``request_words.txt``.

    ONE_OFF binds a wish to one occasion, FRAMES opens a change of mind, SELF speaks of oneself, POLITE is left out,
    BARE_VERB opens an imperative without always or never.
    """
    text = Path(__file__).with_name("request_words.txt").read_text(encoding="utf-8")
    lines = [line for line in text.split(f"[{section}]\n", 1)[1].split("\n[", 1)[0].splitlines() if line]
    return re.compile("|".join(f"(?:{line})" for line in lines if not line.startswith("# ")), re.IGNORECASE)


def is_one_off(text: str) -> bool:
    """Return whether ``text`` binds its wish to one occasion ("for this one trip", "nur heute")."""
    return _wording("ONE_OFF").search(text.replace("’", "'")) is not None


def directive_from(text: str, found: Sequence[Directive]) -> str | None:
    """Return the directive an owner's ``text`` asks for, in imperative form, or ``None`` when it asks for none.

    A wish for one occasion asks for none. Words that only name a value ("actually euro again") are read against the
    active directive of that class of values: an earlier directive of the same matter with that value is taken up
    again word for word, else the value is put in its place. When that isn't clear the answer is ``None``.
    """
    if is_one_off(text):
        return None
    body = _wording("FRAMES").sub("", " ".join(text.split()))
    refers = _referring(body, found)
    if refers is not None:
        return refers
    lasting = directive_of(body, is_message=True, project_key=None)
    body = _wording("POLITE").sub("", lasting or body).strip()
    wish = _wording("SELF").match(body)
    if wish:
        return _sentence(f"Prefer {body[wish.end() :]}")
    if lasting or _wording("BARE_VERB").match(body):
        return _sentence(body)
    if any(directive.is_active and same_matter(directive.text, body) for directive in found):
        return _sentence(f"Prefer {body[:1].lower()}{body[1:]}")
    return None


def _referring(body: str, found: Sequence[Directive]) -> str | None:
    """Resolve words that name nothing but a value, such as "euro again"."""
    classes = value_class_of(body)
    if len(classes) != 1 or matter_of(body) != classes:
        return None
    active = [directive for directive in found if directive.is_active and classes <= directive.matter]
    if len(active) != 1:
        return None
    current = active[0]
    wanted = {word.casefold() for word in values_in(body)}
    for earlier in reversed(found):
        values = {word.casefold() for word in values_in(earlier.text)}
        if not earlier.is_active and same_matter(earlier.text, current.text) and values and values <= wanted:
            return earlier.text
    replaced = values_in(current.text)
    if len(replaced) != 1:
        return None
    return current.text.replace(replaced[0], values_in(body)[0])


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "。", "！")) else ".")
