"""From settings to an embedder.

Belongs here: the names a configuration may use, and resolving ``auto`` once at ``init``.
Does not belong here: falling back in silence. A named embedder that is missing is an error.
"""

from collections.abc import Callable

from recall_runtime.config import EmbedderSettings
from recall_runtime.errors import EmbedderError
from recall_runtime.index.embedders.protocol import Embedder
from recall_runtime.index.embedders.static import StaticEmbedder


def _minilm() -> Embedder:
    from recall_runtime.index.embedders.minilm import MiniLmEmbedder

    return MiniLmEmbedder()


def _e5() -> Embedder:
    from recall_runtime.index.embedders.e5 import E5Embedder

    return E5Embedder()


_LOCAL: dict[str, Callable[[], Embedder]] = {"static": StaticEmbedder, "minilm": _minilm, "e5": _e5}
_BEST_FIRST = ("minilm", "static")  # e5 is for other languages; choosing it is the user's knowledge


def resolve(settings: EmbedderSettings) -> Embedder | None:
    """Return the embedder the settings name, or ``None`` for ``none`` (keyword lane only).

    Raises:
        EmbedderError: the named embedder isn't installed, or its settings are incomplete.
    """
    if settings.name == "none":
        return None
    local = _LOCAL.get(settings.name)
    if local:
        return local()
    from recall_runtime.index.embedders.remote import RemoteEmbedder

    return RemoteEmbedder(settings)


def best_installed() -> str:
    """Return the name of the best local embedder that is installed, for ``init`` to write down; else ``none``."""
    for name in _BEST_FIRST:
        try:
            _LOCAL[name]()
        except EmbedderError:
            continue
        return name
    return "none"
