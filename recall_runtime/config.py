"""The settings tree: ``dreamline.toml`` in the state folder, then the environment (``DREAMLINE_SECTION__KEY``).

Belongs here: every option with its default, range and meaning; reading and refusing them.
Does not belong here: secrets. A setting names the environment variable that holds a key, never the key.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recall_runtime.errors import ConfigError

CONFIG_FILE = "dreamline.toml"
_ENV_PREFIX = "DREAMLINE_"
_NOT_SETTINGS = frozenset({"DREAMLINE_HOME", "DREAMLINE_AGENT", "DREAMLINE_UI_PORT", "DREAMLINE_HTTP_TOKEN"})


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EmbedderSettings(Section):
    """Which embedder makes the vectors. Changing it makes the next sync build a new index beside the old."""

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
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    dimensions: int | None = Field(default=None, ge=8, le=8192)
    batch_size: int = Field(default=64, ge=1, le=2048)
    timeout_seconds: float = Field(default=30.0, gt=0)
    cache_entries: int = Field(default=50_000, ge=0)


class SearchSettings(Section):
    """Ranking. The defaults are measured: docs/decisions.md."""

    mode: Literal["dreamline", "openclaw"] = "dreamline"
    max_results: int = Field(default=6, ge=1, le=100)
    min_score: float = Field(default=0.0, ge=0, le=1)
    half_life_days: float = Field(default=30.0, gt=0)
    mmr: bool = False
    mmr_lambda: float = Field(default=0.7, ge=0, le=1)
    remember_across_conversations: bool = False


class LightSettings(Section):
    """Light phase: what is read and how near-duplicates are found."""

    lookback_days: int = Field(default=14, ge=1)
    limit: int = Field(default=1000, ge=0)
    dedupe_similarity: float = Field(default=0.9, ge=0, le=1)


class RemSettings(Section):
    """REM phase: themes and candidate truths."""

    lookback_days: int = Field(default=7, ge=1)
    limit: int = Field(default=10, ge=0)
    min_pattern_strength: float = Field(default=0.75, ge=0, le=1)


class Weights(Section):
    """Weights of the six signals (openclaw-algorithms 24.2); they sum to 1."""

    relevance: float = Field(default=0.30, ge=0, le=1)
    frequency: float = Field(default=0.24, ge=0, le=1)
    diversity: float = Field(default=0.15, ge=0, le=1)
    recency: float = Field(default=0.15, ge=0, le=1)
    consolidation: float = Field(default=0.10, ge=0, le=1)
    conceptual: float = Field(default=0.06, ge=0, le=1)


class DeepSettings(Section):
    """Deep phase: gates and bounds of the rewrite."""

    limit: int = Field(default=10, ge=0)
    min_score: float = Field(default=0.75, ge=0, le=1)
    min_recall_count: int = Field(default=3, ge=0)
    min_unique_queries: int = Field(default=3, ge=0)
    recency_half_life_days: float = Field(default=14.0, gt=0)
    max_age_days: int = Field(default=30, ge=1)
    max_promoted_snippet_tokens: int = Field(default=160, ge=0)
    max_prior_entry_loss_fraction: float = Field(default=0.25, ge=0, le=1)
    max_added_characters: int = Field(default=4_000, ge=0)
    memory_budget_characters: int = Field(default=10_000, ge=0)
    user_budget_characters: int = Field(default=4_000, ge=0)
    weights: Weights = Weights()


class DreamingSettings(Section):
    """The nightly sweep."""

    enabled: bool = True
    frequency: str = "0 3 * * *"
    storage_mode: Literal["separate", "inline", "both"] = "separate"
    light: LightSettings = LightSettings()
    rem: RemSettings = RemSettings()
    deep: DeepSettings = DeepSettings()


class ModelSettings(Section):
    """The optional model of the consolidation step and of lane 2. ``none`` means: everything deterministic."""

    provider: Literal["none", "openai-compatible", "anthropic", "ollama"] = "none"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    timeout_seconds: float = Field(default=60.0, gt=0)


class TriggerSettings(Section):
    """Lane 1: entries injected because the message matches their trigger phrases."""

    threshold: float = Field(default=0.72, ge=0, le=1)
    max_entries: int = Field(default=3, ge=0, le=20)
    max_characters: int = Field(default=1_800, ge=0)


class RecallSettings(Section):
    """Lane 2: the bounded model recall (openclaw-algorithms 15.1)."""

    mode: Literal["escalate", "always", "off"] = "escalate"
    timeout_ms: int = Field(default=15_000, ge=250, le=120_000)
    query_mode: Literal["message", "recent", "full"] = "recent"
    max_summary_chars: int = Field(default=220, ge=40, le=1_000)
    recent_user_turns: int = Field(default=2, ge=0, le=4)
    recent_assistant_turns: int = Field(default=1, ge=0, le=3)
    recent_user_chars: int = Field(default=220, ge=40, le=1_000)
    recent_assistant_chars: int = Field(default=180, ge=40, le=1_000)
    cache_ttl_ms: int = Field(default=15_000, ge=1_000, le=120_000)
    breaker_max_timeouts: int = Field(default=3, ge=1, le=20)
    breaker_cooldown_ms: int = Field(default=60_000, ge=5_000, le=600_000)
    allowed_chat_types: tuple[Literal["direct", "group", "channel", "explicit"], ...] = ("direct",)


class BootstrapSettings(Section):
    """Budgets of the curated files in a prompt (openclaw-algorithms 30)."""

    max_chars: int = Field(default=20_000, ge=1)
    total_max_chars: int = Field(default=60_000, ge=1)
    user_max_chars: int = Field(default=4_000, ge=1, le=4_000)
    project_max_chars: int = Field(default=2_000, ge=0)


class FlushSettings(Section):
    """Pre-compaction flush (openclaw-algorithms 29)."""

    enabled: bool = True
    reserve_tokens: int = Field(default=20_000, ge=0)
    soft_threshold_tokens: int = Field(default=4_000, ge=0)
    force_transcript_bytes: int = Field(default=2 * 1024 * 1024, ge=0)


class ExcludeSessions(Section):
    """Admission policy: sessions that are never read for dreaming. Exact, case-sensitive values."""

    hook_sources: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    chat_types: tuple[Literal["direct", "group", "channel"], ...] = ()


class SourceSettings(Section):
    """What is read, and who counts as whom."""

    session_folders: tuple[Path, ...] = ()
    owner_ids: tuple[str, ...] = ()
    network_tools: dict[str, tuple[str, ...]] = {}
    local_tools: dict[str, tuple[str, ...]] = {}
    exclude_sessions: ExcludeSessions = ExcludeSessions()
    max_file_bytes: int = Field(default=64 * 1024 * 1024, ge=1)
    stale_after_days: int = Field(default=3, ge=1)


class Settings(Section):
    """All settings of one agent."""

    workspace: Path | None = None
    timezone: str = "UTC"
    embedder: EmbedderSettings = EmbedderSettings()
    search: SearchSettings = SearchSettings()
    dreaming: DreamingSettings = DreamingSettings()
    model: ModelSettings = ModelSettings()
    triggers: TriggerSettings = TriggerSettings()
    recall: RecallSettings = RecallSettings()
    bootstrap: BootstrapSettings = BootstrapSettings()
    flush: FlushSettings = FlushSettings()
    sources: SourceSettings = SourceSettings()


def load_settings(home: Path, agent_id: str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of ``agent_id``: the file's top level, its ``[agents.<id>]`` table, then the environment.

    Raises:
        ConfigError: the file is no TOML, a key is unknown, or a value is out of range.
    """
    path = home / CONFIG_FILE
    tree = _read_tree(path)
    agents = tree.pop("agents", {})
    _merge(tree, agents.get(agent_id, {}))
    _merge(tree, _from_environment(os.environ if environ is None else environ))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise _as_config_error(error, path) from error


