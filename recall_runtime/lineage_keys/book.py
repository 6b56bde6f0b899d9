"""The deterministic lineage key of a claim: what it is about, so that a newer value meets the older one.

Belongs here: subject and slots of a claim, the book of keys given so far.
Does not belong here: finding values in a sentence (``specifics``), when one claim retires another (``succession``).

A key is, in this order:

1. ``given:<key>``: the writer named it (``supersedes_key``).
2. ``<subject>|<slots>``: the subject is the known project that the text names, else the project of its annotation or
   heading (``project_key``), else the proper names in the text; the slots are the masked shapes of its values. Only
   when all slots are strong, that is when the shape itself carries a name.
3. ``<subject>|<slots>|<claim id>``: the same with a weak slot (a bare number, a number with a unit, a host). Such
   claims share a key only when they also share most of their attribute words; the id is that of the first of them.
   Where the subject is but a proper name, every slot is weak, and one claim must hold all attribute words of the
   other: whoever confirmed a value is named as well as what it belongs to, and the two can't be told apart.

No subject or no value: no key, the claim never retires anything. Keys are equal across languages because shapes
and names are; paraphrases of a weak slot in another language stay apart, which errs on the side of keeping both.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from recall_runtime.lineage_keys.specifics import Specifics, letter_words, specifics_of
from recall_runtime.lineage_keys.succession import GIVEN, corrects
from recall_runtime.notes.identity import common_words, shares_subject
from recall_runtime.text.words import index_text

NAMED = "name:"
_ALL = 1.0
_MOST = 0.6  # share of the smaller statement's attribute words that two weak claims must have in common
_SHORTEST_NAME = 2  # characters; a name must be longer
_LARGEST_SET = 3  # a statement with more distinct slots is a report, not a fact with a value


@dataclass(frozen=True, slots=True)
class LineageClaim:
    """What the key of a claim is made from. ``project_key`` may hold several keys joined by ``; ``.

    ``is_correction``: a place that states it says so, even if ``text`` is the wording of another place.
    """

    claim_id: str
    text: str
    project_key: str | None = None
    given_key: str | None = None
    is_correction: bool = False


@dataclass(slots=True)
class _Peer:
    key: str
    words: frozenset[str]


@dataclass(slots=True)
class LineageBook:
    """Keys of claims in the order in which they are asked for with ``key_of``.

    Args:
        projects: Known project keys; the last part of each is the name by which a text mentions it.
        stored: Gives the text and key of all stored claims whose key begins with ``<subject>|<slots>|``.
    """

    projects: Iterable[str] = ()
    stored: Callable[[str], Iterable[tuple[str, str]]] = lambda _: ()
    _names: dict[str, str] = field(default_factory=dict)
    _peers: dict[str, list[_Peer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the projects by name."""
        self._names.update(project_names(self.projects))

    def key_of(self, claim: LineageClaim) -> str | None:
        """Return the key of ``claim``, or ``None`` when nothing says what it is about. Remembers the claim."""
        if claim.given_key:
            return given_key(claim.given_key)
        specifics = specifics_of(claim.text)
        coarse = self._coarse(claim, specifics)
        named = coarse is not None and coarse.startswith(NAMED)
        if coarse is None or (specifics.strong and not named):
            return coarse
        words = self._attributes(claim.text, specifics)
        peers = self._peers_of(coarse)
        near = max(peers, key=lambda peer: _overlap(peer.words, words), default=None)
        correction = claim.is_correction or corrects(claim.text)
        alone = correction and not named and len({peer.key for peer in peers}) == 1
        joined = near is not None and (alone or _overlap(near.words, words) >= (_ALL if named else _MOST))
        key = near.key if near is not None and joined else f"{coarse}|{claim.claim_id}"
        peers.append(_Peer(key, words))
        return key

    def projects_of(self, claim: LineageClaim) -> str:
        """Return the known projects that ``claim`` is about, joined by ``; ``; empty when nobody said which."""
        subject = self.subject_of(claim, specifics_of(claim.text))
        return "" if subject is None or subject.startswith(NAMED) else subject

    def may_be_one(self, first: LineageClaim, second: LineageClaim) -> bool:
        """Return whether two claims may be about the same thing: what a model may supersede beyond equal keys.

        Subject and slots are equal. Where no project is known, the texts must name the same thing instead.
        """
        coarse = self._coarse(first, specifics_of(first.text))
        if coarse is not None and coarse == self._coarse(second, specifics_of(second.text)):
            return True
        slots = specifics_of(first.text).slots
        if not slots or slots != specifics_of(second.text).slots:
            return False
        known = self.projects_of(first) or self.projects_of(second)
        return not known and shares_subject(first.text, second.text)

    def _coarse(self, claim: LineageClaim, specifics: Specifics) -> str | None:
        slots = specifics.slots
        if not slots or len(slots) > _LARGEST_SET:
            return None
        subject = self.subject_of(claim, specifics)
        return None if subject is None else f"{subject}|{' & '.join(slots)}"

    def subject_of(self, claim: LineageClaim, specifics: Specifics) -> str | None:
        """Return who or what the claim is about: known projects the text names, its project, or names.

        The text comes first, because a line may stand below the heading of another project, which is then its project.
        """
        named = self.named_in(specifics.words)
        if named:
            return named
        if claim.project_key:
            return "; ".join(sorted(part.strip() for part in claim.project_key.split(";") if part.strip()))
        names = _proper_names(claim.text, specifics)
        return NAMED + " ".join(names) if names else None

    def named_in(self, text: str) -> str:
        """Return the keys of the known projects that ``text`` names, joined by ``; ``; empty when it names none."""
        return "; ".join(sorted({self._names[word] for word in letter_words(text) if word in self._names}))

    def _peers_of(self, coarse: str) -> list[_Peer]:
        if coarse not in self._peers:
            self._peers[coarse] = [
                _Peer(key, self._attributes(text, specifics_of(text))) for text, key in self.stored(coarse + "|")
            ]
        return self._peers[coarse]

    def _attributes(self, text: str, specifics: Specifics) -> frozenset[str]:
        """Return the stems that say which attribute it is: no project names, no proper names, no function words."""
        names = {*self._names, *_proper_names(text, specifics)}
        kept = " ".join(word for word in letter_words(specifics.words) if word not in names)
        return frozenset(index_text(kept).split()) - _FUNCTION_STEMS


