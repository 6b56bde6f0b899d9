"""What ``status`` and ``doctor`` know: counts out of the two databases, and what is wrong.

Belongs here: read-only counting, and turning it into lines. A part that can't be read says so and the rest goes on.
Does not belong here: repairing (the rooms do it on their own calls), any judgement about memory.
"""

import contextlib
import datetime as dt
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import apsw

from recall_runtime.agent import Agent
from recall_runtime.cli.output import counts, table
from recall_runtime.clock import format_instant
from recall_runtime.errors import DreamlineError
from recall_runtime.index.freshness import compare
from recall_runtime.signals.spool import SPOOL_FILE
from recall_runtime.storage.connection import load_vectors, query
from recall_runtime.storage.schema import Database, read_index, read_state

_HELD_BACK = "held_back:"
_DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")

_READERS = {Database.INDEX: read_index, Database.STATE: read_state}


def condition(agent: Agent, *, deep: bool) -> dict[str, Any]:
    """Return the condition of ``agent`` as plain data. ``deep`` adds the sources one by one."""
    data: dict[str, Any] = {
        "agent": agent.folders.agent_id,
        "workspace": str(agent.workspace),
        "home": str(agent.folders.home),
        "timezone": agent.zone.key,
        "embedder": agent.settings.embedder.name,
        "now": format_instant(agent.clock.now_ms()),
        "next_sweep": next_sweep(agent),
        "index": _part(agent, Database.INDEX, _index) | _against_disk(agent),
        "memory": _part(agent, Database.STATE, _memory),
        "injected": _injected(agent),
    }
    if deep:
        data["index"]["source_list"] = _part(agent, Database.INDEX, _sources).get("sources", [])
        data["memory"]["read_by_source"] = _part(agent, Database.STATE, _accounting).get("sources", [])
    return data


def next_sweep(agent: Agent) -> str:
    """Return when the schedule runs next: the instant for a daily one, else the cron line with its zone."""
    settings = agent.settings.dreaming
    if not settings.enabled:
        return "off (dreaming.enabled is false)"
    daily = _DAILY.fullmatch(settings.frequency.strip())
    if not daily:
        return f"{settings.frequency} ({agent.zone.key})"
    now = dt.datetime.fromtimestamp(agent.clock.now_ms() / 1000, tz=agent.zone)
    due = now.replace(hour=int(daily[2]), minute=int(daily[1]), second=0, microsecond=0)
    if due <= now:
        due += dt.timedelta(days=1)
    return due.isoformat()


def _part(agent: Agent, database: Database, read: Callable[[Agent, apsw.Connection], dict[str, Any]]) -> dict[str, Any]:
    path = agent.folders.index_db if database is Database.INDEX else agent.folders.state_db
    if not path.exists():
        return {"state": "missing", "cure": "Run `dreamline index`."}
    try:
        with contextlib.closing(_READERS[database](path)) as connection:
            return {"state": "ok", **read(agent, connection)}
    except (DreamlineError, apsw.Error) as error:
        return {"state": "unusable", "error": str(error)}


def _index(_agent: Agent, connection: apsw.Connection) -> dict[str, Any]:
    faults: Counter[str] = Counter()
    held_back: Counter[str] = Counter()  # messages left out on purpose, such as scaffolding
    bad: dict[str, str] = {}
    for path, problems, skipped in connection.execute(
        "SELECT path, problems, skipped FROM sources WHERE problems <> '{}' OR skipped IS NOT NULL ORDER BY path"
    ):
        found = json.loads(problems)
        for kind, value in found.items():
            name, is_held_back = kind.removeprefix(_HELD_BACK), kind.startswith(_HELD_BACK)
            (held_back if is_held_back else faults)[name] += value if isinstance(value, int) else 1
        named = [f"{kind} {value}" for kind, value in found.items() if not kind.startswith(_HELD_BACK)]
        if skipped or named:
            bad[path] = skipped or ", ".join(named)
    return {
        "sources": dict(connection.execute("SELECT kind, count(*) FROM sources GROUP BY kind ORDER BY kind")),
        "entries": dict(
            connection.execute(
                "SELECT tier, count(*) FROM entries JOIN sources USING (source_id) GROUP BY tier ORDER BY tier"
            )
        ),
        "origins": dict(connection.execute("SELECT origin_class, count(*) FROM entries GROUP BY 1 ORDER BY 1")),
        "without_vector": _number(connection, "SELECT count(*) FROM entries WHERE embedded = 0"),
        "vectors_refused": _number(connection, "SELECT count(*) FROM entries WHERE embedded = 2"),
        "faults": dict(sorted(faults.items())),
        "held_back": dict(sorted(held_back.items())),
        "sources_with_faults": bad,
    }


def _injected(agent: Agent) -> list[dict[str, Any]]:
    """Return for each curated file its size on disk and in a private conversation, so that a lost tail is seen."""
    from recall_runtime.recall.bootstrap import injected_sizes

    try:
        return [
            {
                "file": item.name,
                "characters": item.raw_chars,
                "injected": item.injected_chars,
                "reason": item.omitted or counts(item.left_out) if item.omitted or item.left_out else "",
            }
            for item in injected_sizes(agent)
        ]
    except (DreamlineError, apsw.Error, OSError) as error:
        return [{"file": "*", "characters": 0, "injected": 0, "reason": str(error)}]


