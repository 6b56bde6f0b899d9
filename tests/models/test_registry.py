"""From settings to a client."""

import pytest

from recall_runtime.config import ModelSettings
from recall_runtime.errors import ModelError
from recall_runtime.models.registry import model_from


def test_provider_none_means_no_model() -> None:
    assert model_from(ModelSettings()) is None


@pytest.mark.parametrize(
    ("settings", "environ", "says"),
    [
        ({"provider": "ollama"}, {}, "Set model.model"),
        ({"provider": "openai-compatible", "model": "m"}, {}, "Set model.base_url"),
        ({"provider": "ollama", "model": "m", "base_url": "localhost:1"}, {}, "Begin it with http://"),
        ({"provider": "anthropic", "model": "m", "api_key_env": "K"}, {}, "environment variable K holds no key"),
        ({"provider": "anthropic", "model": "m", "api_key_env": "K"}, {"K": " "}, "holds no key"),
        ({"provider": "anthropic", "model": "m", "api_key_env": "K"}, {"K": "a\nb"}, "unprintable"),
    ],
)
def test_incomplete_settings_name_the_cure(settings: dict[str, str], environ: dict[str, str], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        model_from(ModelSettings(**settings), environ=environ)


@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "ollama"])
def test_name_is_provider_and_model(provider: str) -> None:
    settings = ModelSettings(provider=provider, model="m", base_url="http://127.0.0.1:1/v1")
    model = model_from(settings)
    assert model is not None
    assert model.name == f"{provider}/m"
