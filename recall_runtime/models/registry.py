"""From settings to a client.

Belongs here: choosing the client, reading the key from the named environment variable.
Does not belong here: any request.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from recall_runtime.config import ModelSettings
from recall_runtime.errors import ModelError
from recall_runtime.models import anthropic, ollama
from recall_runtime.models.openai_compatible import OpenAICompatibleModel
from recall_runtime.models.protocol import ChatModel
from recall_runtime.models.transport import Endpoint

if TYPE_CHECKING:
    import httpx


def model_from(
    settings: ModelSettings,
    *,
    environ: Mapping[str, str] | None = None,
    transport: "httpx.AsyncBaseTransport | None" = None,
) -> ChatModel | None:
    """Return the client that ``settings`` name, or ``None`` for provider ``none``.

    Args:
        settings: The ``[model]`` section.
        environ: Where the key is looked up; the process environment by default.
        transport: Another httpx transport, for tests and special networks.

    Raises:
        ModelError: the model's name, the address or the key is missing.
    """
    if settings.provider == "none":
        return None
    if not settings.model:
        raise ModelError(f"No model is named for provider {settings.provider}", "Set model.model in dreamline.toml.")
    key = _key(settings, os.environ if environ is None else environ)
    if settings.provider == "openai-compatible":
        if not settings.base_url:
            raise ModelError("No address is set for the model", "Set model.base_url, such as http://127.0.0.1:8080/v1.")
        endpoint = _endpoint(settings, settings.base_url, _bearer(key), key, transport)
        return OpenAICompatibleModel(endpoint, settings.model, settings.timeout_seconds)
    if settings.provider == "anthropic":
        headers = {"anthropic-version": anthropic.API_VERSION} | ({"x-api-key": key} if key else {})
        endpoint = _endpoint(settings, settings.base_url or anthropic.DEFAULT_BASE_URL, headers, key, transport)
        return anthropic.AnthropicModel(endpoint, settings.model, settings.timeout_seconds)
    endpoint = _endpoint(settings, settings.base_url or ollama.DEFAULT_BASE_URL, _bearer(key), key, transport)
    return ollama.OllamaModel(endpoint, settings.model, settings.timeout_seconds)


def _key(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    if not settings.api_key_env:
        return ""
    key = environ.get(settings.api_key_env, "").strip()
    if not key:
        raise ModelError(
            f"The environment variable {settings.api_key_env} holds no key",
            "Set it, or empty model.api_key_env when the server needs none.",
        )
    if not key.isascii() or not key.isprintable():
        raise ModelError(f"The key in {settings.api_key_env} has unprintable signs", "Copy the key again.")
    return key


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _endpoint(
    settings: ModelSettings,
    base_url: str,
    headers: Mapping[str, str],
    key: str,
    transport: "httpx.AsyncBaseTransport | None",
) -> Endpoint:
    if not base_url.startswith(("http://", "https://")):
        raise ModelError("model.base_url is no web address", "Begin it with http:// or https://.")
    return Endpoint(f"Model {settings.model}", base_url, headers, key, transport)
