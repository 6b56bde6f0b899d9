"""The deterministic lineage key of a claim: what it is about, so that a newer value meets the older one.

Belongs here: subject and slots of a claim, the book of keys given so far.
Does not belong here: finding values in a sentence (``specifics``), when one claim retires another (``succession``).

A key is, in this order:

1. ``given:<key>``: the writer named it (``supersedes_key``).
2. ``<subject>|<slots>|<claim id>``: the subject is the known project that the text names, else the project of its
   annotation or heading (``project_key``), else the proper names in the text; the slots are the masked shapes of its
   values; the id is that of the first claim of the lineage. A claim joins a lineage of equal subject and slots when its
   words agree with one claim of it and contradict none (``matter``); for a correction that meets but one lineage one
   common word is enough. Where the subject is but a proper name, one claim must hold all words of the other: whoever
   confirmed a value is named as well as what it belongs to, and the two can't be told apart.

No subject or no value: no key, the claim never retires anything. Where the words tell too little, two claims stay
apart, which errs on the side of keeping both.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from recall_runtime.lineage_keys.matter import MOST, Matter, agreement, contradict, matter_of, may_agree
from recall_runtime.lineage_keys.specifics import Specifics, letter_words, specifics_of
from recall_runtime.lineage_keys.succession import GIVEN, NAMED, corrects, matter_under, project_name
from recall_runtime.notes.identity import common_words, shares_subject

_ALL = 1.0
_ANY = 1e-9
_SHORTEST_NAME = 2  # characters; a name must be longer
_LARGEST_SET = 3  # a statement with more distinct slots is a report, not a fact with a value


@dataclass(frozen=True, slots=True)
class LineageClaim:
    """What the key of a claim is made from. ``project_key`` may hold several keys joined by ``; ``.

    ``is_correction``: a place that states it says so, even if ``text`` is the wording of another place.
    ``is_trusted``: it may be promoted; others get a key, but no claim joins or avoids a lineage for their sake.
    """

    claim_id: str
    text: str
    project_key: str | None = None
    given_key: str | None = None
    is_correction: bool = False
    is_trusted: bool = True


@dataclass(frozen=True, slots=True)
class _Peer:
    key: str
    matter: Matter


_Peers = dict[tuple[str, Matter], _Peer]  # by lineage and wording


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
    _peers: dict[str, _Peers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Index the projects by name."""
        self._names.update(project_names(self.projects))

    def key_of(self, claim: LineageClaim) -> str | None:
        """Return the key of ``claim``, or ``None`` when nothing says what it is about. Remembers the claim."""
        if claim.given_key:
            return given_key(claim.given_key)
        coarse = self._coarse(claim)
        if coarse is None:
            return None
        named = coarse.startswith(NAMED)
        matter = matter_under(claim.text, coarse)
        peers = self._peers_of(coarse)
        correction = claim.is_correction or corrects(claim.text)
        alone = correction and not named and len({peer.key for peer in peers.values()}) == 1
        near = _nearest(peers.values(), matter, least=_ANY if alone else _ALL if named else MOST)
        key = near or f"{coarse}|{claim.claim_id}"
        if claim.is_trusted:
            _add(peers, _Peer(key, matter))
        return key

    def projects_of(self, claim: LineageClaim) -> str:
        """Return the known projects that ``claim`` is about, joined by ``; ``; empty when nobody said which."""
        subject = self.subject_of(claim, specifics_of(claim.text))
        return "" if subject is None or subject.startswith(NAMED) else subject

    def may_be_one(self, first: LineageClaim, second: LineageClaim) -> bool:
        """Return whether two claims may be about the same thing: what a model may supersede beyond equal keys.

        Subject and slots are equal, and in one language the words agree in something. Where no project is known, the
        texts must name the same thing instead of an equal subject.
        """
        coarse = self._coarse(first)
        mine, other = matter_under(first.text, coarse), matter_under(second.text, coarse)
        if not mine.slots or mine.slots != other.slots or not may_agree(mine, other):
            return False
        if coarse is not None and coarse == self._coarse(second):
            return True
        known = self.projects_of(first) or self.projects_of(second)
        return not known and shares_subject(first.text, second.text)

    def _coarse(self, claim: LineageClaim) -> str | None:
        slots = matter_of(claim.text).slots
        if not slots or len(slots) > _LARGEST_SET:
            return None
        subject = self.subject_of(claim, specifics_of(claim.text))
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

    def _peers_of(self, coarse: str) -> _Peers:
        if coarse not in self._peers:
            peers = self._peers[coarse] = {}
            for text, key in self.stored(coarse + "|"):
                _add(peers, _Peer(key, matter_under(text, coarse)))
        return self._peers[coarse]


def _add(peers: _Peers, peer: _Peer) -> None:
    """Keep ``peer`` unless its lineage has the wording already: a line said daily with other numbers is kept once."""
    matter = peer.matter
    wording = matter if len(matter.slots) > 1 else replace(matter, values=frozenset())
    peers.setdefault((peer.key, wording), peer)


def _nearest(peers: Iterable[_Peer], matter: Matter, *, least: float) -> str | None:
    """Return the key of the lineage whose words agree most with ``matter``, ``least`` at the least.

    A lineage with a fact that it contradicts is out of the question; several wordings of one value are one fact, and
    one of them that agrees is enough.
    """
    agrees: dict[str, float] = {}
    of_key: dict[str, list[_Peer]] = {}
    for peer in peers:
        of_key.setdefault(peer.key, []).append(peer)
        agrees[peer.key] = max(agrees.get(peer.key, 0.0), agreement(peer.matter, matter))
    for key in sorted((key for key in agrees if agrees[key] >= least), key=lambda key: -agrees[key]):
        denied = {peer.matter.values for peer in of_key[key] if contradict(peer.matter, matter)}
        fitting = [peer.matter for peer in of_key[key] if not contradict(peer.matter, matter)]
        said = {one.values for one in fitting if agreement(one, matter) >= MOST}
        if denied <= said and any(agreement(one, matter) >= least for one in fitting):
            return key
    return None


def project_names(keys: Iterable[str]) -> dict[str, str]:
    """Return project keys by the folded name by which a text mentions them; a name that two share says nothing."""
    names: dict[str, str] = {}
    shared: set[str] = set()
    for key in keys:
        name = project_name(key)
        if len(name) > _SHORTEST_NAME and names.setdefault(name, key) != key:
            shared.add(name)
    return {name: key for name, key in names.items() if name not in shared}


def given_key(key: str) -> str:
    """Return the lineage key for a key that a writer gave."""
    return GIVEN + " ".join(key.removeprefix(GIVEN).split()).casefold()


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
