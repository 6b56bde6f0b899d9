"""Telling a running UI to load the lineage location again.

Belongs here: the one request, best effort.
Does not belong here: when to send it (the sensor and the runner), what the location shows.
"""

import os
import socket
import warnings

LINEAGE_LOCATION = "lineage"
UI_HOST = "127.0.0.1"
DEFAULT_UI_PORT = 3000
UI_PORT_VARIABLE = "DREAMLINE_UI_PORT"


def ui_port() -> int:
    """Return the port of the UI: ``$DREAMLINE_UI_PORT``, or 3000."""
    value = os.environ.get(UI_PORT_VARIABLE, "")
    return int(value) if value.isdecimal() else DEFAULT_UI_PORT


def reload_lineage(port: int | None = None) -> str | None:
    """Reload the location ``lineage`` of the UI on ``port``; return why it was not done, or ``None``.

    Only that location is touched. Without a UI there is nothing to reload, and that is no error.
    """
    port = ui_port() if port is None else port
    try:
        socket.create_connection((UI_HOST, port), timeout=0.5).close()
    except OSError:
        return f"no UI answers on port {port}"
    from dagster_graphql import DagsterGraphQLClient, DagsterGraphQLClientError, ReloadRepositoryLocationStatus

    try:
        with warnings.catch_warnings():
            # dagster-graphql calls gql by arguments gql calls old; drop when it no longer does
            warnings.simplefilter("ignore", DeprecationWarning)
            client = DagsterGraphQLClient(UI_HOST, port_number=port, timeout=30)
            answer = client.reload_repository_location(LINEAGE_LOCATION)
    except (DagsterGraphQLClientError, OSError, ValueError) as error:
        return f"the UI on port {port} did not reload it ({str(error)[:200] or type(error).__name__})"
    if answer.status is ReloadRepositoryLocationStatus.SUCCESS:
        return None
    return f"the location could not be loaded ({answer.failure_type})"