def configured_agents(home: Path) -> tuple[str, ...]:
    """Return the agents of a state folder: ``main``, unless only ``[agents.<id>]`` tables name workspaces, then those.

    Raises:
        ConfigError: the file is no TOML.
    """
    tree = _read_tree(home / CONFIG_FILE)
    agents = tree.get("agents", {})
    named = tuple(agents) if isinstance(agents, dict) else ()
    return named if named and "workspace" not in tree else tuple(dict.fromkeys(("main", *named)))


def _read_tree(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} can't be read as TOML ({error})", "Correct the file.") from error


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(_ENV_PREFIX) or name in _NOT_SETTINGS:
            continue
        *sections, key = name.removeprefix(_ENV_PREFIX).lower().split("__")
        node = tree
        for section in sections:
            node = node.setdefault(section, {})
        node[key] = value
    return tree


def _as_config_error(error: ValidationError, path: Path) -> ConfigError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where, _known_keys(Settings), n=1, cutoff=0.0)
        return ConfigError(f"{path}: unknown setting {where!r}", f"Did you mean {near[0]!r}?" if near else "Remove it.")
    return ConfigError(f"{path}: setting {where!r} is wrong ({first['msg']})", "Correct the value.")


def _known_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys.extend(_known_keys(field.annotation, f"{prefix}{name}."))
    return keys
