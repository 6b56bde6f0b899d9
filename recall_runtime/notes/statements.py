"""Blocks and messages as statements: one sentence-sized claim each, or the reason why it is none.

Belongs here: splitting, what stays together, struck text, table rows, directives.
Does not belong here: the refusals themselves (``hygiene``), identity (``identity``), trust (``provenance``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recall_runtime.notes import hygiene
from recall_runtime.notes.annotations import code_spans, strip_annotations
from recall_runtime.notes.blocks import Block, BlockKind, split_cells
from recall_runtime.notes.conditions import opens_with_condition, split_marks
from recall_runtime.notes.directives import directive_of
from recall_runtime.notes.identity import claim_id
from recall_runtime.notes.leads import EMOJI, correction_lead, strip_leads
from recall_runtime.records import Annotations, Statement
from recall_runtime.text.redaction import redact
from recall_runtime.vocabulary import Refusal, StatementKind

_BREAK = re.compile(r"[.!?…]+[\"'”’»)\]*_`]*(?=\s)|[。！？]+[\"'”’」』）)*_`]*|\n")
_OPENING = {"(": ")", "（": "）", "「": "」", "『": "』", "“": "”", "„": "“", "«": "»", "[": "]"}
_NESTING = re.compile('[(（「『“„«\\["]')
_MAX_NESTED = 600
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[„\"'])(?:e\.g|i\.e|etc|vs|cf|approx|ca|dr|mr|mrs|prof|incl|resp|est"
    r"|z\.\s?b|d\.\s?h|bzw|usw|inkl|evtl|ggf|vgl|sog|u\.\s?a"
    r"|aprox|sra?|dña|p\.\s?ej|т\.\s?е|т\.\s?д|т\.\s?п|ул|им|г|[A-ZА-Я])\.$",
    re.IGNORECASE,
)
_BEFORE_NUMBER = re.compile(
    r"(?:^|[\s(\[])(?:ext|no|nr|fig|vol|pp?|ch|sec|tel|abt|str|art|s|st|pág|núm|стр|тел|доб|д|каб)\.$", re.IGNORECASE
)
_MONTH = re.compile(
    r"\s*(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jan\.|Feb\.|Quartal|Stock)\b"
)
_ORDINAL = re.compile(r"(?:^|\s)\d{1,2}\.$")
_EXCEPTION_LEAD = re.compile(
    r"\*{0,2}(?:(?:except(?:ion|ions)?|unless|until then|otherwise|after that|before that|in that case|ausnahmen?|außer"
    r"|sonst|danach|bis dahin|excepto|excepción|salvo|de lo contrario|исключение|кроме|иначе|после этого)\b"
    r"|除非|例外|否则|之后|除此|ただし|それ以外)",
    re.IGNORECASE,
)
_REFERS_BACK = re.compile(
    r"\b(?:before|until|after|on|bis|vor) (?:that day|that date|then|diesem tag|dahin)\b"
    r"|\b(?:the|this|that) exception\b",
    re.IGNORECASE,
)
_RULE_LIKE = re.compile(
    r"\b(?:rule|regel|regla|always|never|must|use|only|do not|don't|immer|nie|muss|nur|siempre|nunca|debe|правило"
    r"|всегда|никогда)\b|规则|必须|規則",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"\*{0,2}(?:falsch|wrong|false|incorrect|not true|untrue|stimmt nicht|falso|incorrecto|неверно|неправда|错误"
    r"|錯誤|不对|不對|誤り)[.!。！]?\*{0,2}[.!。！]?",
    re.IGNORECASE,
)
_TILDES = re.compile(r"(?<!~)~~(?!~)")
_IN_PARENTHESES = re.compile(r"[(（][^()（）]{1,80}[)）][.。]?")
_HISTORY = re.compile(
    r"(?:change ?log|history|change history|revision history|verlauf|änderungsverlauf|historial|histórico"
    r"|история(?: изменений)?"
    r"|更新(?:记录|日志|歷史|履歴)|变更记录|変更履歴)\b.*",
    re.IGNORECASE,
)
_DATED_ITEM = re.compile(r"\*{0,2}\d{4}-\d{2}-\d{2}\*{0,2}\s*[:：—–-]")
_STATUS_CELL = re.compile(
    rf"[\s{EMOJI}✓✗✔✘×—–-]*(?:\*{{0,2}}(?:ok|done|open|yes|no|todo|n/?a|pending|closed|fixed|wip|in progress"
    rf"|active|offen|fertig|erledigt|"
    rf"ja|nein|listo|abierto|hecho|готово|открыто|да|нет|完成|已完成|进行中|待办|打开|是|否|完了|未完了|対応中)\*{{0,2}})?[\s{EMOJI}.]*",
    re.IGNORECASE,
)
_CLOCK_CELL = re.compile(r"(?:\d{4}-\d{2}-\d{2}[ T]?)?(?:\d{1,2}:\d{2}(?::\d{2})?)?(?: ?UTC)?")
_LABEL_PARENT = re.compile(r"[^.!?。！？]{2,80}")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a block: its text and the offset where it begins."""

    text: str
    start: int
    refusal: Refusal | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def statements_of(
    text: str,
    *,
    block: BlockKind | None,
    start_line: int,
    end_line: int,
    heading_path: tuple[str, ...] = (),
    ancestors: tuple[str, ...] = (),
    annotations: Annotations = Annotations(),  # noqa: B008 - frozen
) -> tuple[Statement, ...]:
    """Return the statements of one block, in order. Never raises; linear in ``len(text)``.

    Args:
        text: text of the block as ``Block.text`` has it, or of a message.
        block: kind of the block; ``None`` for a message.
        start_line: first source line of the text.
        end_line: last source line.
        heading_path: titles above, passed on.
        ancestors: texts of the list items around the block; a label among them is put before the statement.
        annotations: passed on to every statement.
    """
    text, marks = split_marks(text)  # what limits a line limits each of its statements
    pieces = _row_pieces(text) if block is BlockKind.TABLE_ROW else _pieces(text)
    single = start_line == end_line
    pieces = pieces or [_Piece(text.strip(), 0, None if text.strip() else Refusal.EMPTY)]
    whole = hygiene.whole_refusal(text)
    pieces = (
        [_Piece(text.strip(), 0)] if whole in (Refusal.SHELL_LINE, Refusal.LOG_LINE, Refusal.OWN_RECORD) else pieces
    )
    found: list[Statement] = []
    line = start_line
    seen = 0
    for piece in pieces:
        line += text.count("\n", seen, piece.start)
        seen = piece.start
        last = line if single else min(end_line, line + piece.text.rstrip("\n").count("\n"))
        refusal = whole or piece.refusal or _history(heading_path, piece.text)
        found.append(
            _statement(
                piece.text + marks, refusal, min(line, end_line), last, heading_path, ancestors, annotations, block
            )
        )
    return tuple(found)


