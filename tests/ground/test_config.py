"""Settings: the file, the agent's own table, the environment; a wrong one is said in one line with the cure."""

from pathlib import Path

import pytest

from recall_runtime.config import Settings, Weights, configured_agents, load_settings
from recall_runtime.errors import ConfigError


def _write(home: Path, text: str) -> None:
    (home / "dreamline.toml").write_text(text, encoding="utf-8")


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(tmp_path, "main", {}) == Settings()


def test_the_agent_s_table_wins_over_the_file_and_the_environment_over_both(tmp_path: Path) -> None:
    _write(tmp_path, "[search]\nmax_results = 7\nmmr = true\n[agents.ops.search]\nmax_results = 8\n")
    environ = {"DREAMLINE_SEARCH__HALF_LIFE_DAYS": "9.5"}
    ops, main = load_settings(tmp_path, "ops", environ), load_settings(tmp_path, "main", environ)
    assert (ops.search.max_results, ops.search.mmr, ops.search.half_life_days) == (8, True, 9.5)
    assert (main.search.max_results, main.search.mmr, main.search.half_life_days) == (7, True, 9.5)


@pytest.mark.parametrize("name", ["DREAMLINE_HOME", "DREAMLINE_AGENT", "DREAMLINE_UI_PORT", "DREAMLINE_HTTP_TOKEN"])
def test_variables_that_are_no_settings_are_left_alone(name: str, tmp_path: Path) -> None:
    assert load_settings(tmp_path, "main", {name: "x", "PATH": "/bin"}) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timezon = 'UTC'", "unknown setting 'timezon'. Did you mean 'timezone'?"),
        ("[search]\nmax_result = 3", "unknown setting 'search.max_result'. Did you mean 'search.max_results'?"),
        ("[search]\nmax_results = 0", "setting 'search.max_results' is wrong"),
        ("[embedder]\nname = 'word2vec'", "setting 'embedder.name' is wrong"),
        ("[search", "can't be read as TOML"),
        ("search = 3", "setting 'search' is wrong"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path, "main", {})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_variable_is_named_like_a_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"recall\.timeout_ms.*Correct the value"):
        load_settings(tmp_path, "main", {"DREAMLINE_RECALL__TIMEOUT_MS": "soon"})


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("", ("main",)),
        ("workspace = '/w'", ("main",)),
        ("workspace = '/w'\n[agents.ops]\nworkspace = '/o'", ("main", "ops")),
        ("[agents.ops]\nworkspace = '/o'\n[agents.home]\nworkspace = '/h'", ("ops", "home")),
    ],
)
def test_agents_are_those_with_a_workspace(text: str, agents: tuple[str, ...], tmp_path: Path) -> None:
    _write(tmp_path, text)
    assert configured_agents(tmp_path) == agents


def test_the_weights_of_the_six_signals_sum_to_one() -> None:
    assert sum(Weights().model_dump().values()) == pytest.approx(1)
