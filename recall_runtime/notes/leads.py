"""What stands in front of a statement without being part of it: clocks, labels, emoji, echoes, corrections.

Belongs here: recognising and cutting leads, in the languages of our notes.
Does not belong here: splitting into statements (``statements``), what is refused (``hygiene``).
"""

import re

from recall_runtime.text.patterns import lazily

EMOJI = "\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf"
EMOJI += "\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299"
EMOJI += "\U0001f000-\U0001faff\ufe0f\u200d\u20e3\U000e0020-\U000e007f"
_ZONE = (
    r"(?:\s*(?:[AaPp]\.?[Mm]\.?)(?!\w))?"
    r"(?:\s+(?:UTC|GMT|CET|CEST|MEZ|MESZ|CST|EST|EDT|PST|PDT|JST|KST|MSK|[A-Z][a-z]+/[A-Z][A-Za-z_]+)"
    r"(?:[+-]\d{1,2}(?::?\d{2})?)?(?!\w))?"
)
_CLOCK = rf"\[?\(?(?:\d{{4}}-\d{{2}}-\d{{2}}[ T])?\d{{1,2}}[:：]\d{{2}}(?::\d{{2}})?{_ZONE}[)\]]?"
_CLOCK_LEAD = lazily(
    rf"(?:{_CLOCK})(?:\s*[—–:：·|]\s*|\s+-\s+|\s+(?=[A-Z\u00c0-\u00de\u0410-\u042f`\"\u2e80-\u9fff\uac00-\ud7a3])|(?<=\])\s*)(?!\d)"
)
_EMOJI_LEAD = lazily(rf"(?:[{EMOJI}]+\s*)+(?=\S)")
_SIGN_LEAD = lazily(r"(?:[-*+>]|\d{1,3}[.)])\s+|>|\[[ xX~/-]\]\s+|\[[AP]\]\s+(?=\d)")
_ECHO = lazily(
    r"\((?:recalled|from memory|aus dem gedächtnis|recordado|вспомнил|回忆|思い出し)\)\s*[:>]?\s*"
    r"|(?:from (?:my )?memory|as i recall|aus dem gedächtnis|de memoria|по памяти)[:：]\s*",
    re.IGNORECASE,
)
_GENERIC = (
    "for the record|one thing to keep|please remember|remember this|keep in mind|zur erinnerung|para que conste"
    "|запомни|记住|記住"
    "|noted|(?:the )?(?:owner|user) (?:said|says|told me|mentioned)"
    "|(?:der|die) (?:nutzer|nutzerin|besitzer) (?:sagte|sagt)"
    "|el usuario (?:dijo|dice)|l'utilisateur a dit|o usuário disse|пользователь (?:сказал|говорит)|用户说|ユーザー曰く"
    "|note|notes|done|info|fyi|log|misc|status|todo|item|fact|facts|context|summary|remark|n\\.?b\\.?"
    "|notiz|hinweis|erledigt|info|merke|anmerkung|nota|hecho|listo|aviso|feito|fait|remarque"
    "|заметка|готово|примечание|инфо|备注|备忘|完成|信息|说明|メモ|完了|備考|注記|메모|완료"
)
_LABEL_LEAD = lazily(rf"(?:\*{{0,2}}(?:{_GENERIC})(?:\*\*\s*[:：]|[:：]\*{{0,2}}))\s*(?=\S)", re.IGNORECASE)
_CORRECTION = (
    r"update[ds]?|correction|corrected|changed|change|now|new|edit|fix(?:ed)?"
    r"|korrektur|korrigiert|aktualisierung|aktualisiert|geändert|änderung|jetzt|neu|widerlegt"
    r"|actualización|actualizado|corrección|corregido|cambio|ahora|atualização|correção|agora|mise à jour|correction"
    r"|обновление|исправление|изменено|теперь|更正|更新|修正|变更|變更|现在|現在|訂正|変更|정정|수정|변경|업데이트"
)
_CORRECTION_LEAD = lazily(
    rf"(?:[{EMOJI}]+\s*)*(?:\*{{0,2}}(?:\d{{4}}-\d{{2}}-\d{{2}}\s+)?(?:{_CORRECTION})(?:\s+\d{{4}}-\d{{2}}-\d{{2}})?"
    rf"(?:\*\*\s*[:：]|[:：]\*{{0,2}}))\s*(?=\S)",
    re.IGNORECASE,
)
_MAX_ROUNDS = 12


def strip_leads(text: str) -> str:
    """Return ``text`` without clocks, emoji, list and quote signs, generic labels and echo marks in front.

    A text that is nothing but leads keeps its last one.
    """
    for _ in range(_MAX_ROUNDS):
        end = _lead_end(text)
        if not end or not text[end:].strip():
            break
        text = text[end:].lstrip()
    return text.strip()


def is_echo(text: str) -> bool:
    """Return whether a lead says that the text was recalled, not observed."""
    for _ in range(_MAX_ROUNDS):
        if _ECHO.match(text):
            return True
        end = _lead_end(text)
        if not end:
            return False
        text = text[end:].lstrip()
    return False


def correction_lead_end(text: str) -> int:
    """Return where a lead such as "Update:" or "**Korrektur 2026-03-14:**" ends, 0 without one."""
    if ":" not in text[:60] and "：" not in text[:60]:
        return 0
    match = _CORRECTION_LEAD.match(text)
    return match.end() if match else 0


def correction_lead(text: str) -> bool:
    """Return whether ``text`` says of itself that it corrects something earlier."""
    return correction_lead_end(strip_leads(text)) > 0


def _lead_end(text: str) -> int:
    if text[:1].isalpha() and ":" not in text[:60] and "：" not in text[:60]:
        return 0
    for lead in (_SIGN_LEAD, _ECHO, _CLOCK_LEAD, _LABEL_LEAD, _EMOJI_LEAD):
        match = lead.match(text)
        if match and match.end():
            return match.end()
    return 0