def _against_disk(agent: Agent) -> dict[str, Any]:
    """Return what the disk has that the index has not, counted. Stale answers must not look like clean ones."""
    try:
        report = compare(agent)
    except (DreamlineError, OSError) as error:
        return {"disk": {"state": "unknown", "error": str(error)}}
    counted = {
        "new": len(report.new),
        "changed": len(report.changed),
        "gone": len(report.gone),
        "reclassified": len(report.reclassified),
    }
    behind = any(counted.values()) or report.outdated
    return {"disk": {"state": "behind" if behind else "current", **counted, "rebuild": report.outdated}}


def _sources(_agent: Agent, connection: apsw.Connection) -> dict[str, Any]:
    rows = connection.execute(
        """SELECT s.path, s.kind, count(e.entry_id), s.skipped FROM sources s LEFT JOIN entries e USING (source_id)
            GROUP BY s.source_id ORDER BY s.path"""
    )
    return {"sources": [dict(zip(("path", "kind", "entries", "skipped"), row, strict=True)) for row in rows]}


def _memory(agent: Agent, connection: apsw.Connection) -> dict[str, Any]:
    last = connection.execute(
        """SELECT sweep_id, day, outcome, reason, started_at, finished_at FROM sweeps
            ORDER BY started_at DESC, sweep_id DESC LIMIT 1"""
    ).fetchone()
    names = ("sweep_id", "day", "outcome", "reason", "started_at", "finished_at")
    sweep = dict(zip(names, last, strict=True)) if last else None
    return {
        "claims": dict(connection.execute("SELECT status, count(*) FROM claims GROUP BY 1 ORDER BY 1")),
        "signals": dict(connection.execute("SELECT kind, count(*) FROM signals GROUP BY 1 ORDER BY 1")),
        "recall_events": _number(connection, "SELECT count(*) FROM recall_events"),
        "spooled": _spooled(agent),
        "last_sweep": sweep,
        "gates": _gates(connection, sweep["sweep_id"]) if sweep else [],
        "read": _read(connection, sweep["sweep_id"]) if sweep else {},
        "unfinished_writes": _number(connection, "SELECT count(*) FROM write_journal"),
        "intents": dict(connection.execute("SELECT status, count(*) FROM standing_intents GROUP BY 1 ORDER BY 1")),
        "flushes": dict(connection.execute("SELECT outcome, count(*) FROM flushes GROUP BY 1 ORDER BY 1")),
    }


def _spooled(agent: Agent) -> int:
    """Return how many recalls wait for the next sweep; the host's tasks lie beside them and wait for the host."""
    file = agent.folders.spool / SPOOL_FILE
    return file.read_bytes().count(b"\n") if file.is_file() else 0


def _gates(connection: apsw.Connection, sweep_id: str) -> list[dict[str, Any]]:
    """Return for each gate how many stopped there, and the nearest miss."""
    rows = connection.execute(
        """SELECT coalesce(failed_gate, 'passed'), count(*), max(signal_count), max(unique_queries), max(score)
             FROM gate_scores WHERE sweep_id = ? GROUP BY 1 ORDER BY 2 DESC, 1""",
        (sweep_id,),
    )
    names = ("gate", "claims", "most_signals", "most_queries", "best_score")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _read(connection: apsw.Connection, sweep_id: str) -> dict[str, int]:
    return dict(
        connection.execute(
            "SELECT verdict, sum(lines) FROM accounting WHERE sweep_id = ? GROUP BY 1 ORDER BY 2 DESC, 1", (sweep_id,)
        )
    )


def _accounting(_agent: Agent, connection: apsw.Connection) -> dict[str, Any]:
    rows = connection.execute(
        """SELECT source, verdict, lines FROM accounting WHERE sweep_id =
             (SELECT sweep_id FROM sweeps ORDER BY started_at DESC, sweep_id DESC LIMIT 1) ORDER BY source, verdict"""
    )
    return {"sources": [dict(zip(("source", "verdict", "lines"), row, strict=True)) for row in rows]}


def _number(connection: apsw.Connection, sql: str) -> int:
    return int(query(connection, sql)[0][0])


def condition_lines(data: dict[str, Any]) -> Iterator[str]:
    """Lay out ``condition`` for people."""
    yield f"agent {data['agent']}  workspace {data['workspace']}  zone {data['timezone']}  embedder {data['embedder']}"
    yield f"next sweep  {data['next_sweep']}"
    for item in data["injected"]:
        reason = f" ({item['reason']})" if item["reason"] else ""
        yield f"injected    {item['file']}: {item['injected']} of {item['characters']} characters{reason}"
    index, memory = data["index"], data["memory"]
    for name, part in (("index", index), ("memory", memory)):
        if part["state"] != "ok":
            yield f"{name} {part['state']}: {part.get('error') or part.get('cure')}"
    if index["state"] == "ok":
        yield from _index_lines(index)
    if memory["state"] == "ok":
        yield from _memory_lines(memory)


