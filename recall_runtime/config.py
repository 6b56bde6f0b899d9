"""The settings tree: ``dreamline.toml`` in the state folder, then the environment (``DREAMLINE_SECTION__KEY``).

Belongs here: every option with its default, range and meaning; reading and refusing them.
Does not belong here: secrets. A setting names the environment variable that holds a key, never the key.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from recall_runtime.errors import ConfigError
from recall_runtime.paths import require_agent_id
from recall_runtime.sections import Range, Section

if TYPE_CHECKING:
    from pydantic import ValidationError

CONFIG_FILE = "dreamline.toml"
_ENV_PREFIX = "DREAMLINE_"
_NOT_SETTINGS = frozenset({"DREAMLINE_HOME", "DREAMLINE_AGENT", "DREAMLINE_UI_PORT", "DREAMLINE_HTTP_TOKEN"})


@dataclass(frozen=True)
class EmbedderSettings(Section):
    """Which embedder makes the vectors. Changing it makes the next sync build a new index beside the old.

    ``automatic``: ``init`` chose the name; where that embedder is missing, words alone answer and say so.
    """

    name: Literal[
        "static",
        "minilm",
        "e5",
        "none",
        "openai",
        "openai-compatible",
        "ollama",
        "lmstudio",
        "gemini",
        "voyage",
        "mistral",
        "deepinfra",
    ] = "static"
    automatic: bool = False
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    dimensions: Annotated[int, Range(ge=8, le=8192)] | None = None
    batch_size: Annotated[int, Range(ge=1, le=2048)] = 64
    timeout_seconds: Annotated[float, Range(gt=0)] = 30.0
    cache_entries: Annotated[int, Range(ge=0)] = 50_000

    @property
    def is_named(self) -> bool:
        """Whether somebody named the embedder: then its failure is an error, else it only degrades."""
        return "name" in self.model_fields_set and not self.automatic


@dataclass(frozen=True)
class SearchSettings(Section):
    """Ranking. The defaults are measured: docs/decisions.md."""

    mode: Literal["dreamline", "openclaw"] = "dreamline"
    max_results: Annotated[int, Range(ge=1, le=100)] = 6
    min_score: Annotated[float, Range(ge=0, le=1)] = 0.0
    half_life_days: Annotated[float, Range(gt=0)] = 30.0
    mmr: bool = False
    mmr_lambda: Annotated[float, Range(ge=0, le=1)] = 0.7
    remember_across_conversations: bool = False


@dataclass(frozen=True)
class LightSettings(Section):
    """Light phase: what is read and how near-duplicates are found."""

    lookback_days: Annotated[int, Range(ge=1)] = 14
    limit: Annotated[int, Range(ge=0)] = 1000
    dedupe_similarity: Annotated[float, Range(ge=0, le=1)] = 0.9


@dataclass(frozen=True)
class RemSettings(Section):
    """REM phase: themes and candidate truths."""

    lookback_days: Annotated[int, Range(ge=1)] = 7
    limit: Annotated[int, Range(ge=0)] = 10
    min_pattern_strength: Annotated[float, Range(ge=0, le=1)] = 0.75


@dataclass(frozen=True)
class Weights(Section):
    """Weights of the six signals (openclaw-algorithms 24.2); they sum to 1."""

    relevance: Annotated[float, Range(ge=0, le=1)] = 0.30
    frequency: Annotated[float, Range(ge=0, le=1)] = 0.24
    diversity: Annotated[float, Range(ge=0, le=1)] = 0.15
    recency: Annotated[float, Range(ge=0, le=1)] = 0.15
    consolidation: Annotated[float, Range(ge=0, le=1)] = 0.10
    conceptual: Annotated[float, Range(ge=0, le=1)] = 0.06


@dataclass(frozen=True)
class DeepSettings(Section):
    """Deep phase: gates and bounds of the rewrite."""

    limit: Annotated[int, Range(ge=0)] = 10
    min_score: Annotated[float, Range(ge=0, le=1)] = 0.75
    min_recall_count: Annotated[int, Range(ge=0)] = 3
    min_unique_queries: Annotated[int, Range(ge=0)] = 3
    recency_half_life_days: Annotated[float, Range(gt=0)] = 14.0
    max_age_days: Annotated[int, Range(ge=1)] = 30
    max_promoted_snippet_tokens: Annotated[int, Range(ge=0)] = 160
    max_prior_entry_loss_fraction: Annotated[float, Range(ge=0, le=1)] = 0.25
    max_added_characters: Annotated[int, Range(ge=0)] = 4_000
    memory_budget_characters: Annotated[int, Range(ge=0)] = 10_000
    user_budget_characters: Annotated[int, Range(ge=0)] = 4_000
    weights: Weights = Weights()


@dataclass(frozen=True)
class DreamingSettings(Section):
    """The nightly sweep."""

    enabled: bool = True
    frequency: str = "0 3 * * *"
    storage_mode: Literal["separate", "inline", "both"] = "separate"
    light: LightSettings = LightSettings()
    rem: RemSettings = RemSettings()
    deep: DeepSettings = DeepSettings()


@dataclass(frozen=True)
class ModelSettings(Section):
    """The optional model of the consolidation step and of lane 2. ``none`` means: everything deterministic."""

    provider: Literal["none", "openai-compatible", "anthropic", "ollama"] = "none"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    timeout_seconds: Annotated[float, Range(gt=0)] = 60.0


@dataclass(frozen=True)
class TriggerSettings(Section):
    """Lane 1: entries injected because the message matches their trigger phrases."""

    threshold: Annotated[float, Range(ge=0, le=1)] = 0.72
    max_entries: Annotated[int, Range(ge=0, le=20)] = 3
    max_characters: Annotated[int, Range(ge=0)] = 1_800


@dataclass(frozen=True)
class IntentSettings(Section):
    """Standing intents. ``vector_trigger``: one also fires on a message that means its words (local embedders only)."""

    vector_trigger: bool = False


@dataclass(frozen=True)
class RecallSettings(Section):
    """Lane 2: the bounded model recall (openclaw-algorithms 15.1)."""

    mode: Literal["escalate", "always", "off"] = "escalate"
    timeout_ms: Annotated[int, Range(ge=250, le=120_000)] = 15_000
    query_mode: Literal["message", "recent", "full"] = "recent"
    max_summary_chars: Annotated[int, Range(ge=40, le=1_000)] = 220
    recent_user_turns: Annotated[int, Range(ge=0, le=4)] = 2
    recent_assistant_turns: Annotated[int, Range(ge=0, le=3)] = 1
    recent_user_chars: Annotated[int, Range(ge=40, le=1_000)] = 220
    recent_assistant_chars: Annotated[int, Range(ge=40, le=1_000)] = 180
    cache_ttl_ms: Annotated[int, Range(ge=1_000, le=120_000)] = 15_000
    breaker_max_timeouts: Annotated[int, Range(ge=1, le=20)] = 3
    breaker_cooldown_ms: Annotated[int, Range(ge=5_000, le=600_000)] = 60_000
    allowed_chat_types: tuple[Literal["direct", "explicit"], ...] = ("direct",)  # a group is given no memory


@dataclass(frozen=True)
class BootstrapSettings(Section):
    """Budgets of the curated files in a prompt (openclaw-algorithms 30)."""

    max_chars: Annotated[int, Range(ge=1)] = 20_000
    total_max_chars: Annotated[int, Range(ge=1)] = 60_000
    user_max_chars: Annotated[int, Range(ge=1, le=4_000)] = 4_000
    project_max_chars: Annotated[int, Range(ge=0)] = 2_000


@dataclass(frozen=True)
class FlushSettings(Section):
    """Pre-compaction flush (openclaw-algorithms 29)."""

    enabled: bool = True
    reserve_tokens: Annotated[int, Range(ge=0)] = 20_000
    soft_threshold_tokens: Annotated[int, Range(ge=0)] = 4_000
    force_transcript_bytes: Annotated[int, Range(ge=0)] = 2 * 1024 * 1024


@dataclass(frozen=True)
class ExcludeSessions(Section):
    """Admission policy: sessions that are never read for dreaming. Exact, case-sensitive values."""

    hook_sources: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    chat_types: tuple[Literal["direct", "group", "channel"], ...] = ()


@dataclass(frozen=True)
class SourceSettings(Section):
    """What is read, and who counts as whom."""

    session_folders: tuple[Path, ...] = ()
    owner_ids: tuple[str, ...] = ()
    network_tools: dict[str, tuple[str, ...]] = field(default_factory=dict)
    local_tools: dict[str, tuple[str, ...]] = field(default_factory=dict)
    exclude_sessions: ExcludeSessions = ExcludeSessions()
    max_file_bytes: Annotated[int, Range(ge=1)] = 64 * 1024 * 1024
    stale_after_days: Annotated[int, Range(ge=1)] = 3


@dataclass(frozen=True)
class Settings(Section):
    """All settings of one agent."""

    workspace: Path | None = None
    timezone: str = "UTC"
    embedder: EmbedderSettings = EmbedderSettings()
    search: SearchSettings = SearchSettings()
    dreaming: DreamingSettings = DreamingSettings()
    model: ModelSettings = ModelSettings()
    triggers: TriggerSettings = TriggerSettings()
    intents: IntentSettings = IntentSettings()
    recall: RecallSettings = RecallSettings()
    bootstrap: BootstrapSettings = BootstrapSettings()
    flush: FlushSettings = FlushSettings()
    sources: SourceSettings = SourceSettings()


def load_settings(home: Path, agent_id: str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of ``agent_id``: the file's top level, its ``[agents.<id>]`` table, then the environment.

    Raises:
        ConfigError: the file is no TOML, a key is unknown, or a value is out of range; it names the file or variable.
    """
    path = home / CONFIG_FILE
    tree = _read_tree(path)
    agents = _agents_in(tree, path)
    tree.pop("agents", None)
    _merge(tree, agents.get(agent_id, {}))
    variables = _variables(os.environ if environ is None else environ)
    _merge(tree, _from_environment(variables))
    try:
        return Settings.model_validate(tree)
    except ValueError as error:  # pydantic's, which is imported only for what is not plainly right
        raise _as_config_error(error, path, variables) from error  # type: ignore[arg-type]  # a ValidationError


