"""What ranking needs to know of entries, as parallel arrays: one position an entry, one narrow column each.

Belongs here: the columns, reading them for some entries, who may be seen, age, the neighbours of an entry.
Does not belong here: texts (``index.results`` reads those of the best), scores (``index.fusion``).
"""

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import numpy as np
from numpy.typing import NDArray

from recall_runtime.clock import MS_PER_DAY, day_of, start_of_day_ms
from recall_runtime.index.lanes import Scope
from recall_runtime.paths import PathKind
from recall_runtime.records import INVALID_PROJECT
from recall_runtime.vocabulary import EntryStatus, OriginClass, Tier

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_TIERS = {member.value: place for place, member in enumerate(Tier)}
_ORIGINS = {member.value: place for place, member in enumerate(OriginClass)}
_STATUSES = {member.value: place for place, member in enumerate(EntryStatus)}
SELECT = (
    "SELECT e.entry_id, e.source_id, e.ordinal, e.start_line, e.role IS NOT NULL, e.origin_class,"
    " e.status, e.importance, e.project_key, e.observed_at, s.path, s.tier, julianday(s.day), s.kind,"
    " s.session_key, e.shapes, e.substance"
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of entries. All arrays have the same length.

    ``tiers``, ``origins`` and ``statuses`` hold the position of the member in its closed set; ``paths``, ``projects``,
    ``sessions`` and ``shapes`` hold positions in the texts of the same name. ``path_texts`` are sorted, so the
    positions order entries like their paths do.
    """

    entry_ids: Integers
    source_ids: Integers
    ordinals: Integers
    start_lines: Integers
    tiers: Integers
    origins: Integers
    statuses: Integers
    substance: Floats  # how much of an answer the text can be (``index.content``)
    in_conversation: Flags  # what stands beside it belongs to the same talk
    importances: Floats  # NaN without one
    days: Floats  # Julian day of a dated source; NaN without one
    observed_at: Integers
    from_transcript: Flags
    paths: Integers
    projects: Integers
    sessions: Integers
    shapes: Integers
    path_texts: tuple[str, ...]
    project_texts: tuple[str | None, ...]
    session_texts: tuple[str | None, ...]
    shape_texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.entry_ids)

    def take(self, places: NDArray[Any]) -> "Candidates":
        """Return the entries at ``places`` (positions, or a flag for each)."""
        return replace(self, **{name: getattr(self, name)[places] for name in _ARRAYS})

    def visible(self, scope: Scope) -> Flags:
        """Return who may be found in ``scope``; checked again here whatever SQL and KNN filtered."""
        seen = np.array([tier in scope.tiers for tier in Tier])[self.tiers]
        seen &= np.array([origin in scope.origin_classes for origin in OriginClass])[self.origins]
        if not scope.include_superseded:
            seen &= self.statuses == _STATUSES[EntryStatus.ACTIVE.value]
        valid = np.array([text != INVALID_PROJECT for text in self.project_texts], dtype=bool)
        seen &= valid[self.projects]
        if scope.sessions is not None:
            shown = np.array([text in scope.sessions for text in self.session_texts], dtype=bool)
            seen &= (self.tiers != _TIERS[Tier.SESSIONS.value]) | shown[self.sessions]
        return seen

    def ages(self, now_ms: int, zone: ZoneInfo) -> Floats:
        """Return the age in days of what each source says; NaN for evergreen ones.

        Dated notes of any depth and suffix age by their day, transcripts by the time of the message, both never below
        0. Curated files and undated notes are evergreen.
        """
        today = day_of(now_ms, zone).toordinal() + _JULIAN_OF_ORDINAL_0
        by_message = np.where(self.from_transcript, np.maximum(0, now_ms - self.observed_at) / MS_PER_DAY, np.nan)
        return np.where(np.isnan(self.days), by_message, np.maximum(0.0, today - self.days))

    def within(self, first: dt.date, last: dt.date, zone: ZoneInfo) -> Flags:
        """Return which are of the days from ``first`` to ``last``: messages by their time, dated notes by their day."""
        begin, end = start_of_day_ms(first, zone), start_of_day_ms(last + dt.timedelta(days=1), zone)
        by_message = self.from_transcript & (self.observed_at >= begin) & (self.observed_at < end)
        julian = self.days - _JULIAN_OF_ORDINAL_0
        out: Flags = by_message | ((julian >= first.toordinal()) & (julian <= last.toordinal()))
        return out


_ARRAYS = tuple(name for name in Candidates.__slots__ if not name.endswith("_texts"))
_CODED = {"paths": "path_texts", "projects": "project_texts", "sessions": "session_texts", "shapes": "shape_texts"}
_JULIAN_OF_ORDINAL_0 = 1_721_424.5
_ORDINALS = 1 << 32  # more than the entries of any source
NOBODY = -1  # no entry has this number


def stacked(rows: Sequence[tuple[Any, ...]]) -> Candidates:
    """Return rows of the query above as columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 17
    (ids, sources, ordinals, starts, talks, origins, statuses, importances, projects, observed,
     paths, tiers, days, kinds, sessions, shapes, substance) = columns  # fmt: skip
    path_texts = tuple(sorted(set(paths)))
    return Candidates(
        entry_ids=_integers(ids),
        source_ids=_integers(sources),
        ordinals=_integers(ordinals),
        start_lines=_integers(starts),
        tiers=_integers([_TIERS[tier] for tier in tiers]),
        origins=_integers([_ORIGINS[origin] for origin in origins]),
        statuses=_integers([_STATUSES[status] for status in statuses]),
        substance=_floats(substance),
        in_conversation=np.array(talks, dtype=bool),
        importances=_floats(importances),
        days=_floats(days),
        observed_at=_integers(observed),
        from_transcript=np.array([kind == PathKind.TRANSCRIPT.value for kind in kinds], dtype=bool),
        paths=_coded(paths, path_texts),
        projects=_coded(projects, project_texts := tuple(dict.fromkeys(projects))),
        sessions=_coded(sessions, session_texts := tuple(dict.fromkeys(sessions))),
        shapes=_coded(shapes, shape_texts := tuple(dict.fromkeys(shapes))),
        path_texts=path_texts,
        project_texts=project_texts,
        session_texts=session_texts,
        shape_texts=shape_texts,
    )


def read(connection: apsw.Connection, entry_ids: Iterable[int]) -> Candidates:
    """Return the columns of those of ``entry_ids`` that exist, in the order of their ids."""
    rows = connection.execute(
        f"{SELECT} FROM json_each(?) w JOIN entries e ON e.entry_id = w.value"
        " JOIN sources s ON s.source_id = e.source_id",
        (json.dumps(sorted(set(entry_ids))),),
    )
    return stacked(rows.fetchall())


def read_beside(connection: apsw.Connection, found: Candidates, step: int) -> Integers:
    """Return the entries ``step`` behind each of ``found`` in its source; ``NOBODY`` where there is none."""
    wanted = places_of(found, step).tolist()
    rows = connection.execute(
        "SELECT e.source_id, e.ordinal, e.entry_id FROM json_each(?) w JOIN entries e"
        " ON e.source_id = w.value ->> 0 AND e.ordinal = w.value ->> 1",
        (json.dumps([divmod(place, _ORDINALS) for place in wanted if place >= 0]),),
    )
    known = {source_id * _ORDINALS + ordinal: entry_id for source_id, ordinal, entry_id in rows}
    return _integers([known.get(place, NOBODY) for place in wanted])


def places_of(found: Candidates, step: int = 0) -> Integers:
    """Return one number for each entry that orders entries by source and ordinal; of the entry ``step`` behind it."""
    ordinals = found.ordinals + step
    return np.where(ordinals >= 0, found.source_ids * _ORDINALS + ordinals, -1)


def found_at(ordered: Integers, values: Integers) -> Integers:
    """Return the position of each of ``values`` in ``ordered``, ``NOBODY`` where it is not in it."""
    if not len(ordered):
        return np.full(len(values), NOBODY)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[places] == values, places, NOBODY)


def joined(first: Candidates, second: Candidates) -> Candidates:
    """Return the entries of both, one after the other."""
    columns: dict[str, Any] = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in _ARRAYS}
    for name, known_by in _CODED.items():
        both = getattr(first, known_by), getattr(second, known_by)
        united = tuple(dict.fromkeys(both[0] + both[1]))
        texts = columns[known_by] = tuple(sorted(united)) if name == "paths" else united
        codes = {text: place for place, text in enumerate(texts)}
        recoded = [_integers([codes[text] for text in known]) for known in both]
        columns[name] = np.concatenate([recoded[0][getattr(first, name)], recoded[1][getattr(second, name)]])
    return Candidates(**columns)


def _integers(values: Sequence[Any]) -> Integers:
    return np.array(values, dtype=np.int64)


def _floats(values: Sequence[Any]) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _coded(values: Sequence[Any], texts: Sequence[Any]) -> Integers:
    codes = {text: place for place, text in enumerate(texts)}
    return _integers([codes[value] for value in values])