def statements_of_block(block: Block) -> tuple[Statement, ...]:
    """Return the statements of a block of a note, its secrets masked: what staging stores and rehydration finds."""
    return statements_of(
        redact(block.text),
        block=block.kind,
        start_line=block.start_line,
        end_line=block.end_line,
        heading_path=block.heading_path,
        ancestors=block.ancestors,
        annotations=block.annotations,
    )


def struck_spans(text: str) -> tuple[str, ...]:
    """Return the struck parts of ``text`` (``~~dead~~``), outside code spans."""
    return tuple(text[start + 2 : end - 2] for start, end in _struck(text))


def without_struck(text: str) -> str:
    """Return ``text`` without its struck parts."""
    kept: list[str] = []
    position = 0
    for start, end in _struck(text):
        kept.append(text[position:start])
        position = end
    return re.sub(r" {2,}", " ", "".join([*kept, text[position:]])).strip()


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of ``text``; see the module for what stays together."""
    return tuple(text[start:end].strip() for start, end in _sentences(text) if text[start:end].strip())


# -- one statement -----------------------------------------------------------------------------------------------


def _statement(
    raw: str,
    refusal: Refusal | None,
    start_line: int,
    end_line: int,
    heading_path: tuple[str, ...],
    ancestors: tuple[str, ...],
    annotations: Annotations,
    block: BlockKind | None,
) -> Statement:
    flat = " ".join(raw.split())
    refusal = refusal or hygiene.refusal_of(flat, transcript_form_allowed=block is None)
    text = strip_leads(flat) or flat
    kind = StatementKind.FACT
    if refusal is None:
        directive = directive_of(text, is_message=block is None, project_key=annotations.project_key)
        if directive:
            text, kind = directive, StatementKind.DIRECTIVE
        else:
            text = _with_parent(text, ancestors)
    return Statement(
        text=text,
        claim_id=claim_id(text),
        start_line=start_line,
        end_line=end_line,
        kind=kind,
        heading_path=heading_path,
        annotations=annotations,
        refusal=refusal,
    )


def _history(heading_path: Sequence[str], text: str) -> Refusal | None:
    """A dated item under a heading such as "Changelog" tells of a change and states no fact."""
    if heading_path and _HISTORY.fullmatch(heading_path[-1].strip()) and _DATED_ITEM.match(text.strip()):
        return Refusal.ROUTINE
    return None


def _with_parent(text: str, ancestors: Sequence[str]) -> str:
    """Put the labels among the list items around a child before it, so that it never loses its parent's words."""
    labels: list[str] = []
    for ancestor in ancestors:
        label = strip_leads(ancestor.split("\n")[0]).strip("*_ :：")
        if label and len(label.split()) <= 8 and _LABEL_PARENT.fullmatch(label) and _is_label(ancestor):
            labels.append(label)
    return ": ".join([*labels, text]) if labels else text