def project_names(keys: Iterable[str]) -> dict[str, str]:
    """Return project keys by the folded name by which a text mentions them; a name that two share says nothing."""
    names: dict[str, str] = {}
    shared: set[str] = set()
    for key in keys:
        name = key.rstrip("/").rpartition("/")[2].removesuffix(".git").casefold()
        if len(name) > _SHORTEST_NAME and names.setdefault(name, key) != key:
            shared.add(name)
    return {name: key for name, key in names.items() if name not in shared}


def given_key(key: str) -> str:
    """Return the lineage key for a key that a writer gave."""
    return GIVEN + " ".join(key.removeprefix(GIVEN).split()).casefold()


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    smaller = min(len(first), len(second))
    return len(first & second) / smaller if smaller else 0.0


def _proper_names(text: str, specifics: Specifics) -> tuple[str, ...]:
    """Return names: words in capitals in mid-sentence, or Latin words inside another script. Folded, sorted."""
    left = set(letter_words(specifics.words))
    foreign = sum(sign.isalpha() and sign >= "\u0370" for sign in text)
    names = set()
    start = True
    for token in text.split():
        word = token.strip("\"'“”‘’„«»()[]{}*_`.,;:!?")
        folded = word.casefold()
        mixed = any(sign.isupper() for sign in word[1:]) and any(sign.islower() for sign in word)
        capital = word[:1].isupper() and not word.isupper() and not start
        if word.isalpha() and len(word) > 2 and folded in left and (mixed or capital):
            names.add(folded)
        start = token.endswith((".", "!", "?", ":"))
    if foreign > len(text) // 3:
        names |= {word for word in left if word.isascii() and len(word) > 2}
    return tuple(sorted(names - _FUNCTION_WORDS - common_words()))


_FUNCTION_WORD_LIST = (
    "the and for with from this that are was were has have had not now since until then than they them our your his her"
    " its all any only but was will must may can should would is it on in at of to by as be or an a i we you he she no"
    " use uses used using"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
_FUNCTION_STEMS = frozenset(index_text(" ".join(sorted(_FUNCTION_WORDS))).split())
