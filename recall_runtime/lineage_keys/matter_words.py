"""The words by which matters are told apart: environments, parts, periods, bounds, directions, idle words.

Belongs here: reading ``matter_words.txt``, turning a statement into listed classes and stems.
Does not belong here: what two statements must share (``matter``), values (``specifics``).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recall_runtime.lineage_keys.specifics import is_unit_or_label, unspaced_labels
from recall_runtime.text.words import fold, stem, stop_words

MARK = "#"  # stands for a value among the words
PAUSE = ","  # stands for a function word and for a sign between clauses
DEFAULT = "=production"  # the environment that nobody has to say
_NUMBERED = "numbered"
_SILENT = frozenset("的了是在用为和与のはがをにでともへやたるす")
_RUN_SIGN = re.compile("[\u3041-\u30fa\u30fc-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The listed words.

    ``kinds`` gives the kind of each class token (``=database`` is a ``part``), ``pattern`` the pieces of a statement;
    ``silent`` are signs that tell nothing.
    """

    exact: dict[str, tuple[str, ...]]
    open: tuple[tuple[re.Pattern[str], str], ...]
    kinds: dict[str, str]
    numbered_words: dict[str, tuple[str, ...]]
    numbered_open: tuple[tuple[re.Pattern[str], str], ...]
    pattern: re.Pattern[str]
    silent: frozenset[str]

    def classes_of(self, word: str) -> tuple[str, ...]:
        """Return the class tokens of a folded word or phrase."""
        exact = self.exact.get(word)
        if exact is not None:
            return exact
        return tuple(dict.fromkeys(token for pattern, token in self.open if pattern.fullmatch(word)))

    def numbered(self, word: str) -> tuple[str, ...]:
        """Return of which kinds of numbered things a folded word is one."""
        return self.numbered_words.get(word, ()) or tuple(
            name for pattern, name in self.numbered_open if pattern.fullmatch(word)
        )


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """Return the listed words, read once."""
    listed = Path(__file__).with_name("matter_words.txt").read_text(encoding="utf-8")
    exact: dict[str, tuple[str, ...]] = {}
    numbered: dict[str, tuple[str, ...]] = {}
    patterns = []
    kinds = {}
    kind = ""
    for line in listed.splitlines():
        if line.startswith("["):
            kind = line.strip("[]")
        elif " = " in line and not line.startswith("#"):
            name, _, entries = line.partition(" = ")
            token = f"={name}"
            into = numbered if kind == "numbered" else exact
            if kind != "numbered":
                kinds[token] = kind
            for entry in entries.split(", "):
                word = fold(entry.strip())
                if "*" in word:
                    patterns.append((re.compile(re.escape(word).replace(r"\*", r"[^\W\d_]*")), name, kind))
                else:
                    into[word] = (*into.get(word, ()), name if kind == "numbered" else token)
    phrases = sorted((word for word in exact if not word.isalpha()), key=len, reverse=True)
    runs = sorted({word for word in (*exact, *unspaced_labels()) if _RUN_SIGN.match(word)}, key=len, reverse=True)
    pattern = re.compile(
        rf"{MARK}|(?P<pause>[,:;.!?()，、：；。！？])|(?<!\w)(?P<phrase>{'|'.join(map(re.escape, phrases))})(?!\w)"
        rf"|(?P<run>{'|'.join(map(re.escape, runs))}|[ァ-ヺー]+|{_RUN_SIGN.pattern})"
        rf"|(?P<word>(?:(?!{_RUN_SIGN.pattern})[^\W\d_])+(?:'[^\W\d_]+)*)"
    )
    return Lexicon(
        exact,
        tuple((compiled, f"={name}") for compiled, name, of in patterns if of != "numbered"),
        kinds,
        numbered,
        tuple((compiled, name) for compiled, name, of in patterns if of == "numbered"),
        pattern,
        _SILENT | frozenset(unspaced_labels()),
    )


def tokens(folded: str) -> list[str]:
    """Return listed words as their class, other words as their stem; no function words, labels and units."""
    listed = lexicon()
    found = []
    for match in listed.pattern.finditer(fold(folded)):
        piece = match[0]
        if piece == MARK:
            found.append(piece)
        elif match.lastgroup == "pause":
            found.append(PAUSE)
        elif match.lastgroup == "phrase":
            found += listed.classes_of(" ".join(piece.split()))
        elif match.lastgroup == "word":
            word = piece.removesuffix("'s")
            classes = listed.classes_of(word)
            if classes:
                found += classes
            elif word in stop_words():
                found.append(PAUSE)
            elif len(word) > 1 and not is_unit_or_label(word):
                found.append(stem(word))
        elif piece not in listed.silent:
            found += listed.classes_of(piece) or [piece]
    return found
