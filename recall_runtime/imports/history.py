"""The recall history an OpenClaw workspace keeps in files.

Belongs here: ``memory/.dreams/events.jsonl`` and ``short-term-recall.json`` (real-workspaces 4, 5).
Does not belong here: storing (``openclaw``), scoring.

Only what a question surfaced counts. The sweep's own bookkeeping, which makes up most of real logs, is left out and
counted.
"""

import datetime as dt
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from recall_runtime.clock import day_of, start_of_day_ms
from recall_runtime.paths import MACHINE_FOLDER, normalise, tier_of
from recall_runtime.provenance.paths import classify_path
from recall_runtime.storage.atomic import read_bytes
from recall_runtime.text.escaping import cut
from recall_runtime.text.lines import read_lines
from recall_runtime.text.redaction import redact
from recall_runtime.transcripts.rows import RowReader
from recall_runtime.transcripts.timestamps import instant_of
from recall_runtime.transcripts.values import mapping
from recall_runtime.vocabulary import OriginClass, Tier

MAX_TEXT = 800
_NOON_MS = 12 * 3_600_000
_MAX_LINES = 200
_TIERS = frozenset({Tier.EPISODIC, Tier.CURATED, Tier.IMPORTS})


@dataclass(frozen=True, slots=True)
class Hit:
    """One shown result. ``score`` is 0..1; ``text`` is redacted and at most 800 characters."""

    path: str
    start_line: int
    end_line: int
    score: float
    text: str
    origin_class: OriginClass


@dataclass(frozen=True, slots=True)
class RecallEvent:
    """One question with what it surfaced. ``query`` is empty where only its hash is known."""

    at: int
    day: str
    query: str
    query_hash: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class RecallHistory:
    """All questions of a workspace, by time, and the counts of what was left out."""

    events: tuple[RecallEvent, ...]
    skipped: Mapping[str, int]


def query_hash(query: str) -> str:
    """Return the first 12 hex digits of the SHA-1 of the trimmed, lower-cased query (openclaw-algorithms 17.2)."""
    return hashlib.sha1(query.strip().lower().encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]


def read_history(workspace: Path, zone: ZoneInfo) -> RecallHistory:
    """Return the history of ``workspace``: the event log, and from the older store what the log does not hold."""
    skipped: Counter[str] = Counter()
    notes = _Notes(workspace)
    events = list(_logged(workspace / MACHINE_FOLDER / "events.jsonl", notes, zone, skipped))
    logged = {(hit.path, hit.start_line, event.query_hash) for event in events for hit in event.hits}
    events += _stored(workspace / MACHINE_FOLDER / "short-term-recall.json", notes, zone, logged, skipped)
    return RecallHistory(tuple(sorted(events, key=lambda event: (event.at, event.query_hash))), dict(skipped))