def configured_agents(home: Path) -> tuple[str, ...]:
    """Return the agents of a state folder: ``main``, unless only ``[agents.<id>]`` tables name workspaces, then those.

    Raises:
        ConfigError: the file is no TOML, or what it says of agents are no tables.
    """
    path = home / CONFIG_FILE
    tree = _read_tree(path)
    named = tuple(_agents_in(tree, path))
    return named if named and "workspace" not in tree else tuple(dict.fromkeys(("main", *named)))


def _read_tree(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} can't be read as TOML ({error})", "Correct the file.") from error


def _agents_in(tree: Mapping[str, Any], path: Path) -> Mapping[str, Mapping[str, Any]]:
    agents = tree.get("agents", {})
    if not isinstance(agents, Mapping):
        raise ConfigError(f"{path}: setting 'agents' is no table", "Write [agents.NAME] and its settings below.")
    for name, table in agents.items():
        require_agent_id(name)
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"{path}: setting 'agents.{name}' is no table", f"Write [agents.{name}] and its settings below."
            )
    return agents


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


_Place = tuple[str, ...]  # names of sections, and of a setting in the last


def _variables(environ: Mapping[str, str]) -> dict[_Place, tuple[str, Any]]:
    """Return the variables that are settings, by what they set: name and value.

    Raises:
        ConfigError: two set the same, or a list or table can't be read.
    """
    found: dict[_Place, tuple[str, Any]] = {}
    for name, text in sorted(environ.items()):
        if not name.startswith(_ENV_PREFIX) or name in _NOT_SETTINGS:
            continue
        place = tuple(name.removeprefix(_ENV_PREFIX).lower().split("__"))
        found[place] = name, _value_of(name, text, _kind_at(place))
    for place, (name, _) in found.items():
        for size in range(1, len(place)):
            if place[:size] in found:
                raise ConfigError(f"{found[place[:size]][0]} and {name} set the same", "Remove one of the variables.")
    return found


