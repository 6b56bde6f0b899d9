"""Grade a replayed workspace against the ground truth of its corpus.

Belongs here: reading ``truth.json``, finding a fact's needle in files, the measures.
Does not belong here: replaying (``benchmarks.replay``), any knowledge of how the product decides.

A needle belongs to one fact alone; a number counts only when no letter or digit touches it. An entry is active when its
line is neither struck nor marked superseded.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROMOTE = {"promote", "promote_from_transcript"}
_STRUCK = re.compile(r"~~.*?~~")
_METADATA = re.compile(r"<!--[^>]*\bstatus:\s*(active|superseded)\b[^>]*-->")
_MARKER = re.compile(r"<!-- openclaw-memory-promotion:(.*?) -->")


@dataclass(frozen=True, slots=True)
class Truth:
    """Facts of a corpus with their expected fate, the lines its curated files start with, the questions asked of it.

    ``kept_lines`` are those of the lines that must stay.
    """

    facts: list[dict[str, Any]]
    secrets: list[str]
    start_lines: frozenset[str]
    kept_lines: frozenset[str]
    traps: list[list[str]]
    questions: list[str]

    @classmethod
    def read(cls, corpus: Path) -> "Truth":
        """Read ``truth.json`` of ``corpus``."""
        tree = json.loads((corpus / "truth.json").read_text(encoding="utf-8"))
        files = [corpus / "workspace" / name for name in ("MEMORY.md", "USER.md")]
        texts = [file.read_text(encoding="utf-8") for file in files]
        start = frozenset(line for text in texts for line in text.splitlines())
        noise = {entry["text"] for entry in tree["seed_memory"] if entry["fate"] == "noise"}
        kept = frozenset(line for text in texts for line in active_entries(text)) - noise
        secrets = [secret["needle"] for secret in tree["secrets"]]
        return cls(
            tree["facts"],
            secrets,
            start,
            kept,
            tree["same_attribute_traps"],
            [each["ask"] for each in tree["questions"]],
        )

    @property
    def never(self) -> list[dict[str, Any]]:
        """Facts that must reach no curated file and no injection."""
        return [fact for fact in self.facts if fact["expect"] == "never"]


def holds(text: str, needle: str) -> bool:
    """Return whether ``text`` holds the fact of ``needle``."""
    if needle not in text or not needle.isdigit():
        return needle in text
    return re.search(rf"(?<![0-9A-Za-z]){needle}(?![0-9A-Za-z])", text) is not None


def active_entries(text: str) -> list[str]:
    """Return the entry lines of a curated file that count: not struck, not superseded, no comment or heading."""
    entries: list[str] = []
    superseded = False
    for line in text.splitlines():
        found = _METADATA.search(line)
        if found:
            superseded = found[1] == "superseded"
            continue
        if not line.strip() or line.lstrip().startswith(("#", "<!--")):
            continue
        if not superseded:
            entries.append(_STRUCK.sub("", line))
        superseded = False
    return entries


def leaks(text: str, truth: Truth) -> list[str]:
    """Return the ids of never-facts and the secrets that ``text`` holds."""
    found = [fact["id"] for fact in truth.never if holds(text, fact["needle"])]
    return found + [f"secret:{index}" for index, secret in enumerate(truth.secrets) if secret in text]


def true_facts_in(memory: str, user: str, truth: Truth) -> set[str]:
    """Return the ids of the facts that stay true for good and stand as active entries."""
    text = "\n".join(active_entries(memory) + active_entries(user))
    return {fact["id"] for fact in truth.facts if fact["expect"] in PROMOTE and holds(text, fact["needle"])}


def grade(memory: str, user: str, truth: Truth, *, ever: Collection[str] = ()) -> dict[str, Any]:
    """Return the measures of the two curated files at the end of a replay.

    ``ever`` holds the true facts that stood in the files after any sweep: one of them that is gone was retired by
    mistake, and so was an entry the files started with. Of each pair of ``same_attribute_traps`` both must
    be there.
    """
    files = {"MEMORY.md": active_entries(memory), "USER.md": active_entries(user)}
    before = {_STRUCK.sub("", line) for line in truth.start_lines}
    written = [line for lines in files.values() for line in lines if line not in before]
    places: dict[str, list[str]] = defaultdict(list)
    for line in written:
        for fact in truth.facts:
            if holds(line, fact["needle"]):
                places[fact["id"]].append(line)
    by_id = {fact["id"]: fact for fact in truth.facts}
    fates = Counter(_fate_of(line, truth) for line in written)
    right = sum(count for fate, count in fates.items() if fate in PROMOTE)
    stale = [by_id[key] for key in places if by_id[key]["expect"] == "superseded"]
    neutral = fates["superseded"] + fates["stale_if_kept"]
    judged = sum(fates.values()) - neutral
    standing = true_facts_in(memory, user, truth)
    there = {line for lines in files.values() for line in lines}
    retired = sorted({*(set(ever) - standing), *(f"start: {line}" for line in truth.kept_lines - there)})
    lasting = sum(fact["expect"] in PROMOTE for fact in truth.facts) + len(truth.kept_lines)
    return {
        "precision": right / judged if judged else 1.0,
        "recall": _share([fact for fact in truth.facts if fact["expect"] == "promote"], places, files),
        "never_in_files": len(leaks(memory + "\n" + user, truth)),
        "stale_active": len(stale),
        "stale_share": len(stale) / max(1, sum(fact["expect"] == "superseded" for fact in truth.facts)),
        "retired_by_mistake": retired,
        "retired_share": len(retired) / max(1, lasting),
        "traps_alive": f"{sum(set(pair) <= standing for pair in truth.traps)}/{len(truth.traps)}",
        "duplicates": sum(len(lines) > 1 for lines in places.values()),
        "entries_by_fate": dict(sorted(fates.items())),
        "per_category": _per_category(truth, places, files),
        "missed": sorted(f["id"] for f in truth.facts if f["expect"] in PROMOTE and not _present(f, places, files)),
        "wrong": sorted(
            {line for line in written if _fate_of(line, truth) in {"below_gate", "removed", "never", "no_fact"}}
        ),
        "stale": sorted(fact["id"] for fact in stale),
    }


def _fate_of(line: str, truth: Truth) -> str:
    found = [fact["expect"] for fact in truth.facts if holds(line, fact["needle"])]
    if not found:
        return "no_fact"
    for fate in ("never", "promote", "promote_from_transcript", "superseded", "stale_if_kept"):
        if fate in found:
            return fate
    return str(found[0])


def _present(fact: dict[str, Any], places: dict[str, list[str]], files: dict[str, list[str]]) -> bool:
    target = "USER.md" if fact["kind"] == "preference" else "MEMORY.md"
    return any(line in files[target] for line in places.get(fact["id"], []))


def _share(facts: list[dict[str, Any]], places: dict[str, list[str]], files: dict[str, list[str]]) -> float:
    return sum(_present(fact, places, files) for fact in facts) / len(facts) if facts else 1.0


def _per_category(truth: Truth, places: dict[str, list[str]], files: dict[str, list[str]]) -> dict[str, str]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for fact in truth.facts:
        groups[f"{fact['cat']}/{fact['expect']}"].append(fact)
    return {
        name: f"{sum(_present(f, places, files) for f in facts)}/{len(facts)}" for name, facts in sorted(groups.items())
    }