class _Notes:
    """Lines of the notes that hits point at, each file read once."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._lines: dict[str, list[str]] = {}

    def hit(self, path: str, start: int, end: int, score: float, shown: str | None = None) -> Hit:
        text = shown or "\n".join(self._read(path)[start - 1 : min(end, start + _MAX_LINES)])
        origin = classify_path(self._workspace, path).origin_class
        return Hit(path, start, max(start, end), score, cut(redact(text), MAX_TEXT), origin)

    def _read(self, path: str) -> list[str]:
        if path not in self._lines:
            escapes = classify_path(self._workspace, path).escapes
            try:
                data = b"" if escapes else read_bytes(self._workspace / path) or b""
            except OSError:
                data = b""
            self._lines[path] = [line.text for line in read_lines(data).lines]
        return self._lines[path]


def _logged(file: Path, notes: _Notes, zone: ZoneInfo, skipped: Counter[str]) -> Iterator[RecallEvent]:
    rows = RowReader(file)
    try:
        for row in rows:
            if row.value.get("type") != "memory.recall.recorded":
                continue
            query, at = row.value.get("query"), instant_of(row.value.get("timestamp"))
            results = row.value.get("results")
            if not isinstance(query, str) or not query.strip() or at is None or not isinstance(results, list):
                skipped["damaged"] += 1
                continue
            if query.startswith("__dreaming_"):
                skipped["own_bookkeeping"] += 1
                continue
            hits = tuple(_hits(results, notes, skipped))
            if hits:
                yield RecallEvent(at, day_of(at, zone).isoformat(), redact(query), query_hash(query), hits)
    except FileNotFoundError:
        return
    except OSError:
        skipped["unreadable_file"] += 1
    skipped["damaged"] += rows.faults.total()


def _hits(results: list[Any], notes: _Notes, skipped: Counter[str]) -> Iterator[Hit]:
    for result in results:
        place = _place(mapping(result))
        score = mapping(result).get("score")
        if place is None:
            skipped["damaged"] += 1
        elif tier_of(place[0]) not in _TIERS:
            skipped["not_memory"] += 1
        else:
            yield notes.hit(*place, _unit(score))


def _place(row: Mapping[str, Any]) -> tuple[str, int, int] | None:
    path, start, end = row.get("path"), _line(row.get("startLine")), _line(row.get("endLine"))
    if not isinstance(path, str) or start is None or end is None:
        return None
    return normalise(path), start, max(start, end)


def _line(value: object) -> int | None:
    is_line = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10_000_000
    return int(value) if is_line and isinstance(value, int) else None


def _unit(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return min(1.0, max(0.0, float(value))) if is_number and value == value and abs(value) < 1e300 else 0.0


def _stored(
    file: Path, notes: _Notes, zone: ZoneInfo, logged: set[tuple[str, int, str]], skipped: Counter[str]
) -> list[RecallEvent]:
    """Return one event for each day and question hash of the older store, with all entries it surfaced."""
    try:
        tree = json.loads(read_bytes(file) or b"{}")
    except (ValueError, RecursionError):
        skipped["damaged"] += 1
        return []
    except OSError:
        skipped["unreadable_file"] += 1
        return []
    found: dict[tuple[str, str], list[Hit]] = defaultdict(list)
    for entry in mapping(mapping(tree).get("entries")).values():
        row = mapping(entry)
        place = _place(row)
        if place is None:
            skipped["damaged"] += 1
            continue
        if tier_of(place[0]) not in _TIERS:
            skipped["not_memory"] += 1
            continue
        days = [day for day in _texts(row.get("recallDays")) if _is_day(day)]
        score = _unit(round(_number(row.get("totalScore")) / max(1.0, _signals(row)), 4))
        shown = row.get("snippet")
        for at, digest in enumerate(_question_hashes(row)):
            if days and (place[0], place[1], digest) not in logged:
                hit = notes.hit(*place, score, shown if isinstance(shown, str) else None)
                found[days[at % len(days)], digest].append(hit)
    return [
        RecallEvent(start_of_day_ms(dt.date.fromisoformat(day), zone) + _NOON_MS, day, "", digest, tuple(hits))
        for (day, digest), hits in found.items()
    ]


def _question_hashes(row: Mapping[str, Any]) -> list[str]:
    """Return the hashes of questions a person asked (openclaw-algorithms 17.1)."""
    own = row.get("userQueryHashes")
    if isinstance(own, list):
        return _texts(own)
    swept = _number(row.get("dailyCount")) + _number(row.get("groundedCount"))
    return _texts(row.get("queryHashes")) if swept == 0 and _number(row.get("recallCount")) > 0 else []


def _signals(row: Mapping[str, Any]) -> float:
    return sum(_number(row.get(key)) for key in ("recallCount", "dailyCount", "groundedCount"))


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value == value and 0 <= value < 1e9 else 0.0


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str) and 0 < len(item) <= 64] if isinstance(value, list) else []


def _is_day(text: str) -> bool:
    try:
        return 1971 <= dt.date.fromisoformat(text).year < 9000 and len(text) == 10
    except ValueError:
        return False