def _value_of(name: str, text: str, kind: Any) -> Any:
    """Return what a variable says: a list with commas or as in TOML, a table as in TOML, else its text."""
    written = text.strip()
    if get_origin(kind) not in (tuple, dict):
        return text
    if not written.startswith(("[", "{")) and get_origin(kind) is tuple:
        return [item.strip() for item in written.split(",") if item.strip()]
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{name} can't be read as TOML ({error})", "Correct the variable.") from error


def _kind_at(place: _Place) -> Any:
    """Return the type of the setting at ``place``, or ``None`` when there is none."""
    kind: Any = Settings
    for name in place:
        if isinstance(kind, type) and issubclass(kind, Section):
            kind = next((known.type for known in fields(kind) if known.name == name), None)  # type: ignore[arg-type]  # a dataclass
        else:
            kind = get_args(kind)[1] if get_origin(kind) is dict else None
    return kind


def _from_environment(variables: Mapping[_Place, tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for (*sections, key), (_, value) in variables.items():
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        node[key] = value
    return tree


def _as_config_error(error: "ValidationError", path: Path, variables: Mapping[_Place, tuple[str, Any]]) -> ConfigError:
    import difflib

    first = error.errors(include_url=False)[0]
    place = tuple(str(part) for part in first["loc"])
    where = ".".join(place)
    said_by = next((name for set_at, (name, _) in variables.items() if _concerns(place, set_at)), str(path))
    if first["type"] == "unexpected_keyword_argument":
        near = difflib.get_close_matches(where, _known_keys(Settings), n=1, cutoff=0.0)
        return ConfigError(
            f"{said_by}: unknown setting {where!r}", f"Did you mean {near[0]!r}?" if near else "Remove it."
        )
    return ConfigError(f"{said_by}: setting {where!r} is wrong ({first['msg']})", "Correct the value.")


def _concerns(place: _Place, set_at: _Place) -> bool:
    """Whether a fault at ``place`` is of what was set at ``set_at``: it, something in it, or a section it is in."""
    shared = min(len(place), len(set_at))
    return place[:shared] == set_at[:shared]


def _known_keys(section: type[Any], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for known in fields(section):
        keys.append(prefix + known.name)
        if isinstance(known.type, type) and issubclass(known.type, Section):
            keys.extend(_known_keys(known.type, f"{prefix}{known.name}."))
    return keys
