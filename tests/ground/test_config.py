"""Settings: the file, the agent's own table, the environment; a wrong one is said in one line with the cure."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from recall_runtime.config import Settings, Weights, configured_agents, load_settings
from recall_runtime.errors import ConfigError
from recall_runtime.paths import AgentFolders


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
        ("agents = 3", "setting 'agents' is no table"),
        ("[agents]\nmain = 1", "setting 'agents.main' is no table"),
        ("[agents]\nother = 'x'", "setting 'agents.other' is no table"),
        ("[agents.'../x']\ntimezone = 'UTC'", "is no name for an agent"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(text: str, message: str, tmp_path: Path) -> None:
    _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path, "main", {})
    assert message in str(caught.value)
    if "agent" in text:
        with pytest.raises(ConfigError, match="agent"):
            configured_agents(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param(
            {"DREAMLINE_RECALL__TIMEOUT_MS": "soon"},
            r"^DREAMLINE_RECALL__TIMEOUT_MS: setting 'recall\.timeout_ms' is wrong.*Correct the value",
            id="a value that is no number",
        ),
        pytest.param(
            {"DREAMLINE_SERCH__MODE": "x"},
            r"^DREAMLINE_SERCH__MODE: unknown setting 'serch'\. Did you mean 'search",
            id="an unknown section",
        ),
        pytest.param(
            {"DREAMLINE_SEARCH__MOD": "x"},
            r"^DREAMLINE_SEARCH__MOD: unknown setting 'search\.mod'\. Did you mean 'search\.mode'",
            id="an unknown setting",
        ),
        pytest.param(
            {"DREAMLINE_EMBEDDER": "static"}, r"^DREAMLINE_EMBEDDER: setting 'embedder'", id="a text for a section"
        ),
        pytest.param(
            {"DREAMLINE_EMBEDDER": "static", "DREAMLINE_EMBEDDER__NAME": "e5"},
            r"^DREAMLINE_EMBEDDER and DREAMLINE_EMBEDDER__NAME set the same",
            id="a section and a setting of it",
        ),
        pytest.param(
            {"DREAMLINE_EMBEDDER__NAME": "e5", "DREAMLINE_EMBEDDER__NAME__X": "1"},
            r"^DREAMLINE_EMBEDDER__NAME and DREAMLINE_EMBEDDER__NAME__X set the same",
            id="a setting and something in it",
        ),
        pytest.param(
            {"DREAMLINE_RECALL__ALLOWED_CHAT_TYPES": "direct,room"},
            r"^DREAMLINE_RECALL__ALLOWED_CHAT_TYPES: setting 'recall\.allowed_chat_types\.1'",
            id="a wrong item of a list",
        ),
        pytest.param(
            {"DREAMLINE_SOURCES__OWNER_IDS": '["a"'},
            r"^DREAMLINE_SOURCES__OWNER_IDS can't be read as TOML",
            id="half a list",
        ),
        pytest.param(
            {"DREAMLINE_SOURCES__NETWORK_TOOLS": "web"},
            r"^DREAMLINE_SOURCES__NETWORK_TOOLS can't be read as TOML",
            id="a text for a table",
        ),
        pytest.param({"DREAMLINE_": "x"}, r"^DREAMLINE_: unknown setting ''", id="no name at all"),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], message: str, tmp_path: Path) -> None:
    _write(tmp_path, "[search]\nmmr = true\n")
    with pytest.raises(ConfigError, match=message):
        load_settings(tmp_path, "main", environ)


def test_a_fault_of_the_file_is_not_laid_on_a_variable(tmp_path: Path) -> None:
    _write(tmp_path, "[search]\nmax_results = 0\n")
    with pytest.raises(ConfigError, match=r"dreamline\.toml: setting 'search\.max_results'"):
        load_settings(tmp_path, "main", {"DREAMLINE_SEARCH__MMR": "true"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", ("a",)),
        ("a, b ,c", ("a", "b", "c")),
        ("", ()),
        ('["a, b", "c"]', ("a, b", "c")),
        ("[]", ()),
    ],
)
def test_a_list_is_set_with_commas_or_as_in_the_file(value: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    assert load_settings(tmp_path, "main", {"DREAMLINE_SOURCES__OWNER_IDS": value}).sources.owner_ids == expected


def test_a_table_is_set_as_in_the_file_or_item_by_item(tmp_path: Path) -> None:
    whole = load_settings(tmp_path, "main", {"DREAMLINE_SOURCES__NETWORK_TOOLS": '{web = ["get"]}'})
    item = load_settings(tmp_path, "main", {"DREAMLINE_SOURCES__NETWORK_TOOLS__WEB": "get"})
    assert whole.sources.network_tools == item.sources.network_tools == {"web": ("get",)}


@pytest.mark.parametrize(
    "agent_id", ["../../outside", "..", ".", "a/b", "a\\b", "a..b", "", " ", "a\n", "-x", ".x", "C:", "ä", "a\x00"]
)
def test_an_agent_s_name_never_leads_out_of_the_state_folder(agent_id: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no name for an agent"):
        AgentFolders(tmp_path, agent_id, tmp_path)


@pytest.mark.parametrize("agent_id", ["main", "ops-2", "a.b_c", "X"])
def test_plain_names_are_names_of_agents(agent_id: str, tmp_path: Path) -> None:
    assert AgentFolders(tmp_path, agent_id, tmp_path).agent_home == tmp_path / "agents" / agent_id


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


# -- values that need no judge

JUDGE = TypeAdapter(Settings)
trees = st.fixed_dictionaries(
    {},
    optional={
        "workspace": st.sampled_from(["/w", "~/notes", 3, None]),
        "timezone": st.sampled_from(["UTC", 5, True]),
        "search": st.fixed_dictionaries(
            {},
            optional={
                "max_results": st.sampled_from([1, 6, 100, 0, 101, True, 5.0, 5.5, "7", None]),
                "half_life_days": st.sampled_from([30, 0.5, 0, -1, "9.5", float("nan"), float("inf")]),
                "mmr": st.sampled_from([True, False, 1, "yes", "maybe"]),
                "mode": st.sampled_from(["openclaw", "dreamline", "other", 1]),
            },
        )
        | st.just(4),
        "embedder": st.fixed_dictionaries(
            {}, optional={"dimensions": st.sampled_from([8, 7, None, "64"]), "name": st.just("none")}
        ),
        "sources": st.fixed_dictionaries(
            {},
            optional={
                "session_folders": st.sampled_from([["/a", "/b"], [], "/a", [1]]),
                "network_tools": st.sampled_from([{"web": ["get"]}, {}, {"web": "get"}, {1: ["a"]}]),
                "exclude_sessions": st.sampled_from([{"chat_types": ["group"]}, {"chat_types": ["room"]}, {"x": 1}]),
            },
        ),
        "unknown": st.just(1),
    },
)


@settings(deadline=None)
@given(trees)
def test_values_that_need_no_judge_are_taken_like_pydantic_takes_them(tree: dict[str, object]) -> None:
    try:
        expected = JUDGE.validate_python(tree)
    except ValidationError:
        with pytest.raises(ValidationError):
            Settings.model_validate(tree)
        return
    found = Settings.model_validate(tree)
    assert found == expected
    assert repr(found) == repr(expected)
    assert found.model_fields_set == set(tree)
    assert found.search.model_fields_set == set(tree.get("search", ()))  # type: ignore[call-overload]  # a mapping here


def test_a_usual_file_is_read_without_pydantic(tmp_path: Path) -> None:
    _write(
        tmp_path, 'workspace = "/w"\ntimezone = "Europe/Berlin"\n[embedder]\nname = "static"\n[search]\nmmr = true\n'
    )
    code = (
        "import sys; from pathlib import Path; from recall_runtime.config import load_settings;"
        " made = load_settings(Path(sys.argv[1]), 'main', {});"
        " print(made.search.mmr, made.embedder.model_fields_set, 'pydantic' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True", "{'name'}", "False"]


def test_a_copy_with_other_values_leaves_the_first_as_it_was() -> None:
    first = Settings.model_validate({"search": {"mmr": True}})
    second = first.model_copy(update={"search": first.search.model_copy(update={"max_results": 9})})
    assert (second.search.max_results, second.search.mmr, first.search.max_results) == (9, True, 6)
    assert second.search.model_fields_set == {"mmr", "max_results"}
    assert first.search.model_fields_set == {"mmr"}


def test_settings_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().timezone = "UTC"  # type: ignore[misc]  # that is what is refused
