"""The questions of generated corpora: is the answer among the first six, and does anything stale or untrusted lead?

Belongs here: reading questions and truth of a corpus, the state of its workspace, the measures.
Does not belong here: making corpora; ``--corpus`` names one, or a folder of them. Ranking was tuned on seeds 11 and 12;
report seeds 1 to 5.

A question counts as *same language* when a note states the answer in the language of the question, else as *other
language*. States of a workspace are asked: ``notes`` as the corpus leaves them, ``curated`` with the lasting facts in
``MEMORY.md``, where the nights of a year should put them, and with ``--replayed FOLDER`` also ``replayed``: what the
nights did put there, in the workspace that ``replay.py CORPUS --out FOLDER/<name of the corpus>`` left.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from benchmarks.grading import holds
from benchmarks.inputs import skipped
from recall_runtime.agent import Agent
from recall_runtime.clock import FixedClock, parse_instant, zone_of
from recall_runtime.config import Settings
from recall_runtime.index import image
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.hits import SearchHit
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from recall_runtime.paths import AgentFolders
from recall_runtime.storage.connection import open_reader
from recall_runtime.vocabulary import Corpus

FIRST = 6
KINDS = ("current", "episodic", "past", "two_hop")
REPLAYED = "replayed"
STATES = ("notes", "curated", REPLAYED)


@dataclass(slots=True)
class Tally:
    """Counts of the questions of one group."""

    asked: int = 0
    found: int = 0
    stale_above: int = 0
    untrusted_above: int = 0


@dataclass(slots=True)
class Result:
    """Tallies by (kind, same or other language), and questions on poison whose poison came unframed."""

    tallies: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    unframed_poison: int = 0


def corpora(folder: Path) -> list[Path]:
    """Return the corpora at ``folder``: itself, or those in it."""
    if (folder / "truth.json").is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/truth.json"))


def replay_of(corpus: Path, replays: Path | None) -> Path | None:
    """Return the workspace that a replay of ``corpus`` left below ``replays``.

    ``None`` says that there is none; where replays were asked for, the line that it was skipped is printed then.
    """
    if replays is None:
        return None
    workspace = replays / corpus.name / "workspace"
    if workspace.is_dir():
        return workspace
    skipped(f"questions.{REPLAYED}.{corpus.name}", f"replay it with replay.py {corpus} --out {workspace.parent}")
    return None


def ask(corpus: Path, root: Path, *, embedder: str, results: Mapping[str, Result], replayed: Path | None) -> None:
    """Index a copy of ``corpus`` below ``root`` and ask its questions in each state, adding to ``results``.

    ``replayed`` is the workspace that a replay left; without it that state is not asked.
    """
    tree = json.loads((corpus / "truth.json").read_text(encoding="utf-8"))
    shutil.copytree(corpus / "workspace", root / "workspace", symlinks=True)
    sessions = (corpus / "agents/main/sessions").resolve()
    settings = Settings.model_validate({"embedder": {"name": embedder}})
    end = parse_instant(tree["questions"][0]["as_of"] + "T00:00:00Z")
    folders = AgentFolders(root / "home", "main", root / "workspace", (sessions,))
    agent = Agent(folders, settings, zone_of("UTC"), FixedClock(end))
    _ask_all(agent, tree, results["notes"])
    _curate(root / "workspace" / "MEMORY.md", tree["facts"])
    _ask_all(agent, tree, results["curated"])
    if replayed is not None:
        shutil.rmtree(root / "workspace")
        shutil.copytree(replayed, root / "workspace", symlinks=True)
        _ask_all(agent, tree, results[REPLAYED])


def _ask_all(agent: Agent, tree: Mapping[str, Any], result: Result) -> None:
    facts = {fact["id"]: fact for fact in tree["facts"]}
    report = sync(agent)
    assert report.vector_error is None, report.vector_error
    reader = open_reader(agent.folders.index_db, vectors=True)
    kept = image.load(reader)
    model = resolve(agent.settings.embedder)
    for question in tree["questions"]:
        answer = search(
            agent,
            question["ask"],
            max_results=FIRST,
            corpus=Corpus.MEMORY,
            connection=reader,
            embedder=model,
            image=lambda _: kept,
        )
        if question["type"] in KINDS:
            fact = facts[question["facts"][-1]]
            language = "same" if question["lang"] in _languages(fact) else "other"
            _count(result.tallies[question["type"], language], question, fact["needle"], answer.hits)
        elif question["type"] == "poison":
            shown = [hit for hit in answer.hits if any(holds(hit.entry.text, part) for part in question["must_not"])]
            result.unframed_poison += any(not hit.framed for hit in shown)
    reader.close()


def _curate(memory: Path, facts: list[dict[str, Any]]) -> None:
    """Add the facts that last, each as an entry that cites its note."""
    lasting = [fact for fact in facts if fact["expect"] == "promote" and fact["kind"] != "preference"]
    lines: list[str] = []
    for fact in sorted(lasting, key=lambda item: item["mentions"][-1]["day"]):
        mention = fact["mentions"][0]
        text = next(said for said in _statements(fact) if said in mention["text"])
        source = f"Source: {mention['path']}#L{mention['start']}-L{mention['end']}"
        lines += [f"- {text} {source} <!-- importance: {fact['importance']} -->"]
    with memory.open("a", encoding="utf-8", newline="") as stream:
        stream.write("\n" + "\n".join(lines) + "\n")


def _statements(fact: Mapping[str, Any]) -> Iterator[str]:
    for texts in fact["statements"].values():
        yield from texts
    yield str(fact["needle"])


def _languages(fact: Mapping[str, Any]) -> set[str]:
    """Return the languages in which the notes state ``fact``."""
    said = [mention["text"] for mention in fact["mentions"]]
    return {
        language
        for language, texts in fact["statements"].items()
        if any(text in line for text in texts for line in said)
    }


def _count(tally: Tally, question: Mapping[str, Any], needle: str, hits: tuple[SearchHit, ...]) -> None:
    place = next((place for place, hit in enumerate(hits) if holds(hit.entry.text, needle)), None)
    above = hits[:place]
    tally.asked += 1
    tally.found += place is not None
    tally.stale_above += any(value in hit.entry.text for hit in above for value in question["must_not"])
    tally.untrusted_above += any(hit.framed for hit in above)


def figures(name: str, result: Result) -> list[Figure]:
    """Return the figures of one embedder and state."""
    out: list[Figure] = []
    for (kind, language), tally in sorted(result.tallies.items()):
        label = f"{name}.{kind}.{language}_language"
        wanted = ">= 0.95" if language == "same" and kind == "current" else None
        note = f"{tally.asked} questions"
        out.append(Figure(f"{label}.first_6", round(tally.found / tally.asked, 4), "share", target=wanted, note=note))
    sums = Counter[str]()
    for (kind, _), tally in result.tallies.items():
        if kind == "current":
            sums.update(stale=tally.stale_above, untrusted=tally.untrusted_above)
    counted = {f"current.{what}_above": sums[what] for what in ("stale", "untrusted")}
    counted["unframed_poison"] = result.unframed_poison
    return out + [Figure(f"{name}.{what}", count, "questions", target="0") for what, count in counted.items()]


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--corpus", type=Path, action="append", default=[], help="a generated corpus, or a folder of them; repeatable"
    )
    parser.add_argument("--replayed", type=Path, help="folder of replays, named like their corpora")
    parser.add_argument("--embedder", action="append", help="static, minilm, e5, none; may be repeated")
    options = parser.parse_args(argv)
    found = [corpus for folder in options.corpus for corpus in corpora(folder)]
    if not found:
        skipped("questions", "give a corpus with --corpus DIR")
        return 0
    replays = {corpus: replay_of(corpus, options.replayed) for corpus in found}
    for embedder in options.embedder or ["none", "static"]:
        results = {state: Result() for state in STATES}
        for corpus, replayed in replays.items():
            with tempfile.TemporaryDirectory() as folder:
                ask(corpus, Path(folder), embedder=embedder, results=results, replayed=replayed)
        for state, result in results.items():
            if result.tallies:
                emit(figures(f"questions.{embedder}.{state}", result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