def _is_label(ancestor: str) -> bool:
    refusal = hygiene.refusal_of(ancestor)
    if refusal is Refusal.LABEL_ONLY:
        return True
    plain = refusal in (None, Refusal.FRAGMENT) and not any(sign.isdigit() for sign in ancestor)
    return plain and not ancestor.rstrip().endswith((".", "!", "?", "。", "！", "？"))


# -- table rows --------------------------------------------------------------------------------------------------


def _row_pieces(row: str) -> list[_Piece]:
    """The fact-bearing cells of a row: status, sign and clock cells are dropped; a key keeps its value."""
    cells = [cell for cell in split_cells(row) if cell]
    telling = [cell for cell in cells if not _STATUS_CELL.fullmatch(cell) and not _CLOCK_CELL.fullmatch(cell)]
    if not telling:
        return [_Piece(" | ".join(cells), 0, Refusal.FRAGMENT)] if cells else [_Piece("", 0, Refusal.EMPTY)]
    if len(telling) == 1:
        return [replace(piece, start=0) for piece in _pieces(telling[0])]
    head, *rest = telling
    return [_Piece(f"{head.rstrip(':： ')}: {'; '.join(rest)}", 0)]


# -- prose -------------------------------------------------------------------------------------------------------


def _pieces(text: str) -> list[_Piece]:
    """The pieces of a block in order: struck parts apart, sentences, with what must stay together joined."""
    pieces: list[_Piece] = []
    position = 0
    for start, end in _struck(text):
        pieces.extend(_prose(text, position, start))
        pieces.append(_Piece(text[start + 2 : end - 2], start, Refusal.STRUCK))
        position = end
    if position and _is_remark(text, position):
        pieces.append(_Piece(text[position:].strip(), position, Refusal.STRUCK))
    else:
        pieces.extend(_prose(text, position, len(text)))
    return pieces


def _is_remark(text: str, position: int) -> bool:
    """Return whether what follows struck text only says that it is done with ("~~call Bo~~ not needed")."""
    rest = text[position:].strip()
    if not text.lstrip().startswith("~~") or any(sign.isdigit() or sign in ".:!?。！？：" for sign in rest):
        return False
    unspaced = any(sign >= "\u2e80" for sign in rest)
    return bool(rest) and (len(rest) <= 6 if unspaced else len(rest.split()) <= 2)


def _prose(text: str, start: int, end: int) -> Iterator[_Piece]:
    part = text[start:end]
    if not part.strip(f" \n\t.,;:*_{chr(0xFE0F)}⚠✅❌"):
        return
    sentences = [(begin, stop) for begin, stop in _sentences(part) if part[begin:stop].strip()]
    for begin, stop, refuted in _joined(part, sentences):
        body = part[begin:stop]
        lead = len(body) - len(body.lstrip())
        yield _Piece(body.strip(), start + begin + lead, Refusal.STRUCK if refuted else None)


