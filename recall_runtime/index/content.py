"""What a text says at all: the shapes of its values, and how much of an answer it can be.

Belongs here: the two facts about a text that a search asks of every candidate, decided once when the text is written.
Does not belong here: values and their shapes (``lineage_keys.specifics``), why a sentence is no statement
(``notes.hygiene``), scores (``index.fusion``).
"""

from recall_runtime.vocabulary import Refusal

MARK = "="  # before a shape, so that no term of a question equals it
MAX_SHAPES = 4  # a text with more distinct ones is a report, not a fact with a value
READ = 600  # characters of a long text that are looked at
ECHO = 0.8
PIECE = 0.2  # power of the number of pieces: the best of many draws is high by chance (docs/decisions.md)

_BLOCKS = {"heading": 0.6, "envelope": 0.3, "session_header": 0.3, "managed": 0.6, "code": 0.9}
_REFUSED = {
    Refusal.ENVELOPE: 0.3, Refusal.SESSION_HEADER: 0.3, Refusal.CONTROL_TOKEN: 0.5, Refusal.HEADING: 0.6,
    Refusal.OWN_RECORD: 0.6, Refusal.LABEL_ONLY: 0.6, Refusal.TEMPLATE_SLOT: 0.6, Refusal.DIAGNOSTIC: 0.7,
    Refusal.QUESTION: 0.7, Refusal.ROUTINE: 0.7, Refusal.ECHO: 0.8, Refusal.FRAGMENT: 0.8, Refusal.PLAN: 0.8,
    Refusal.TOO_SHORT: 0.8,
}  # fmt: skip
_SPOKEN = frozenset({Refusal.ENVELOPE, Refusal.SESSION_HEADER, Refusal.CONTROL_TOKEN})  # nothing in a talk either
_SHAPELESS = frozenset({"#", "clock", "date"})  # any text may hold one


def shapes_of(text: str) -> tuple[str, ...]:
    """Return the shapes of the values in ``text``, marked and without blanks (``=jobs.#``, ``=#_eur``), sorted.

    None for a text without values and for one with more than ``MAX_SHAPES`` different ones.
    """
    from recall_runtime.lineage_keys.specifics import specifics_of  # as below: reading an index needs neither

    slots = [slot for slot in specifics_of(text[:READ]).slots if slot not in _SHAPELESS]
    return tuple(MARK + slot.replace(" ", "_") for slot in slots) if len(slots) <= MAX_SHAPES else ()


def substance_of(text: str, block: str, *, recalled: bool, spoken: bool, pieces: int = 1) -> float:
    """Return how much of an answer ``text`` can be at all, 0..1.

    A heading or an envelope says little, an echo is a copy, and neither a question nor a routine line is a fact. One of
    many pieces of a long text is less likely to be the answer than its score says.

    Args:
        text: What is searched.
        block: Kind of the block (``notes.blocks.BlockKind``, ``entry`` or ``message``).
        recalled: Whether it was written in a turn that had recalled memory.
        spoken: Whether it belongs to a talk: there a question or half a sentence says as much as any other line.
        pieces: Into how many pieces the text was cut of which this is one.
    """
    from recall_runtime.notes.hygiene import refusal_of

    said = (ECHO if recalled else 1.0) / float(pieces**PIECE)
    if block in _BLOCKS:
        return said * _BLOCKS[block]
    refusal = refusal_of(" ".join(text[:READ].split()), transcript_form_allowed=spoken)
    if refusal is None or (spoken and refusal not in _SPOKEN):
        return said
    return said * _REFUSED.get(refusal, 1.0)
