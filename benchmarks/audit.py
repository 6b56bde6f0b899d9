"""The audit of a month of agent memory, replayed: what of 10,134 entries is promoted, by category.

Belongs here: the seeded month, its nights, counting promoted entries by category.
Does not belong here: anything that tells categories apart; the product sees notes, sessions and questions only.

The month is modelled on the published audit of another memory (mem0ai/mem0 issue 4573): 32 days, one agent, one owner,
10,134 entries, 97.8 % of them junk: 52.7 % restate boot files, 668 are copies of one hallucination that recall fed
back, 5.2 % are invented profiles, and thousands are near duplicates. Where the audit gives no share (scheduled runs,
secrets, passing remarks) ours fill up the number.

Every entry is a line of the day's note, written through the guarded writer in a session of its kind, or the agent's
own reply in a transcript. Every day the owner asks about ten of the true facts in words he has not used before, through
the tool an agent calls; whatever that search shows counts as a recall, junk included. Every night is a real sweep with
the settings as they come. An entry of ``MEMORY.md`` or ``USER.md`` belongs to the category of the line it holds; a
second entry of the same fact is a near duplicate. ``worst night`` is the most of a category that stood there at once.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import Figure, emit
from memory_assets.sweep import run_sweep
from recall_runtime.agent import Agent
from recall_runtime.clock import MS_PER_DAY, FixedClock, format_instant, zone_of
from recall_runtime.config import Settings
from recall_runtime.index.sync import sync
from recall_runtime.notes.annotations import strip_annotations
from recall_runtime.notes.curated import parse_curated
from recall_runtime.notes.writer import append_note
from recall_runtime.paths import AgentFolders
from recall_runtime.recall.tools import memory_search

OWNER_CHAT = "agent:main:telegram:direct:owner-1"
FIRST_DAY = 1_780_300_800_000  # 2026-06-01 08:00 UTC
DAYS = 32
QUESTIONS_A_DAY = 10
HOUR = 3_600_000


class Category(StrEnum):
    """What an entry is. The first is worth keeping; a second entry of a fact is a near duplicate."""

    TRUE = "true facts"
    NEAR = "near duplicates"
    BOOT = "boot-file restatements"
    LOOP = "recall-loop copies"
    SCHEDULED = "heartbeat and cron"
    PROFILE = "invented profiles"
    SECRET = "secrets"
    PASSING = "passing remarks"


def _listed(text: str) -> list[str]:
    return text.split(", ")


AMOUNTS = {
    Category.TRUE: 224,
    Category.NEAR: 1_700,
    Category.BOOT: 5_340,
    Category.LOOP: 668,
    Category.SCHEDULED: 1_160,
    Category.PROFILE: 527,
    Category.SECRET: 115,
    Category.PASSING: 400,
}
_THINGS = _listed(
    "attic window, bike trailer, boiler, camping stove, cello, chest freezer, cider press, coffee grinder, drill press,"
    " dehumidifier, espresso machine, fire pit, garden pump, garage door, greenhouse heater, hedge trimmer, ice maker,"
    " kayak, kiln, label printer, lawn mower, loom, microscope, motor boat, narrow ladder, oboe, patio awning, piano,"
    " pellet stove, projector, quilting frame, rain barrel, record player, roof box, rowing machine, sauna, ski rack,"
    " sewing machine, slide scanner, snow blower, solar inverter, spinning wheel, stair lift, surf board, telescope,"
    " tent trailer, tile saw, tumble dryer, typewriter, vacuum robot, violin, water softener, weather station, zither,"
    " wheelbarrow, wind turbine, wine fridge, wood splitter, workbench, yarn winder"
)
_PEOPLE = _listed("Ada, Bruno, Carla, Dmitri, Elif, Farid, Greta, Henrik, Ines, Jonas, Kaya, Leif, Mirja, Nuno")
_PLACES = _listed("the cellar, the loft, the blue shed, the car port, the pantry, the studio, the old dairy")
_MONTHS = _listed("January, March, April, June, August, September, November")
# (statements of one fact, questions about it); {t} thing, {a} person or place or number, {b} second value
_SHAPES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        (
            "The {t} is serviced by {a} every {b}.",
            "{a} services the {t} every {b}.",
            "Every {b} the {t} is serviced by {a}.",
            "The {t} gets its service from {a} each {b}.",
        ),
        (
            "who services the {t}?",
            "when is the {t} due for service?",
            "whom do I call about service of the {t}?",
            "which month is the {t} serviced?",
            "remind me who looks after the {t}",
            "is it {a} who services the {t}?",
            "service date of the {t}, please",
        ),
    ),
    (
        (
            "The {t} is stored in {a} on shelf {b}.",
            "On shelf {b} in {a} is where the {t} is stored.",
            "The {t} is stored on shelf {b} in {a}.",
            "The {t} has its place in {a}, shelf {b}.",
        ),
        (
            "where is the {t} stored?",
            "which shelf is the {t} on?",
            "where did we put the {t}?",
            "I need the {t}, where is it?",
            "in what place do we keep the {t}?",
            "is the {t} still in {a}?",
            "find the {t} for me",
        ),
    ),
    (
        (
            "The {t} takes filters of type F-{b} from {a}.",
            "Filters for the {t} are type F-{b}, bought from {a}.",
            "The {t} takes type F-{b} filters from {a}.",
            "For the {t} the filters are F-{b}, from {a}.",
        ),
        (
            "which filters does the {t} take?",
            "what type of filter is in the {t}?",
            "where do we buy filters of the {t}?",
            "filter type for the {t}?",
            "I am ordering filters for the {t}, which ones?",
            "does {a} sell the filters of the {t}?",
            "the {t} needs a new filter, what do I get?",
        ),
    ),
)
_BOOT_LINES = (
    "The agent reads SOUL.md, USER.md and the notes of today and yesterday before anything else.",
    "Private things stay private; ask before anything leaves the machine.",
    "Use trash instead of rm so that files can be recovered.",
    "In group chats speak only when spoken to or when something is worth saying.",
    "On a heartbeat answer HEARTBEAT_OK when nothing needs attention.",
    "The workspace is home; treat it that way.",
    "Write it down: mental notes do not survive a restart.",
    "Tools are described in TOOLS.md; skills say how to use them.",
    "The name of the agent is Pebble and its emoji is a stone.",
    "External actions such as mails and posts need a question first.",
)
_BOOT_LEADS = ("Boot: ", "Session start, rules loaded: ", "From AGENTS.md: ", "Remembered from the system prompt: ", "")
_LOOP = "The owner prefers the editor Vim for every file."
_RUNS = ("Nightly backup finished", "Mail check found nothing new", "Calendar scan done", "Disk usage looked at")
_JOBS = _listed("developer, teacher, nurse, lawyer, architect, pilot, baker, designer, chemist, sailor")
_CITIES = _listed("Berlin, Lisbon, Oslo, Austin, Toronto, Kyoto, Porto, Leeds, Lyon, Ghent")
_HOBBIES = _listed("chess, running, pottery, sailing, poker, gardening, climbing, baking, birding")
_SERVICES = _listed("mail, backup, weather, calendar, maps, payments")
_REMARKS = (
    "Looking into it now.",
    "Done, anything else?",
    "That worked on the second try.",
    "Waiting for the download.",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A true fact: the ways in which it is said and asked for."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the month; ``fact`` numbers the true fact that it says."""

    category: Category
    text: str
    fact: int | None = None