def _index_lines(index: dict[str, Any]) -> Iterator[str]:
    yield f"indexed     {counts(index['sources'])}"
    disk = index["disk"]
    if disk["state"] == "behind":
        kinds = ("new", "changed", "gone", "reclassified", "rebuild")
        changes = counts({name: int(disk[name]) for name in kinds if disk[name]})
        yield f"on disk     {changes} since the last sync; run `dreamline index`"
    elif disk["state"] == "unknown":
        yield f"on disk     can't be compared: {disk['error']}"
    yield f"entries     {counts(index['entries'])}; by origin {counts(index['origins'])}"
    if index["without_vector"] or index["vectors_refused"]:
        yield f"vectors     {index['without_vector']} missing, {index['vectors_refused']} refused"
    if index["faults"]:
        yield f"faults      {counts(index['faults'])}"
    if index["held_back"]:
        yield f"held back   {counts(index['held_back'])} (messages without words of their own)"
    yield from (f"  {path}: {reason}" for path, reason in index["sources_with_faults"].items())
    if "source_list" in index:
        rows = [(row["path"], row["kind"], row["entries"], row["skipped"]) for row in index["source_list"]]
        yield from ("", *table(("source", "kind", "entries", "skipped"), rows))


def _memory_lines(memory: dict[str, Any]) -> Iterator[str]:
    yield f"claims      {counts(memory['claims'])}"
    recalls = f"{memory['recall_events']} recalls recorded, {memory['spooled']} spooled"
    yield f"signals     {counts(memory['signals'])}; {recalls}"
    if memory["intents"]:
        yield f"intents     {counts(memory['intents'])}"
    if memory["flushes"]:
        yield f"flushes     {counts(memory['flushes'])}"
    if memory["unfinished_writes"]:
        yield f"unfinished writes: {memory['unfinished_writes']}; the next sweep completes them or rolls them back"
    sweep = memory["last_sweep"]
    if sweep is None:
        yield "last sweep  none yet; run `dreamline dream`"
        return
    yield f"last sweep  {sweep['sweep_id']}: {sweep['outcome']}{', ' + sweep['reason'] if sweep['reason'] else ''}"
    yield f"read        {counts(memory['read'])}"
    rows = [
        (row["gate"], row["claims"], row["most_signals"], row["most_queries"], row["best_score"])
        for row in memory["gates"]
    ]
    if rows:
        yield from ("", *table(("gate", "claims", "most signals", "most queries", "best score"), rows))
    if memory.get("read_by_source"):
        places = [(row["source"], row["verdict"], row["lines"]) for row in memory["read_by_source"]]
        yield from ("", *table(("source", "verdict", "statements"), places))


def findings(agent: Agent, *, fix: bool) -> list[dict[str, Any]]:
    """Return what ``doctor`` found: each with ``ok``, what was looked at, and the cure. ``fix`` repairs what is safe.

    Safe is only what can be derived again: taking in what changed, and removing the half-built index of a crash.
    """
    found = [_writable(agent), *_databases(agent), _vector_extension(), _freshness(agent)]
    if fix and not all(item["ok"] for item in found if item["fixable"]):
        from recall_runtime.index.sync import sync

        sync(agent)
        return findings(agent, fix=False)
    return found


def _finding(what: str, ok: bool, detail: str, *, fixable: bool = False) -> dict[str, Any]:
    return {"what": what, "ok": ok, "detail": detail, "fixable": fixable}


def _writable(agent: Agent) -> dict[str, Any]:
    ok = os.access(agent.workspace, os.W_OK)
    return _finding("workspace", ok, str(agent.workspace) + ("" if ok else ": give this user write access"))


def _databases(agent: Agent) -> Iterator[dict[str, Any]]:
    for database, path in ((Database.INDEX, agent.folders.index_db), (Database.STATE, agent.folders.state_db)):
        if not path.exists():
            yield _finding(f"{database} database", False, "missing: run `dreamline index`", fixable=True)
            continue
        try:
            with contextlib.closing(_READERS[database](path)) as connection:
                verdict = str(query(connection, "PRAGMA quick_check")[0][0])
        except (DreamlineError, apsw.Error) as error:
            yield _finding(f"{database} database", False, str(error))
            continue
        cure = "move it away and run `dreamline index`" if database is Database.INDEX else "restore it from a backup"
        yield _finding(f"{database} database", verdict == "ok", "sound" if verdict == "ok" else f"{verdict}: {cure}")


def _vector_extension() -> dict[str, Any]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        loaded = load_vectors(connection)
    detail = "loaded" if loaded else "not loadable here; vectors are scanned without it, with the same answers"
    return _finding("vector extension", True, detail)


def _freshness(agent: Agent) -> dict[str, Any]:
    data = _part(agent, Database.INDEX, _index)
    missing = data.get("without_vector", 0)
    if data["state"] != "ok" or not missing or agent.settings.embedder.name == "none":
        return _finding("vectors", True, "complete")
    return _finding("vectors", False, f"{missing} entries without one: run `dreamline index`", fixable=True)
