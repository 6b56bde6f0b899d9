"""The one exception tree of Dreamline.

Belongs here: exception classes. Each carries one line that names what is wrong and the cure.
Does not belong here: formatting for a terminal (``recall_runtime.cli``), retry policy (the caller).
"""


class DreamlineError(Exception):
    """Base of all errors a user can meet. ``str(error)`` is one line: what is wrong, and the cure.

    Args:
        problem: What is wrong, naming the file or value.
        cure: What to do about it, as an instruction.
    """

    def __init__(self, problem: str, cure: str) -> None:
        self.problem = " ".join(problem.split())
        self.cure = " ".join(cure.split())
        super().__init__(f"{self.problem}. {self.cure}" if self.cure else self.problem)


class ConfigError(DreamlineError):
    """The configuration has an unknown key or a value outside its range."""


class WorkspaceError(DreamlineError):
    """The workspace is missing, unreadable, or not a folder."""


class SourceError(DreamlineError):
    """One source file can't be read as what it claims to be. In a batch it is counted, not raised."""


class StoreError(DreamlineError):
    """A database can't be opened or used."""


class StoreLockedError(StoreError):
    """Another process holds the database or the sweep lock longer than we wait."""


class NewerSchemaError(StoreError):
    """The database was written by a newer version of Dreamline."""


class EmbedderError(DreamlineError):
    """A named embedder is missing, or failed at request time."""


class ModelError(DreamlineError):
    """A model endpoint is missing, refused, timed out, or answered something else than asked."""


class ModelTimeoutError(ModelError):
    """A model gave no complete answer within its limit, or the call was cancelled."""


class ConflictError(DreamlineError):
    """A file changed between the moment its content was read and the moment it was to be replaced."""


class RefusedError(DreamlineError):
    """The request is understood and not allowed (identity, scope, bounds, provenance)."""