def facts(seed: random.Random) -> list[Fact]:
    """Return one fact a thing."""
    out = []
    for place, thing in enumerate(_THINGS):
        statements, questions = _SHAPES[place % len(_SHAPES)]
        by_place = place % len(_SHAPES) == 1
        who = seed.choice(_PLACES if by_place else _PEOPLE)
        value = seed.choice(_MONTHS) if place % len(_SHAPES) == 0 else str(seed.randint(10, 99))
        filled = [tuple(text.format(t=thing, a=who, b=value) for text in part) for part in (statements, questions)]
        out.append(Fact(filled[0], filled[1]))
    return out


def month(seed: random.Random, known: Sequence[Fact]) -> list[list[Line]]:
    """Return the entries of each day; facts come up in the first half, everything else on any day."""
    days: list[list[Line]] = [[] for _ in range(DAYS)]
    born = [seed.randrange(DAYS // 2) for _ in known]
    for category, amount in AMOUNTS.items():
        for number in range(amount):
            if category in (Category.TRUE, Category.NEAR):
                fact = number % len(known)
                day = born[fact] if number < len(known) else seed.randrange(born[fact], DAYS)
                text = known[fact].statements[0] if category is Category.TRUE else _varied(seed, known[fact])
                days[day].append(Line(category, text, fact))
            else:
                days[seed.randrange(DAYS)].append(Line(category, _junk(seed, category)))
    for lines in days:
        seed.shuffle(lines)
    return days


def _varied(seed: random.Random, fact: Fact) -> str:
    lead = seed.choice(("", "As said before: ", "Again: ", "Noted: ", "The owner said: "))
    return lead + seed.choice(fact.statements)


def _junk(seed: random.Random, category: Category) -> str:
    at = f"{seed.randrange(24):02d}:{seed.randrange(60):02d}"
    if category is Category.BOOT:
        return seed.choice(_BOOT_LEADS) + seed.choice(_BOOT_LINES)
    if category is Category.LOOP:
        return _LOOP
    if category is Category.SCHEDULED:
        return f"{seed.choice(_RUNS)} at {at}, {seed.randrange(400)} items."
    if category is Category.PROFILE:
        return (
            f"The owner is a {seed.randint(22, 67)}-year-old {seed.choice(_JOBS)} in {seed.choice(_CITIES)}"
            f" who likes {seed.choice(_HOBBIES)}."
        )
    if category is Category.SECRET:
        return f"The key of the {seed.choice(_SERVICES)} service is sk-{'EXAMPLE' * 3}{seed.randrange(10**12):012d}."
    return f"{seed.choice(_REMARKS)} ({at})"


class Month:
    """The workspace in which the month happens."""

    def __init__(self, folder: Path, embedder: str) -> None:
        self._sessions = folder / "sessions"
        self._sessions.mkdir(parents=True)
        (folder / "workspace" / "memory").mkdir(parents=True)
        (folder / "workspace" / "AGENTS.md").write_text(
            "# AGENTS.md\n\n" + "".join(f"- {line}\n" for line in _BOOT_LINES), encoding="utf-8"
        )
        settings = Settings.model_validate(
            {
                "timezone": "UTC",
                "embedder": {"name": embedder},
                "sources": {"session_folders": (self._sessions,), "owner_ids": ("owner-1",)},
            }
        )
        folders = AgentFolders(folder / "home", "main", folder / "workspace", settings.sources.session_folders)
        self._agent = Agent(folders, settings, zone_of("UTC"), FixedClock(FIRST_DAY))
        self._store: dict[str, Any] = {}

    def at(self, day: int, hour: float) -> Agent:
        """Return the agent ``hour`` hours after the morning of ``day``."""
        return replace(self._agent, clock=FixedClock(FIRST_DAY + day * MS_PER_DAY + round(hour * HOUR)))

    def live(self, day: int, lines: Sequence[Line]) -> None:
        """Write the entries of one day, each in a session of its kind."""
        loop = [line for line in lines if line.category is Category.LOOP]
        scheduled = [line for line in lines if line.category is Category.SCHEDULED]
        own = [line for line in lines if line.category not in (Category.LOOP, Category.SCHEDULED)]
        self._note(day, 1, own, key=OWNER_CHAT)
        for number, key in enumerate(("agent:main:main:heartbeat", "agent:main:cron:nightly")):
            self._note(day, 2 + number, scheduled[number::2], key=key)
        if loop:
            self._loop_session(day, len(loop))
            self._note(day, 5, loop[: len(loop) // 2], key=f"{OWNER_CHAT}:thread:{day}", session_id=f"loop-{day}")

    def _note(self, day: int, hour: float, lines: Sequence[Line], *, key: str, session_id: str | None = None) -> None:
        if lines:
            text = "".join(f"- {line.text}\n" for line in lines)
            append_note(self.at(day, hour), text, session_key=key, session_id=session_id)

    def _loop_session(self, day: int, copies: int) -> None:
        """Write a session in which every turn is given the hallucination as a memory and repeats it."""
        session_id, start = f"loop-{day}", FIRST_DAY + day * MS_PER_DAY + 4 * HOUR
        rows: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": session_id}]
        owner = {"provenance": {"kind": "external_user"}, "__openclaw": {"senderIsOwner": True}}
        for number in range(copies - copies // 2):
            given = [
                {"type": "text", "text": f"<relevant-memories>\n- {_LOOP}\n</relevant-memories>", "injected": True}
            ]
            asked = {"role": "user", "content": [*given, {"type": "text", "text": f"Open file {number}."}], **owner}
            reply = {"role": "assistant", "content": [{"type": "text", "text": _LOOP}]}
            rows += [{"type": "message", "message": message} for message in (asked, reply)]
        for place, row in enumerate(rows):
            row["timestamp"] = format_instant(start + place * 1000)
            row.setdefault("id", f"{session_id}-{place}")
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self._sessions / f"{session_id}.jsonl").write_text(text, encoding="utf-8")
        self._store[f"{OWNER_CHAT}:thread:{day}"] = {"sessionId": session_id, "chatType": "direct"}
        (self._sessions / "sessions.json").write_text(json.dumps(self._store), encoding="utf-8")

    def ask(self, day: int, questions: Sequence[str]) -> None:
        """Let the owner's agent search for ``questions``, which records what is shown."""
        sync(self.at(day, 9))
        for number, question in enumerate(questions):
            agent = self.at(day, 9 + number / 10)
            memory_search(agent, None, question, session_key=OWNER_CHAT, sender="owner-1")

    def night(self, day: int) -> list[str]:
        """Sweep; return the texts of the entries that stand in the curated files."""
        run_sweep(self.at(day, 19), publishing=False)
        return list(self.curated())

    def curated(self) -> Iterator[str]:
        """Yield the text of each curated entry."""
        for name in ("MEMORY.md", "USER.md"):
            file = self._agent.workspace / name
            if file.exists():
                found = parse_curated(file.read_bytes(), user_file=name == "USER.md").entries
                yield from (strip_annotations(entry.text) for entry in found)


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def categories_of(entries: Sequence[str], lines: Sequence[Line]) -> Counter[Category | None]:
    """Return how many of ``entries`` hold a line of each category; ``None`` counts those that hold no line at all."""
    unique = {_letters(line.text): line for line in reversed(lines)}
    out: Counter[Category | None] = Counter()
    seen: set[int] = set()
    for entry in entries:
        letters = _letters(entry)
        held = [line for text, line in unique.items() if text in letters or (len(letters) > 20 and letters in text)]
        found = next((line for line in held if line.fact is not None), held[0] if held else None)
        if found is None or found.fact is None:
            out[found.category if found else None] += 1
            continue
        out[Category.NEAR if found.fact in seen else Category.TRUE] += 1
        seen.add(found.fact)
    return out


def replayed(folder: Path, seed: int, embedder: str) -> tuple[list[Line], list[list[str]], int]:
    """Return all entries, what is curated after each night, and the number of facts."""
    source = random.Random(seed)  # noqa: S311 - a reproducible month
    known = facts(source)
    days = month(source, known)
    asked: Counter[int] = Counter()
    place, nights, said = Month(folder, embedder), list[list[str]](), set[int]()
    for day, lines in enumerate(days):
        said |= {line.fact for line in lines if line.fact is not None}
        place.live(day, lines)
        chosen = sorted(said, key=lambda fact: (asked[fact], source.random()))[:QUESTIONS_A_DAY]
        place.ask(day, [known[fact].questions[asked[fact] % len(known[fact].questions)] for fact in chosen])
        asked.update(chosen)
        nights.append(place.night(day))
    return [line for lines in days for line in lines], nights, len(known)


def main(argv: list[str] | None = None) -> int:
    """Print one JSON line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=4573)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--show", action="store_true", help="print the promoted entries to standard error")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        lines, nights, known = replayed(Path(folder), options.seed, options.embedder)
    if options.show:
        sys.stderr.writelines(f"{entry}\n" for entry in nights[-1])
    written, counted = Counter(line.category for line in lines), [categories_of(night, lines) for night in nights]
    for category in Category:
        emit(
            [
                Figure("written", written[category], "entries", system=category),
                Figure("promoted at the end", counted[-1][category], "entries", system=category),
                Figure("worst night", max(night[category] for night in counted), "entries", system=category),
            ]
        )
    junk = [sum(night.values()) - night[Category.TRUE] for night in counted]
    emit(
        [
            Figure(
                "audit.junk_promoted",
                round(max(bad / max(1, sum(night.values())) for bad, night in zip(junk, counted, strict=True)), 4),
                "share of a night's entries, the worst",
                target="<= 0.02",
            ),
            Figure(
                "audit.junk_other_than_near_duplicates",
                max(bad - night[Category.NEAR] for bad, night in zip(junk, counted, strict=True)),
                "entries, the worst night",
                target="0",
            ),
            Figure("audit.facts_kept", round(counted[-1][Category.TRUE] / known, 4), "share"),
        ]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