def _joined(text: str, sentences: Sequence[tuple[int, int]]) -> list[tuple[int, int, bool]]:
    """Join exceptions to their rule; mark a sentence that the next one calls wrong."""
    groups: list[tuple[int, int, bool]] = []
    for begin, stop in sentences:
        sentence = text[begin:stop].strip()
        if groups and _REFUTED.fullmatch(sentence):
            first, _, _ = groups[-1]
            groups[-1] = (first, stop, True)
        elif groups and _IN_PARENTHESES.fullmatch(sentence):
            groups[-1] = (groups[-1][0], stop, groups[-1][2])
        elif groups and _belongs_to_rule(strip_leads(sentence)[:400]):
            first = _rule_start(text, groups)
            groups[first:] = [(groups[first][0], stop, groups[first][2])]
        else:
            groups.append((begin, stop, False))
    return groups


def _belongs_to_rule(sentence: str) -> bool:
    if opens_with_condition(sentence):
        return True
    return _EXCEPTION_LEAD.match(sentence) is not None or _REFERS_BACK.search(sentence) is not None


def _rule_start(text: str, groups: Sequence[tuple[int, int, bool]]) -> int:
    """Return the group whose rule an exception belongs to: the nearest of the last three, else the last."""
    for position in range(len(groups) - 1, max(-1, len(groups) - 4), -1):
        begin, stop, _ = groups[position]
        if _RULE_LIKE.search(text[begin:stop]):
            return position
    return len(groups) - 1


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence. Nothing is split inside code, quotes, parentheses, numbers or addresses."""
    covered = _covered(text)
    position = 0
    cover = 0
    for match in _BREAK.finditer(text):
        at = match.start()
        while cover < len(covered) and covered[cover][1] <= at:
            cover += 1
        if cover < len(covered) and covered[cover][0] <= at:
            continue
        if match[0] == "\n":
            if not _breaks_line(text, position, match):
                continue
        elif match[0].startswith(".") and not _is_end(text, position, match):
            continue
        yield position, match.end()
        position = match.end()
    if position < len(text):
        yield position, len(text)


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    before = text[max(start, match.start() - 12) : match.start() + 1]
    if match[0] == "." and _ABBREVIATION.search(before):
        return False
    if match[0] == "." and _BEFORE_NUMBER.search(before) and text[match.end() : match.end() + 3].lstrip()[:1].isdigit():
        return False
    return not (_ORDINAL.search(before) and _MONTH.match(text, match.end()))


def _breaks_line(text: str, start: int, match: re.Match[str]) -> bool:
    """A line feed inside a block is a blank, unless a line of another nature begins or ends there."""
    line_start = text.rfind("\n", start, match.start()) + 1 or start
    line = text[line_start : match.start()].strip()
    following = text[match.end() : match.end() + 200].split("\n", 1)[0].strip()
    return hygiene.is_structural_line(line) or hygiene.is_structural_line(following)


def _covered(text: str) -> list[tuple[int, int]]:
    """Return the spans in which nothing ends a sentence: code, quotations, parentheses; sorted, not overlapping."""
    spans = code_spans(text)
    nested = _nested(text)
    merged: list[tuple[int, int]] = []
    for start, end in sorted([*spans, *nested]):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _nested(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    if not _NESTING.search(text):
        return spans
    closer, opened = "", -1
    for position, sign in enumerate(text):
        if closer:
            if sign == closer or (closer == "“" and sign in '”"'):
                spans.append((opened, position + 1 if sign not in '”"“」』»' else position))
                closer = ""
            elif position - opened > _MAX_NESTED:
                closer = ""
        elif sign in _OPENING:
            closer, opened = _OPENING[sign], position
        elif sign == '"' and (not position or not text[position - 1].isalnum()):
            closer, opened = '"', position
    return spans


def _struck(text: str) -> list[tuple[int, int]]:
    if "~~" not in text:
        return []
    code = code_spans(text)
    spans: list[tuple[int, int]] = []
    opened = -1
    inside = 0
    for match in _TILDES.finditer(text):
        at = match.start()
        while inside < len(code) and code[inside][1] <= at:
            inside += 1
        if inside < len(code) and code[inside][0] <= at:
            continue
        if opened >= 0 and not text[at - 1].isspace() and at > opened + 2:
            spans.append((opened, match.end()))
            opened = -1
        elif opened < 0 and match.end() < len(text) and not text[match.end()].isspace():
            opened = at
    return spans


__all__ = ["correction_lead", "split_sentences", "statements_of", "strip_annotations", "struck_spans", "without_struck"]
